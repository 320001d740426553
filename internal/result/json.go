package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// MaxDocument is the maximum size of a document in bytes. It holds about fifty million samples, more than any plan produces.
const MaxDocument = 4 << 30

// ErrVersion is in the error of Read for a document with another schema_version than SchemaVersion.
var ErrVersion = errors.New("another version of touchstone wrote it")

// VersionAdvice is the advice for a file of another version.
const VersionAdvice = "use the version of touchstone that wrote it"

// ErrTooLarge is in the error of Read for a document above MaxDocument.
var ErrTooLarge = fmt.Errorf("it is larger than %d MiB; export fewer runs into one file", MaxDocument>>20)

// Document is the content of a file that `touchstone export` writes and `touchstone import` reads. It is readable without the
// program that wrote it: each run describes its metrics with unit and direction. docs/schema/result.schema.json is its schema.
//
// Times are RFC 3339 in UTC. Durations are whole nanoseconds in keys that end in _ns. A fact that the host does not offer is
// absent, never zero.
type Document struct {
	// Schema is the SchemaVersion of the document.
	Schema int `json:"schema_version"`
	// Generator is the program that wrote the document. Another program may have made the runs.
	Generator Tool  `json:"generator"`
	Runs      []Run `json:"runs"`
}

// Encode writes doc in the current schema; it ignores doc.Schema. It refuses a run that Validate refuses and a repeated run before
// it writes. Bytes in strings that are not UTF-8 become U+FFFD.
func Encode(w io.Writer, doc Document) error {
	doc.Schema = SchemaVersion
	doc = canonical(doc)
	if err := validateRuns(doc.Runs); err != nil {
		return fmt.Errorf("encode result document: %w", err)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	if err := enc.Encode(doc); err != nil {
		return fmt.Errorf("encode result document: %w", err)
	}
	return nil
}

// Decode reads a document into memory, like Read. It also refuses data after the document.
func Decode(r io.Reader) (Document, error) { return decode(r, MaxDocument) }

func decode(r io.Reader, limit int64) (Document, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return Document{}, fmt.Errorf("read result document: %w", err)
	}
	if int64(len(data)) > limit {
		return Document{}, fmt.Errorf("read result document: %w", ErrTooLarge)
	}
	runs := collector{runs: []Run{}}
	doc, err := Read(bytes.NewReader(data), &runs)
	if err != nil {
		return Document{}, err
	}
	doc.Runs = runs.runs
	return doc, nil
}

// collector collects the runs of a document.
type collector struct{ runs []Run }

func (c *collector) Begin(run Run) error {
	c.runs = append(c.runs, run)
	return nil
}

func (c *collector) Trial(trial Trial) error {
	run := &c.runs[len(c.runs)-1]
	run.Trials = append(run.Trials, trial)
	return nil
}

func (c *collector) Trace(trace Trace) error {
	run := &c.runs[len(c.runs)-1]
	run.Traces = append(run.Traces, trace)
	return nil
}

func (*collector) End() error { return nil }

func validateRuns(runs []Run) error {
	names := map[string]bool{}
	for i := range runs {
		if err := runs[i].Validate(); err != nil {
			return err
		}
		if names[runs[i].ID] {
			return fmt.Errorf("run %q occurs twice", runs[i].ID)
		}
		names[runs[i].ID] = true
	}
	return nil
}

// canonical returns doc with canonical runs. It does not change the caller's slices.
func canonical(doc Document) Document {
	doc.Runs = list(doc.Runs)
	for i := range doc.Runs {
		doc.Runs[i] = doc.Runs[i].Canonical()
	}
	return doc
}

// Canonical returns a run with all times in UTC, and with empty lists instead of absent ones where the schema requires a list. It does not
// change the caller's slices.
func (r Run) Canonical() Run {
	r.Started = r.Started.UTC()
	r.Ended = r.Ended.UTC()
	r.Targets = list(r.Targets)
	r.Bench = list(r.Bench)
	for j := range r.Bench {
		r.Bench[j].Metrics = list(r.Bench[j].Metrics)
	}
	r.Trials = list(r.Trials)
	for j := range r.Trials {
		r.Trials[j] = r.Trials[j].Canonical()
	}
	r.Traces = canonicalTraces(r.Traces)
	return r
}

// Canonical is Run.Canonical for one trial.
func (t Trial) Canonical() Trial {
	t.Started = t.Started.UTC()
	t.Samples = slices.Clone(t.Samples)
	for k := range t.Samples {
		if t.Samples[k].Value == 0 {
			t.Samples[k].Value = 0 // not −0, which the store does not keep
		}
	}
	t.Distributions = slices.Clone(t.Distributions)
	for k := range t.Distributions {
		t.Distributions[k].Lows = list(t.Distributions[k].Lows)
		t.Distributions[k].Counts = list(t.Distributions[k].Counts)
		if tail := t.Distributions[k].Tail; tail != nil {
			t.Distributions[k].Tail = &Tail{At: list(tail.At), Values: list(tail.Values)}
		}
	}
	t.Timelines = slices.Clone(t.Timelines)
	for k := range t.Timelines {
		t.Timelines[k].At = list(t.Timelines[k].At)
		t.Timelines[k].Values = list(t.Timelines[k].Values)
	}
	return t
}

// list clones s into a slice that is not nil.
func list[T any](s []T) []T { return append(make([]T, 0, len(s)), s...) }
