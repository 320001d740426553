package workload

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
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

// reading returns a parser whose errors name the output, and that returns no values beside an error.
func reading(output string, parse func(stdout []byte) (Values, error)) func([]byte) (Values, error) {
	return func(stdout []byte) (Values, error) {
		values, err := parse(stdout)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", output, err)
		}
		return values, nil
	}
}

// silent parses the output of a program that must write nothing, or exactly one text.
func silent(want string) func([]byte) (Values, error) {
	return func(stdout []byte) (Values, error) {
		if string(stdout) != want {
			return nil, fmt.Errorf("the program wrote %q instead of %q", cut(string(stdout)), want)
		}
		return Values{}, nil
	}
}

// completeLines splits output into lines. It returns ErrCutOff if the last line has no end.
func completeLines(stdout []byte) ([]string, error) {
	text, complete := strings.CutSuffix(string(stdout), "\n")
	if !complete {
		return nil, ErrCutOff
	}
	return strings.Split(text, "\n"), nil
}

// maxNumber is far above all possible results, and far below the numbers whose products are infinite.
const maxNumber = 1e18

// readDecimal reads a number from 0 to maxNumber as programs write it in the locale C: digits with a point, no sign, no
// exponent.
func readDecimal(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || len(s) > maxName || strings.Trim(s, "0123456789.") != "" || v > maxNumber {
		return 0, fmt.Errorf("%q is not a number from 0", cut(s))
	}
	return v, nil
}

// readWhole reads a whole number.
func readWhole(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 53)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number", cut(s))
	}
	return n, nil
}

// cut keeps an error message short, whatever a program writes.
func cut(s string) string { return s[:min(len(s), maxName)] }

// milliseconds rounds up, so that a program never has a time of 0.
func milliseconds(d time.Duration) string {
	ms := (d + time.Millisecond - 1) / time.Millisecond
	return strconv.FormatInt(max(int64(ms), 1), 10)
}

// wholeSeconds formats a time for programs that count in whole seconds.
func wholeSeconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// lasted reports whether a program ran for its time. Programs read their clock now and then only. A program may therefore
// run longer, and the more so the slower its sandbox is.
func lasted(seconds float64, d time.Duration) bool {
	return seconds > 0.8*d.Seconds() && seconds < 1.5*d.Seconds()+5
}

// near reports whether two numbers differ by at most a share of the second.
func near(a, b, share float64) bool { return math.Abs(a-b) <= share*math.Abs(b) }

// Tool is a program of the workload image. The file that calls the program and parses its output declares the tool;
// the image's packages, its files and the table in docs/image.md follow from the declaration.
type Tool struct {
	Name string
	// Packages are the Debian packages that contain Files and Libraries. Their dependencies need not be listed.
	Packages []string
	// Files are the absolute paths of the executables, and of the files that they open but that no ELF header names.
	Files []string
	// Libraries are opened by name at run time. The paths are relative to the library directory of the architecture.
	Libraries []string
}

// Tools lists the programs of the workload image.
func Tools() []Tool {
	return []Tool{
		sysbenchTool, sevenZipTool, zstdTool, dav1dTool, linpackTool, fioTool, sqliteTool, iperfTool, netperfTool, nginxTool, abTool, redisTool,
	}
}
