package result

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

// Limits of a document for Read. Memory depends on them and not on the size of the document: a trial of three bytes takes hundreds of bytes in
// memory, and so does a metric. All of them are far above the documents of any plan.
const (
	// maxRuns is the largest number of runs.
	maxRuns = 10_000
	// maxValue is the largest size of a value other than the lists of runs, trials and their parts.
	maxValue = 8 << 20
	// maxFacts is the largest size of a run without its trials, and maxAllFacts the largest sum of these sizes.
	maxFacts, maxAllFacts = 16 << 20, 128 << 20
	// maxEntries is the largest number of samples and of phases of a trial.
	maxEntries = 500_000
	// maxPoints is the largest number of values in all timelines and distributions of a trial.
	maxPoints = 4_000_000
	// maxDepth is the deepest nesting in unknown values.
	maxDepth = 100
)

// Visitor receives the runs of a document, one after the other.
type Visitor interface {
	// Begin receives a run without its trials.
	Begin(run Run) error
	// Trial receives the next trial of the run.
	Trial(trial Trial) error
	// Trace receives the next trace of the run, after its trials.
	Trace(trace Trace) error
	// End ends the run.
	End() error
}

// Visit passes whole runs to a visitor, as Read does.
func Visit(v Visitor, runs ...Run) error {
	for _, run := range runs {
		trials, traces := run.Trials, run.Traces
		run.Trials, run.Traces = nil, nil
		if err := v.Begin(run); err != nil {
			return err
		}
		for i := range trials {
			if err := v.Trial(trials[i]); err != nil {
				return err
			}
		}
		for i := range traces {
			if err := v.Trace(traces[i]); err != nil {
				return err
			}
		}
		if err := v.End(); err != nil {
			return err
		}
	}
	return nil
}

// Read reads a document as a stream. An error of v ends it. The returned document has no runs.
//
// Read ignores unknown fields, since a new field does not raise the schema's version. It refuses another version (ErrVersion), more
// than MaxDocument bytes (ErrTooLarge), data after the document, runs that Validate refuses, control characters in text for one line, and
// facts of a run after its trials. The errors contain the location. A document can be invalid at its end, so the caller reads it with a
// Visitor without effects first, or can undo its effects.
func Read(r io.ReadSeeker, v Visitor) (Document, error) {
	size, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return Document{}, fmt.Errorf("read result document: %w", err)
	}
	if size > MaxDocument {
		return Document{}, fmt.Errorf("read result document: %w", ErrTooLarge)
	}
	// The version is read first: another version may have given other types to other fields, and the error should name the version
	// instead of those fields.
	var head header
	if err := scan(r, head.read); err != nil {
		return Document{}, err
	}
	if err := head.check(); err != nil {
		return Document{}, fmt.Errorf("decode result document: %w", err)
	}
	doc := Document{}
	read := runReader{visitor: v, seen: map[string]bool{}}
	err = scan(r, func(s *stream) error {
		if err := s.object("", &doc, map[string]func() error{"runs": func() error { return read.runs(s) }}, nil); err != nil {
			return err
		}
		return s.end()
	})
	if err != nil {
		return Document{}, err
	}
	return doc, nil
}

// header is the part of a document that decides whether Read understands the rest.
type header struct {
	Schema *int   `json:"schema_version"`
	Kind   string `json:"kind"`
}

