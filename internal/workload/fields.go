package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// fields are the fields of one JSON object that have not been read yet. Unlike json.Unmarshal it detects a field that is missing,
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

// take removes a field and decodes it.
func (f fields) take(name string, value any) error {
	raw, ok := f[name]
	delete(f, name)
	if !ok {
		return fmt.Errorf("field %q is missing", name)
	}
	if string(raw) == "null" {
		return fmt.Errorf("field %q is null", name)
	}
	if err := json.Unmarshal(raw, value); err != nil {
		return fmt.Errorf("field %q: %w", name, err)
	}
	return nil
}

func (f fields) text(name string, value *string) error { return f.take(name, value) }

func (f fields) boolean(name string, value *bool) error { return f.take(name, value) }

func (f fields) whole(name string, value *uint64) error { return f.take(name, value) }

func (f fields) number(name string, value *float64) error {
	if err := f.take(name, value); err != nil {
		return err
	}
	// JSON has no NaN and the decoder refuses what is too large: this states it.
	if !(*value >= 0 && *value <= math.MaxFloat64) {
		return fmt.Errorf("field %q is %v; it must be a number from 0", name, *value)
	}
	return nil
}

func (f fields) pairs(name string, value *[][2]uint64) error {
	var slices [][]uint64
	if err := f.take(name, &slices); err != nil {
		return err
	}
	if len(slices) > maxPairs {
		return fmt.Errorf("field %q has more than %d pairs", name, maxPairs)
	}
	for _, s := range slices {
		// An array of two would take any number.
		if len(s) != 2 {
			return fmt.Errorf("field %q: an element has %d numbers instead of two", name, len(s))
		}
		*value = append(*value, [2]uint64(s))
	}
	return nil
}

// rest refuses the fields that were not read.
func (f fields) rest() error {
	if len(f) > 0 {
		return fmt.Errorf("there are unknown fields: %q", names(f))
	}
	return nil
}
