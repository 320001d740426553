package history_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/report/history"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

func all(result.Cell) bool { return true }

// jump is the history of [reporttest.Days].
func jump(metric string, change func(n int, r *result.Run)) history.History {
	b := history.NewBuilder(metric, all)
	for _, r := range reporttest.Days(change) {
		b.Add(r)
	}
	return b.History()
}

func TestChangeHasItsFacts(t *testing.T) {
	h := jump("Create", func(n int, r *result.Run) {
		if n >= 5 {
			r.Targets[0].Version = "1.2.0"
			r.Host.Selfcheck = &result.Selfcheck{Date: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), Target: "oci/runc", Metric: "Create", Limits: []result.DetectionLimit{{Minutes: 5, Difference: 0.02}}}
		}
	})
	if len(h.Series) != 1 || len(h.Series[0].Changes) != 1 {
		t.Fatalf("the series are %+v", h.Series)
	}
	c := h.Series[0].Changes[0]
	if c.At != 5 || c.Verdict != stats.Slower || math.Abs(c.Ratio-1.1) > 0.002 || len(c.Facts) != 1 || c.Facts[0] != "Target oci/runc: 1.1.12, then 1.2.0" {
		t.Errorf("the change is %+v", c)
	}
}

// TestLostTrialsHaveNoDirection: no level is called better if its runs have lost trials. Lost trials at the worse level do not matter.
func TestLostTrialsHaveNoDirection(t *testing.T) {
	for name, c := range map[string]struct {
		change func(n int, r *result.Run)
		word   string
		why    string
		note   string
	}{
		"at the better level": {func(n int, r *result.Run) {
			if n < 5 {
				reporttest.Lose(r, 2)
			}
		}, "trials lost", "the runs before the change have lost 67 % of their trials, and the others may be the faster ones", ""},
		"at the worse level": {func(n int, r *result.Run) {
			if n >= 5 {
				reporttest.Lose(r, 2)
			}
		}, "slower", "", ""},
		"all trials of a run": {func(n int, r *result.Run) {
			if n == 2 {
				reporttest.Lose(r, 3)
			}
		}, "trials lost", "the runs before the change have lost 20 % of their trials", "Run run2 has no value of a.b.c Create on oci/runc, machine bench1: timed out 3 of 3: the call exceeded its limit."},
		"few": {func(n int, r *result.Run) {
			if n == 2 {
				r.Trials = append(r.Trials, r.Trials...)
				r.Trials = append(r.Trials, r.Trials...)
				for i := range r.Trials {
					r.Trials[i].Seq, r.Trials[i].Block = i+1, i
				}
				reporttest.Lose(r, 2)
			}
		}, "slower", "", ""},
	} {
		h := jump("Create", c.change)
		if got := h.Series[0].Changes; len(got) != 1 || h.Series[0].Word(&got[0]) != c.word || !strings.HasPrefix(got[0].Why, c.why) || c.why == "" && got[0].Why != "" {
			t.Errorf("%s: the changes are %+v, want %q because %q", name, got, c.word, c.why)
		}
		if notes := strings.Join(h.Notes, "\n"); notes != c.note {
			t.Errorf("%s: the notes are %q, want %q", name, notes, c.note)
		}
	}
}

// TestEmulatedHistory: a change of speed on an emulated CPU has a direction only if the user asks for it, and other changes always.
func TestEmulatedHistory(t *testing.T) {
	for _, c := range []struct {
		unit  result.Unit
		asked bool
		word  string
	}{{result.Seconds, false, "emulated"}, {result.Seconds, true, "slower"}, {result.Bytes, false, "more"}} {
		b := history.NewBuilder("Create", all)
		b.EmulatedVerdicts = c.asked
		for _, r := range reporttest.Days(nil) {
			r.Host.CPU, r.Bench[0].Metrics[0].Unit = "QEMU TCG CPU", c.unit
			b.Add(r)
		}
		h := b.History()
		if got := h.Series[0].Changes; len(got) != 1 || h.Series[0].Word(&got[0]) != c.word || (got[0].Why == "the CPU is emulated, or may be") != (c.word == "emulated") {
			t.Errorf("%s, asked %v: the changes are %+v, want %q", c.unit, c.asked, got, c.word)
		}
	}
}

// TestSeries: machines, units and parameters are apart.
func TestSeries(t *testing.T) {
	for name, c := range map[string]struct {
		change func(n int, r *result.Run)
		series int
	}{
		"one": {nil, 1},
		"two machines": {func(n int, r *result.Run) {
			if n >= 5 {
				r.Host.CPU = "Other CPU"
			}
		}, 2},
		"two units": {func(n int, r *result.Run) {
			if n >= 5 {
				r.Bench[0].Metrics[0].Unit = result.Bytes
			}
		}, 2},
		"two parameters": {func(n int, r *result.Run) {
			for i := range r.Trials {
				r.Trials[i].Params = fmt.Sprint("n=", n/5)
			}
		}, 2},
		"a newer kernel":       {func(n int, r *result.Run) { r.Host.Kernel = fmt.Sprint("6.", n) }, 1},
		"an unknown machine":   {func(_ int, r *result.Run) { r.Host = result.Host{} }, 1},
		"no values in one run": {func(n int, r *result.Run) { r.Trials = r.Trials[:min(3, n*3)] }, 1},
	} {
		h := jump("Create", c.change)
		if len(h.Series) != c.series {
			t.Errorf("%s: %d series, want %d", name, len(h.Series), c.series)
		}
		for _, s := range h.Series {
			if c.series > 1 && (!s.Short() || len(s.Changes) > 0 || !strings.Contains(s.Summary(), "5 runs; a change needs at least 8")) {
				t.Errorf("%s: %s", name, s.Summary())
			}
		}
	}
}

// TestValuesWithoutRatio: negative values and equal values have a history too.
func TestValuesWithoutRatio(t *testing.T) {
	h := jump("Rate", nil)
	if c := h.Series[0].Changes; len(c) != 1 || !math.IsNaN(c[0].Ratio) || c[0].Verdict != stats.Slower || c[0].Before != -0.02002 && math.Abs(c[0].Before+0.02) > 1e-4 {
		t.Errorf("the changes are %+v", c)
	}
	b := history.NewBuilder("Create", all)
	for n := range 10 {
		b.Add(reporttest.Day(n, 1))
	}
	h = b.History()
	if got := h.Series[0].Summary(); len(h.Series[0].Changes) != 0 || got != "10 runs; no change is shown." {
		t.Errorf("the history is %q, %+v", got, h.Series[0].Changes)
	}
}
