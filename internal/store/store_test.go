package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

const lifecycle = "operations.container.lifecycle"

var epoch = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// emptyRun is a run with two targets and no trials, started hour hours after epoch.
func emptyRun(id string, hour int) result.Run {
	return result.Run{
		ID: id, Name: "quick", State: result.Running, Started: epoch.Add(time.Duration(hour) * time.Hour),
		Targets: []result.Target{{Name: "native"}, {Name: "oci/runc"}},
		Bench: []result.Benchmark{{Name: lifecycle, Metrics: []result.Metric{
			{Name: "Create", Unit: result.Seconds, Better: result.Lower},
			{Name: "Rate", Unit: result.PerSecond, Better: result.Higher, Series: true},
		}}},
	}
}

// okTrial is a trial in block seq-1. Each of its rows contains seq.
func okTrial(seq int) result.Trial {
	t := result.Trial{
		Seq: seq, Cell: result.Cell{Benchmark: lifecycle, Target: "oci/runc"}, Block: seq - 1, Status: result.OK,
		Started: epoch.Add(time.Duration(seq) * time.Second), Elapsed: time.Duration(seq),
		Samples: []result.Sample{{Metric: "Create", Value: float64(seq)}},
	}
	t.Timelines = []result.Timeline{{Group: "memory", Name: "free", Unit: result.Bytes, At: []time.Duration{0, time.Second}, Values: []float64{1, float64(seq)}}}
	t.Distributions = []result.Distribution{{Metric: "Create", Unit: result.Seconds, Lows: []float64{0, float64(seq)}, Counts: []uint64{1, 2}, Batch: 1}}
	for i := range 3 {
		t.Phases = append(t.Phases, result.Phase{Name: fmt.Sprint("step", i), Start: time.Duration(i), Duration: time.Duration(seq)})
	}
	for i := range 20 {
		t.Samples = append(t.Samples, result.Sample{Metric: "Rate", Value: float64(seq) / float64(i+1)})
	}
	return t
}

func fullRun(t testing.TB) result.Run {
	t.Helper()
	data, err := os.ReadFile("../result/testdata/document.json")
	must.Do(t, err)
	doc, err := result.Decode(bytes.NewReader(data))
	must.Do(t, err)
	return doc.Runs[0]
}

func open(t testing.TB, path string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), path)
	must.Do(t, err)
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

func closeStore(t testing.TB, s *store.Store) {
	t.Helper()
	must.Do(t, s.Close())
}

func openReader(t testing.TB, path string) *store.Store {
	t.Helper()
	s, err := store.OpenReadOnly(t.Context(), path)
	must.Do(t, err)
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

func newStore(t testing.TB) *store.Store { return open(t, filepath.Join(t.TempDir(), "touchstone.db")) }

// newFile makes a file with the run "a" of n trials, and returns its path.
func newFile(t testing.TB, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "touchstone.db")
	s, err := store.Open(t.Context(), path)
	must.Do(t, err)
	record(t, s, emptyRun("a", 0), n)
	closeStore(t, s)
	return path
}

func record(t testing.TB, s *store.Store, run result.Run, n int) {
	t.Helper()
	must.Do(t, s.Create(t.Context(), run))
	for seq := 1; seq <= n; seq++ {
		must.Do(t, s.Append(t.Context(), run.ID, okTrial(seq)))
	}
}

