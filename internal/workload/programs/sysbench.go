package programs

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

// Sysbench is the path of sysbench in the workload image.
const Sysbench = "/usr/bin/sysbench"

var sysbenchTool = Tool{Name: "sysbench", Packages: []string{"sysbench"}, Files: []string{Sysbench}}

// sysbenchVersion begins the reports that the parser accepts.
const sysbenchVersion = "sysbench 1.0."

// The sections that every report has. An indented line belongs to the section with the title above it, which is not indented.
const (
	sysbenchGeneral  = "General statistics"
	sysbenchLatency  = "Latency (ms)"
	sysbenchFairness = "Threads fairness"
)

// sysbenchReport is the report of sysbench 1.0 at the end of a run, for every test.
type sysbenchReport struct {
	// sections are the fields of each section, by the titles of section and field without the colon.
	sections map[string]map[string]string
	// lines belong to no section: progress, the test's own settings and results.
	lines []string

	threads uint64
	seconds float64 // total time of all threads together, by the clock inside; a multiple of 0.1 ms
	events  uint64
	latency sysbenchTimes
}

// sysbenchTimes are times of single events in seconds. All but mean are rounded to 10 µs.
type sysbenchTimes struct{ min, mean, max float64 }

// sysbench calls a test that ends after a number of events, instead of sysbench's default of ten seconds. The values come from
// parse. The parser refuses a report that is cut off or comes from another version or locale, and a report with a warning, with other
// numbers of events or threads, or with counts and times that contradict each other.
func sysbench(test string, threads, events int, parse func(*sysbenchReport) (workload.Values, error), options ...string) workload.Program {
	args := append([]string{Sysbench, test}, options...)
	args = append(args, "--threads="+strconv.Itoa(threads), "--events="+strconv.Itoa(events), "--time=0", "run")
	return workload.Program{Args: args, Parse: reading("sysbench's report", func(stdout []byte) (workload.Values, error) {
		r := &sysbenchReport{sections: map[string]map[string]string{}}
		if err := r.read(stdout); err != nil {
			return nil, err
		}
		if err := r.check(); err != nil {
			return nil, err
		}
		if r.events != uint64(events) || r.threads != uint64(threads) {
			return nil, fmt.Errorf("sysbench did %d events in %d threads instead of %d in %d", r.events, r.threads, events, threads)
		}
		return parse(r)
	})}
}

// read sorts the lines into sections.
func (r *sysbenchReport) read(text []byte) error {
	var section map[string]string
	for line := range bytes.Lines(text) {
		line := strings.TrimRight(string(line), " \n")
		content := strings.TrimLeft(line, " ")
		for _, complaint := range []string{"WARNING:", "FATAL:", "ALERT:", "CRITICAL:"} {
			if strings.HasPrefix(content, complaint) {
				return fmt.Errorf("it has a warning or an error: %.200q", content)
			}
		}
		name, value, isField := strings.Cut(content, ":")
		switch indented := content != line; {
		case content == "":
		case !indented && isField && value == "":
			if _, duplicate := r.sections[name]; duplicate {
				return fmt.Errorf("the section %q occurs twice", workload.Excerpt(name))
			}
			section = map[string]string{}
			r.sections[name] = section
		case indented && isField && section != nil:
			if _, duplicate := section[name]; duplicate {
				return fmt.Errorf("%q occurs twice", workload.Excerpt(name))
			}
			section[name] = strings.TrimLeft(value, " ")
		default:
			section = nil
			r.lines = append(r.lines, content)
		}
	}
	switch {
	case !bytes.HasPrefix(text, []byte(sysbenchVersion)):
		return fmt.Errorf("it begins with %q instead of %q", workload.Excerpt(string(text)), sysbenchVersion)
	case !bytes.HasSuffix(text, []byte("\n\n")):
		return workload.ErrCutOff
	}
	return nil
}

// check reads the fields that every report has, and returns an error if they contradict each other.
func (r *sysbenchReport) check() error {
	total, ok := strings.CutSuffix(r.sections[sysbenchGeneral]["total time"], "s")
	if !ok {
		return fmt.Errorf("it has no total time: %w, or it is of another version", workload.ErrCutOff)
	}
	var err error
	if r.seconds, err = readDecimal(total); err != nil {
		return fmt.Errorf("the total time: %w", err)
	}
	if r.events, err = r.count(sysbenchGeneral, "total number of events"); err != nil {
		return err
	}
	if r.threads, err = r.setting("Number of threads: "); err != nil {
		return err
	}
	var sum, average float64
	for name, value := range map[string]*float64{"min": &r.latency.min, "max": &r.latency.max, "avg": &average, "sum": &sum} {
		if *value, err = r.number(sysbenchLatency, name); err != nil {
			return err
		}
		*value /= 1000
	}
	perThread, _, _ := strings.Cut(r.sections[sysbenchFairness]["events (avg/stddev)"], "/")
	mean, err := readDecimal(perThread)
	if err != nil {
		return fmt.Errorf("the events of each thread, at the end of the report: %w", err)
	}
	if _, ok := r.sections[sysbenchFairness]["execution time (avg/stddev)"]; !ok {
		return fmt.Errorf("%w: its last line is missing", workload.ErrCutOff)
	}
	const rounding = 0.5001e-5 // of latencies, in seconds
	switch r.latency.mean = sum / float64(r.events); {
	case r.events == 0 || r.threads == 0 || r.seconds == 0:
		return errors.New("it completed no event in its time")
	case math.Abs(mean*float64(r.threads)-float64(r.events)) > 1e-4*float64(r.threads):
		return fmt.Errorf("%d threads with %v events each cannot have %d together", r.threads, mean, r.events)
	case math.Abs(r.latency.mean-average) > 2*rounding:
		return fmt.Errorf("%d events of %v s each cannot take %v s together", r.events, average, sum)
	case r.latency.min > average || average > r.latency.max:
		return fmt.Errorf("the latencies %v, %v, %v s are not in order", r.latency.min, average, r.latency.max)
	case sum > r.seconds*float64(r.threads)+1e-4*float64(r.threads):
		return fmt.Errorf("events took %v s together, more than the time of %d threads in %v s", sum, r.threads, r.seconds)
	}
	return nil
}

