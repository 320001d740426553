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

// Unit is the unit of a metric, as the probe spells it.
type Unit string

// The units there are. All but Count are those of results.
const (
	PerSecond      Unit = "1/s"
	BytesPerSecond Unit = "B/s"
	Bytes          Unit = "B"
	Score          Unit = "score"
	Count          Unit = "count"
)

// Output is what a measuring program found.
type Output struct {
	// Metrics are the metrics by name.
	Metrics map[string]Metric
	// Calls are the system calls in the order in which they were measured.
	Calls []Call
}

// Metric is one value, finite and not negative.
type Metric struct {
	Value float64
	Unit  Unit
}

// Nanoseconds is a time as the probe reports it, with fractions where it is the
// mean of several.
type Nanoseconds float64

// Seconds gives the time in the unit of results.
func (n Nanoseconds) Seconds() float64 { return float64(n) / 1e9 }

// Call is the distribution of the time of one system call. Calls are timed in batches, and the
// distribution is that of the batches' means: that of single calls only if Batch
// is 1. It contains the cost of reading the clock once a batch, less than 1/32.
type Call struct {
	Name string
	// Batch is the number of calls in a batch, Count that of all calls.
	Batch, Count uint64
	// The percentiles are exact, by nearest rank.
	Min, P50, P90, P99, Max Nanoseconds
	// Histogram counts batches, in order; a bucket is at most 1/16 wider than
	// its lower bound.
	Histogram []Bucket
}

// Bucket is one bucket of a histogram.
type Bucket struct {
	Low   Nanoseconds // its lower bound
	Count uint64
}

// ErrCutOff says that the end of a program's output is missing.
var ErrCutOff = errors.New("the output is cut off: its last line, which counts the others, is missing")

// Limits of what is read; the probe stays far below them.
const (
	maxLine  = 1 << 20 // bytes
	maxLines = 10_000
	maxName  = 64
	maxPairs = 1024
	maxLow   = 1 << 53 // nanoseconds: a hundred days, up to which a float64 is exact
)

// Parse reads the output of a measuring program. The errors say in which line what is
// wrong; ErrCutOff is among them. No part of output with an error is to be believed, and none
// is returned.
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
			err = errors.New("it comes after the last")
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
	return fmt.Errorf("it is neither metric, call nor end: it has the fields %q", names(f))
}

func (p *parser) metric(f fields) error {
	var name, unit string
	var value float64
	err := errors.Join(f.text("metric", &name), f.number("value", &value), f.text("unit", &unit), f.rest())
	if err != nil {
		return err
	}
	if !isName(name) {
		return fmt.Errorf("%q is no name of a metric", name)
	}
	if _, twice := p.output.Metrics[name]; twice {
		return fmt.Errorf("metric %s is there twice", name)
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
		return fmt.Errorf("call %q is there twice", c.Name)
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

// check tells whether c can be a distribution.
func (c Call) check() error {
	if c.Name == "" || len(c.Name) > maxName || strings.ContainsFunc(c.Name, func(r rune) bool { return r < ' ' || r > '~' }) {
		return errors.New("this is no name of a call")
	}
	if c.Batch == 0 || c.Count == 0 {
		return errors.New("there are no measurements")
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
		return fmt.Errorf("the histogram counts %d batches of %d, and there are %d calls", batches, c.Batch, c.Count)
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
		return errors.New("the last line says that the program is not done")
	}
	if found := len(p.output.Metrics) + len(p.output.Calls); uint64(found) != count {
		return fmt.Errorf("the last line counts %d results, and there are %d: some were lost", count, found)
	}
	p.done = true
	return nil
}

// ParseServing reads the first line of the program that Serve calls, without its end,
// and gives the port.
func ParseServing(line string) (port int, err error) {
	text, ok := strings.CutPrefix(line, "ready port=")
	if !ok {
		return 0, fmt.Errorf("read the server's first line: %q is not \"ready port=N\"", cut(line))
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("read the server's first line: %q is no port", cut(text))
	}
	return int(n), nil
}

// cut keeps an error message short, whatever a program writes.
func cut(s string) string { return s[:min(len(s), maxName)] }

// isName tells whether s is a metric's name: a letter, then letters and digits.
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