// Invariant sample-order: Samples keep their order; statistics do not change what they are given.
func TestRunComesBackWhole(t *testing.T) {
	want := fullRun(t)
	for name, put := range map[string]func(*store.Store) error{
		"import": func(s *store.Store) error {
			_, err := importRuns(t, s, want)
			return err
		},
		"create and append": func(s *store.Store) error {
			empty := want
			rule := *want.Stopping
			rule.Stopped = nil
			empty.Stopping = &rule
			empty.Trials, empty.Traces, empty.State, empty.Ended = nil, nil, result.Running, time.Time{}
			if err := s.Create(t.Context(), empty); err != nil {
				return err
			}
			for _, trial := range want.Trials {
				if err := s.Append(t.Context(), want.ID, trial); err != nil {
					return err
				}
			}
			for _, trace := range want.Traces {
				if err := s.AppendTrace(t.Context(), want.ID, trace); err != nil {
					return err
				}
			}
			if err := s.Stopping(t.Context(), want.ID, want.Stopping); err != nil {
				return err
			}
			return s.Finish(t.Context(), want.ID, want.State, want.Ended, want.Caveats)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a?b#c%41 d.db") // with special characters of URIs
			s, err := store.Open(t.Context(), path)
			must.Do(t, err)
			must.Do(t, put(s))
			closeStore(t, s)

			s, err = store.OpenReadOnly(t.Context(), path)
			must.Do(t, err)
			got, err := s.Run(t.Context(), want.ID)
			must.Do(t, err)
			expect.Equal(t, "the run changed on its way through the store", want, got)
			closeStore(t, s)
			entries, err := os.ReadDir(filepath.Dir(path))
			must.Do(t, err)
			if len(entries) != 1 {
				t.Errorf("a closed store leaves %v", entries)
			}
		})
	}
}

func TestRecordedIDsAreRefused(t *testing.T) {
	s := newStore(t)
	record(t, s, emptyRun("a", 0), 1)
	record(t, s, emptyRun("b", 0), 1) // the same seq in another run is no clash
	if err := s.Create(t.Context(), emptyRun("a", 1)); !errors.Is(err, store.ErrExists) {
		t.Errorf("Create of a run that is there: %v", err)
	}
	variant := okTrial(1)
	variant.Block = 7
	if err := s.Append(t.Context(), "a", variant); !errors.Is(err, store.ErrExists) {
		t.Errorf("Append of a trial that is there: %v", err)
	}
	run, err := s.Run(t.Context(), "a")
	must.Do(t, err)
	expect.Equal(t, "a refused trial changed the run", []result.Trial{okTrial(1)}, run.Trials)
}

// Invariant failures.
func TestInvalidRunsAndTrialsAreRefused(t *testing.T) {
	s := newStore(t)
	record(t, s, emptyRun("a", 0), 0)
	for want, spoil := range map[string]func(*result.Trial){
		"NaN":               func(t *result.Trial) { t.Samples[3].Value = math.NaN() },
		"+Inf":              func(t *result.Trial) { t.Samples[3].Value = math.Inf(1) },
		`no metric "Other"`: func(t *result.Trial) { t.Samples[3].Metric = "Other" },
		"no such target":    func(t *result.Trial) { t.Target = "oci/crun" },
		"counted from 1":    func(t *result.Trial) { t.Seq = 0 },
	} {
		trial := okTrial(1)
		spoil(&trial)
		if err := s.Append(t.Context(), "a", trial); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Append gives %v, want an error with %q", err, want)
		}
	}
	withTrials, bad, alias := emptyRun("b", 0), emptyRun("b", 0), emptyRun("Latest", 0)
	withTrials.Trials = []result.Trial{okTrial(1)}
	bad.State = "odd"
	for want, run := range map[string]result.Run{"use Import": withTrials, `state "odd"`: bad, "newest run": alias} {
		if err := s.Create(t.Context(), run); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Create gives %v, want an error with %q", err, want)
		}
		if run.Trials != nil {
			continue
		}
		if _, err := importRuns(t, s, emptyRun("good", 0), run); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Import gives %v, want an error with %q", err, want)
		}
	}
	runs, err := s.Runs(t.Context())
	must.Do(t, err)
	if len(runs) != 1 || len(runs[0].Trials) != 0 {
		t.Errorf("something refused was recorded: %+v", runs)
	}
}

func TestImportIsAllOrNothing(t *testing.T) {
	s := newStore(t)
	s.Pragma(t, "max_page_count = 40")
	run := emptyRun("a", 0)
	for seq := 1; seq <= 1000; seq++ {
		run.Trials = append(run.Trials, okTrial(seq))
	}
	if _, err := importRuns(t, s, emptyRun("b", 0), run); !errors.Is(err, store.ErrFull) {
		t.Fatalf("Import into a file that must not grow: %v", err)
	}
	runs, err := s.Runs(t.Context())
	must.Do(t, err)
	if len(runs) != 0 {
		t.Errorf("a part of the run is there: %+v", runs)
	}
}