// setting returns the whole number after a text that begins one of the lines outside of sections.
func (r *sysbenchReport) setting(text string) (uint64, error) {
	for _, line := range r.lines {
		if value, ok := strings.CutPrefix(line, text); ok {
			value, _, _ = strings.Cut(value, " ")
			return workload.Whole(value)
		}
	}
	return 0, fmt.Errorf("the line %q is missing", text)
}

// number returns a field of a section.
func (r *sysbenchReport) number(section, name string) (float64, error) {
	v, err := readDecimal(r.sections[section][name])
	if err != nil {
		return 0, fmt.Errorf("%s of %s: %w", name, section, err)
	}
	return v, nil
}

// count returns a field of a section that is a whole number.
func (r *sysbenchReport) count(section, name string) (uint64, error) {
	n, err := workload.Whole(r.sections[section][name])
	if err != nil {
		return 0, fmt.Errorf("%s of %s: %w", name, section, err)
	}
	return n, nil
}

// SysbenchCPU counts the primes up to a number in each event; threads share the events. Values: TotalTime, and EventsPerSecond by
// sysbench itself, whose time is a little longer.
func SysbenchCPU(prime, events, threads int) workload.Program {
	parse := func(r *sysbenchReport) (workload.Values, error) { return r.cpu(prime, events) }
	return sysbench("cpu", threads, events, parse, "--cpu-max-prime="+strconv.Itoa(prime))
}

// cpu reads the result of the test cpu.
func (r *sysbenchReport) cpu(prime, events int) (workload.Values, error) {
	limit, err := r.setting("Prime numbers limit: ")
	if err != nil {
		return nil, err
	}
	rate, err := r.number("CPU speed", "events per second")
	if err != nil {
		return nil, err
	}
	// The rate covers a longer time: on a busy CPU, sysbench may read the clock much later.
	if limit != uint64(prime) || rate*r.seconds > 1.02*float64(events)+rate*20e-3 {
		return nil, fmt.Errorf("%v events a second for %v s, with primes to %d, are not the requested %d events with primes to %d", rate, r.seconds, limit, events, prime)
	}
	if rate == 0 {
		return nil, errors.New("it has 0 events per second")
	}
	return workload.Values{"TotalTime": r.seconds, "EventsPerSecond": rate}, nil
}

// SysbenchCPUProgress is SysbenchCPU with a line of progress each second: see IsProgress and Rates.
func SysbenchCPUProgress(prime, events, threads int) workload.Program {
	p := SysbenchCPU(prime, events, threads)
	run := len(p.Args) - 1
	p.Args = append(p.Args[:run:run], "--report-interval=1", p.Args[run])
	return p
}

// IsProgress reports whether a line of sysbench is a report of its progress.
func IsProgress(line string) bool { return strings.HasPrefix(line, "[ ") }

// Rates returns the events a second at each line of progress. The last, incomplete second has no line. sysbench writes its lines at whole
// seconds of its own clock. If a busy host delays a line, the line covers a longer time. The next line then covers a short one, and often
// repeats the number of the second: its rate is not a number.
func Rates(stdout []byte) ([]float64, error) {
	var rates []float64
	last := uint64(0)
	for line := range bytes.Lines(stdout) {
		if !IsProgress(string(line)) {
			continue
		}
		second, rest, _ := strings.Cut(string(line[2:]), "s ] thds: ")
		n, err := workload.Whole(second)
		if err != nil || n == 0 || n < last {
			return nil, fmt.Errorf("sysbench's progress: %q does not follow second %d", workload.Excerpt(string(line)), last)
		}
		_, rest, _ = strings.Cut(rest, " eps: ")
		rate, _, found := strings.Cut(rest, " lat (ms,")
		v, err := readDecimal(rate)
		if err != nil || !found {
			return nil, fmt.Errorf("sysbench's progress: %q is not a rate", workload.Excerpt(string(line)))
		}
		if n == last {
			v = math.NaN()
		}
		rates, last = append(rates, v), n
	}
	if len(rates) == 0 {
		return nil, errors.New("sysbench's progress is missing")
	}
	return rates, nil
}

