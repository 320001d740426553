package store_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// stored returns a store with a large run, and the run's id.
func stored(t testing.TB, l reporttest.Large) (*store.Store, string) {
	t.Helper()
	s := newStore(t)
	_, err := s.Import(t.Context(), l.Read)
	must.Do(t, err)
	runs, err := s.Runs(t.Context())
	must.Do(t, err)
	return s, runs[0].ID
}

// Short lists share memory, and long ones do not. Neither may change a value.
func TestListsOfAllLengthsComeBackWhole(t *testing.T) {
	for _, values := range []int{1, 7, 1500, 5000} {
		l := reporttest.Large{Name: "whole", Targets: 2, Benchmarks: 1, Blocks: 40, Metrics: 3, Values: 1, Series: true}
		if values > 7 {
			l.Blocks, l.Metrics = 3, 1
		}
		l.Values = values
		s, id := stored(t, l)
		got, err := s.Run(t.Context(), id)
		must.Do(t, err)
		want := l.Run()
		expect.Equal(t, fmt.Sprintf("with %d values a trial, the run changed", values), want, got)
		for i := range got.Trials {
			trial := &got.Trials[i]
			trial.Samples = append(trial.Samples, result.Sample{Metric: "other"})
			trial.Phases = append(trial.Phases, result.Phase{Name: "other"})
		}
		for i := range got.Trials {
			if n := len(want.Trials[i].Samples); !cmp.Equal(got.Trials[i].Samples[:n], want.Trials[i].Samples) {
				t.Fatalf("with %d values a trial, a list that grew changed the list of trial %d", values, i+1)
			}
		}
	}
}

// The memory of a read is at most a few times the memory of the run itself.
func TestReadTakesLittleMemory(t *testing.T) {
	l := reporttest.Large{Name: "memory", Targets: 4, Benchmarks: 1, Blocks: 200, Metrics: 10, Values: 1}
	s, id := stored(t, l)
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	_, err := s.Run(t.Context(), id)
	must.Do(t, err)
	runtime.ReadMemStats(&end)
	const limit = 400 // bytes, with the share of the trial and its phases
	if got := float64(end.TotalAlloc-start.TotalAlloc) / float64(l.Samples()); got > limit {
		t.Errorf("a read allocates %.0f bytes for a sample, want at most %d", got, limit)
	}
}

func BenchmarkMillionRead(b *testing.B) {
	for _, l := range reporttest.Millions() {
		path := filepath.Join(b.TempDir(), "touchstone.db")
		s, err := store.Open(b.Context(), path)
		must.Do(b, err)
		_, err = s.Import(b.Context(), l.Read)
		must.Do(b, err)
		closeStore(b, s)
		b.Run(l.Name, func(b *testing.B) {
			for b.Loop() {
				s, err := store.OpenReadOnly(b.Context(), path)
				must.Do(b, err)
				_, err = s.Run(b.Context(), store.Latest)
				must.Do(b, err)
				closeStore(b, s)
			}
		})
	}
}
