package runs_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// published is a published schema. It is closed: a field that it does not have is an error.
func published(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	schema, err := c.Compile("../../../docs/schema/" + name + ".schema.json")
	must.Do(t, err)
	return schema
}

func validate(t *testing.T, schema *jsonschema.Schema, document []byte) error {
	t.Helper()
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	must.Do(t, err)
	return schema.Validate(instance)
}

// refuses checks that a schema does not accept a document with a replaced text.
func refuses(t *testing.T, schema *jsonschema.Schema, document []byte, old, replacement string) {
	t.Helper()
	spoilt := strings.Replace(string(document), old, replacement, 1)
	if spoilt == string(document) {
		t.Fatalf("the document has no %s", old)
	}
	if validate(t, schema, []byte(spoilt)) == nil {
		t.Errorf("the schema accepts %s", replacement)
	}
}

// TestSingleDocumentsFollowTheSchema holds also that a value that is no number is no reason to fail: encoding/json refuses NaN.
func TestSingleDocumentsFollowTheSchema(t *testing.T) {
	schema := published(t, "report")
	documents := map[string][]byte{}
	for name, run := range reporttest.Odd() {
		documents[name] = jsonOf(t, run)
	}
	for _, name := range []string{"sample", "suite", "engines", "stated", "traced", "surfaces", "load", "latencies"} {
		documents[name] = jsonOfReport(t, reportOf(name))
	}
	for name, document := range documents {
		if err := validate(t, schema, document); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for old, replacement := range map[string]string{
		`"kind": "touchstone-report"`: `"kind": "touchstone-joint-report"`,
		`"warmup_trials": `:           `"warmup": `,
		`"verdict": "slower"`:         `"verdict": "slow"`,
		`"adjusted_p": `:              `"adjusted": `,
	} {
		refuses(t, schema, documents["sample"], old, replacement)
	}
}

func TestJointDocumentsFollowTheSchema(t *testing.T) {
	schema := published(t, "joint-report")
	machines := reporttest.Machines()
	documents := map[string][]byte{
		"machines": jsonOfReport(t, reportOf("machines")),
		"across":   jsonOfReport(t, report.New([]result.Run{machines[0], reporttest.Small()}, analysis.Options{AcrossMachines: true})),
		"suite":    jsonOfReport(t, report.New([]result.Run{reporttest.Suite(), reporttest.Small()}, analysis.Options{})),
	}
	for name, run := range reporttest.Odd() {
		if strings.Contains(name, "layers") {
			continue // a joint report has no layers
		}
		odd := run
		odd.ID = "odd"
		documents[name] = jsonOfReport(t, report.New([]result.Run{reporttest.Small(), odd}, analysis.Options{AcrossMachines: true}))
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
		refuses(t, schema, documents["machines"], old, replacement)
	}
}