func TestResolve(t *testing.T) {
	s := newStore(t)
	var idErr *store.IDError
	if _, err := s.Run(t.Context(), store.Latest); !errors.As(err, &idErr) || len(idErr.Candidates) != 0 {
		t.Errorf("the latest of no runs: %v", err)
	}
	// The newest is neither the last recorded nor the last by name.
	for id, hour := range map[string]int{"01ABC": 1, "01ABD": 3, "01B": 2, "01": 0} {
		record(t, s, emptyRun(id, hour), 0)
	}
	for ref, want := range map[string]string{"latest": "01ABD", "01ABC": "01ABC", "01abc": "01ABC", "01b": "01B", "01": "01"} {
		run, err := s.Run(t.Context(), ref)
		if err != nil || run.ID != want {
			t.Errorf("Run(%q) gives %q, %v; want %q", ref, run.ID, err, want)
		}
	}
	for ref, want := range map[string]*store.IDError{
		"01A":    {Ref: "01A", Ambiguous: true, Candidates: []string{"01ABD", "01ABC"}},
		"x":      {Ref: "x", Candidates: []string{"01ABD", "01B", "01ABC", "01"}},
		"":       {Ref: "", Candidates: []string{"01ABD", "01B", "01ABC", "01"}},
		"01ABCD": {Ref: "01ABCD", Candidates: []string{"01ABD", "01B", "01ABC", "01"}},
		"%":      {Ref: "%", Candidates: []string{"01ABD", "01B", "01ABC", "01"}},
	} {
		_, err := s.Resolve(t.Context(), ref)
		var got *store.IDError
		if !errors.As(err, &got) {
			t.Errorf("Resolve(%q) gives %v, want an IDError", ref, err)
			continue
		}
		expect.Equal(t, fmt.Sprintf("Resolve(%q) gives another error", ref), want, got)
	}
	// Methods that change a run accept no prefix.
	for name, err := range map[string]error{
		"Append":      s.Append(t.Context(), "01AB", okTrial(1)),
		"AppendTrace": s.AppendTrace(t.Context(), "01AB", result.Trace{Seq: 1}),
		"Stopping":    s.Stopping(t.Context(), "01AB", &result.Stopping{Looks: []int{1}}),
		"Finish":      s.Finish(t.Context(), "01AB", result.Complete, epoch, nil),
		"Resume":      s.Resume(t.Context(), "latest"),
	} {
		if !errors.As(err, &idErr) {
			t.Errorf("%s of an id that is not there: %v", name, err)
		}
	}
}

func TestIDErrorMessages(t *testing.T) {
	var ids []string
	for i := range 12 {
		ids = append(ids, fmt.Sprint("0", i))
	}
	for want, err := range map[string]error{
		`run "x": the file has no runs`: &store.IDError{Ref: "x"},
		`run "0": 12 ids begin with it: 00, 01, 02, 03, 04, 05, 06, 07, 08, 09 and 2 more; give more characters of the id`:           &store.IDError{Ref: "0", Ambiguous: true, Candidates: ids},
		`run "x": no such run; the runs are 00, 01, 02, 03, 04, 05, 06, 07, 08, 09; give an id, the beginning of an id, or "latest"`: &store.IDError{Ref: "x", Candidates: ids[:10]},
	} {
		if err.Error() != want {
			t.Errorf("the message is\n%s\nwant\n%s", err, want)
		}
	}
}

func TestFinishAndResume(t *testing.T) {
	s := newStore(t)
	record(t, s, emptyRun("a", 0), 0)
	state := func() (result.State, time.Time) {
		t.Helper()
		run, err := s.Run(t.Context(), "a")
		must.Do(t, err)
		return run.State, run.Ended
	}
	end := epoch.Add(time.Minute).In(time.FixedZone("", 3600))
	must.Do(t, s.Finish(t.Context(), "a", result.Interrupted, end, nil))
	if st, moment := state(); st != result.Interrupted || !moment.Equal(end) || moment.Location() != time.UTC {
		t.Errorf("after Finish the run is %s, ended %v", st, moment)
	}
	must.Do(t, s.Resume(t.Context(), "a"))
	if st, moment := state(); st != result.Running || !moment.IsZero() {
		t.Errorf("after Resume the run is %s, ended %v", st, moment)
	}
	if err := s.Finish(t.Context(), "a", result.Running, end, nil); err == nil {
		t.Error("a run can be finished as running")
	}
}

