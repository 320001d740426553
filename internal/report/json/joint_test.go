package reportjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/touchstone-bench/touchstone/internal/report"
	reportjson "github.com/touchstone-bench/touchstone/internal/report/json"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

const schemas = "../../../docs/schema/"

func writtenJoint(t *testing.T, runs []result.Run, opts report.Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := reportjson.Write(&b, report.New(runs, opts)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

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

func TestJointGolden(t *testing.T) {
	const golden = "testdata/machines.golden.json"
	small, board := reporttest.Small(), reporttest.Small()
	board.ID = "board"
	board.Host.Hostname, board.Host.Arch = "board", "arm64"
	got := writtenJoint(t, []result.Run{small, board}, report.Options{AcrossMachines: true})
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the report differs from %s (-want +got); if it should, run go test -update:\n%s", golden, diff)
	}
}

func TestJointDocumentsFollowTheSchema(t *testing.T) {
	schema := jointSchema(t)
	machines := reporttest.Machines()
	documents := map[string][]byte{
		"machines": writtenJoint(t, machines, report.Options{}),
		"across":   writtenJoint(t, []result.Run{machines[0], reporttest.Small()}, report.Options{AcrossMachines: true}),
		"suite":    writtenJoint(t, []result.Run{reporttest.Suite(), reporttest.Small()}, report.Options{}),
	}
	for name, run := range reporttest.Odd() {
		if strings.Contains(name, "layers") {
			continue // a joint report has no layers
		}
		odd := run
		odd.ID = "odd"
		documents[name] = writtenJoint(t, []result.Run{reporttest.Small(), odd}, report.Options{AcrossMachines: true})
	}
	for name, document := range documents {
		if err := validate(t, schema, document); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for old, wrong := range map[string]string{
		`"kind": "touchstone-joint-report"`: `"kind": "touchstone-report"`,
		`"across_machines": false`:          `"across_machines": "no"`,
		`"verdict": "slower"`:               `"verdicts": "slower"`,
		`"label": "server #1",`:             ``,
	} {
		spoilt := strings.Replace(string(documents["machines"]), old, wrong, 1)
		if spoilt == string(documents["machines"]) {
			t.Fatalf("the document has no %s", old)
		}
		if err := validate(t, schema, []byte(spoilt)); err == nil {
			t.Errorf("the schema accepts %s", wrong)
		}
	}
}

// Documents have the reasons for missing numbers, and ratios across machines only with AcrossMachines.
func TestJointDocumentGivesReasonsForGaps(t *testing.T) {
	var doc struct {
		Absolute   string `json:"absolute_values"`
		Machines   []struct{ Runs []int }
		Benchmarks []struct {
			Name, Params, Baseline, Note string
			Metrics                      []struct {
				Name    string
				Targets []struct {
					Target string
					Runs   []struct {
						Run    int
						Reason string
						Median *float64
						Across json.RawMessage `json:"to_first_run"`
					}
				}
			}
		}
	}
	if err := json.Unmarshal(writtenJoint(t, reporttest.Machines(), report.Options{}), &doc); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(doc.Absolute, "not compared across machines") || len(doc.Machines) != 3 {
		t.Errorf("absolute values are %q, of %d machines", doc.Absolute, len(doc.Machines))
	}
	reasons := map[string]int{}
	for _, b := range doc.Benchmarks {
		for _, m := range b.Metrics {
			for _, target := range m.Targets {
				for i, c := range target.Runs {
					if c.Run != i || (c.Median == nil) != (c.Reason != "") || c.Across != nil {
						t.Errorf("%s %s on %s in run %d is %+v", b.Name, m.Name, target.Target, i, c)
					}
					reasons[c.Reason]++
				}
			}
		}
	}
	for _, want := range []string{"not in this run", "runsc does not know this CPU; build it for arm64", "failed 10 of 10: exit code 1", "skipped: pause: this kernel has no freezer"} {
		if reasons[want] == 0 {
			t.Errorf("no cell has the reason %q; there are %v", want, reasons)
		}
	}
}

func TestWriteJointReturnsTheErrorOfTheWriter(t *testing.T) {
	if err := reportjson.Write(broken{}, report.Report{}); !errors.Is(err, errBroken) {
		t.Errorf("WriteJoint = %v, want %v", err, errBroken)
	}
}
