package workload

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Unit is the unit of a metric in the probe's output.
type Unit string

// The units. Results use all of them except Count.
const (
	PerSecond      Unit = "1/s"
	BytesPerSecond Unit = "B/s"
	Bytes          Unit = "B"
	Score          Unit = "score"
	Count          Unit = "count"
)

// Output is the parsed output of one of the probe's measurements.
type Output struct {
	// Metrics are the metrics by name.
	Metrics map[string]Metric
	// Calls are the system calls in the order of their measurement.
	Calls []Call
}

// Metric is one value, finite and not negative.
type Metric struct {
	Value float64
	Unit  Unit
}

// Nanoseconds is a time in the probe's output. The mean of several times has a fraction.
type Nanoseconds float64

// Seconds returns the time in the unit of results.
func (n Nanoseconds) Seconds() float64 { return float64(n) / 1e9 }

// Call is the distribution of the time of one system call. Calls are timed in batches, and the distribution contains the mean of
// each batch. With a Batch of 1 it contains single calls. It includes the cost of reading the clock once a batch, less than 1/32.
type Call struct {
	Name string
	// Batch is the number of calls in a batch, Count the number of all calls.
	Batch, Count uint64
	// The percentiles are exact, by nearest rank.
	Min, P50, P90, P99, Max Nanoseconds
	// Histogram counts batches, in order. The width of a bucket is at most 1/16 of its lower bound.
	Histogram []Bucket
}

// Bucket is one bucket of a histogram.
type Bucket struct {
	Low   Nanoseconds // its lower bound
	Count uint64
}

// Limits of the accepted output; the probe stays far below them.
const (
	maxLine  = 1 << 20 // bytes
	maxLines = 10_000
	maxName  = 64
	maxPairs = 1024
	maxLow   = 1 << 53 // nanoseconds: a hundred days, and the largest exact whole float64
)

// Parse reads the output of one of the probe's measurements. Errors name the line; ErrCutOff is among them. Output with an error is
// refused as a whole.
func Parse(output []byte) (Output, error) {
	p := parser{output: Output{Metrics: map[string]Metric{}}}
	n := 0
	for line := range bytes.Lines(output) {
		n++
		content, complete := bytes.CutSuffix(line, []byte("\n"))
		var err error
		switch {
		case n > maxLines:
			err = fmt.Errorf("there are more than %d lines", maxLines)
		case len(content) > maxLine:
			err = fmt.Errorf("it is longer than %d bytes", maxLine)
		case p.done:
			err = errors.New("it follows the last line")
		case !complete:
			err = ErrCutOff
		default:
			err = p.line(content)
		}
		if err != nil {
			return Output{}, fmt.Errorf("read output of the probe: line %d: %w", n, err)
		}
	}
	if !p.done {
		return Output{}, fmt.Errorf("read output of the probe: after line %d: %w", n, ErrCutOff)
	}
	return p.output, nil
}

type parser struct {
	output Output
	done   bool
}

// line reads one line: a metric, a call, or the last.
func (p *parser) line(content []byte) error {
	f, err := parseFields(content)
	if err != nil {
		return err
	}
	switch {
	case f.has("metric"):
		return p.metric(f)
	case f.has("call"):
		return p.call(f)
	case f.has("done"):
		return p.last(f)
	}
	return fmt.Errorf("it is not a metric, a call or the last line: it has the fields %q", names(f))
}

func (p *parser) metric(f fields) error {
	var name, unit string
	var value float64
	err := errors.Join(f.text("metric", &name), f.number("value", &value), f.text("unit", &unit), f.rest())
	if err != nil {
		return err
	}
	if !isName(name) {
		return fmt.Errorf("%q is not a name of a metric", name)
	}
	if _, twice := p.output.Metrics[name]; twice {
		return fmt.Errorf("metric %s occurs twice", name)
	}
	switch Unit(unit) {
	case PerSecond, BytesPerSecond, Bytes, Score, Count:
	default:
		return fmt.Errorf("metric %s has the unknown unit %q", name, unit)
	}
	p.output.Metrics[name] = Metric{Value: value, Unit: Unit(unit)}
	return nil
}

func (p *parser) call(f fields) error {
	var c Call
	var unit string
	var histogram [][2]uint64
	err := errors.Join(
		f.text("call", &c.Name), f.text("unit", &unit), f.whole("count", &c.Count), f.whole("k", &c.Batch),
		f.number("min", (*float64)(&c.Min)), f.number("p50", (*float64)(&c.P50)), f.number("p90", (*float64)(&c.P90)),
		f.number("p99", (*float64)(&c.P99)), f.number("max", (*float64)(&c.Max)),
		f.pairs("hist", &histogram), f.rest(),
	)
	if err != nil {
		return err
	}
	for _, pair := range histogram {
		c.Histogram = append(c.Histogram, Bucket{Low: Nanoseconds(pair[0]), Count: pair[1]})
	}
	if slices.ContainsFunc(p.output.Calls, func(other Call) bool { return other.Name == c.Name }) {
		return fmt.Errorf("call %q occurs twice", c.Name)
	}
	if unit != "ns" {
		return fmt.Errorf("call %q has the unknown unit %q", c.Name, unit)
	}
	if err := c.check(); err != nil {
		return fmt.Errorf("call %q: %w", c.Name, err)
	}
	p.output.Calls = append(p.output.Calls, c)
	return nil
}

// check returns an error if c cannot be a distribution.
func (c Call) check() error {
	if c.Name == "" || len(c.Name) > maxName || strings.ContainsFunc(c.Name, func(r rune) bool { return r < ' ' || r > '~' }) {
		return errors.New("this is not a name of a call")
	}
	if c.Batch == 0 || c.Count == 0 {
		return errors.New("it has no measurements")
	}
	if !slices.IsSorted([]Nanoseconds{c.Min, c.P50, c.P90, c.P99, c.Max}) {
		return errors.New("the percentiles are not in order")
	}
	var batches uint64
	last := Nanoseconds(math.Inf(-1))
	for _, b := range c.Histogram {
		if b.Low <= last || b.Low > maxLow || b.Count == 0 || b.Count > c.Count {
			return errors.New("the histogram is not in order")
		}
		last = b.Low
		batches += b.Count
	}
	if c.Count%c.Batch != 0 || batches != c.Count/c.Batch {
		return fmt.Errorf("the histogram has %d batches of %d, which are not %d calls", batches, c.Batch, c.Count)
	}
	return nil
}

func (p *parser) last(f fields) error {
	var done bool
	var count uint64
	if err := errors.Join(f.boolean("done", &done), f.whole("metrics", &count), f.rest()); err != nil {
		return err
	}
	if !done {
		return errors.New("the last line has false for done")
	}
	if found := len(p.output.Metrics) + len(p.output.Calls); uint64(found) != count {
		return fmt.Errorf("the last line counts %d results, and the output has %d: some were lost", count, found)
	}
	p.done = true
	return nil
}

// ParseServing reads the first line of the program that Serve calls, without its end, and returns the port.
func ParseServing(line string) (port int, err error) {
	text, ok := strings.CutPrefix(line, "ready port=")
	if !ok {
		return 0, fmt.Errorf("read the server's first line: %q is not \"ready port=N\"", cut(line))
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("read the server's first line: %q is not a port", cut(text))
	}
	return int(n), nil
}

// isName reports whether s is a metric's name: a letter, then letters and digits.
func isName(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != "" && len(s) <= maxName
}

func names(f fields) string { return cut(strings.Join(slices.Sorted(maps.Keys(f)), ", ")) }
