package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// fields are the fields of one JSON object by name. Unlike json.Unmarshal they detect a field that is missing,
// null, duplicate or different in case only.
type fields map[string]json.RawMessage

func parseFields(line []byte) (fields, error) {
	d := json.NewDecoder(bytes.NewReader(line))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return nil, fmt.Errorf("it is not a JSON object: %q", cut(string(line)))
	}
	f := fields{}
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
			return nil, fmt.Errorf("field %q occurs twice", cut(name))
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

func (f fields) has(name string) bool {
	_, ok := f[name]
	return ok
}

// decode decodes all fields into the values by their names. It refuses a missing and an unknown field, and a float64 below 0.
func (f fields) decode(into map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(into)) {
		raw, ok := f[name]
		if !ok {
			return fmt.Errorf("field %q is missing", name)
		}
		if string(raw) == "null" {
			return fmt.Errorf("field %q is null", name)
		}
		if err := json.Unmarshal(raw, into[name]); err != nil {
			return fmt.Errorf("field %q: %w", name, err)
		}
		if number, ok := into[name].(*float64); ok && *number < 0 {
			return fmt.Errorf("field %q is %v; it must be a number from 0", name, *number)
		}
	}
	for name := range f {
		if _, known := into[name]; !known {
			return fmt.Errorf("there are unknown fields: %q", f.names())
		}
	}
	return nil
}

func (f fields) names() string { return cut(strings.Join(slices.Sorted(maps.Keys(f)), ", ")) }
