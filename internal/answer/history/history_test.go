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
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/render"
	"github.com/touchstone-bench/touchstone/internal/report/history"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
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

// TestChecks: the last change of the level decides. One without a direction is no pass, and one of the variation alone decides nothing.
func TestChecks(t *testing.T) {
	for _, c := range []struct {
		verdicts []stats.Verdict
		want     document.Status
	}{
		{nil, document.Passed},
		{[]stats.Verdict{stats.Slower}, document.Failed},
		{[]stats.Verdict{stats.Slower, stats.Faster}, document.Passed},
		{[]stats.Verdict{stats.Faster, stats.TrialsLost}, document.Undecided},
		{[]stats.Verdict{stats.Withheld}, document.Undecided},
		{[]stats.Verdict{stats.Withheld, stats.Slower}, document.Failed},
		{[]stats.Verdict{""}, document.Passed},
		{[]stats.Verdict{stats.Slower, ""}, document.Failed},
	} {
		for _, direction := range []result.Direction{result.Lower, result.Higher} {
			s := history.Series{Metric: result.Metric{Name: "Create", Unit: "s", Better: direction}, Points: make([]history.Point, 10)}
			for _, v := range c.verdicts {
				s.Changes = append(s.Changes, history.Change{Before: 1, After: 1, Ratio: 1, Verdict: v, Why: "the reason"})
			}
			checks := answer.Document(&history.History{Metric: "Create", Series: []history.Series{s}}).Checks
			if len(checks) != 1 || checks[0].Status != c.want || c.want == document.Undecided && !strings.Contains(checks[0].Message, "the reason") {
				t.Errorf("changes with the verdicts %q of a metric that is better if %s: checks %+v, want the status %d", c.verdicts, direction, checks, c.want)
			}
		}
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
