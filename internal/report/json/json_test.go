package reportjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/report"
	reportjson "github.com/touchstone-bench/touchstone/internal/report/json"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

var update = flag.Bool("update", false, "rewrite the golden file")

func written(t *testing.T, run result.Run) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := reportjson.Write(&b, report.New(run, report.Options{Seed: 1})); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGolden(t *testing.T) {
	const golden = "testdata/small.golden.json"
	got := written(t, reporttest.Small())
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

func TestSampleSaysWhatTheModelSays(t *testing.T) {
	var doc struct {
		Schema     int    `json:"schema_version"`
		Kind       string `json:"kind"`
		Benchmarks []struct {
			Name    string
			Metrics []struct {
				Name  string
				Cells []struct {
					Target     string
					Reason     string
					Median     *float64
					Comparison *struct{ Verdict, Word string }
				}
			}
		}
	}
	if err := json.Unmarshal(written(t, reporttest.Sample()), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Schema != reportjson.SchemaVersion || doc.Kind != reportjson.Kind {
		t.Errorf("the document is version %d of %q", doc.Schema, doc.Kind)
	}
	var medians, reasons, heavier int
	for _, b := range doc.Benchmarks {
		for _, m := range b.Metrics {
			for _, c := range m.Cells {
				if (c.Median == nil) != (c.Reason != "") {
					t.Errorf("%s %s on %s has the median %v and the reason %q; it must have one of them", b.Name, m.Name, c.Target, c.Median, c.Reason)
				}
				if c.Median != nil {
					medians++
				} else {
					reasons++
				}
				if c.Comparison != nil && c.Comparison.Verdict == "slower" && c.Comparison.Word == "heavier" {
					heavier++
				}
			}
		}
	}
	if medians == 0 || reasons == 0 || heavier == 0 {
		t.Errorf("there are %d medians, %d reasons and %d heavier cells; want some of each", medians, reasons, heavier)
	}
}

// TestOddRuns holds that what is no number is no reason to fail: encoding/json refuses NaN.
func TestOddRuns(t *testing.T) {
	for name, run := range reporttest.Odd() {
		t.Run(name, func(t *testing.T) {
			if got := written(t, run); !json.Valid(got) {
				t.Errorf("this is not JSON:\n%s", got)
			}
		})
	}
}

type broken struct{}

var errBroken = errors.New("no space left")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteGivesTheWritersError(t *testing.T) {
	if err := reportjson.Write(broken{}, report.Model{}); !errors.Is(err, errBroken) {
		t.Errorf("Write = %v, want %v", err, errBroken)
	}
}
