package plan

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/touchstone-bench/touchstone/internal/bench/own"
	"github.com/touchstone-bench/touchstone/internal/target"
)

const schemaFile = "../../docs/schema/plan.schema.json"

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	schema, err := c.Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// validate is what an editor does with the text of a plan.
func validate(schema *jsonschema.Schema, text []byte) error {
	var instance any
	if err := yaml.Unmarshal(text, &instance); err != nil {
		return err
	}
	return schema.Validate(instance)
}

func TestSchemaAcceptsExamples(t *testing.T) {
	schema := compiledSchema(t)
	paths, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || paths == nil {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		err = validate(schema, text)
		if ours := !strings.HasPrefix(filepath.Base(path), "touchstone-"); ours != (err == nil) {
			t.Errorf("%s: in our format: %t, but the schema says %v", path, ours, err)
		}
	}
}

func TestSchemaAcceptsWhatYAMLWrites(t *testing.T) {
	schema := compiledSchema(t)
	for _, p := range []Plan{Quick(), mustParse(t, "p", whole), mustParse(t, "p", "oci: [runc]\noutput: a.json\n"), mustParse(t, "p", "version: 1\ntargets: [all, '*/*', 'crio/*@a=b', '*/runc']\n")} {
		if err := validate(schema, p.YAML()); err != nil {
			t.Errorf("%v\n%s", err, p.YAML())
		}
	}
	if err := validate(schema, []byte(whole)); err != nil {
		t.Error(err)
	}
}

func TestSchemaRefusesWhatParseRefuses(t *testing.T) {
	schema := compiledSchema(t)
	for _, c := range invalid {
		if err := validate(schema, []byte(c.text)); (err != nil) != c.structural {
			t.Errorf("%s: structural: %t, but the schema says %v", c.name, c.structural, err)
		}
	}
}

// object is the part of a schema that names keys.
type object struct {
	Properties map[string]json.RawMessage `json:"properties"`
}

func TestSchemaHasTheKeysThatParseAccepts(t *testing.T) {
	text, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	var top object
	if err := json.Unmarshal(text, &top); err != nil {
		t.Fatal(err)
	}
	var limits object
	if err := json.Unmarshal(top.Properties["timeout"], &limits); err != nil {
		t.Fatal(err)
	}
	var list struct {
		Items struct {
			OneOf []object `json:"oneOf"`
		} `json:"items"`
	}
	if err := json.Unmarshal(top.Properties["benchmarks"], &list); err != nil {
		t.Fatal(err)
	}
	var named struct {
		Values struct {
			OneOf []object `json:"oneOf"`
		} `json:"additionalProperties"`
	}
	if err := json.Unmarshal(top.Properties["runtimes"], &named); err != nil {
		t.Fatal(err)
	}
	var daemons object
	if err := json.Unmarshal(top.Properties["engines"], &daemons); err != nil {
		t.Fatal(err)
	}
	var pinned object
	if err := json.Unmarshal(top.Properties["pinning"], &pinned); err != nil {
		t.Fatal(err)
	}
	var workloads struct{ Items object }
	if err := json.Unmarshal(top.Properties["workloads"], &workloads); err != nil {
		t.Fatal(err)
	}
	var metrics struct{ Items object }
	if err := json.Unmarshal(workloads.Items.Properties["parse"], &metrics); err != nil {
		t.Fatal(err)
	}
	r := &reader{}
	for _, c := range []struct {
		of     string
		schema object
		fields []field
	}{
		{"a plan", top, r.fields()},
		{"timeout", limits, r.timeoutFields()},
		{"a benchmark", list.Items.OneOf[1], r.itemFields(&Item{})},
		{"a runtime", named.Values.OneOf[1], r.runtimeFields("x", &target.Runtime{})},
		{"engines", daemons, r.enginesFields()},
		{"pinning", pinned, r.pinningFields()},
		{"a workload", workloads.Items, r.workloadFields(&Workload{})},
		{"an entry of parse", metrics.Items, r.metricFields(&own.Metric{})},
	} {
		if diff := cmp.Diff(slices.Sorted(maps.Keys(c.schema.Properties)), slices.Sorted(slices.Values(keys(c.fields)))); diff != "" {
			t.Errorf("keys of %s (-schema +Parse):\n%s", c.of, diff)
		}
	}
	for key, property := range top.Properties {
		if !strings.Contains(string(property), `"description"`) {
			t.Errorf("the schema does not describe %s", key)
		}
	}
}
