package fleet_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	answer "github.com/touchstone-bench/touchstone/internal/answer/fleet"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/render"
	"github.com/touchstone-bench/touchstone/internal/report/fleet"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func build(t *testing.T, runs []result.Run) *fleet.Report {
	t.Helper()
	b := fleet.NewBuilder(analysis.Options{})
	for i := range runs {
		must.Do(t, b.Add(&runs[i]))
	}
	r, err := b.Report()
	must.Do(t, err)
	return r
}

// written is a fleet in a format, with a page for each node.
func written(t *testing.T, format string, runs []result.Run) string {
	t.Helper()
	formats := render.Formats()
	f := slices.IndexFunc(formats, func(f render.Format) bool { return f.Name == format })
	var text strings.Builder
	must.Do(t, formats[f].Write(&text, answer.Document(build(t, runs), func(run string) string { return "report-" + run + ".html" }), render.Options{}))
	return text.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		must.Do(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	must.Do(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the text differs from %s (-want +got); if it should, run go test -update:\n%s", file, diff)
	}
}

// Of many metrics a terminal has one of each column of the summary, and the number of the others.
func TestMainMetrics(t *testing.T) {
	runs := reporttest.Fleet{ID: "01K9Z0TOUCHSTONE0MANY00000", Nodes: 8, Blocks: 8, Healthy: true}.Runs()
	for i := range runs {
		b := &runs[i].Bench[0]
		for n := range b.Metrics {
			b.Metrics[n].Group, b.Metrics[n].Component, b.Metrics[n].Phrase = "", "", "takes"
		}
		b.Metrics[1].Column = result.ColumnStart
	}
	text := written(t, "table", runs)
	for _, part := range []string{"Start of pods.start\n", "StageAccepted of pods.start\n", "StageScheduled of pods.start\n", "CallsPerSecond of performance.syscall.calls\n", "4 of 8 metrics. touchstone report 01K9Z0TOUCHSTONE0MANY00000 --site pages has the others."} {
		if !strings.Contains(text, part) {
			t.Errorf("the text has no %q:\n%s", part, text)
		}
	}
	if page := written(t, "html", runs); strings.Count(page, "Memory of pods.density") == 0 {
		t.Error("the page lacks a metric")
	}
}

// A text with many odd nodes, differences and gaps fits on a screen, and a page has all of them.
func TestScreen(t *testing.T) {
	for _, f := range []reporttest.Fleet{{ID: "01K9Z0TOUCHSTONE0FLEET0000", Nodes: 14, Blocks: 12}, {ID: "01K9Z0TOUCHSTONE0CLASS0000", Nodes: 14, Blocks: 12, Classes: 3}} {
		runs := f.Runs()
		for i := range runs[:8] {
			runs[i].Plan += fmt.Sprintf("warmup: %d\n", i+1) // eight runs with plans of their own are left out
		}
		for name, list := range map[string][]result.Run{"all runs": f.Runs(), "runs left out": runs} {
			if lines := strings.Count(written(t, "table", list), "\n"); lines > 40 {
				t.Errorf("%s, %s: the text has %d lines", f.ID, name, lines)
			}
		}
	}
	page := written(t, "html", reporttest.Cluster())
	for _, part := range []string{"Facts of slow and fast nodes", "Kinds of nodes", "Also: 2 facts of slow and fast nodes, 2 differences between kinds of nodes; the pages show them."} {
		if !strings.Contains(page, part) {
			t.Errorf("the page has no %q", part)
		}
	}
}

func TestGolden(t *testing.T) {
	for _, format := range []string{"table", "markdown", "json", "csv", "junit"} {
		golden(t, "cluster."+format, written(t, format, reporttest.Cluster()))
	}
	fleets := reporttest.Fleet{ID: "01K9Z0TOUCHSTONE0SMALL0000", Nodes: 4, Blocks: 8, Healthy: true}.Runs()
	fleets[2].Plan += "warmup: 2\n"
	golden(t, "small.table", written(t, "table", fleets))
}