// read reads up to the runs if they follow the version, as in each document of Encode.
func (h *header) read(s *stream) error {
	errStop := errors.New("enough")
	err := s.object("", h, map[string]func() error{"runs": func() error {
		if h.Schema != nil {
			return errStop
		}
		return s.skip()
	}}, nil)
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

func (h *header) check() error {
	switch {
	case h.Kind != "": // an export has none
		return fmt.Errorf("it is a %.50q, which has no samples; %s", h.Kind, exported)
	case h.Schema == nil:
		return fmt.Errorf("it has no schema_version; %s", exported)
	case *h.Schema != SchemaVersion:
		return fmt.Errorf("%w: it has schema version %d and this touchstone knows %d; %s", ErrVersion, *h.Schema, SchemaVersion, VersionAdvice)
	}
	return nil
}

// runReader reads runs.
type runReader struct {
	visitor Visitor
	seen    map[string]bool // IDs
	facts   int64           // size of all facts
}

func (r *runReader) runs(s *stream) error {
	return s.list("runs", func() error {
		if len(r.seen) == maxRuns {
			return s.refuse(fmt.Errorf("it has more than %d runs; export fewer runs into one file", maxRuns))
		}
		return r.run(s)
	})
}

// run reads a run. Its facts precede its trials, as in each document of Encode.
func (r *runReader) run(s *stream) error {
	var run Run
	hasBegun := false
	start, trials := s.dec.InputOffset(), int64(0) // trials is the size of trials and traces
	fits := func() error {
		facts := s.dec.InputOffset() - start - trials
		if facts > maxFacts || r.facts+facts > maxAllFacts {
			return s.refuse(fmt.Errorf("the runs without their trials take more than %d MiB each or %d MiB together; export fewer runs into one file", maxFacts>>20, maxAllFacts>>20))
		}
		return nil
	}
	begin := func() error {
		hasBegun = true
		err := run.Validate()
		if err == nil && r.seen[run.ID] {
			err = fmt.Errorf("run %q occurs twice", run.ID)
		}
		if err == nil {
			if err = run.validateText(); err != nil {
				err = fmt.Errorf("run %q: %w", run.ID, err)
			}
		}
		if err != nil {
			return s.invalid(err)
		}
		r.seen[run.ID] = true
		run = run.Canonical()
		return visit(r.visitor.Begin(run))
	}
	lists := map[string]func() error{
		"targets": func() error { return elements(s, "runs.targets", &run.Targets, MaxNames, fits) },
		"images":  func() error { return elements(s, "runs.images", &run.Images, MaxNames, fits) },
		"benchmarks": func() error {
			return s.list("runs.benchmarks", func() error {
				if len(run.Bench) == MaxNames {
					return s.invalid(fmt.Errorf("run %q has more than %d benchmarks", run.ID, MaxNames))
				}
				b, err := readBenchmark(s, fits)
				run.Bench = append(run.Bench, b)
				return err
			})
		},
		"trials": func() error {
			if err := begin(); err != nil {
				return err
			}
			start := s.dec.InputOffset()
			defer func() { trials += s.dec.InputOffset() - start }()
			last := 0
			return s.list("runs.trials", func() error {
				trial, err := readTrial(s)
				if err != nil {
					return err
				}
				if err := run.checkNext(&trial, last); err != nil {
					return s.invalid(err)
				}
				last = trial.Seq
				return visit(r.visitor.Trial(trial.Canonical()))
			})
		},
		"traces": func() error {
			if !hasBegun {
				return s.refuse(fmt.Errorf("run %q: the traces precede the trials; put the key traces after trials", run.ID))
			}
			start := s.dec.InputOffset()
			defer func() { trials += s.dec.InputOffset() - start }()
			last := 0
			return s.list("runs.traces", func() error {
				trace, err := readTrace(s)
				if err != nil {
					return err
				}
				if err := run.checkNextTrace(&trace, last); err != nil {
					return s.invalid(err)
				}
				last = trace.Seq
				return visit(r.visitor.Trace(trace.Canonical()))
			})
		},
	}
	err := s.object("runs", &run, lists, func(key string) error {
		if hasBegun && key != "trials" && key != "traces" {
			return s.refuse(fmt.Errorf("run %q: facts of the run follow its trials; put the keys trials and traces last", run.ID))
		}
		return fits()
	})
	if err == nil && !hasBegun {
		err = begin()
	}
	if err != nil {
		return err
	}
	r.facts += s.dec.InputOffset() - start - trials
	return visit(r.visitor.End())
}

// checkNext refuses a trial that does not follow the trial last of the run.
func (r *Run) checkNext(t *Trial, last int) error {
	err := r.ValidateTrial(t)
	if err == nil && t.Seq <= last {
		err = fmt.Errorf("trial %d follows trial %d; trials must be in the order of their execution, without repetition", t.Seq, last)
	}
	if err == nil {
		err = t.validateText()
	}
	if err != nil {
		return fmt.Errorf("run %q: %w", r.ID, err)
	}
	return nil
}

func readBenchmark(s *stream, fits func() error) (b Benchmark, err error) {
	err = s.object("runs.benchmarks", &b, map[string]func() error{
		"metrics": func() error { return elements(s, "runs.benchmarks.metrics", &b.Metrics, MaxNames, fits) },
	}, nil)
	if err == nil { // now, since empty metrics take much more memory than their text
		if err := validateMetrics(b.Metrics); err != nil {
			return b, s.invalid(fmt.Errorf("benchmark %.50q: %w", b.Name, err))
		}
	}
	return b, err
}

func readTrial(s *stream) (t Trial, err error) {
	points := 0
	add := func(n int) error {
		if points += n; points > maxPoints {
			return s.invalid(fmt.Errorf("trial %d has more than %d values in timelines and distributions", t.Seq, maxPoints))
		}
		return nil
	}
	err = s.object("runs.trials", &t, map[string]func() error{
		"phases":  func() error { return elements(s, "runs.trials.phases", &t.Phases, maxEntries, nil) },
		"samples": func() error { return elements(s, "runs.trials.samples", &t.Samples, maxEntries, nil) },
		"distributions": func() error {
			return elements(s, "runs.trials.distributions", &t.Distributions, MaxNames, func() error {
				d := &t.Distributions[len(t.Distributions)-1]
				n := max(len(d.Lows), len(d.Counts))
				if d.Tail != nil {
					n += max(len(d.Tail.At), len(d.Tail.Values))
				}
				return add(n)
			})
		},
		"timelines": func() error {
			return elements(s, "runs.trials.timelines", &t.Timelines, MaxTimelines, func() error {
				l := &t.Timelines[len(t.Timelines)-1]
				return add(max(len(l.At), len(l.Values)))
			})
		},
	}, nil)
	return t, err
}

// elements reads a list of values. It calls check, if it is not nil, after each.
func elements[T any](s *stream, path string, items *[]T, limit int, check func() error) error {
	return s.list(path, func() error {
		if len(*items) == limit {
			return s.invalid(fmt.Errorf("%s: the list has more than %d entries", path, limit))
		}
		var item T
		var raw json.RawMessage
		if err := s.value(path, &raw); err != nil {
			return err
		}
		if err := json.Unmarshal(raw, &item); err != nil {
			return s.explain(path, s.dec.InputOffset()-int64(len(raw)), err)
		}
		if err := checkNumbers(path, raw, reflect.TypeFor[T](), true); err != nil {
			return s.invalid(err)
		}
		*items = append(*items, item)
		if check == nil {
			return nil
		}
		return check()
	})
}

// visitError is an error of a Visitor.
type visitError struct{ error }

func (e *visitError) Unwrap() error { return e.error }

func visit(err error) error {
	if err == nil {
		return nil
	}
	return &visitError{err}
}

// exported is the remedy for an unreadable document.
const exported = "give a file that touchstone export wrote"

// faultError is a fault of a document. Its offset is the number of bytes up to and including the fault; −1 stands for the end.
type faultError struct {
	offset int64
	text   string
	err    error
}

func (e *faultError) Error() string { return e.text }

func (e *faultError) Unwrap() error { return e.err }

// scan calls read with a stream from the start of r, and adds the location to its error.
func scan(r io.ReadSeeker, read func(*stream) error) error {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read result document: %w", err)
	}
	in := &meter{r: r}
	s := &stream{in: in, dec: json.NewDecoder(in)}
	s.dec.UseNumber()
	err := read(s)
	var fault *faultError
	var failure *visitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failure):
		return failure.error
	case !errors.As(err, &fault):
		return fmt.Errorf("read result document: %w", err)
	}
	place, err := position(r, fault.offset)
	if err != nil {
		return fmt.Errorf("read result document: %w", err)
	}
	return fmt.Errorf("decode result document: %s%w", place, fault)
}

