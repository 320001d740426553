package reportjson_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

const schemas = "../../../docs/schema/"

// jointSchema is the published schema, closed: a field that it does not have is an error.
func jointSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	data, err := os.ReadFile(schemas + "result.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	exported, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("urn:touchstone:schema:result:2", exported); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile(schemas + "joint-report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func validate(t *testing.T, schema *jsonschema.Schema, document []byte) error {
	t.Helper()
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(instance)
}

func TestJointDocumentsFollowTheSchema(t *testing.T) {
	schema := jointSchema(t)
	machines := reporttest.Machines()
	documents := map[string][]byte{
		"machines": document(t, report.New(machines, analysis.Options{})),
		"across":   document(t, report.New([]result.Run{machines[0], reporttest.Small()}, analysis.Options{AcrossMachines: true})),
		"suite":    document(t, report.New([]result.Run{reporttest.Suite(), reporttest.Small()}, analysis.Options{})),
	}
	for name, run := range reporttest.Odd() {
		if strings.Contains(name, "layers") {
			continue // a joint report has no layers
		}
		odd := run
		odd.ID = "odd"
		documents[name] = document(t, report.New([]result.Run{reporttest.Small(), odd}, analysis.Options{AcrossMachines: true}))
	}
	for name, document := range documents {
		if err := validate(t, schema, document); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for old, replacement := range map[string]string{
		`"kind": "touchstone-joint-report"`: `"kind": "touchstone-report"`,
		`"across_machines": false`:          `"across_machines": "no"`,
		`"verdict": "slower"`:               `"verdicts": "slower"`,
		`"label": "server #1",`:             ``,
	} {
		spoilt := strings.Replace(string(documents["machines"]), old, replacement, 1)
		if spoilt == string(documents["machines"]) {
			t.Fatalf("the document has no %s", old)
		}
		if err := validate(t, schema, []byte(spoilt)); err == nil {
			t.Errorf("the schema accepts %s", replacement)
		}
	}
}
