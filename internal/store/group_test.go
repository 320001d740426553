package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// Runs that are recorded at the same time are all whole, and a refused write concerns no other: half of the writers repeat a trial, and one has
// given up before its turn.
func TestWritesAtTheSameTime(t *testing.T) {
	s := newStore(t)
	const runs, trials = 40, 5
	var writers sync.WaitGroup
	errs := make([]error, runs)
	for i := range runs {
		writers.Go(func() {
			id := fmt.Sprint("run", i)
			errs[i] = s.Create(t.Context(), emptyRun(id, i))
			for seq := 1; seq <= trials; seq++ {
				errs[i] = errors.Join(errs[i], s.Append(t.Context(), id, okTrial(seq)))
				if i%2 == 0 {
					if err := s.Append(t.Context(), id, okTrial(seq)); !errors.Is(err, store.ErrExists) {
						errs[i] = errors.Join(errs[i], fmt.Errorf("trial %d is recorded twice: %w", seq, err))
					}
				}
			}
			canceledCtx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := s.Append(canceledCtx, id, okTrial(trials+1)); !errors.Is(err, context.Canceled) {
				errs[i] = errors.Join(errs[i], fmt.Errorf("a trial is recorded after the end of its context: %w", err))
			}
		})
	}
	writers.Wait()
	must.Do(t, errs...)
	for i := range runs {
		run, err := s.Run(t.Context(), fmt.Sprint("run", i))
		must.Do(t, err)
		if len(run.Trials) != trials {
			t.Errorf("run %d has %d trials, want %d", i, len(run.Trials), trials)
		}
	}
}

// The trials of one call are recorded together or not at all, and the error names them.
func TestAppendTrials(t *testing.T) {
	s := newStore(t)
	must.Do(t, s.Create(t.Context(), emptyRun("a", 0)), s.AppendTrials(t.Context(), "a", nil))
	must.Do(t, s.AppendTrials(t.Context(), "a", []result.Trial{okTrial(1), okTrial(2)}))
	err := s.AppendTrials(t.Context(), "a", []result.Trial{okTrial(3), okTrial(2)})
	if !errors.Is(err, store.ErrExists) || !strings.Contains(err.Error(), "trial 3 to 2 of run") {
		t.Errorf("a trial is recorded twice: %v", err)
	}
	bad := okTrial(4)
	bad.Block = -5
	if err := s.AppendTrials(t.Context(), "a", []result.Trial{okTrial(3), bad}); err == nil {
		t.Error("a trial with a negative block is recorded")
	}
	want := []result.Trial{okTrial(1), okTrial(2)}
	const rest = 40 // more than one statement
	for seq := len(want) + 1; seq <= rest; seq++ {
		want = append(want, okTrial(seq))
	}
	must.Do(t, s.AppendTrials(t.Context(), "a", want[2:]))
	run, err := s.Run(t.Context(), "a")
	must.Do(t, err)
	if !reflect.DeepEqual(run.Trials, want) {
		t.Errorf("the file has %+v, want %+v", run.Trials, want)
	}
}

// Each trial is checked against its own run, also while two runs take turns in one store.
func TestTrialsOfTwoRuns(t *testing.T) {
	s := newStore(t)
	stranger := emptyRun("b", 1)
	stranger.Targets = []result.Target{{Name: "oci/crun"}}
	must.Do(t, s.Create(t.Context(), emptyRun("a", 0)), s.Create(t.Context(), stranger))
	for seq := range 3 {
		trial, trace := okTrial(2*seq+1), result.Trace{Seq: 2*seq + 2, Cell: okTrial(1).Cell, Status: result.OK, Started: epoch}
		must.Do(t, s.Append(t.Context(), "a", trial), s.AppendTrace(t.Context(), "a", trace))
		if err := s.Append(t.Context(), "b", trial); err == nil || !strings.Contains(err.Error(), "oci/runc") {
			t.Errorf("a run records a trial of a target that it does not have: %v", err)
		}
		if err := s.AppendTrace(t.Context(), "b", trace); err == nil || !strings.Contains(err.Error(), "oci/runc") {
			t.Errorf("a run records a trace of a target that it does not have: %v", err)
		}
		trial.Target, trace.Target = "oci/crun", "oci/crun"
		must.Do(t, s.Append(t.Context(), "b", trial), s.AppendTrace(t.Context(), "b", trace))
	}
}

// A new file for many runs has larger pages. Each later writer keeps the pages of a file.
func TestPageSizes(t *testing.T) {
	type opener = func(context.Context, string) (*store.Store, error)
	for size, openers := range map[int][]opener{1024: {store.Open, store.OpenMany}, 4096: {store.OpenMany, store.Open}} {
		path := filepath.Join(t.TempDir(), "touchstone.db")
		for i, open := range openers {
			s, err := open(t.Context(), path)
			must.Do(t, err)
			var pages int
			must.Do(t, s.DB().QueryRowContext(t.Context(), "PRAGMA page_size").Scan(&pages))
			if pages != size {
				t.Errorf("opening %d: the pages have %d bytes, want %d", i+1, pages, size)
			}
			record(t, s, emptyRun(fmt.Sprint("r", i), i), 3)
			must.Do(t, s.Check(t.Context()), s.Close())
		}
	}
}

// BenchmarkManyRuns records runs of 70 trials of pods, 32 of them at the same time, as a coordinator of a cluster does.
func BenchmarkManyRuns(b *testing.B) {
	const runs, trials, atOnce = 300, 70, 32
	list := make([]result.Trial, trials)
	for i := range list {
		list[i] = podTrial(i + 1)
	}
	ctx := context.WithoutCancel(b.Context())
	for b.Loop() {
		s, err := store.OpenMany(ctx, filepath.Join(b.TempDir(), "touchstone.db"))
		must.Do(b, err)
		var writers errgroup.Group
		writers.SetLimit(atOnce)
		for i := range runs {
			writers.Go(func() error {
				id := fmt.Sprint("run", i)
				return errors.Join(s.Create(ctx, emptyRun(id, i)), s.AppendTrials(ctx, id, list), s.Finish(ctx, id, result.Complete, epoch, nil))
			})
		}
		must.Do(b, writers.Wait(), s.Close())
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*runs*trials), "ns/trial")
}

// BenchmarkTrials records the trials of a run of many targets and benchmarks, one after the other, as a run on one machine does.
func BenchmarkTrials(b *testing.B) {
	s := newStore(b)
	run := emptyRun("a", 0)
	for i := range 30 {
		run.Targets = append(run.Targets, result.Target{Name: fmt.Sprint("target", i)})
	}
	for i := range 50 {
		bench := run.Bench[0]
		bench.Name = fmt.Sprint("operations.", i)
		run.Bench = append(run.Bench, bench)
	}
	must.Do(b, s.Create(b.Context(), run))
	seq := 0
	for b.Loop() {
		seq++
		must.Do(b, s.Append(b.Context(), "a", okTrial(seq)))
	}
}

// podTrial is a trial with the stages of a pod.
func podTrial(seq int) result.Trial {
	trial := okTrial(seq)
	trial.Phases, trial.Samples = make([]result.Phase, 4), trial.Samples[:1]
	for i := range trial.Phases {
		trial.Phases[i] = result.Phase{Name: fmt.Sprint("stage ", i), Start: time.Duration(i) * time.Millisecond, Duration: time.Millisecond}
	}
	trial.Distributions, trial.Timelines = nil, nil
	return trial
}
