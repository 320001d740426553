package history_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/report/history"
	"github.com/touchstone-bench/touchstone/internal/result"
)

var epoch = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// run is a run with three trials of one target.
func run(n int, value float64, change func(*result.Run)) result.Run {
	r := result.Run{
		ID: fmt.Sprint("run", n), Started: epoch.AddDate(0, 0, n), State: result.Complete,
		Host:    result.Host{Hostname: "bench1", Kernel: "6.1.0", Arch: "amd64", CPU: "Example CPU", CPUs: 2, Memory: 8 << 30},
		Targets: []result.Target{{Name: "oci/runc", Version: "1.1.12"}},
		Bench: []result.Benchmark{{Name: "a.b.c", Metrics: []result.Metric{
			{Name: "Create", Unit: result.Seconds, Better: result.Lower}, {Name: "Rate", Unit: result.PerSecond, Better: result.Higher},
		}}},
	}
	for i := range 3 {
		r.Trials = append(r.Trials, result.Trial{
			Seq: i + 1, Cell: result.Cell{Benchmark: "a.b.c", Target: "oci/runc"}, Block: i, Status: result.OK,
			Samples: []result.Sample{{Metric: "Create", Value: value}, {Metric: "Rate", Value: -value}},
		})
	}
	if change != nil {
		change(&r)
	}
	return r
}

func all(result.Cell) bool { return true }

// jump is a history of 5 runs of 20 ms and 5 of 22 ms.
func jump(t *testing.T, metric string, change func(n int, r *result.Run)) history.History {
	t.Helper()
	b := history.NewBuilder(metric, all)
	for n := range 10 {
		level := 0.020
		if n >= 5 {
			level = 0.022
		}
		b.Add(run(n, level*(1+0.001*float64(n%3)), func(r *result.Run) {
			if change != nil {
				change(n, r)
			}
		}))
	}
	return b.History()
}

func text(t *testing.T, h history.History) string {
	t.Helper()
	var b bytes.Buffer
	if err := h.Text(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestChangeHasItsFacts(t *testing.T) {
	h := jump(t, "Create", func(n int, r *result.Run) {
		if n >= 5 {
			r.Targets[0].Version = "1.2.0"
			r.Host.Selfcheck = &result.Selfcheck{Date: epoch, Target: "oci/runc", Metric: "Create", Limits: []result.DetectionLimit{{Minutes: 5, Difference: 0.02}}}
		}
	})
	if len(h.Series) != 1 || len(h.Series[0].Changes) != 1 {
		t.Fatalf("the series are %+v", h.Series)
	}
	c := h.Series[0].Changes[0]
	if c.At != 5 || c.Word != "slower" || math.Abs(c.Ratio-1.1) > 0.002 || len(c.Facts) != 1 || c.Facts[0] != "Target oci/runc: 1.1.12, then 1.2.0" {
		t.Errorf("the change is %+v", c)
	}
	got := text(t, h)
	for _, want := range []string{
		"a.b.c Create on oci/runc, machine bench1\n", "── change: slower: +10.0 %, from 20.0 ms to 22.0 ms (p = 0.0",
		"     Target oci/runc: 1.1.12, then 1.2.0\n", "  10 runs; 1 change.", "2026-11-20 10:00  run0",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the text lacks %q:\n%s", want, got)
		}
	}
	if again := text(t, jump(t, "Create", func(n int, r *result.Run) {
		if n >= 5 {
			r.Targets[0].Version = "1.2.0"
		}
	})); again != got {
		t.Error("the same runs have another history")
	}
}

func TestPage(t *testing.T) {
	h := jump(t, "Create", func(n int, r *result.Run) {
		r.Host.Hostname = "<script>alert(1)</script>"
		if n >= 5 {
			r.Host.Kernel = "<b>"
		}
	})
	var b bytes.Buffer
	if err := h.HTML(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if n := strings.Count(page, "<circle "); n != 10 {
		t.Errorf("the page has %d dots, want 10", n)
	}
	for _, want := range []string{
		// Column 1 of 10 and the least value; the change between columns 5 and 6; the level after it.
		`cx="124.8" cy="186.0"`, `<line class="break" x1="438.0" x2="438.0"`, `<line class="level" x1="438.0" x2="786.0"`,
		"Before run run5: slower: &#43;10.0 %", "<br>Kernel: 6.1.0, then &lt;b&gt;", "<td>run9</td>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, bad := range []string{"<script", "<b>", "NaN", "Inf", "http://", "https://"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	b.Reset()
	one := history.NewBuilder("Create", all)
	one.Add(run(0, 1, nil))
	h = one.History("a note")
	if err := h.HTML(&b); err != nil || strings.Contains(b.String(), "NaN") || !strings.Contains(b.String(), `cx="438.0" cy="100.0"`) || !strings.Contains(b.String(), `<p class="note">a note</p>`) {
		t.Errorf("the page of one run is %v:\n%s", err, b.String())
	}
}

// lose makes trials of a run fail.
func lose(r *result.Run, n int) {
	for i := range n {
		r.Trials[i].Status, r.Trials[i].Samples, r.Trials[i].Reason = result.Timeout, nil, "the call exceeded its limit"
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
				lose(r, 2)
			}
		}, "trials lost", "the runs before the change have lost 67 % of their trials, and the others may be the faster ones", ""},
		"at the worse level": {func(n int, r *result.Run) {
			if n >= 5 {
				lose(r, 2)
			}
		}, "slower", "", ""},
		"all trials of a run": {func(n int, r *result.Run) {
			if n == 2 {
				lose(r, 3)
			}
		}, "trials lost", "the runs before the change have lost 20 % of their trials", "Run run2 has no value of a.b.c Create on oci/runc, machine bench1: timed out 3 of 3: the call exceeded its limit."},
		"few": {func(n int, r *result.Run) {
			if n == 2 {
				r.Trials = append(r.Trials, r.Trials...)
				r.Trials = append(r.Trials, r.Trials...)
				for i := range r.Trials {
					r.Trials[i].Seq, r.Trials[i].Block = i+1, i
				}
				lose(r, 2)
			}
		}, "slower", "", ""},
	} {
		h := jump(t, "Create", c.change)
		if got := h.Series[0].Changes; len(got) != 1 || got[0].Word != c.word || !strings.HasPrefix(got[0].Why, c.why) || c.why == "" && got[0].Why != "" {
			t.Errorf("%s: the changes are %+v, want %q because %q", name, got, c.word, c.why)
		}
		if notes := strings.Join(h.Notes, "\n"); notes != c.note {
			t.Errorf("%s: the notes are %q, want %q", name, notes, c.note)
		}
	}
}

