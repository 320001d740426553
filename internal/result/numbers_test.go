package result

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// numberPlace is a number in a JSON document: the keys and places that lead to it.
type numberPlace []any

func (p numberPlace) String() string {
	var parts []string
	for _, part := range p {
		if key, ok := part.(string); ok {
			parts = append(parts, key)
		}
	}
	return strings.Join(parts, ".")
}

// numberPlaces lists the numbers of a value.
func numberPlaces(value any, place numberPlace) (places []numberPlace) {
	switch value := value.(type) {
	case map[string]any:
		for key, v := range value {
			places = append(places, numberPlaces(v, append(slices.Clone(place), key))...)
		}
	case []any:
		for i, v := range value {
			places = append(places, numberPlaces(v, append(slices.Clone(place), i))...)
		}
	case json.Number:
		places = append(places, place)
	case string:
		if place[len(place)-1] == "seed" {
			places = append(places, place)
		}
	}
	return places
}

// replaced returns a copy of a value with another value at a place. Without a value the key is left out.
func replaced(value any, place numberPlace, replacement any, out bool) any {
	if len(place) == 0 {
		return replacement
	}
	switch value := value.(type) {
	case map[string]any:
		duplicate := map[string]any{}
		for key, v := range value {
			if key == place[0] && len(place) == 1 && out {
				continue
			}
			if key == place[0] {
				v = replaced(v, place[1:], replacement, out)
			}
			duplicate[key] = v
		}
		return duplicate
	case []any:
		duplicate := slices.Clone(value)
		i := place[0].(int)
		duplicate[i] = replaced(duplicate[i], place[1:], replacement, out)
		return duplicate
	}
	return value
}

// generic decodes JSON without a loss of digits.
func generic(t *testing.T, text string) (value any) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	must.Do(t, dec.Decode(&value))
	return value
}

// inOrder encodes a run with its trials at the end.
func inOrder(t *testing.T, doc any) string {
	t.Helper()
	var runs []string
	top := doc.(map[string]any)
	for _, run := range top["runs"].([]any) {
		facts, trials := map[string]any{}, ""
		for key, value := range run.(map[string]any) {
			text, err := json.Marshal(value)
			must.Do(t, err)
			if key == "trials" {
				trials = string(text)
			} else {
				facts[key] = value
			}
		}
		text, err := json.Marshal(facts)
		must.Do(t, err)
		runs = append(runs, strings.TrimSuffix(string(text), "}")+`, "trials": `+trials+"}")
	}
	version, err := json.Marshal(top["schema_version"])
	must.Do(t, err)
	return `{"schema_version": ` + string(version) + `, "runs": [` + strings.Join(runs, ",") + "]}"
}

// TestNumbersAreNeverAbsent puts null in the place of each number of a document with every field, and leaves each number out that Encode
// always writes. Nothing of it is read as 0.
//
// Invariant absent-numbers: A null or missing number of a document or of a results file is refused, and never 0.
func TestNumbersAreNeverAbsent(t *testing.T) {
	doc := generic(t, string(encoded(t, fullDocument())))
	if _, err := Decode(strings.NewReader(inOrder(t, doc))); err != nil {
		t.Fatal(err)
	}
	optional := map[string]bool{}
	for _, object := range schemaObjects(t) {
		for name := range object.Properties {
			if !slices.Contains(object.Required, name) {
				optional[name] = true
			}
		}
	}
	names := map[string]bool{}
	for _, place := range numberPlaces(doc, nil) {
		name := place.String()
		if name == "schema_version" || names[name] {
			continue
		}
		names[name] = true
		if _, err := Decode(strings.NewReader(inOrder(t, replaced(doc, place, nil, false)))); err == nil || !strings.Contains(err.Error(), "is null in the place of a number") {
			t.Errorf("null for %s: %v", name, err)
		}
		key, isKey := place[len(place)-1].(string)
		if !isKey || optional[key] || strings.Contains(name, "failed_calls.") || strings.Contains(name, "requests_ns.") {
			continue
		}
		_, err := Decode(strings.NewReader(inOrder(t, replaced(doc, place, nil, true))))
		if err == nil || !strings.Contains(err.Error(), key+" is missing, and is a number") || !strings.Contains(err.Error(), "line ") {
			t.Errorf("a document without %s: %v", name, err)
		}
	}
	for _, name := range []string{
		"runs.trials.samples.value", "runs.trials.phases.start_ns", "runs.trials.elapsed_ns", "runs.trials.distributions.lows", "runs.trials.distributions.tail.at",
		"runs.trials.timelines.at_ns", "runs.benchmarks.metrics.bound.most", "runs.seed", "runs.host.cpus", "runs.host.selfcheck.limits.minutes", "runs.stopping.looks",
		"runs.trials.host.steal", "runs.trials.failed_calls.create", "runs.overhead.exec_ns",
	} {
		if !names[name] {
			t.Errorf("the document has no number %s: %v", name, names)
		}
	}
}

// TestNumbersOfMissingObjects: a missing object of numbers is no object of zeros.
//
// Invariant absent-numbers.
func TestNumbersOfMissingObjects(t *testing.T) {
	full := string(encoded(t, fullDocument()))
	for _, key := range []string{"host", "overhead"} {
		for _, value := range []string{"null", "{}"} {
			doc := generic(t, full)
			doc.(map[string]any)["runs"].([]any)[0].(map[string]any)[key] = generic(t, value)
			if _, err := Decode(strings.NewReader(inOrder(t, doc))); err == nil || !strings.Contains(err.Error(), "is missing, and is a number") {
				t.Errorf("%s: %s: the error is %v", key, value, err)
			}
		}
	}
}

// Invariant absent-numbers.
func TestCheckNumbers(t *testing.T) {
	for i, c := range []struct {
		text string
		into any
		want string
	}{
		{`1`, new(uint64), ""},
		{`null`, new(uint64), "the document is null"},
		{`"1"`, new(Seconder), ""},
		{`[1, null]`, new([]float64), "[1] is null"},
		{`{"a": null}`, new(map[string]int), `"a" is null`},
		{`{"steal": null}`, new(Disturbance), "steal is null"},
		{`{}`, new(Disturbance), ""},
		{`{"marks": ["null"]}`, new(Disturbance), ""},
		{`{"metric": "null"}`, new(Sample), "value is missing"},
		{`{"VALUE": 1}`, new(Sample), ""},
		{`[{"name": "x", "bound": {"broken": "y"}}]`, new([]Metric), "[0].bound.most is missing"},
		{`[{"name": "x"}]`, new([]Metric), ""},
		{`["null"]`, new([]string), ""},
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			err := CheckNumbers([]byte(c.text), c.into)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: the error is %v, want %q", c.text, err, c.want)
			}
		})
	}
}

// Seconder is text.
type Seconder string

// schemaObjects returns the objects of the schema of documents.
func schemaObjects(t *testing.T) []object {
	t.Helper()
	data, err := os.ReadFile(schemaFile)
	must.Do(t, err)
	var root object
	must.Do(t, json.Unmarshal(data, &root))
	objects := []object{root}
	for _, o := range root.Defs {
		objects = append(objects, o)
	}
	return objects
}
