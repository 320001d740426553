package workload

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// AB is the path of ab, Apache's HTTP benchmark, in the workload image.
const AB = "/usr/bin/ab"

var abTool = Tool{Name: "ab", Packages: []string{"apache2-utils"}, Files: []string{AB}}

// abPerSecond is far more than one connection can ask for in a second: ab ends by its time. It has 32 bytes for each.
const abPerSecond = 100_000

// The distribution that ab writes beside its report: a line for each per cent from 0 to 99.
const (
	abTable = "Percentage served,Time in ms\n"
	abRows  = 100
)

// abLast ends the last line of a report.
const abLast = "(longest request)\n"

// ABRun calls ab, which fetches a file of some bytes again and again over one connection for some whole seconds. Values:
// Latency (the mean), P50Latency and P99Latency of a request, and BitsPerSecond, that of the files' bytes. A percentile that
// there are too few requests for, as there are of P99Latency up to 50, is left out.
func ABRun(server netip.AddrPort, file string, length int, d time.Duration) Program {
	limit := int(d / time.Second)
	return Program{
		Args: []string{
			AB, "-q", "-k", "-c", "1", "-t", strconv.Itoa(limit), "-n", strconv.Itoa(limit * abPerSecond), "-e", "/proc/self/fd/1",
			fmt.Sprintf("http://%s%s", server, file),
		},
		Parse: func(stdout []byte) (Values, error) {
			values, err := readAB(stdout, file, length, d)
			if err != nil {
				return nil, fmt.Errorf("read ab's report: %w", err)
			}
			return values, nil
		},
	}
}

func readAB(stdout []byte, file string, length int, d time.Duration) (Values, error) {
	before, after, ok := bytes.Cut(stdout, []byte(abTable))
	if !ok || !bytes.HasPrefix(before, []byte("This is ApacheBench, Version 2.")) {
		return nil, fmt.Errorf("it is cut off, or none: %.80q", stdout)
	}
	times, after, err := abTimes(after)
	if err != nil {
		return nil, err
	}
	if !bytes.HasSuffix(after, []byte(abLast)) {
		return nil, errors.New("it is cut off")
	}
	r := abReport{}
	if err := r.read(append(slices.Clone(before), after...)); err != nil {
		return nil, err
	}
	if err := r.check(file, length, d); err != nil {
		return nil, err
	}
	times = times[:abKnown(r.complete)]
	if !slices.IsSorted(times) {
		return nil, errors.New("the distribution is not in order")
	}
	values := Values{
		"Latency":       1 / r.rate, // there is one request at a time
		"BitsPerSecond": r.rate * float64(length) * 8,
	}
	if len(times) > 50 {
		if times[50] == 0 {
			return nil, errors.New("half of the requests took no time")
		}
		values["P50Latency"] = times[50] / 1e3
	}
	if len(times) > 99 {
		values["P99Latency"] = times[99] / 1e3
	}
	return values, nil
}

// abKnown tells how many lines of the distribution are of requests. ab takes the line of n % from place
// round(n % of the requests) of their times, counted from 0: of few requests the last lines lie behind the end, and hold no time.
func abKnown(requests float64) int {
	n := 0
	for n < abRows && math.Floor(0.5+requests*float64(n)/100) < requests {
		n++
	}
	return n
}

// abTimes reads the times, in ms, that so many per cent of the requests took at most, and gives what follows.
func abTimes(text []byte) (times []float64, rest []byte, err error) {
	for n := range abRows {
		line, after, ok := bytes.Cut(text, []byte("\n"))
		if !ok {
			return nil, nil, errors.New("it is cut off")
		}
		ms, ok := strings.CutPrefix(string(line), strconv.Itoa(n)+",")
		if !ok {
			return nil, nil, fmt.Errorf("%.80q is not the %d. line of the distribution", line, n)
		}
		time, err := positive(ms)
		if err != nil {
			return nil, nil, err
		}
		times, text = append(times, time), after
	}
	return times, text, nil
}

// abReport is what is read of a report.
type abReport struct {
	path                     string
	length, concurrency      float64
	seconds, rate            float64
	complete, failed, reused float64
	bytes                    float64 // of all answers, without their headers
}

// read reads the fields, each of which must be there once.
func (r *abReport) read(text []byte) error {
	numbers := map[string]struct {
		unit  string
		value *float64
	}{
		"Document Length":      {" bytes", &r.length},
		"Concurrency Level":    {"", &r.concurrency},
		"Time taken for tests": {" seconds", &r.seconds},
		"Complete requests":    {"", &r.complete},
		"Failed requests":      {"", &r.failed},
		"Keep-Alive requests":  {"", &r.reused},
		"HTML transferred":     {" bytes", &r.bytes},
		"Requests per second":  {" [#/sec] (mean)", &r.rate},
	}
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		switch name {
		case "Document Path":
			r.path = value
		case "Non-2xx responses", "Write errors":
			return fmt.Errorf("%s %s: the server did not give what was asked for", value, name)
		}
		if n, wanted := numbers[name]; wanted {
			digits, ok := strings.CutSuffix(value, n.unit)
			v, err := positive(digits)
			if err != nil || !ok {
				return fmt.Errorf("%s is %.80q, which is no number%s", name, value, n.unit)
			}
			*n.value = v
			delete(numbers, name) // one that comes again changes nothing
		}
	}
	for name := range numbers {
		return fmt.Errorf("it has no %s", name)
	}
	return nil
}

// check tells whether the report is that of the run, and of one in which all went well.
func (r *abReport) check(file string, length int, d time.Duration) error {
	switch {
	case r.path != file || r.length != float64(length) || r.concurrency != 1:
		return fmt.Errorf("it is that of %.0f connections for %.80q with %.0f bytes, instead of one for %q with %d", r.concurrency, r.path, r.length, file, length)
	case r.failed > 0:
		return fmt.Errorf("%.0f requests failed", r.failed)
	case r.complete < 1:
		return errors.New("no request was answered")
	case r.reused != r.complete:
		return fmt.Errorf("the connection was kept for %.0f of %.0f requests only", r.reused, r.complete)
	case !lasted(r.seconds, d):
		return fmt.Errorf("it is over %g s instead of %g", r.seconds, d.Seconds())
	case r.bytes < r.complete*r.length || r.bytes >= (r.complete+1)*r.length:
		return fmt.Errorf("%.0f bytes are not %.0f files of %.0f bytes", r.bytes, r.complete, r.length)
	case !near(r.rate, r.complete/r.seconds, 0.01):
		return fmt.Errorf("%.0f requests in %g s are not %g a second", r.complete, r.seconds, r.rate)
	}
	return nil
}