// position returns the line and the column, both from 1, of the last of the first offset bytes, or of the last byte if offset is −1. It is
// empty for no byte.
func position(r io.ReadSeeker, offset int64) (string, error) {
	if offset < 0 {
		size, err := r.Seek(0, io.SeekEnd)
		if err != nil {
			return "", err
		}
		offset = size
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil || offset == 0 {
		return "", err
	}
	in := bufio.NewReader(io.LimitReader(r, offset-1))
	line, column := 1, 1
	for {
		b, err := in.ReadByte()
		if errors.Is(err, io.EOF) {
			return fmt.Sprintf("line %d, column %d: ", line, column), nil
		}
		if err != nil {
			return "", err
		}
		if column++; b == '\n' {
			line, column = line+1, 1
		}
	}
}

// errValue is the error of a meter.
var errValue = errors.New("a value is too long")

// meter is a reader that stops in a value that is too long, so that no buffer grows with it.
type meter struct {
	r    io.Reader
	left int
}

func (m *meter) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, errValue
	}
	n, err := m.r.Read(p[:min(len(p), m.left)])
	m.left -= n
	return n, err
}

// stream reads the values of a document.
type stream struct {
	in  *meter
	dec *json.Decoder
}

// object reads an object into a struct. It calls the function of lists for each key that lists has; other values are read as a whole. It
// calls check, if it is not nil, after each key.
func (s *stream) object(path string, target any, lists map[string]func() error, check func(key string) error) error {
	if err := s.open(path, '{', "an object"); err != nil {
		return err
	}
	names := map[string]bool{}
	for s.more() {
		t, err := s.token()
		if err != nil {
			return err
		}
		key, _ := t.(string) // the decoder accepts only strings here
		if names[key] {
			return s.invalid(fmt.Errorf("the key %.50q occurs twice", key))
		}
		names[key] = true
		read := func() error { return s.field(path, key, target) }
		for name, list := range lists {
			if strings.EqualFold(name, key) { // like encoding/json
				key, read = name, list
			}
		}
		if err = read(); err == nil && check != nil {
			err = check(key)
		}
		if err != nil {
			return err
		}
	}
	if _, err := s.token(); err != nil {
		return err
	}
	err := checkKeys(path, reflect.TypeOf(target).Elem(), func(name string) bool {
		for key := range names {
			if strings.EqualFold(key, name) {
				return true
			}
		}
		return false
	})
	if err != nil {
		return s.invalid(err)
	}
	return nil
}

