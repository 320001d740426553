// Package workload defines the call of a program that runs in containers, as the host starts it and reads its output.
//
// A [Program] is the argument vector of a call and the parser of its output. The parser is a pure function, so that tests can
// use output that was captured from every runtime. Nothing here runs a process.
//
// The packages below it have the programs: probe has this project's own program, programs the tools of the workload image, readings a user's own
// programs, and remote the servers on another machine.
package workload

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Program is a call of a program, with the parser of its output.
type Program struct {
	Args []string
	// Env are variables beside PATH. LC_ALL=C is not among them: the image has no other locale.
	Env []string
	// Parse parses the standard output of a process that exited with code 0. It refuses output that is truncated or comes
	// from another program, version or locale, and counts, checksums and numbers that are impossible. A failure must never
	// look like a result.
	Parse func(stdout []byte) (Values, error)
	// Elapsed names the value for the time from the start of the process to its exit, by the clock inside. Only Sequence
	// measures that time; it is left out if Elapsed is empty.
	Elapsed string
}

// Values are the results of a program by the names of metrics, in base units: seconds, bytes, operations a second. They are
// finite.
type Values map[string]float64

// ErrCutOff reports that the end of a program's output is missing.
var ErrCutOff = errors.New("the output is cut off")

// Whole reads a whole number.
func Whole(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 53)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number", Excerpt(s))
	}
	return n, nil
}

// Excerpt keeps an error message short if a program writes much.
func Excerpt(s string) string { return s[:min(len(s), MaxName)] }

// Milliseconds rounds up, so that a program never has a time of 0.
func Milliseconds(d time.Duration) string {
	ms := (d + time.Millisecond - 1) / time.Millisecond
	return strconv.FormatInt(max(int64(ms), 1), 10)
}

// Unit is the unit of a value in a program's output.
type Unit string

// The units. Results use all of them except Count.
const (
	PerSecond      Unit = "1/s"
	BytesPerSecond Unit = "B/s"
	Bytes          Unit = "B"
	Score          Unit = "score"
	Count          Unit = "count"
)

// MaxName bounds the names in output, and the parts of output in errors, in bytes.
const MaxName = 64