func TestRunsAndIndex(t *testing.T) {
	s := newStore(t)
	older, newer := emptyRun("older", 1), emptyRun("newer", 2)
	record(t, s, newer, 2)
	record(t, s, older, 3)
	warm, failed, variant := okTrial(10), okTrial(11), okTrial(12)
	warm.Warmup = true
	failed.Status, failed.Samples, failed.Distributions, failed.Timelines = result.Failed, nil, nil, nil
	variant.Params, variant.Samples = "n=5", variant.Samples[:1]
	for _, trial := range []result.Trial{warm, failed, variant} {
		must.Do(t, s.Append(t.Context(), "older", trial))
	}
	must.Do(t, s.Finish(t.Context(), "newer", result.Complete, epoch.Add(3*time.Hour), nil))

	runs, err := s.Runs(t.Context())
	must.Do(t, err)
	targets, benchmarks := []string{"native", "oci/runc"}, []string{lifecycle}
	expect.Equal(t, "other runs", []store.Summary{
		{ID: "newer", Name: "quick", State: result.Complete, Started: newer.Started, Ended: epoch.Add(3 * time.Hour), Trials: map[result.Status]int{result.OK: 2}, Targets: targets, Benchmarks: benchmarks},
		{ID: "older", Name: "quick", State: result.Running, Started: older.Started, Trials: map[result.Status]int{result.OK: 5, result.Failed: 1}, Targets: targets, Benchmarks: benchmarks},
	}, runs)

	index, err := s.Index(t.Context())
	must.Do(t, err)
	expect.Equal(t, "another index", []store.IndexEntry{
		{Cell: okTrial(1).Cell, Metric: "Create", Trials: 5, Runs: []string{"newer", "older"}, Last: okTrial(3).Started},
		{Cell: okTrial(1).Cell, Metric: "Rate", Trials: 5, Runs: []string{"newer", "older"}, Last: okTrial(3).Started},
		{Cell: variant.Cell, Metric: "Create", Trials: 1, Runs: []string{"older"}, Last: okTrial(12).Started},
	}, index)
}

