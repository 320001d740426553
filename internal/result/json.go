package result

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// MaxDocument is the maximum size of a document in bytes. It holds about six million samples, more than any plan produces, and fits
// in memory.
const MaxDocument = 512 << 20

// ErrNewer is in the error of Decode for a document with a schema_version above SchemaVersion.
var ErrNewer = errors.New("a newer touchstone wrote it")

// ErrTooLarge is in the error of Decode for a document above MaxDocument.
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

// Decode reads a document of this or an earlier version of touchstone, and upgrades its runs to SchemaVersion. It ignores unknown
// fields, since a new field does not raise the schema's version. It refuses a higher version (ErrNewer), more than MaxDocument
// bytes (ErrTooLarge), data after the document, runs that Validate refuses, and control characters in text for one line. The errors contain the
// location.
func Decode(r io.Reader) (Document, error) { return decode(r, MaxDocument) }

func decode(r io.Reader, limit int64) (Document, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return Document{}, fmt.Errorf("read result document: %w", err)
	}
	if int64(len(data)) > limit {
		return Document{}, fmt.Errorf("read result document: %w", ErrTooLarge)
	}
	// The version is read first: a later version may have given other types to other fields, and the error should name the version
	// instead of those fields.
	var head struct {
		Schema *int   `json:"schema_version"`
		Kind   string `json:"kind"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return Document{}, fmt.Errorf("decode result document: %w", located(data, err))
	}
	switch {
	case head.Kind != "": // an export has none
		return Document{}, fmt.Errorf("decode result document: it is a %.50q, which has no samples; give a file that touchstone export wrote", head.Kind)
	case head.Schema == nil || *head.Schema < 1:
		return Document{}, errors.New("decode result document: it has no schema_version; give a file that touchstone export wrote")
	case *head.Schema > SchemaVersion:
		return Document{}, fmt.Errorf("decode result document: %w: it has schema version %d and this touchstone knows %d; use a newer touchstone", ErrNewer, *head.Schema, SchemaVersion)
	}
	var doc Document
	err = json.Unmarshal(data, &doc)
	if err == nil && *head.Schema == 1 {
		err = doc.upgrade(data)
	}
	if err != nil {
		return Document{}, fmt.Errorf("decode result document: %w", located(data, err))
	}
	if err := validateRuns(doc.Runs); err != nil {
		return Document{}, fmt.Errorf("decode result document: %w", err)
	}
	for i := range doc.Runs {
		if err := doc.Runs[i].validateText(); err != nil {
			return Document{}, fmt.Errorf("decode result document: run %q: %w", doc.Runs[i].ID, err)
		}
	}
	return canonical(doc), nil
}

// exported is the remedy for an unreadable document.
const exported = "give a file that touchstone export wrote"

// located adds the location in the document to an error of encoding/json.
func located(data []byte, err error) error {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return fmt.Errorf("it is empty; %s", exported)
	case errors.As(err, &syntax) && syntax.Error() == "unexpected end of JSON input":
		return fmt.Errorf("%s: %w: the document is truncated; export or copy it again", position(data, int64(len(data))), err)
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: %w; %s", position(data, syntax.Offset), err, exported)
	case errors.As(err, &typ):
		return fmt.Errorf("%s: %s is a JSON %s, not %v; %s", position(data, typ.Offset), cmp.Or(typ.Field, "the document"), typ.Value, typ.Type, exported)
	}
	return fmt.Errorf("%w; %s", err, exported)
}

// position returns the line and the column, both from 1, of the last of the first offset bytes.
func position(data []byte, offset int64) string {
	before := data[:min(max(offset-1, 0), int64(len(data)))]
	return fmt.Sprintf("line %d, column %d", bytes.Count(before, []byte("\n"))+1, len(before)-bytes.LastIndexByte(before, '\n'))
}

func validateRuns(runs []Run) error {
	seen := map[string]bool{}
	for i := range runs {
		if err := runs[i].Validate(); err != nil {
			return err
		}
		if seen[runs[i].ID] {
			return fmt.Errorf("run %q occurs twice", runs[i].ID)
		}
		seen[runs[i].ID] = true
	}
	return nil
}

// canonical returns doc with all times in UTC, and with empty lists instead of absent ones where the schema requires a list. It
// does not change the caller's slices.
func canonical(doc Document) Document {
	doc.Runs = list(doc.Runs)
	for i := range doc.Runs {
		r := &doc.Runs[i]
		r.Started = r.Started.UTC()
		r.Ended = r.Ended.UTC()
		r.Targets = list(r.Targets)
		r.Bench = list(r.Bench)
		for j := range r.Bench {
			r.Bench[j].Metrics = list(r.Bench[j].Metrics)
		}
		r.Trials = list(r.Trials)
		for j := range r.Trials {
			t := &r.Trials[j]
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
			}
			t.Timelines = slices.Clone(t.Timelines)
			for k := range t.Timelines {
				t.Timelines[k].At = list(t.Timelines[k].At)
				t.Timelines[k].Values = list(t.Timelines[k].Values)
			}
		}
	}
	return doc
}

// list clones s into a slice that is not nil.
func list[T any](s []T) []T { return append(make([]T, 0, len(s)), s...) }
