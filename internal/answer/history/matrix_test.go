package history_test

import (
	"math"
	"strings"
	"testing"

	answer "github.com/touchstone-bench/touchstone/internal/answer/history"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/history"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

func build(metric string, runs []result.Run) history.History {
	b := history.NewBuilder(metric, func(result.Cell) bool { return true })
	for _, r := range runs {
		b.Add(r)
	}
	return b.History()
}

// overviewOf are the blocks of the section before the series.
func overviewOf(h *history.History) []document.Block {
	return answer.Document(h).Blocks[0].(document.Section).Blocks
}

// TestMatrix: a history of several series begins with the last change of each, in the direction of the metric.
func TestMatrix(t *testing.T) {
	for _, metric := range []string{"Create", "Rate"} { // more time, and a lower rate
		h := build(metric, reporttest.TwoTargets())
		blocks := overviewOf(&h)
		if text := blocks[0].(document.Text).Text; text != "2 series, and 1 with a change of the level. The last change of 1 is for the worse." {
			t.Errorf("%s: the answer is %q", metric, text)
		}
		m := blocks[2].(document.Matrix)
		cells, change := m.Baselines[0].Cells[0], h.Series[0].Changes[0]
		if got := cells[0]; got.Factor[0].Text != quantity.Change(change.Ratio) || got.Factor[0].Tone != document.Bad || !got.Shown || math.Abs(got.Size-math.Abs(math.Log(change.Ratio))) > 1e-12 ||
			got.Factor[2].Text != "since 2026-11-25 10:00" {
			t.Errorf("%s: the change is %+v", metric, got)
		}
		if got := cells[1]; got.Shown || got.Factor[0].Text != quantity.None || got.Factor[1].Text != "no change" {
			t.Errorf("%s: the series without a change is %+v", metric, got)
		}
		if got := m.Rows[0].Values[1][0].Text; got != quantity.Text(h.Series[1].Points[9].Value, h.Series[1].Metric.Unit) {
			t.Errorf("%s: the last value is %s", metric, got)
		}
	}
	one := build("Create", reporttest.Days(nil))
	for _, b := range overviewOf(&one) {
		if _, is := b.(document.Matrix); is {
			t.Error("a history of one series has a matrix")
		}
	}
}

// TestVariationAlone: a change of the variation alone has words of its own, and is no change of the level.
func TestVariationAlone(t *testing.T) {
	h := build("Create", reporttest.TwoTargets())
	change := &h.Series[0].Changes[0]
	change.Before, change.Ratio, change.P, change.Verdict = change.After, 1, 0.01, ""
	blocks := overviewOf(&h)
	if text := blocks[0].(document.Text).Text; text != "2 series, and 0 with a change of the level." {
		t.Errorf("the answer is %q", text)
	}
	cell := blocks[2].(document.Matrix).Baselines[0].Cells[0][0]
	if cell.Factor[0].Tone != document.Faint || cell.Factor[1].Text != "the variation alone, p = 0.010" {
		t.Errorf("the cell is %+v", cell)
	}
	want := "the variation alone changed, with the level " + quantity.Text(change.After, result.Seconds) + " before and after (p = 0.010)"
	course := answer.Document(&h).Blocks[1].(document.Section).Blocks[0].(document.Course)
	if got := course.Breaks[0].Text; got != want {
		t.Errorf("the change is %q, want %q", got, want)
	}
}

// TestMatrixOfTwins: two series of one machine with different units are in rows of their own.
func TestMatrixOfTwins(t *testing.T) {
	days := reporttest.TwoTargets()
	for i := range days {
		if i%2 == 1 {
			days[i].Bench[0].Metrics[0].Unit = result.Bytes
		}
	}
	h := build("Create", days)
	m := overviewOf(&h)[2].(document.Matrix)
	if len(h.Series) != 4 || len(m.Rows) != 2 || m.Rows[0].ID == m.Rows[1].ID {
		t.Errorf("%d series have %d rows: %+v", len(h.Series), len(m.Rows), m.Rows)
	}
}

// TestIntervals: a page draws the interval of each run's median, and a history of too many runs has none.
func TestIntervals(t *testing.T) {
	days := reporttest.TwoTargets()
	page := written(t, "html", days)
	if n := strings.Count(page, `<path class="whisker`); n != 20 {
		t.Errorf("the page has %d intervals", n)
	}
	h := build("Create", days)
	for i := range h.Series {
		for n := range h.Series[i].Points {
			if p := &h.Series[i].Points[n]; p.Interval() == nil || p.Interval().Lo > p.Value || p.Interval().Hi < p.Value {
				t.Errorf("the interval of %v is %v", p.Value, p.Interval())
			}
		}
	}
	series := build("Create", days[:1])
	series.Series[0].Points = make([]history.Point, 501)
	if c := answer.Document(&series).Blocks[1].(document.Section).Blocks[0].(document.Course); c.Interval != nil {
		t.Error("a history of 501 runs has intervals")
	}
}