func TestCancelledAppendLeavesNoTrace(t *testing.T) {
	s := newStore(t)
	record(t, s, emptyRun("a", 0), 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Append(ctx, "a", okTrial(2)); !errors.Is(err, context.Canceled) {
		t.Errorf("Append with a cancelled context: %v", err)
	}
	must.Do(t, s.Append(t.Context(), "a", okTrial(2)))
}

func TestConcurrentWriters(t *testing.T) {
	const stores, trials = 4, 25
	path := filepath.Join(t.TempDir(), "touchstone.db")
	errs := make(chan error, stores)
	var wg sync.WaitGroup
	for n := range stores {
		wg.Go(func() {
			errs <- func() error {
				s, err := store.Open(t.Context(), path) // all of them want to create it
				if err != nil {
					return err
				}
				id := fmt.Sprint("run", n)
				if err := s.Create(t.Context(), emptyRun(id, n)); err != nil {
					return err
				}
				for seq := 1; seq <= trials; seq++ {
					if err := s.Append(t.Context(), id, okTrial(seq)); err != nil {
						return err
					}
					if _, err := s.Index(t.Context()); err != nil {
						return err
					}
				}
				return s.Close()
			}()
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		must.Do(t, err)
	}
	s := open(t, path)
	for n := range stores {
		run, err := s.Run(t.Context(), fmt.Sprint("run", n))
		must.Do(t, err)
		if len(run.Trials) != trials {
			t.Errorf("run %d has %d trials, want %d", n, len(run.Trials), trials)
		}
	}
	must.Do(t, s.Check(t.Context()))
}

// TestReadBesideAppends reads a run while trials come before, between and after those that it has. At the end it has all of them, in order
// of seq.
//
// Invariant sample-order.
func TestReadBesideAppends(t *testing.T) {
	const trials = 60
	s := newStore(t)
	record(t, s, emptyRun("a", 0), 0)
	reader := openReader(t, s.Path())
	appended := make(chan error, 1)
	go func() {
		appended <- func() error {
			for i := range trials {
				if err := s.Append(t.Context(), "a", okTrial(1+i*37%trials)); err != nil {
					return err
				}
			}
			return nil
		}()
	}()
	for done := false; !done; {
		select {
		case err := <-appended:
			must.Do(t, err)
			done = true
		default:
		}
		run, err := reader.Run(t.Context(), "a")
		must.Do(t, err)
		for _, trial := range run.Trials {
			if diff := cmp.Diff(okTrial(trial.Seq), trial); diff != "" {
				t.Fatalf("of %d trials, trial %d changed (-want +got):\n%s", len(run.Trials), trial.Seq, diff)
			}
		}
	}
	checkTrials(t, reader, "a", trials)
}

// The lists of two runs stay apart whose trials alternate, or lie far from each other in the file.
func TestReadOfMixedRuns(t *testing.T) {
	const trials = 200
	s := newStore(t)
	record(t, s, emptyRun("a", 0), 0)
	record(t, s, emptyRun("b", 1), 0)
	for seq := 1; seq <= trials; seq++ {
		must.Do(t, s.Append(t.Context(), "b", okTrial(seq)))
		if seq <= 3 || seq == 100 {
			must.Do(t, s.Append(t.Context(), "a", okTrial(min(seq, 4))))
		}
	}
	must.Do(t, s.Append(t.Context(), "a", okTrial(5)))
	checkTrials(t, s, "a", 5)
	checkTrials(t, s, "b", trials)
}

func TestChangeDuringRead(t *testing.T) {
	s := newStore(t)
	record(t, s, emptyRun("a", 0), 3)
	var key int64
	must.Do(t, s.DB().QueryRowContext(t.Context(), "SELECT key FROM run").Scan(&key))
	trials := []result.Trial{{Seq: 1}, {Seq: 3}}
	must.Do(t, s.ReadTrials(t.Context(), key, trials))
	if len(trials[1].Samples) != len(okTrial(3).Samples) {
		t.Errorf("trial 3 has %d samples, want %d", len(trials[1].Samples), len(okTrial(3).Samples))
	}
	for name, read := range map[string]func() error{
		"no such run":  func() error { return s.ReadTrials(t.Context(), key+1, trials) },
		"fewer trials": func() error { return s.ReadTrials(t.Context(), key, []result.Trial{{Seq: 3}, {Seq: 4}}) },
	} {
		if err := read(); !errors.Is(err, store.ErrChanged) {
			t.Errorf("%s: got error %v, want ErrChanged", name, err)
		}
	}
}

func TestTrialTimes(t *testing.T) {
	s := newStore(t)
	run := emptyRun("a", 1)
	must.Do(t, s.Create(t.Context(), run))
	var cell result.Cell
	for seq, elapsed := range []time.Duration{2 * time.Second, 4 * time.Second, time.Hour} {
		trial := okTrial(seq + 1)
		trial.Elapsed, cell = elapsed, trial.Cell
		if elapsed == time.Hour {
			trial.Status, trial.Samples, trial.Phases, trial.Distributions, trial.Timelines = result.Timeout, nil, nil, nil, nil
		}
		must.Do(t, s.Append(t.Context(), "a", trial))
	}
	second := emptyRun("b", 2)
	second.Trials = []result.Trial{okTrial(1)}
	second.Trials[0].Elapsed = 24 * time.Hour
	_, err := importRuns(t, s, second)
	must.Do(t, err)
	got, err := s.TrialTimes(t.Context())
	must.Do(t, err)
	expect.Equal(t, "the result", map[result.Cell]time.Duration{cell: 3 * time.Second}, got)
}
