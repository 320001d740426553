package programs

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// linpackTool has no file from Debian but OpenBLAS: linpack itself is compiled into Touchstone.
var linpackTool = Tool{
	Name: "LINPACK", Packages: []string{"libopenblas0-pthread"}, Libraries: []string{"openblas-pthread/libopenblas.so.0"},
}

// Linpack solves a dense system of n equations by LU factorisation with OpenBLAS, a number of times, in threads (0: the number
// of CPUs that the program sees). Values: FlopPerSecond of the fastest run, with LINPACK's number of operations, 2/3 n³ + 2 n²
// (folder linpack at the top); the rate of each run, by LinpackRun; and Threads, the number of threads.
func Linpack(n, runs, threads int) workload.Program {
	args := []string{"/usr/bin/linpack", "--n", strconv.Itoa(n), "--runs", strconv.Itoa(runs)}
	if threads > 0 {
		args = append(args, "--threads", strconv.Itoa(threads))
	}
	return workload.Program{
		Args:  args,
		Parse: reading("linpack's result", func(stdout []byte) (workload.Values, error) { return readLinpack(stdout, n, runs, threads) }),
	}
}

// LinpackRun is the name of the rate of a run, from 0.
func LinpackRun(i int) string { return "run " + strconv.Itoa(i) }

// LinpackOperations is LINPACK's number of operations for the solution of n equations.
func LinpackOperations(n int) float64 {
	return 2.0/3*float64(n)*float64(n)*float64(n) + 2*float64(n)*float64(n)
}

// LinpackLines calls a program that solves the system of Linpack again and again for a time, and writes a line for ParseSolved
// after each solution.
func LinpackLines(n, threads int, d time.Duration) []string {
	return []string{"/usr/bin/linpack", "--seconds", wholeSeconds(d), "--n", strconv.Itoa(n), "--threads", strconv.Itoa(threads)}
}

// ParseSolved reads a line of the program that LinpackLines calls, without its end, and returns the number of solutions.
func ParseSolved(line string) (int, error) { return probe.ReadCount(line, "solved ") }

// maxResidual is the bound of the solution's residual, in units of n times the rounding error: HPL's check.
const maxResidual = 16

func readLinpack(stdout []byte, n, runs, threads int) (workload.Values, error) {
	lines, err := completeLines(stdout)
	if err != nil {
		return nil, err
	}
	if len(lines) != 1 {
		return nil, fmt.Errorf("it has %d lines instead of one", len(lines))
	}
	f, err := probe.ReadFields([]byte(lines[0]))
	if err != nil {
		return nil, err
	}
	var program string
	var version, size, count, threadCount uint64
	var rate, residual float64
	var seconds []float64
	err = f.Decode(map[string]any{
		"program": &program, "version": &version, "n": &size, "runs": &count, "threads": &threadCount,
		"seconds": &seconds, "flops_per_second": &rate, "residual": &residual,
	})
	if err != nil {
		return nil, err
	}
	if program != "linpack" || version != 1 {
		return nil, fmt.Errorf("it comes from %s, version %d", workload.Excerpt(program), version)
	}
	if size != uint64(n) || count != uint64(runs) || len(seconds) != runs {
		return nil, fmt.Errorf("it has %d runs of %d equations with %d times instead of %d runs of %d", count, size, len(seconds), runs, n)
	}
	if threadCount == 0 || threads > 0 && threadCount != uint64(threads) {
		return nil, fmt.Errorf("it ran %d threads instead of %d", threadCount, threads)
	}
	if residual >= maxResidual {
		return nil, fmt.Errorf("the solution is wrong: its residual is %v", residual)
	}
	minimum, operations := math.Inf(1), LinpackOperations(n)
	values := workload.Values{"FlopPerSecond": rate, "Threads": float64(threadCount)}
	for i, s := range seconds {
		if s <= 0 {
			return nil, errors.New("a run took no time")
		}
		minimum = min(minimum, s)
		values[LinpackRun(i)] = operations / s
	}
	// The time has nine decimals.
	if deviation := rate*minimum/operations - 1; math.Abs(deviation) > 1e-6+1e-9/minimum {
		return nil, fmt.Errorf("%v operations a second for %v s do not solve %d equations", rate, minimum, n)
	}
	return values, nil
}