// The values of MemoryLoad.Scope.
const (
	GlobalMemory = "global"
	LocalMemory  = "local"
)

// MemoryLoad is sysbench's load in memory: threads write or read a block again and again until they have processed TotalMiB
// together. A block that fits into the CPU's caches stays there. sysbench 1.0 accesses 8 bytes at a time, and 0.4, which the studies
// used, 4 bytes.
type MemoryLoad struct {
	BlockKiB, TotalMiB, Threads int
	Scope                       string // GlobalMemory: all threads share one block; LocalMemory: each has its own
	Operation                   string // "write" or "read"
	Access                      string // "seq" or "rnd", within the block
}

// Bytes is the memory that the blocks take.
func (l MemoryLoad) Bytes() int64 {
	blocks := 1
	if l.Scope == LocalMemory {
		blocks = l.Threads
	}
	return int64(blocks) * int64(l.BlockKiB) << 10
}

// PaperMemoryLoad is the load of TouchStone and nishimura section 4.4: one block of 1 MiB, written again and again by one thread.
// The papers write 100 GiB for the total time. TouchStone writes 1 GiB for the latencies.
func PaperMemoryLoad(totalMiB int) MemoryLoad {
	return MemoryLoad{BlockKiB: 1024, TotalMiB: totalMiB, Threads: 1, Scope: GlobalMemory, Operation: "write", Access: "seq"}
}

// SysbenchMemory works on blocks of memory. Values: TotalTime; MinLatency, AvgLatency and MaxLatency of single blocks.
//
// sysbench prints latencies in steps of 10 µs, a third of the time for a block of 1 MiB. The average is therefore computed from
// the sum of all events, which has the same steps. The minimum is the lowest bucket of the histogram, with an error of up to
// 1 % and 0.5 µs.
func SysbenchMemory(load MemoryLoad) workload.Program {
	operations := int64(load.TotalMiB) * 1024 / int64(load.BlockKiB) / int64(load.Threads) // sysbench drops the rest
	events := int(operations) * load.Threads
	parse := func(r *sysbenchReport) (workload.Values, error) { return r.memory(load, events) }
	return sysbench(
		"memory", load.Threads, events, parse, "--memory-block-size="+strconv.Itoa(load.BlockKiB)+"K",
		"--memory-total-size="+strconv.Itoa(load.TotalMiB)+"M", "--memory-scope="+load.Scope, "--memory-oper="+load.Operation,
		"--memory-access-mode="+load.Access, "--histogram=on",
	)
}

// memory reads the result of the test memory.
func (r *sysbenchReport) memory(load MemoryLoad, events int) (workload.Values, error) {
	settings := r.sections["Running memory speed test with the following options"]
	for name, want := range map[string]string{
		"block size": strconv.Itoa(load.BlockKiB) + "KiB", "total size": strconv.Itoa(load.TotalMiB) + "MiB", "scope": load.Scope, "operation": load.Operation,
	} {
		if got := settings[name]; got != want {
			return nil, fmt.Errorf("the %s is %q instead of %q", name, workload.Excerpt(got), want)
		}
	}
	operations, err := r.setting("Total operations: ")
	if err != nil {
		return nil, err
	}
	if operations != r.events {
		return nil, fmt.Errorf("there are %d operations and %d events", operations, r.events)
	}
	lowest, err := r.lowest()
	if err != nil {
		return nil, err
	}
	if lowest == 0 {
		return nil, fmt.Errorf("the time of %d blocks of %d KiB was too short for sysbench", events, load.BlockKiB)
	}
	return workload.Values{"TotalTime": r.seconds, "MinLatency": lowest, "AvgLatency": r.latency.mean, "MaxLatency": r.latency.max}, nil
}

// lowest returns the lowest latency of the histogram, in seconds. The buckets must count all events.
func (r *sysbenchReport) lowest() (float64, error) {
	lowest, last, events := -1.0, 0.0, uint64(0)
	for _, line := range r.lines {
		bucket, rest, isBucket := strings.Cut(line, " |")
		if !isBucket {
			continue
		}
		value, err := readDecimal(bucket)
		if err != nil {
			return 0, fmt.Errorf("the histogram: %w", err)
		}
		count, err := workload.Whole(strings.TrimLeft(rest, "* "))
		if err != nil {
			return 0, fmt.Errorf("the histogram: %w", err)
		}
		if lowest < 0 {
			lowest = value
		}
		if value < last {
			return 0, fmt.Errorf("the histogram: %v follows %v", value, last)
		}
		last = value
		events += count
	}
	if events != r.events {
		return 0, fmt.Errorf("the histogram counts %d of %d events", events, r.events)
	}
	// Buckets are 1.8 % wide and have three decimals in the report.
	if math.Abs(lowest/1000-r.latency.min) > 0.51e-5+0.01*r.latency.min {
		return 0, fmt.Errorf("the histogram begins at %v ms, and the shortest event took %v s", lowest, r.latency.min)
	}
	return lowest / 1000, nil
}
