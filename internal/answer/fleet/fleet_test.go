package fleet_test

import (
	"flag"
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

func TestGolden(t *testing.T) {
	for _, format := range []string{"table", "markdown", "json", "csv", "junit"} {
		golden(t, "cluster."+format, written(t, format, reporttest.Cluster()))
	}
	small := reporttest.Fleet{ID: "01K9Z0TOUCHSTONE0SMALL0000", Nodes: 4, Blocks: 8, Healthy: true}.Runs()
	small[2].Plan += "seed: 2\n"
	golden(t, "small.table", written(t, "table", small))
}
