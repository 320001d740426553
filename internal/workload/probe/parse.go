package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

// Output is the parsed output of one of the probe's measurements.
type Output struct {
	// Metrics are the metrics by name.
	Metrics map[string]Metric
	// Calls are the system calls in the order of their measurement.
	Calls []Call
	// Facts are texts in the order of the program. A name can occur more than once.
	Facts []Fact
}

// Fact is a named text.
type Fact struct{ Name, Text string }

// Texts returns the texts of the facts with a name, in their order.
func (o Output) Texts(name string) []string {
	var texts []string
	for _, f := range o.Facts {
		if f.Name == name {
			texts = append(texts, f.Text)
		}
	}
	return texts
}

// Metric is one value, finite and not negative.
type Metric struct {
	Value float64
	Unit  workload.Unit
}

// Call is the distribution of the time of one system call in ns. Calls are timed in batches, and the distribution contains the mean
// of each batch. With a Batch of 1 it contains single calls. It includes the cost of reading the clock once a batch, less than 1/32.
type Call struct {
	Name string
	// Batch is the number of calls in a batch, Count the number of all calls.
	Batch, Count uint64
	// The percentiles are exact, by nearest rank.
	Min, P50, P90, P99, Max float64
	// Histogram counts batches, in order: pairs of the lower bound of a bucket and its count. The width of a bucket is at most
	// 1/16 of its lower bound.
	Histogram [][]uint64
	// Tail has the largest values of single calls, if the program was asked for one call: pairs of the number of the call, from 0, and its time. No other
	// call took longer than the shortest of them.
	Tail [][]uint64
}

// Limits of the accepted output; the probe stays far below them.
const (
	maxLine    = 1 << 20 // bytes
	maxLines   = 10_000
	maxBuckets = 1024 // of a histogram
	maxTail    = 10_000
	maxLow     = 1 << 53 // nanoseconds: a hundred days, and the largest exact whole float64
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
			err = workload.ErrCutOff
		default:
			err = p.line(content)
		}
		if err != nil {
			return Output{}, fmt.Errorf("read output of the probe: line %d: %w", n, err)
		}
	}
	if !p.done {
		return Output{}, fmt.Errorf("read output of the probe: after line %d: %w", n, workload.ErrCutOff)
	}
	return p.output, nil
}

