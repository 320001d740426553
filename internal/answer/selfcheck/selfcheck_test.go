package selfcheck_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	answer "github.com/touchstone-bench/touchstone/internal/answer/selfcheck"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/render"
	"github.com/touchstone-bench/touchstone/internal/report/selfcheck"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func written(t *testing.T, format string, d *document.Document) string {
	t.Helper()
	formats := render.Formats()
	f := slices.IndexFunc(formats, func(f render.Format) bool { return f.Name == format })
	var text strings.Builder
	must.Do(t, formats[f].Write(&text, d, render.Options{}))
	return text.String()
}

// record is a selfcheck over an engine whose create does not call the runtime, with a delay that was not found.
func record() selfcheck.Record {
	number := func(x float64) *float64 { return &x }
	return selfcheck.Record{
		Kind: selfcheck.DocumentKind, Version: selfcheck.SchemaVersion, Date: time.Date(2026, 11, 20, 10, 0, 0, 0, time.Local), Target: "docker/runc", Runtime: "runc 1.2\x1b[2J",
		Runs: []string{"run1", "run2"}, Blocks: 12, Spent: 283,
		Check: selfcheck.Check{
			Alarms: selfcheck.Alarms{Shown: 1, Comparisons: 25},
			Delays: []selfcheck.Found{
				{Verb: "start", Kind: selfcheck.Sleep, Delay: 47e-6, Share: 0.02, Found: 5, Runs: 5, Measured: number(81e-6)},
				{Verb: "start", Kind: selfcheck.CPU, Delay: 0.00431, Share: 0.002, Found: 0, Runs: 5},
			},
			Smallest: []selfcheck.Smallest{{Verb: "start", Kind: selfcheck.Sleep, Delay: number(47e-6), Share: number(0.02)}, {Verb: "start", Kind: selfcheck.CPU}},
			Limits: []selfcheck.Limit{
				{Metric: "CreateAndRun", Minutes: 1},
				{Metric: "CreateAndRun", Minutes: 5, Difference: number(0.031)},
				{Metric: "CreateAndRun", Minutes: 20, Difference: number(0.012)},
				{Metric: "Exec", Minutes: 1, Difference: number(0.05)},
			},
			Operations: []selfcheck.Overhead{{Verb: "create", Median: 0.02, Region: 50e-9, Calls: 2.25, Request: number(0.0004)}, {Verb: "start", Median: 0.0121, Launch: number(0.0011)}},
			Self:       0.0123,
		},
	}
}

func TestGolden(t *testing.T) {
	one, second := record(), record()
	second.Runtime, second.Delays, second.Smallest, second.Date = "", nil, nil, second.Date.Add(time.Hour)
	documents := map[string]*document.Document{"one": answer.Document(&one), "stored": answer.Stored([]selfcheck.Record{one, second})}
	for name, d := range documents {
		for _, format := range []string{"table", "markdown"} {
			file := filepath.Join("testdata", name+"."+format+".golden")
			got := written(t, format, d)
			if *update {
				must.Do(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want, err := os.ReadFile(file)
			must.Do(t, err)
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the text differs from %s (-want +got); if it should, run go test -update:\n%s", file, diff)
			}
		}
		if page := written(t, "html", d); strings.Count(page, "docker/runc") < 2 || strings.Contains(page, "\x1b") {
			t.Errorf("the page of %s is:\n%s", name, page)
		}
	}
}

// TestData: the JSON of one is the record, and the JSON of the stored ones is a list, also if it is empty. The records have a row for each delay.
func TestData(t *testing.T) {
	one := record()
	var read selfcheck.Record
	must.Do(t, json.Unmarshal([]byte(written(t, "json", answer.Document(&one))), &read))
	if diff := cmp.Diff(one.Check, read.Check); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}
	if r := answer.Document(&one).Records(); len(r.Rows) != 2 || len(r.Rows[1]) != len(r.Columns) || r.Rows[1][len(r.Columns)-1] != nil {
		t.Errorf("the records are %v", r)
	}
	if got := written(t, "json", answer.Stored([]selfcheck.Record{})); got != "[]\n" {
		t.Errorf("no selfcheck is %q", got)
	}
}
