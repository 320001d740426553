package result

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// numberPattern matches a number of a document, after its key or as an element of a list. The seed is a number in quotation marks.
var numberPattern = regexp.MustCompile(`(?m)"(\w+)": (-?[0-9][0-9.eE+-]*|"18446744073709551615")|^ +(-?[0-9][0-9.eE+-]*),?$`)

// TestNumbersAreNeverAbsent puts null in the place of each number of a document with every field, and renames the key of each number that Encode
// always writes. Nothing of it is read as 0.
//
// Invariant absent-numbers: A null or missing number of a document or of a results file is refused, and never 0.
func TestNumbersAreNeverAbsent(t *testing.T) {
	full := string(encoded(t, fullDocument()))
	needs := map[string]bool{} // keys that each object with them requires
	for _, object := range schemaObjects(t) {
		for name := range object.Properties {
			isRequired := slices.Contains(object.Required, name)
			if value, ok := needs[name]; !ok || value {
				needs[name] = isRequired
			}
		}
	}
	found := numberPattern.FindAllStringSubmatchIndex(full, -1)
	if len(found) < 60 {
		t.Fatalf("the document has %d numbers", len(found))
	}
	for _, m := range found {
		place, start, end := "an element", m[6], m[7]
		if m[2] >= 0 {
			place, start, end = full[m[2]:m[3]], m[4], m[5]
		}
		if place == "schema_version" {
			continue
		}
		if _, err := Decode(strings.NewReader(full[:start] + "null" + full[end:])); err == nil || !strings.Contains(err.Error(), "is null in the place of a number") {
			t.Errorf("null for %s: %v", place, err)
		}
		if !needs[place] {
			continue
		}
		_, err := Decode(strings.NewReader(full[:m[2]] + "another_" + full[m[2]:]))
		if err == nil || !strings.Contains(err.Error(), place+" is missing, and is a number") || !strings.Contains(err.Error(), "line ") {
			t.Errorf("a document without %s: %v", place, err)
		}
	}
}

// TestNumbersOfMissingObjects: a missing object of numbers is no object of zeros.
//
// Invariant absent-numbers.
func TestNumbersOfMissingObjects(t *testing.T) {
	full := startOfRun + "]}]}"
	if _, err := Decode(strings.NewReader(full)); err != nil {
		t.Fatal(err)
	}
	for _, object := range []string{`{"cpus": 1, "memory_bytes": 1, "swap_bytes": 0}`, `{"empty_region_ns": 0, "exec_ns": 0}`} {
		for _, value := range []string{"null", "{}"} {
			if _, err := Decode(strings.NewReader(strings.Replace(full, object, value, 1))); err == nil || !strings.Contains(err.Error(), "is missing, and is a number") {
				t.Errorf("%s in the place of %s: the error is %v", value, object, err)
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
