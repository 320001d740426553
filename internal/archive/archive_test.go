package archive_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/archive"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

const start, exec, params = "operations.container.lifecycle", "operations.container.exec", "repeats=5"

// trial is a trial of a minute on a target.
func trial(benchmark, target string, status result.Status) result.Trial {
	cell := result.Cell{Benchmark: benchmark, Target: target}
	if benchmark == exec {
		cell.Params = params
	}
	return result.Trial{Cell: cell, Status: status, Elapsed: time.Minute}
}

func planOf(keys string) string {
	return "version: 1\nname: mine\ntargets: [fake/a, fake/b]\nbenchmarks: [" + start + ", {name: " + exec + ", blocks: 3}]\nblocks: 5\nwarmup: 1\n" + keys
}

// The progress of a run under way follows from its plan and its trials. Skipped and stopped cells have no more trials.
func TestProgress(t *testing.T) {
	targets := []result.Target{{Name: "fake/a"}, {Name: "fake/b"}, {Name: "fake/c", Unavailable: "it is broken"}}
	trials := []result.Trial{
		trial(start, "fake/a", result.OK), trial(start, "fake/b", result.Skipped), trial(start, "fake/a", result.Failed), trial(exec, "fake/a", result.OK),
	}
	for name, tt := range map[string]struct {
		run  result.Run
		want archive.Progress
	}{
		"a new run": {result.Run{Plan: planOf(""), Targets: targets}, archive.Progress{Total: 20, Work: []archive.WorkProgress{{Benchmark: start, Total: 12}, {Benchmark: exec, Params: params, Total: 8}}}},
		"some trials": {
			result.Run{Plan: planOf(""), Targets: targets, Trials: trials},
			archive.Progress{Done: 3, Total: 14, Left: 11 * time.Minute, Work: []archive.WorkProgress{{Benchmark: start, Done: 2, Total: 6, Problems: 1}, {Benchmark: exec, Params: params, Done: 1, Total: 8}}},
		},
		"a stopped cell, and a budget": {
			result.Run{Plan: planOf("budget: 10m\n"), Targets: targets, Trials: trials, Stopping: &result.Stopping{Stopped: []result.Stop{{Cell: trials[0].Cell}}}},
			archive.Progress{Done: 3, Total: 10, Left: 7 * time.Minute, AtMost: true, Work: []archive.WorkProgress{{Benchmark: start, Done: 2, Total: 2, Problems: 1}, {Benchmark: exec, Params: params, Done: 1, Total: 8}}},
		},
		"a rule that adds blocks": {
			result.Run{Plan: planOf("precision: 2%\nmax-blocks: 7\n"), Targets: targets},
			archive.Progress{Total: 24, AtMost: true, Work: []archive.WorkProgress{{Benchmark: start, Total: 16}, {Benchmark: exec, Params: params, Total: 8}}},
		},
	} {
		p, err := archive.ProgressOf(&tt.run)
		must.Do(t, err)
		expect.Equal(t, name, tt.want, p)
	}
	if _, err := archive.ProgressOf(&result.Run{ID: "r", Plan: "version: 9"}); err == nil {
		t.Error("the plan of another version has a progress")
	}
}

// The name of a baseline goes before the beginning of an ID, and a metric without values is an error of its own.
func TestReferencesAndHistory(t *testing.T) {
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "results.db"))
	must.Do(t, err)
	defer func() { must.Do(t, db.Close()) }()
	days := reporttest.Days(nil)
	_, err = db.Import(t.Context(), func(v result.Visitor) error { return result.Visit(v, days...) })
	must.Do(t, err, db.SaveBaseline(t.Context(), "run", time.Now(), result.Tool{}, days[:2], false))
	for ref, want := range map[string]int{"run": 2, "baseline:run": 2, "run3": 1, "latest": 1} {
		runs, err := archive.Runs(t.Context(), db, ref)
		must.Do(t, err)
		expect.Equal(t, ref, want, len(runs))
	}
	if _, err := archive.Runs(t.Context(), db, "baseline:run3"); !errors.Is(err, store.ErrNoBaseline) {
		t.Errorf("an unknown baseline: %v", err)
	}
	h, err := archive.History(t.Context(), db, archive.Selection{Metric: "Create", Benchmark: "a.b", Target: "oci/*"})
	must.Do(t, err)
	expect.Equal(t, "points", 10, len(h.Series[0].Points))
	for _, s := range []archive.Selection{{Metric: "Other"}, {Metric: "Create", Target: "native"}} {
		_, err := archive.History(t.Context(), db, s)
		if _, ok := errors.AsType[*archive.ValueError](err); !ok {
			t.Errorf("%v: %v", s, err)
		}
	}
}
