package workload

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// SysbenchCPU counts the primes up to a number in each event; threads share the events. Values: TotalTime.
func SysbenchCPU(prime, events, threads int) Program {
	return Program{
		Args: sysbenchRun("cpu", threads, events, "--cpu-max-prime="+strconv.Itoa(prime)),
		Parse: reading("sysbench's report", func(stdout []byte) (Values, error) {
			r, err := readSysbench(stdout)
			if err != nil {
				return nil, err
			}
			return r.cpu(prime, events, threads)
		}),
	}
}

// cpu reads the result of the test cpu.
func (r *sysbenchReport) cpu(prime, events, threads int) (Values, error) {
	limit, err := r.setting("Prime numbers limit: ")
	if err != nil {
		return nil, err
	}
	rate, err := r.number("CPU speed", "events per second")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(r.did(events), r.with(threads)); err != nil {
		return nil, err
	}
	// The rate covers a longer time: on a busy CPU, sysbench may read the clock much later.
	if limit != uint64(prime) || rate*r.seconds > 1.02*float64(events)+rate*20e-3 {
		return nil, fmt.Errorf("%v events a second for %v s, with primes to %d, are not the requested %d events with primes to %d", rate, r.seconds, limit, events, prime)
	}
	return Values{"TotalTime": r.seconds}, nil
}

// SysbenchCPUProgress is SysbenchCPU with a line of progress each second: see IsProgress and Rates.
func SysbenchCPUProgress(prime, events, threads int) Program {
	p := SysbenchCPU(prime, events, threads)
	run := len(p.Args) - 1
	p.Args = append(p.Args[:run:run], "--report-interval=1", p.Args[run])
	return p
}

// IsProgress reports whether a line of sysbench is a report of its progress.
func IsProgress(line string) bool { return strings.HasPrefix(line, "[ ") }

// Rates returns the events a second in each second of a run with progress. The last, incomplete second is left out.
func Rates(stdout []byte) ([]float64, error) {
	var rates []float64
	for line := range bytes.Lines(stdout) {
		if !IsProgress(string(line)) {
			continue
		}
		second, rest, _ := strings.Cut(string(line[2:]), "s ] thds: ")
		if n, err := readWhole(second); err != nil || n != uint64(len(rates)+1) {
			return nil, fmt.Errorf("sysbench's progress: second %d is missing before %q", len(rates)+1, cut(string(line)))
		}
		_, rest, _ = strings.Cut(rest, " eps: ")
		rate, _, found := strings.Cut(rest, " lat (ms,")
		v, err := readDecimal(rate)
		if err != nil || !found {
			return nil, fmt.Errorf("sysbench's progress: %q is not a rate", cut(string(line)))
		}
		rates = append(rates, v)
	}
	if len(rates) == 0 {
		return nil, errors.New("sysbench's progress is missing")
	}
	return rates, nil
}