// field reads the value of a key into the field of a struct.
func (s *stream) field(path, key string, target any) error {
	var raw json.RawMessage
	if err := s.value(join(path, key), &raw); err != nil {
		return err
	}
	name, err := json.Marshal(key)
	if err != nil {
		return err
	}
	object := slices.Concat([]byte{'{'}, name, []byte{':'}, raw, []byte{'}'})
	start := s.dec.InputOffset() - int64(len(raw)) - int64(len(name)+2)
	if err := json.Unmarshal(object, target); err != nil {
		return s.explain(path, start, err)
	}
	err = checkNumbers(path, object, reflect.TypeOf(target), false)
	if err == nil && string(raw) == "null" { // an object of numbers is absent
		err = checkKeys(path, reflect.TypeOf(target).Elem(), func(name string) bool { return !strings.EqualFold(name, key) })
	}
	if err != nil {
		return s.invalid(err)
	}
	return nil
}

// list calls read for each value of a list. A list may be null.
func (s *stream) list(path string, read func() error) error {
	if err := s.open(path, '[', "a list"); errors.Is(err, errNull) {
		return nil
	} else if err != nil {
		return err
	}
	for s.more() {
		if err := read(); err != nil {
			return err
		}
	}
	_, err := s.token()
	return err
}

// errNull is in the error for null.
var errNull = errors.New("null")

