package programs

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

// maxNumber is far above all possible results, and far below the numbers whose products are infinite.
const maxNumber = 1e18

// reading returns a parser whose errors name the output, and that returns no values beside an error.
func reading(output string, parse func(stdout []byte) (workload.Values, error)) func([]byte) (workload.Values, error) {
	return func(stdout []byte) (workload.Values, error) {
		values, err := parse(stdout)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", output, err)
		}
		return values, nil
	}
}

// silent parses the output of a program that must write nothing, or exactly one text.
func silent(want string) func([]byte) (workload.Values, error) {
	return func(stdout []byte) (workload.Values, error) {
		if string(stdout) != want {
			return nil, fmt.Errorf("the program wrote %q instead of %q", workload.Excerpt(string(stdout)), want)
		}
		return workload.Values{}, nil
	}
}

// completeLines splits output into lines. It returns ErrCutOff if the last line has no end.
func completeLines(stdout []byte) ([]string, error) {
	text, complete := strings.CutSuffix(string(stdout), "\n")
	if !complete {
		return nil, workload.ErrCutOff
	}
	return strings.Split(text, "\n"), nil
}

// readDecimal reads a number from 0 to maxNumber as programs write it in the locale C: digits with a point, no sign, no
// exponent.
func readDecimal(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || len(s) > workload.MaxName || strings.Trim(s, "0123456789.") != "" || v > maxNumber {
		return 0, fmt.Errorf("%q is not a number from 0", workload.Excerpt(s))
	}
	return v, nil
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