var (
	metricName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9]*$`)
	factName   = regexp.MustCompile(`^[a-z][a-z_ ]*$`)
	callName   = regexp.MustCompile(`^[ -~]+$`)
)

type parser struct {
	output Output
	done   bool
}

// line reads one line: a metric, a call, or the last.
func (p *parser) line(content []byte) error {
	f, err := ReadFields(content)
	if err != nil {
		return err
	}
	switch {
	case f.has("metric"):
		return p.metric(f)
	case f.has("call"):
		return p.call(f)
	case f.has("fact"):
		return p.fact(f)
	case f.has("done"):
		return p.last(f)
	}
	return fmt.Errorf("it is not a metric, a call, a fact or the last line: it has the fields %q", f.names())
}

func (p *parser) metric(f Fields) error {
	var name, unit string
	var value float64
	if err := f.Decode(map[string]any{"metric": &name, "value": &value, "unit": &unit}); err != nil {
		return err
	}
	if len(name) > workload.MaxName || !metricName.MatchString(name) {
		return fmt.Errorf("%q is not a name of a metric", name)
	}
	if _, duplicate := p.output.Metrics[name]; duplicate {
		return fmt.Errorf("metric %s occurs twice", name)
	}
	switch workload.Unit(unit) {
	case workload.PerSecond, workload.BytesPerSecond, workload.Bytes, workload.Score, workload.Count:
	default:
		return fmt.Errorf("metric %s has the unknown unit %q", name, unit)
	}
	p.output.Metrics[name] = Metric{Value: value, Unit: workload.Unit(unit)}
	return nil
}

func (p *parser) fact(f Fields) error {
	var fact Fact
	if err := f.Decode(map[string]any{"fact": &fact.Name, "text": &fact.Text}); err != nil {
		return err
	}
	if len(fact.Name) > workload.MaxName || !factName.MatchString(fact.Name) {
		return fmt.Errorf("%q is not a name of a fact", fact.Name)
	}
	p.output.Facts = append(p.output.Facts, fact)
	return nil
}

func (p *parser) call(f Fields) error {
	var c Call
	var unit string
	targets := map[string]any{
		"call": &c.Name, "unit": &unit, "count": &c.Count, "k": &c.Batch,
		"min": &c.Min, "p50": &c.P50, "p90": &c.P90, "p99": &c.P99, "max": &c.Max, "hist": &c.Histogram,
	}
	if f.has("tail") {
		targets["tail"] = &c.Tail
	}
	if err := f.Decode(targets); err != nil {
		return err
	}
	if slices.ContainsFunc(p.output.Calls, func(entry Call) bool { return entry.Name == c.Name }) {
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
	if len(c.Name) > workload.MaxName || !callName.MatchString(c.Name) {
		return errors.New("this is not a name of a call")
	}
	if c.Batch == 0 || c.Count == 0 {
		return errors.New("it has no measurements")
	}
	if !slices.IsSorted([]float64{c.Min, c.P50, c.P90, c.P99, c.Max}) {
		return errors.New("the percentiles are not in order")
	}
	if len(c.Histogram) > maxBuckets {
		return fmt.Errorf("the histogram has more than %d buckets", maxBuckets)
	}
	var batches uint64
	for i, bucket := range c.Histogram {
		if len(bucket) != 2 {
			return fmt.Errorf("a bucket of the histogram has %d numbers instead of two", len(bucket))
		}
		low, count := bucket[0], bucket[1]
		if i > 0 && low <= c.Histogram[i-1][0] || low > maxLow || count == 0 || count > c.Count {
			return errors.New("the histogram is not in order")
		}
		batches += count
	}
	if c.Count%c.Batch != 0 || batches != c.Count/c.Batch {
		return fmt.Errorf("the histogram has %d batches of %d, which are not %d calls", batches, c.Batch, c.Count)
	}
	return c.checkTail()
}

func (c Call) checkTail() error {
	if c.Tail == nil {
		return nil
	}
	if c.Batch != 1 || len(c.Tail) == 0 || len(c.Tail) > maxTail {
		return fmt.Errorf("the tail has %d values of batches of %d calls; it must have 1 to %d values of single calls", len(c.Tail), c.Batch, maxTail)
	}
	var maximum uint64
	for i, value := range c.Tail {
		if len(value) != 2 || value[0] >= c.Count || i > 0 && value[0] <= c.Tail[i-1][0] {
			return fmt.Errorf("value %d of the tail has no place after the others", i+1)
		}
		maximum = max(maximum, value[1])
	}
	if float64(maximum) != c.Max {
		return fmt.Errorf("the longest time in the tail is %d, and the maximum %v", maximum, c.Max)
	}
	return nil
}

func (p *parser) last(f Fields) error {
	var done bool
	var count uint64
	if err := f.Decode(map[string]any{"done": &done, "metrics": &count}); err != nil {
		return err
	}
	if !done {
		return errors.New("the last line has false for done")
	}
	if found := len(p.output.Metrics) + len(p.output.Calls) + len(p.output.Facts); uint64(found) != count {
		return fmt.Errorf("the last line counts %d results, and the output has %d: some were lost", count, found)
	}
	p.done = true
	return nil
}

// Fields are the fields of one JSON object by name. Unlike json.Unmarshal they detect a field that is missing,
// null, duplicate or different in case only.
type Fields map[string]json.RawMessage

// ReadFields reads a line with one JSON object.
func ReadFields(line []byte) (Fields, error) {
	d := json.NewDecoder(bytes.NewReader(line))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return nil, fmt.Errorf("it is not a JSON object: %q", workload.Excerpt(string(line)))
	}
	f := Fields{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("it is not a JSON object: %w", err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("it is not a JSON object: %w", err)
		}
		name, _ := key.(string) // in an object the decoder returns only strings
		if f.has(name) {
			return nil, fmt.Errorf("field %q occurs twice", workload.Excerpt(name))
		}
		f[name] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("it is not a JSON object: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	return f, nil
}

func (f Fields) has(name string) bool {
	_, ok := f[name]
	return ok
}

// Decode decodes all fields into the values by their names. It refuses a missing and an unknown field, and a float64 below 0.
func (f Fields) Decode(values map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		raw, ok := f[name]
		if !ok {
			return fmt.Errorf("field %q is missing", name)
		}
		if string(raw) == "null" {
			return fmt.Errorf("field %q is null", name)
		}
		if err := json.Unmarshal(raw, values[name]); err != nil {
			return fmt.Errorf("field %q: %w", name, err)
		}
		if number, ok := values[name].(*float64); ok && *number < 0 {
			return fmt.Errorf("field %q is %v; it must be a number from 0", name, *number)
		}
	}
	for name := range f {
		if _, ok := values[name]; !ok {
			return fmt.Errorf("there are unknown fields: %q", f.names())
		}
	}
	return nil
}

func (f Fields) names() string {
	return workload.Excerpt(strings.Join(slices.Sorted(maps.Keys(f)), ", "))
}

// ReadCount reads a line of a prefix and a whole number above 0.
func ReadCount(line, prefix string) (int, error) {
	text, ok := strings.CutPrefix(line, prefix)
	n, err := workload.Whole(text)
	if !ok || err != nil || n == 0 {
		return 0, fmt.Errorf("read the program's progress: %q is not %q with a number", workload.Excerpt(line), prefix)
	}
	return int(n), nil
}