// open reads the start of an object or a list.
func (s *stream) open(path string, delimiter json.Delim, what string) error {
	t, err := s.token()
	if err != nil || t == delimiter {
		return err
	}
	kind, err := "null", errNull
	switch t := t.(type) {
	case json.Delim:
		kind = map[json.Delim]string{'{': "object", '[': "array"}[t]
	case string:
		kind = "string"
	case json.Number:
		kind = "number"
	case bool:
		kind = "bool"
	}
	if kind != "null" {
		err = nil
	}
	text := fmt.Sprintf("%s is a JSON %s, not %s; %s", orDocument(path), kind, what, exported)
	return &faultError{s.dec.InputOffset(), text, err}
}

// skip reads a value and forgets it.
func (s *stream) skip() error {
	for depth := 0; ; {
		t, err := s.token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
		if depth > maxDepth {
			return s.invalid(fmt.Errorf("more than %d values are within each other", maxDepth))
		}
	}
}

// end refuses data after the document.
func (s *stream) end() error {
	s.in.left = maxValue
	_, err := s.dec.Token()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return s.explain("", s.dec.InputOffset(), err)
	}
	return s.invalid(errors.New("invalid character after top-level value"))
}

// more reports whether the object or the list has another entry. The next read returns an error.
func (s *stream) more() bool {
	s.in.left = maxValue
	return s.dec.More()
}

// refuse reports a fault of the value that was read last. The error has a remedy.
func (s *stream) refuse(err error) error {
	return &faultError{s.dec.InputOffset(), err.Error(), err}
}

// invalid is refuse for content that no export has.
func (s *stream) invalid(err error) error { return s.refuse(fmt.Errorf("%w; %s", err, exported)) }

// token returns the next delimiter or key.
func (s *stream) token() (json.Token, error) {
	s.in.left = maxValue
	t, err := s.dec.Token()
	return t, s.explain("", s.dec.InputOffset(), err)
}

// value reads a value with all that is in it.
func (s *stream) value(path string, target any) error {
	s.in.left = maxValue
	start := s.dec.InputOffset()
	var next [1]byte
	if n, _ := s.dec.Buffered().Read(next[:]); n == 1 && (next[0] == ',' || next[0] == ':') {
		start++
	}
	return s.explain(path, start, s.dec.Decode(target))
}

// explain converts an error of the decoder, whose last value begins at start.
func (s *stream) explain(path string, start int64, err error) error {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	fault := func(offset int64, text string) error { return &faultError{offset, text + "; " + exported, err} }
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errValue):
		return fault(s.dec.InputOffset()+1, fmt.Sprintf("%s is longer than %d MiB", orDocument(path), maxValue>>20))
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		rest, _ := io.ReadAll(s.dec.Buffered()) // it is in memory
		if s.dec.InputOffset() == 0 && strings.TrimSpace(string(rest)) == "" {
			return fault(0, "it is empty")
		}
		return &faultError{-1, "unexpected end of JSON input: the document is truncated; export or copy it again", err}
	case errors.As(err, &syntax):
		// The decoder counts from another place than the start of the document. The value is still in its buffer.
		offset := s.dec.InputOffset() + 1
		rest, _ := io.ReadAll(s.dec.Buffered())
		if fault := (*json.SyntaxError)(nil); errors.As(json.Unmarshal(rest, new(json.RawMessage)), &fault) && fault.Error() == syntax.Error() {
			offset = s.dec.InputOffset() + fault.Offset
		}
		return fault(offset, err.Error())
	case errors.As(err, &typ):
		return fault(start+typ.Offset, fmt.Sprintf("%s is a JSON %s, not %v", orDocument(join(path, typ.Field)), typ.Value, typ.Type))
	case s.dec.InputOffset() > start: // an error of a type that reads itself, such as a time
		return fault(s.dec.InputOffset(), fmt.Sprintf("%s: %v", orDocument(path), err))
	}
	return err // of the file
}

func orDocument(path string) string {
	if path == "" {
		return "the document"
	}
	return path
}

// join joins the names of a field and of the object that it is in.
func join(path, field string) string { return strings.Trim(path+"."+field, ".") }
