package store_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// An outline is a run without the lists of its trials, and a head without its trials. Both have the state of a killed run.
func TestOutlinesAndHeads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	s := open(t, path)
	for hour, id := range []string{"early", "late"} {
		must.Do(t, s.Create(t.Context(), emptyRun(id, hour)), s.Append(t.Context(), id, okTrial(1)), s.Append(t.Context(), id, okTrial(2)))
	}
	must.Do(t, s.Finish(t.Context(), "early", result.Complete, epoch, nil), s.Close())

	s, err := store.OpenReadOnly(t.Context(), path)
	must.Do(t, err)
	defer func() { must.Do(t, s.Close()) }()
	outline, err := s.Outline(t.Context(), store.Latest)
	must.Do(t, err)
	run, err := s.Run(t.Context(), "late")
	must.Do(t, err)
	expect.Equal(t, "outline", run, outline, cmpopts.IgnoreFields(result.Trial{}, "Phases", "Samples", "Distributions", "Timelines"))
	if last := outline.Trials[1]; last.Samples != nil || last.Phases != nil || outline.State != result.Killed {
		t.Errorf("the outline of a %s run has the lists %v and %v", outline.State, last.Samples, last.Phases)
	}
	heads, err := s.Heads(t.Context())
	must.Do(t, err)
	run.Trials = nil
	if len(heads) != 2 || heads[1].ID != "early" || heads[1].State != result.Complete {
		t.Fatalf("the heads are %v", heads)
	}
	expect.Equal(t, "head", run, heads[0])
}
