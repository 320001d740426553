package explain_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	answer "github.com/touchstone-bench/touchstone/internal/answer/explain"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/render"
	"github.com/touchstone-bench/touchstone/internal/report/explain"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// written is the explanation of a run in a format.
func written(t *testing.T, format string, run result.Run) string {
	t.Helper()
	e, err := explain.New(&run, "native", "oci/runc", explain.Options{Matches: func(string) bool { return true }})
	must.Do(t, err)
	formats := render.Formats()
	f := slices.IndexFunc(formats, func(f render.Format) bool { return f.Name == format })
	var text strings.Builder
	must.Do(t, formats[f].Write(&text, answer.Document(e), render.Options{}))
	return text.String()
}

func TestGolden(t *testing.T) {
	for _, format := range []string{"table", "json", "csv"} {
		file := filepath.Join("testdata", "explained."+format+".golden")
		got := written(t, format, reporttest.Explained())
		if *update {
			must.Do(t, os.WriteFile(file, []byte(got), 0o644))
		}
		want, err := os.ReadFile(file)
		must.Do(t, err)
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("the text differs from %s (-want +got); if it should, run go test -update:\n%s", file, diff)
		}
	}
}

// A run without traces has no causes, and the remedy is in the answer.
func TestWithoutTraces(t *testing.T) {
	const want = "No cause is found: create: the targets have 0 and 0 traces, and each needs 3; measure again with --trace 3."
	if got := strings.Join(strings.Fields(written(t, "table", reporttest.Small())), " "); !strings.Contains(got, want) {
		t.Errorf("the answer without traces has no %q:\n%s", want, got)
	}
}
