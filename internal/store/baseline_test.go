package store_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// complete is a run that is complete, with n trials.
func complete(id string, n int) result.Run {
	run := emptyRun(id, 0)
	run.State = result.Complete
	for seq := 1; seq <= n; seq++ {
		run.Trials = append(run.Trials, okTrial(seq))
	}
	return run
}

// TestBaselineSurvivesItsRun saves a run, removes it from the table of runs, and reads the baseline in the same file and by a reader.
func TestBaselineSurvivesItsRun(t *testing.T) {
	s := newStore(t)
	record(t, s, emptyRun("a", 0), 3)
	must(t, s.Finish(t.Context(), "a", result.Complete, epoch, nil))
	run, err := s.Run(t.Context(), "a")
	must(t, err)
	other := fullRun(t)
	must(t, s.SaveBaseline(t.Context(), "main", epoch, result.Tool{Version: "1"}, []result.Run{run, other}, false))
	_, err = s.DB().ExecContext(t.Context(), `DELETE FROM run`)
	must(t, err)
	reader, err := store.OpenReadOnly(t.Context(), s.Path())
	must(t, err)
	defer closeStore(t, reader)
	for _, from := range []*store.Store{s, reader} {
		got, err := from.Baseline(t.Context(), "main")
		must(t, err)
		if diff := cmp.Diff([]result.Run{run, other}, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the baseline came back changed (-saved +read):\n%s", diff)
		}
		all, err := from.Baselines(t.Context())
		must(t, err)
		if len(all) != 1 || all[0].Name != "main" || !all[0].Saved.Equal(epoch) || len(all[0].Runs) != 2 ||
			all[0].Runs[0].ID != "a" || all[0].Runs[0].Trials != 3 || len(all[0].Runs[0].Targets) != 2 {
			t.Errorf("the list is %+v", all)
		}
	}
	if info, err := os.Stat(s.Path()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v: %v", info.Mode(), err)
	}
	must(t, s.Check(t.Context()))
}

func TestBaselineNames(t *testing.T) {
	s := newStore(t)
	runs := []result.Run{complete("a", 1)}
	save := func(name string, replace bool, runs ...result.Run) error {
		return s.SaveBaseline(t.Context(), name, epoch, result.Tool{}, runs, replace)
	}
	must(t, save("main", false, runs...))
	if err := save("main", false, runs...); !errors.Is(err, store.ErrExists) {
		t.Errorf("a stored name: %v", err)
	}
	must(t, save("main", true, complete("b", 2)))
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
	must(t, s.RemoveBaseline(t.Context(), "main"))
	if err := s.RemoveBaseline(t.Context(), "main"); !errors.Is(err, store.ErrNoBaseline) || !strings.Contains(err.Error(), "baseline save") {
		t.Errorf("an unknown name: %v", err)
	}
}

// TestBaselineOfOlderSchema reads a baseline whose document has version 1 of the schema, as an upgraded touchstone finds it.
func TestBaselineOfOlderSchema(t *testing.T) {
	old, err := os.ReadFile("../result/testdata/v1/export.json")
	must(t, err)
	want, err := result.Decode(bytes.NewReader(old))
	must(t, err)
	s := newStore(t)
	put := func(name string, document []byte) {
		_, err = s.DB().ExecContext(t.Context(), `INSERT INTO baseline (name, saved, runs, document) VALUES (?, '2026-11-20T10:00:00.000000000Z', '[]', ?)`, name, document)
		must(t, err)
	}
	put("old", packed(t, old))
	got, err := s.Baseline(t.Context(), "old")
	must(t, err)
	if diff := cmp.Diff(want.Runs, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the baseline differs from the import (-import +baseline):\n%s", diff)
	}
	put("newer", packed(t, []byte(`{"schema_version": 99, "runs": []}`)))
	if _, err := s.Baseline(t.Context(), "newer"); !errors.Is(err, result.ErrNewer) {
		t.Errorf("a newer document: %v", err)
	}
	put("cut", packed(t, old)[:100])
	put("text", []byte("text"))
	for _, name := range []string{"cut", "text"} {
		if _, err := s.Baseline(t.Context(), name); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBaselinesOfOlderFile reads a file of an earlier version, which has no baselines, and saves one in it.
func TestBaselinesOfOlderFile(t *testing.T) {
	old, err := os.ReadFile("../result/testdata/v1/results.sqlite")
	must(t, err)
	path := filepath.Join(t.TempDir(), "touchstone.db")
	must(t, os.WriteFile(path, old, 0o600))
	reader, err := store.OpenReadOnly(t.Context(), path)
	must(t, err)
	if all, err := reader.Baselines(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("the baselines are %v: %v", all, err)
	}
	closeStore(t, reader)
	s := open(t, path)
	must(t, s.SaveBaseline(t.Context(), "main", epoch, result.Tool{}, []result.Run{complete("a", 1)}, false))
}

func TestReadersCannotSaveBaselines(t *testing.T) {
	writer := newStore(t)
	record(t, writer, emptyRun("a", 0), 1)
	s, err := store.OpenReadOnly(t.Context(), writer.Path())
	must(t, err)
	defer closeStore(t, s)
	for name, err := range map[string]error{
		"save":   s.SaveBaseline(t.Context(), "main", epoch, result.Tool{}, []result.Run{complete("b", 1)}, false),
		"remove": s.RemoveBaseline(t.Context(), "main"),
	} {
		if !errors.Is(err, store.ErrNotWritable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func packed(t *testing.T, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(text)
	must(t, errors.Join(err, w.Close()))
	return b.Bytes()
}

func withValue(run result.Run, value float64) result.Run {
	run.Trials[0].Samples[0].Value = value
	return run
}
