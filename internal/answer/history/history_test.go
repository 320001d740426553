package history_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	answer "github.com/touchstone-bench/touchstone/internal/answer/history"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/render"
	"github.com/touchstone-bench/touchstone/internal/report/history"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// written is the history of a metric in a format.
func written(t *testing.T, format string, runs []result.Run, notes ...string) string {
	t.Helper()
	b := history.NewBuilder("Create", func(result.Cell) bool { return true })
	for _, r := range runs {
		b.Add(r)
	}
	h := b.History(notes...)
	formats := render.Formats()
	f := slices.IndexFunc(formats, func(f render.Format) bool { return f.Name == format })
	var text strings.Builder
	must.Do(t, formats[f].Write(&text, answer.Document(&h), render.Options{}))
	return text.String()
}

// marked is a history with a change, lost trials, and runs that were not completed.
func marked() []result.Run {
	return reporttest.Days(func(n int, r *result.Run) {
		switch {
		case n == 4:
			r.State = result.Killed
		case n == 5:
			r.State = result.Interrupted
		case n < 4:
			reporttest.Lose(r, 1)
		}
		if n >= 5 {
			r.Targets[0].Version = "<b>1.2.0</b>\x1b[2J"
		}
	})
}

func TestGolden(t *testing.T) {
	for _, format := range []string{"table", "markdown", "json"} {
		file := filepath.Join("testdata", "marked."+format+".golden")
		got := written(t, format, marked(), "The clock was set back.")
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

// TestPage: the page has a hollow dot for each run with a remark, and the reason of a missing direction.
func TestPage(t *testing.T) {
	page := written(t, "html", marked())
	if filled, hollow := strings.Count(page, `<circle class="dot" `), strings.Count(page, `<circle class="dot marked" `); filled != 4 || hollow != 6 {
		t.Errorf("the page has %d filled and %d hollow dots", filled, hollow)
	}
	for _, want := range []string{
		"; lost 33\u00a0% of its trials</title>", "<td>lost 33\u00a0% of its trials</td>", "<td>the run is killed</td>", "trials lost: &#43;10.0\u00a0%", "<small>No direction: the runs before the change",
		"<small>Target oci/runc: 1.1.12, then &lt;b&gt;1.2.0&lt;/b&gt;\ufffd[2J</small>", "Change before 2026-11-25 10:00 run5: ",
	} {
		if !strings.Contains(strings.ReplaceAll(page, "33 %", "33\u00a0%"), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if one := written(t, "html", []result.Run{reporttest.Day(0, 1)}); strings.Count(one, "<circle ") != 1 || strings.Contains(one, "NaN") {
		t.Errorf("the page of one run is:\n%s", one)
	}
}

// TestRecords: each run of a series has a row, and the first one after a change names it.
func TestRecords(t *testing.T) {
	b := history.NewBuilder("Create", func(result.Cell) bool { return true })
	for _, r := range marked() {
		b.Add(r)
	}
	h := b.History()
	records := answer.Document(&h).Records()
	for n, row := range records.Rows {
		if change := row[len(row)-1]; len(row) != len(records.Columns) || (change != nil) != (n == 5) {
			t.Errorf("row %d is %v", n, row)
		}
	}
	if len(records.Rows) != 10 {
		t.Errorf("10 runs have %d rows", len(records.Rows))
	}
}

// TestUnmarked: a complete run without lost trials has no mark.
func TestUnmarked(t *testing.T) {
	if got := written(t, "table", reporttest.Days(nil)); strings.Contains(got, "lost") || strings.Contains(got, "the run is") {
		t.Errorf("the history is:\n%s", got)
	}
}
