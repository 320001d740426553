package programs

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

	"github.com/touchstone-bench/touchstone/internal/workload"
)

// AB is the path of ab, Apache's HTTP benchmark, in the workload image.
const AB = "/usr/bin/ab"

var abTool = Tool{Name: "ab", Packages: []string{"apache2-utils"}, Files: []string{AB}}

// abPerSecond is far above the number of requests that one connection can make in a second, so that ab ends by its time. ab
// allocates 32 bytes for each request.
const abPerSecond = 100_000

// The distribution beside ab's report has a line for each per cent from 0 to 99.
const (
	abTable = "Percentage served,Time in ms\n"
	abRows  = 100
)

// abLast ends the last line of a report.
const abLast = "(longest request)\n"

// ABRun calls ab, which fetches a file of length bytes again and again over one connection for some whole seconds. Values:
// Latency (the mean), P50Latency and P99Latency of a request, and BitsPerSecond of the bytes of the files. A percentile is left
// out if there are too few requests for it: P99Latency needs more than 50.
func ABRun(server netip.AddrPort, file string, length int, d time.Duration) workload.Program {
	return abProgram(abRun{path: file, length: length}, server, d)
}

// ABPost is ABRun for requests of the method POST, each with the content of a file of the client, of size bytes. Their answers have
// length bytes. BitsPerSecond counts the bytes of the file that are sent.
func ABPost(server netip.AddrPort, path string, length int, file string, size int, d time.Duration) workload.Program {
	return abProgram(abRun{path: path, length: length, sent: size}, server, d, "-p", file, "-T", "application/octet-stream")
}

// abRun is a run of ab.
type abRun struct {
	path   string // of the URL
	length int    // of the answer's body
	sent   int    // length of the request's body; 0 for GET
	d      time.Duration
}

func abProgram(run abRun, server netip.AddrPort, d time.Duration, options ...string) workload.Program {
	run.d = d
	limit := int(d / time.Second)
	args := append([]string{
		AB, "-q", "-k", "-c", "1", "-t", strconv.Itoa(limit), "-n", strconv.Itoa(limit * abPerSecond), "-e", "/proc/self/fd/1",
	}, options...)
	return workload.Program{
		Args:  append(args, fmt.Sprintf("http://%s%s", server, run.path)),
		Parse: reading("ab's report", run.read),
	}
}

func (run abRun) read(stdout []byte) (workload.Values, error) {
	head, rest, ok := bytes.Cut(stdout, []byte(abTable))
	if !ok || !bytes.HasPrefix(head, []byte("This is ApacheBench, Version 2.")) {
		return nil, fmt.Errorf("%w, or it is not a report of ab 2: %q", workload.ErrCutOff, workload.Excerpt(string(stdout)))
	}
	times, rest, err := abTimes(rest)
	if err != nil {
		return nil, err
	}
	if !bytes.HasSuffix(rest, []byte(abLast)) {
		return nil, workload.ErrCutOff
	}
	r := abReport{}
	if err := r.read(append(slices.Clone(head), rest...)); err != nil {
		return nil, err
	}
	if err := r.check(run); err != nil {
		return nil, err
	}
	times = times[:abKnown(r.complete)]
	if !slices.IsSorted(times) {
		return nil, errors.New("the distribution is not in order")
	}
	payload := run.length
	if run.sent > 0 {
		payload = run.sent
	}
	values := workload.Values{
		"Latency":       1 / r.rate, // one request at a time
		"BitsPerSecond": r.rate * float64(payload) * 8,
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

// abKnown returns the number of lines of the distribution that contain a time. For n % ab takes the time at index
// round(n % of the requests), counted from 0. With few requests the last indexes are beyond the end, and their lines have no time.
func abKnown(requests float64) int {
	n := 0
	for n < abRows && math.Floor(0.5+requests*float64(n)/100) < requests {
		n++
	}
	return n
}

// abTimes reads the percentiles of the times, in ms, and returns the text that follows.
func abTimes(text []byte) (times []float64, rest []byte, err error) {
	for n := range abRows {
		line, rest, ok := bytes.Cut(text, []byte("\n"))
		if !ok {
			return nil, nil, workload.ErrCutOff
		}
		ms, ok := strings.CutPrefix(string(line), strconv.Itoa(n)+",")
		if !ok {
			return nil, nil, fmt.Errorf("%q is not line %d of the distribution", workload.Excerpt(string(line)), n)
		}
		time, err := readDecimal(ms)
		if err != nil {
			return nil, nil, err
		}
		times, text = append(times, time), rest
	}
	return times, text, nil
}

// abReport has the fields of a report that are used.
type abReport struct {
	path                     string
	length, concurrency      float64
	seconds, rate            float64
	complete, failed, reused float64
	bytes                    float64 // of all answers, without headers
	posted                   float64 // bytes of all requests of the method POST, with headers; 0 for GET
}

// read reads the fields. Each must exist.
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
			return fmt.Errorf("%s %s: the server did not answer as requested", value, name)
		}
		if name == "Total body sent" {
			posted, err := readDecimal(value)
			if err != nil {
				return fmt.Errorf("%s is %w", name, err)
			}
			r.posted = posted
		}
		if n, ok := numbers[name]; ok {
			digits, ok := strings.CutSuffix(value, n.unit)
			v, err := readDecimal(digits)
			if err != nil || !ok {
				return fmt.Errorf("%s is %q, which is not a number%s", name, workload.Excerpt(value), n.unit)
			}
			*n.value = v
			delete(numbers, name) // a repetition changes nothing
		}
	}
	for name := range numbers {
		return fmt.Errorf("it has no %s", name)
	}
	return nil
}

// check returns an error if the report belongs to another run, or to a run with errors.
func (r *abReport) check(run abRun) error {
	switch {
	case r.path != run.path || r.length != float64(run.length) || r.concurrency != 1:
		return fmt.Errorf("it belongs to %.0f connections for %q with %.0f bytes, instead of one for %q with %d", r.concurrency, workload.Excerpt(r.path), r.length, run.path, run.length)
	case r.failed > 0:
		return fmt.Errorf("%.0f requests failed", r.failed)
	case r.complete < 1:
		return errors.New("no request was answered")
	case r.reused != r.complete:
		return fmt.Errorf("the connection was kept for only %.0f of %.0f requests", r.reused, r.complete)
	case !lasted(r.seconds, run.d):
		return fmt.Errorf("it covers %g s instead of %g", r.seconds, run.d.Seconds())
	case r.bytes < r.complete*r.length || r.bytes >= (r.complete+1)*r.length:
		return fmt.Errorf("%.0f bytes are not %.0f files of %.0f bytes", r.bytes, r.complete, r.length)
	case (r.posted > 0) != (run.sent > 0) || r.posted < r.complete*float64(run.sent):
		return fmt.Errorf("%.0f bytes are not the bodies of %.0f requests with %d bytes each", r.posted, r.complete, run.sent)
	case !near(r.rate, r.complete/r.seconds, 0.01):
		return fmt.Errorf("%.0f requests in %g s are not %g a second", r.complete, r.seconds, r.rate)
	}
	return nil
}
