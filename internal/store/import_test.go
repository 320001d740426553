package store_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// importRuns imports runs like a document with them.
func importRuns(t testing.TB, s *store.Store, runs ...result.Run) (news []bool, err error) {
	t.Helper()
	return s.Import(t.Context(), func(v result.Visitor) error { return result.Visit(v, runs...) })
}

// withTrials is a run with n trials.
func withTrials(id string, n int) result.Run {
	run := emptyRun(id, 0)
	for seq := 1; seq <= n; seq++ {
		run.Trials = append(run.Trials, okTrial(seq))
	}
	return run
}

func TestImportAgain(t *testing.T) {
	s := newStore(t)
	full := fullRun(t)
	odd := withTrials("odd", 2)
	// Values with several spellings in JSON and SQLite are the same content.
	odd.Trials[0].Samples[0].Value = math.Copysign(0, -1)
	odd.Trials[0].Conditions = map[string]string{}
	odd.Started = odd.Started.In(time.FixedZone("elsewhere", 3600))
	for i, want := range [][]bool{{true, true}, {false, false}} {
		news, err := importRuns(t, s, full, odd)
		must.Do(t, err)
		if !slices.Equal(news, want) {
			t.Errorf("import %d added %v, want %v", i+1, news, want)
		}
	}
	news, err := importRuns(t, s, withTrials("new", 1), full)
	must.Do(t, err)
	if !slices.Equal(news, []bool{true, false}) {
		t.Errorf("of a new run and one that is there %v were added", news)
	}
}

// TestImportConflict imports another run with a recorded id. Nothing changes, and none of the runs imported with it is recorded.
func TestImportConflict(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *result.Run)
		words  string
	}{
		"a sample": {func(r *result.Run) { r.Trials[1].Samples[3].Value++ }, "has other content; import this one into another folder"},
		"a trial":  {func(r *result.Run) { r.Trials = r.Trials[:1] }, "has other content"},
		"a trace": {func(r *result.Run) {
			r.Traces = []result.Trace{{Seq: 1, Cell: r.Trials[0].Cell, Status: result.Skipped, Started: r.Started}}
		}, "has other content"},
		"the host":  {func(r *result.Run) { r.Host.Hostname = "elsewhere" }, "has other content"},
		"the state": {func(r *result.Run) { r.State = result.Interrupted }, "has other content"},
		"the name":  {func(r *result.Run) { r.Name = "after" }, `has the same content, and only its name is not "after"; use that run, or import`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			_, err := importRuns(t, s, withTrials("a", 2))
			must.Do(t, err)
			conflict := withTrials("a", 2)
			c.change(&conflict)
			if _, err := importRuns(t, s, withTrials("b", 1), conflict, withTrials("c", 1)); !errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), `import run "a": its id is already taken: run "quick" `+c.words) {
				t.Fatalf("Import gives %v, want a conflict that %s", err, c.words)
			}
			run, err := s.Run(t.Context(), "a")
			must.Do(t, err)
			expect.Equal(t, "the run that was there has changed", withTrials("a", 2).Trials, run.Trials)
			runs, err := s.Runs(t.Context())
			must.Do(t, err)
			if len(runs) != 1 {
				t.Errorf("there are %d runs, want the one that was there", len(runs))
			}
		})
	}
}

// TestImportedRunsCannotResume protects the user: to resume an imported run would execute the plan of a file.
//
// Invariant imported-run: An imported run cannot be resumed.
func TestImportedRunsCannotResume(t *testing.T) {
	s := newStore(t)
	record(t, s, emptyRun("own", 0), 1)
	stranger := withTrials("foreign", 1)
	stranger.State = result.Interrupted
	_, err := importRuns(t, s, stranger)
	must.Do(t, err)
	for id, want := range map[string]bool{"own": false, "foreign": true} {
		isImport, err := s.Imported(t.Context(), id)
		must.Do(t, err)
		if isImport != want {
			t.Errorf("run %s is imported: %v, want %v", id, isImport, want)
		}
		if err := s.Resume(t.Context(), id); errors.Is(err, store.ErrImported) != want || err == nil == want {
			t.Errorf("Resume of %s: %v", id, err)
		}
	}
	run, err := s.Run(t.Context(), "foreign")
	must.Do(t, err)
	if run.State != result.Interrupted {
		t.Errorf("the imported run is %s", run.State)
	}
	var idErr *store.IDError
	if _, err := s.Imported(t.Context(), "nothing"); !errors.As(err, &idErr) {
		t.Errorf("Imported of no run: %v", err)
	}
	// An import of the user's own run does not mark it as imported.
	original, err := s.Run(t.Context(), "own")
	must.Do(t, err)
	_, err = importRuns(t, s, original)
	must.Do(t, err)
	if isImport, err := s.Imported(t.Context(), "own"); err != nil || isImport {
		t.Errorf("the user's own run is imported: %v, %v", isImport, err)
	}
}
