package store_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

func complete(id string, n int) result.Run {
	run := withTrials(id, n)
	run.State = result.Complete
	return run
}

// TestBaselineSurvivesItsRun saves a run, removes it from the table of runs, and reads the baseline in the same file and by a reader.
//
// Invariant baseline-copy: A baseline does not depend on the runs that it was saved from.
func TestBaselineSurvivesItsRun(t *testing.T) {
	s := newStore(t)
	record(t, s, emptyRun("a", 0), 3)
	must.Do(t, s.Finish(t.Context(), "a", result.Complete, epoch, nil))
	run, err := s.Run(t.Context(), "a")
	must.Do(t, err)
	second := fullRun(t)
	must.Do(t, s.SaveBaseline(t.Context(), "main", epoch, result.Tool{Version: "1"}, []result.Run{run, second}, false))
	_, err = s.DB().ExecContext(t.Context(), `PRAGMA foreign_keys = 1; DELETE FROM run`)
	must.Do(t, err)
	for _, source := range []*store.Store{s, openReader(t, s.Path())} {
		got, err := source.Baseline(t.Context(), "main")
		must.Do(t, err)
		expect.Equal(t, "the baseline came back changed", []result.Run{run, second}, got, cmpopts.EquateEmpty())
		list, err := source.Baselines(t.Context())
		must.Do(t, err)
		if len(list) != 1 || list[0].Name != "main" || !list[0].Saved.Equal(epoch) || len(list[0].Runs) != 2 ||
			list[0].Runs[0].ID != "a" || list[0].Runs[0].Trials != 3 || len(list[0].Runs[0].Targets) != 2 {
			t.Errorf("the list is %+v", list)
		}
	}
	if info, err := os.Stat(s.Path()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v: %v", info.Mode(), err)
	}
	must.Do(t, s.Check(t.Context()))
}

func TestBaselineNames(t *testing.T) {
	s := newStore(t)
	runs := []result.Run{complete("a", 1)}
	save := func(name string, replace bool, runs ...result.Run) error {
		return s.SaveBaseline(t.Context(), name, epoch, result.Tool{}, runs, replace)
	}
	must.Do(t, save("main", false, runs...))
	if err := save("main", false, runs...); !errors.Is(err, store.ErrExists) {
		t.Errorf("a stored name: %v", err)
	}
	must.Do(t, save("main", true, complete("b", 2)))
	if got, err := s.Baseline(t.Context(), "main"); err != nil || len(got) != 1 || got[0].ID != "b" {
		t.Errorf("the replaced baseline has the runs %v: %v", got, err)
	}
	for _, name := range []string{"", "latest", "Latest", "2026", "a/b", "a b", "-a", strings.Repeat("x", 65)} {
		if err := save(name, false, runs...); err == nil || !strings.Contains(err.Error(), "cannot be named") {
			t.Errorf("the name %q: %v", name, err)
		}
	}
	for want, runs := range map[string][]result.Run{
		"has no run":   nil,
		"is under way": {emptyRun("r", 0)},
		"occurs twice": {complete("a", 1), complete("a", 1)},
		"is NaN":       {withValue(complete("a", 1), math.NaN())},
		"is -Inf":      {withValue(complete("a", 1), math.Inf(-1))},
	} {
		if err := save("other", false, runs...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q: %v", want, err)
		}
	}
	if _, err := s.Baseline(t.Context(), "other"); !errors.Is(err, store.ErrNoBaseline) || !strings.Contains(err.Error(), "the baselines are main") {
		t.Errorf("an unknown name: %v", err)
	}
	must.Do(t, s.RemoveBaseline(t.Context(), "main"))
	if err := s.RemoveBaseline(t.Context(), "main"); !errors.Is(err, store.ErrNoBaseline) || !strings.Contains(err.Error(), "baseline save") {
		t.Errorf("an unknown name: %v", err)
	}
}

// TestUnreadableBaselines: a document of another version is not called damaged.
func TestUnreadableBaselines(t *testing.T) {
	s := newStore(t)
	text := []byte(`{"schema_version": 99, "runs": []}`)
	for name, c := range map[string]struct {
		document []byte
		version  bool
		want     string
	}{
		"version": {packed(t, text), true, "schema version 99"},
		"cut":     {packed(t, text)[:20], false, "damaged"},
		"text":    {[]byte("text"), false, "damaged"},
	} {
		_, err := s.DB().ExecContext(t.Context(), `INSERT INTO baseline (name, saved, runs, document) VALUES (?, '2026-11-20T10:00:00.000000000Z', '[]', ?)`, name, c.document)
		must.Do(t, err)
		if _, err := s.Baseline(t.Context(), name); errors.Is(err, result.ErrVersion) != c.version || err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "damaged") == c.version {
			t.Errorf("%s: the error is %v, want %q", name, err, c.want)
		}
	}
}

func packed(t *testing.T, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(text)
	must.Do(t, errors.Join(err, w.Close()))
	return b.Bytes()
}

func withValue(run result.Run, value float64) result.Run {
	run.Trials[0].Samples[0].Value = value
	return run
}