// TestMarkedRuns: every format marks runs with lost trials and runs that were not completed, and gives the reason of a missing direction.
func TestMarkedRuns(t *testing.T) {
	h := jump(t, "Create", func(n int, r *result.Run) {
		switch {
		case n == 4:
			r.State = result.Killed
		case n == 5:
			r.State = result.Interrupted
		case n < 4:
			lose(r, 1)
		}
	})
	var page, document bytes.Buffer
	if err := errors.Join(h.HTML(&page), h.JSON(&document)); err != nil {
		t.Fatal(err)
	}
	for text, wants := range map[string][]string{
		text(t, h): {
			"│  lost 33 % of its trials\n", "│  the run is killed\n", "│  the run is interrupted\n", "── change: trials lost: +10.0 %, from ",
			"     No direction: the runs before the change have lost 27 % of their trials, and the others may be the faster ones.\n",
		},
		page.String(): {
			`<circle class="dot marked" cx="124.8" `, "; lost 33 % of its trials</title>", "<td>lost 33 % of its trials</td>", "<td>the run is killed</td>", `<circle class="dot" `,
			"trials lost: &#43;10.0 %", "<br>No direction: the runs before the change",
		},
		document.String(): {`"state": "killed"`, `"state": "interrupted"`, `"word": "trials lost"`, `"reason": "the runs before the change`},
	} {
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("it lacks %q:\n%s", want, text)
			}
		}
	}
	if plain := text(t, jump(t, "Create", nil)); strings.Contains(plain, "lost") || strings.Contains(plain, "the run is") {
		t.Errorf("a complete run without lost trials is marked:\n%s", plain)
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
		for n := range 10 {
			level := 0.020
			if n >= 5 {
				level = 0.022
			}
			b.Add(run(n, level*(1+0.001*float64(n%3)), func(r *result.Run) {
				r.Host.CPU, r.Bench[0].Metrics[0].Unit = "QEMU TCG CPU", c.unit
			}))
		}
		h := b.History()
		if got := h.Series[0].Changes; len(got) != 1 || got[0].Word != c.word || (got[0].Why == "the CPU is emulated, or may be") != (c.word == "emulated") {
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
		h := jump(t, "Create", c.change)
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
	h := jump(t, "Rate", nil)
	if c := h.Series[0].Changes; len(c) != 1 || !math.IsNaN(c[0].Ratio) || c[0].Word != "slower" || c[0].Before != -0.02002 && math.Abs(c[0].Before+0.02) > 1e-4 {
		t.Errorf("the changes are %+v", c)
	}
	b := history.NewBuilder("Create", all)
	for n := range 10 {
		b.Add(run(n, 1, nil))
	}
	h = b.History("a note")
	if got := text(t, h); len(h.Series[0].Changes) != 0 || !strings.HasPrefix(got, "Note: a note\n") || !strings.Contains(got, "10 runs; no change is shown.") {
		t.Errorf("the history is:\n%s", got)
	}
}
