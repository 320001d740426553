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

// MaxDocument is the size in bytes from which Decode refuses a document: about
// six million samples, more than any plan makes, and little enough to hold.
const MaxDocument = 512 << 20

// ErrNewer is in the error of Decode for a document whose schema_version is
// higher than SchemaVersion.
var ErrNewer = errors.New("it was written by a newer touchstone")

// Document is what `touchstone export` writes and `touchstone import` reads. It
// can be understood without the program that wrote it: each run describes its
// metrics with unit and direction. docs/schema/result.schema.json is its schema.
//
// Times are RFC 3339 in UTC. Durations are whole nanoseconds in keys that end
// in _ns. What a host does not offer is absent, never zero.
type Document struct {
	// Schema is the SchemaVersion that the document follows.
	Schema int `json:"schema_version"`
	// Generator is the program that wrote the document, which need not be the
	// one that made the runs.
	Generator Tool  `json:"generator"`
	Runs      []Run `json:"runs"`
}

// Encode writes doc in the current schema, whatever doc.Schema says. It refuses
// a run that Validate refuses and a run that is there twice, before it writes.
// Bytes in strings that are not UTF-8 become U+FFFD.
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

// Decode reads a document that Encode wrote, of this or an earlier version of
// touchstone. Fields that it does not know are passed over, since a new
// field does not raise the schema's version. A higher version (ErrNewer), more than
// MaxDocument bytes, anything after the document, runs that Validate refuses and
// control characters in what is shown on one line are errors, which say where.
func Decode(r io.Reader) (Document, error) { return decode(r, MaxDocument) }

func decode(r io.Reader, limit int64) (Document, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return Document{}, fmt.Errorf("read result document: %w", err)
	}
	if int64(len(data)) > limit {
		return Document{}, fmt.Errorf("read result document: it is larger than %d MiB; export fewer runs into one file", limit>>20)
	}
	// The version is read first: a later version may have given other types to
	// other fields, and the reader is to be told of the version, not of those.
	var head struct {
		Schema *int   `json:"schema_version"`
		Kind   string `json:"kind"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return Document{}, fmt.Errorf("decode result document: %w", located(data, err))
	}
	switch {
	case head.Kind != "": // an export has none
		return Document{}, fmt.Errorf("decode result document: it is a %.50q, which has no samples; give a file written by touchstone export", head.Kind)
	case head.Schema == nil || *head.Schema < 1:
		return Document{}, errors.New("decode result document: there is no schema_version in it; it must be a file written by touchstone export")
	case *head.Schema > SchemaVersion:
		return Document{}, fmt.Errorf("decode result document: %w: it follows version %d of the schema and this touchstone knows %d; use a newer touchstone", ErrNewer, *head.Schema, SchemaVersion)
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

// exported says what to do about a document that cannot be read.
const exported = "give a file as touchstone export wrote it"

// located says where in a document encoding/json met an error.
func located(data []byte, err error) error {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return fmt.Errorf("it is empty; %s", exported)
	case errors.As(err, &syntax) && syntax.Error() == "unexpected end of JSON input":
		return fmt.Errorf("%s: %w: the document was cut off there; export or copy it again", place(data, int64(len(data))), err)
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: %w; %s", place(data, syntax.Offset), err, exported)
	case errors.As(err, &typ):
		return fmt.Errorf("%s: %s is a JSON %s, which is no %v; %s", place(data, typ.Offset), cmp.Or(typ.Field, "the document"), typ.Value, typ.Type, exported)
	}
	return fmt.Errorf("%w; %s", err, exported)
}

// place gives the line and the column, both from 1, of the last of the first offset bytes.
func place(data []byte, offset int64) string {
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
			return fmt.Errorf("run %q is there twice", runs[i].ID)
		}
		seen[runs[i].ID] = true
	}
	return nil
}

// canonical gives doc with all times in UTC and with empty lists in place of
// absent ones where the schema wants a list. It leaves the caller's slices alone.
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
		}
	}
	return doc
}

// list clones s into a slice that is not nil.
func list[T any](s []T) []T { return append(make([]T, 0, len(s)), s...) }
