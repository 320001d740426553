// Package reportjson writes a report for programs: the numbers and statements of the other reports. It is not the run: raw
// samples, phases of trials and the activity of the host are in the document of `touchstone export`, which is the source of this
// document.
//
// A report of one run and a report of several have different kinds of documents, because programs that read the first need no
// lists by run. Both consist of the same parts.
//
// Values are in base units (seconds, bytes, per second). An unknown value is null or absent, never zero.
package reportjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"

	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// SchemaVersion is the version of the document. It is raised when a field changes its
// meaning or goes away; a new field does not raise it.
const SchemaVersion = 1

// The kinds of documents, which distinguish them from the export of a run. docs/schema/joint-report.schema.json is the schema
// of JointKind.
const (
	Kind      = "touchstone-report"       // of one run
	JointKind = "touchstone-joint-report" // of several runs
)

// Write writes r to w as one JSON document, the same bytes for the same report.
func Write(w io.Writer, r report.Report) error {
	document := joint
	if len(r.Runs) == 1 {
		document = single
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(document(&r)); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// object is an object of the document. Its members keep their order, and a name stands beside the expression of its value. We
// rejected a struct for each kind of object, because it repeats every field of the model.
type object []member

// member is a member of an object. A member without a name is left out.
type member struct {
	name  string
	value any
}

// optional is a member that is left out if its value is zero or an empty list.
func optional(name string, value any) member {
	v := reflect.ValueOf(value)
	if !v.IsValid() || v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0 {
		return member{}
	}
	return member{name, value}
}

// MarshalJSON implements [json.Marshaler].
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	separator := "{"
	for _, m := range o {
		if m.name == "" {
			continue
		}
		fmt.Fprintf(&b, "%s%q:", separator, m.name)
		if err := enc.Encode(m.value); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		separator = ","
	}
	if separator == "{" { // no member is shown
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// each converts the items of a list. An empty list is [], not null.
func each[T any](items []T, convert func(*T) object) []object {
	objects := make([]object, len(items))
	for i := range items {
		objects[i] = convert(&items[i])
	}
	return objects
}

// list is s, or an empty list that is not nil.
func list[T any](s []T) []T { return append(make([]T, 0, len(s)), s...) }

// number is nil for NaN and infinities, which JSON does not have.
func number(v float64) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return digits(v)
}

// numbers are unknown where a value is not finite.
func numbers(values []float64) []any {
	var list []any
	for _, v := range values {
		list = append(list, number(v))
	}
	return list
}

// digits keeps twelve digits: more than any clock gives, and few enough for the same text from machines with and without
// fused multiplication and addition.
func digits(v float64) float64 {
	if output, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 11, 64), 64); err == nil {
		return output
	}
	return v
}

func interval(ci *stats.Interval) any {
	if ci == nil || number(ci.Lo) == nil || number(ci.Hi) == nil {
		return nil
	}
	return object{{"lo", digits(ci.Lo)}, {"hi", digits(ci.Hi)}}
}
