package execution

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// recorder is an Observer that keeps the events.
type recorder struct {
	events []Event
	ended  func(result.Trial) // nil, or called after each trial
}

func (*recorder) Started(result.Trial, runner.Progress) {}
func (r *recorder) Report(e Event)                      { r.events = append(r.events, e) }

func (r *recorder) Ended(t result.Trial) {
	if r.ended != nil {
		r.ended(t)
	}
}

// mentions reports whether some event contains text.
func (r *recorder) mentions(text string) bool {
	return slices.ContainsFunc(r.events, func(e Event) bool { return strings.Contains(e.Text, text) })
}

// frontEnd is a front end with a results file in a temporary folder.
type frontEnd struct {
	*testing.T
	folder string
	db     *store.Store
}

func newFrontEnd(t *testing.T) *frontEnd {
	t.Helper()
	f := &frontEnd{T: t, folder: t.TempDir()}
	db, err := store.Open(t.Context(), filepath.Join(f.folder, "results.db"))
	must.Do(t, err)
	f.db = db
	t.Cleanup(func() {
		must.Do(t, db.Close())
	})
	return f
}

func (f *frontEnd) execute(ctx context.Context, p plan.Plan, predecessor *result.Run, o *recorder) (Outcome, error) {
	f.Helper()
	e, err := New(Config{Plan: p, Store: f.db, RunID: "run", Earlier: predecessor, Folder: f.folder, Observer: o})
	if err != nil {
		return Outcome{}, err
	}
	return e.Run(ctx)
}

func fakePlan(t *testing.T, targets ...string) plan.Plan {
	t.Helper()
	blocks := 4
	p, err := plan.Quick().Apply(plan.Overrides{Targets: targets, Filters: []string{"operations.container.lifecycle"}, Blocks: &blocks})
	must.Do(t, err)
	return p
}

// A front end other than the command line interrupts a run, and resumes it from the store.
//
// Invariant front-ends: A front end needs no part of the command line.
func TestRunIsInterruptedAndResumed(t *testing.T) {
	f := newFrontEnd(t)
	p := fakePlan(t, "fake/a", "fake/b@no=pause")
	ctx, interrupt := context.WithCancelCause(t.Context())
	outcome, err := f.execute(ctx, p, nil, &recorder{ended: func(trial result.Trial) {
		if trial.Seq == 3 {
			interrupt(errStop)
		}
	}})
	if err != nil || !outcome.Interrupted || !outcome.Recorded || !outcome.Available {
		t.Fatalf("Run() = %+v, %v, want an interrupted and recorded run", outcome, err)
	}
	run, err := f.db.Run(t.Context(), "run")
	if err != nil || run.State != result.Interrupted || len(run.Trials) != 3 {
		t.Fatalf("the run is %s with %d trials, %v", run.State, len(run.Trials), err)
	}
	if p, err = ResumedPlan(run); err != nil {
		t.Fatal(err)
	}
	if outcome, err = f.execute(t.Context(), p, &run, &recorder{}); err != nil || outcome.Interrupted {
		t.Fatalf("resumed: Run() = %+v, %v", outcome, err)
	}
	if run, err = f.db.Run(t.Context(), "run"); err != nil || run.State != result.Complete || outcome.Counts[result.OK] != len(run.Trials) {
		t.Errorf("the resumed run is %s with %d trials and the counts %v, %v", run.State, len(run.Trials), outcome.Counts, err)
	}
	if _, err := ResumedPlan(run); !isUsage(err) {
		t.Errorf("ResumedPlan of a complete run: %v", err)
	}
	if left, err := os.ReadDir(f.folder); err != nil || slices.ContainsFunc(left, func(e os.DirEntry) bool { return !strings.HasPrefix(e.Name(), "results.db") }) {
		t.Errorf("the folder holds %v, %v", left, err)
	}
}

// The image of an agent is in the record, and a resumed run must have the same one.
func TestImageOfTheCaller(t *testing.T) {
	f := newFrontEnd(t)
	image := result.Image{Name: "registry/touchstone:1", Digest: "sha256:1"}
	config := Config{Plan: fakePlan(t, "fake/a"), Store: f.db, RunID: "run", Folder: f.folder, Images: []result.Image{image}}
	execute := func(ctx context.Context, end func(result.Trial)) error {
		config.Observer = &recorder{ended: end}
		e, err := New(config)
		must.Do(t, err)
		_, err = e.Run(ctx)
		return err
	}
	ctx, interrupt := context.WithCancelCause(t.Context())
	must.Do(t, execute(ctx, func(result.Trial) { interrupt(errStop) }))
	run, err := f.db.Run(t.Context(), "run")
	must.Do(t, err)
	if !slices.Contains(run.Images, image) || run.State != result.Interrupted {
		t.Fatalf("the run is %s and has the images %+v, want also %+v", run.State, run.Images, image)
	}
	config.Earlier = &run
	config.Images = []result.Image{{Name: image.Name, Digest: "sha256:2"}}
	if err := execute(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "was sha256:1 when the run started and is sha256:2 now") {
		t.Errorf("a resumed run with another image: %v", err)
	}
	config.Images = []result.Image{image}
	if err := execute(t.Context(), nil); err != nil {
		t.Errorf("a resumed run with the same image: %v", err)
	}
}

func TestInvalidPlansAreRefused(t *testing.T) {
	for name, targets := range map[string][]string{
		"fake and real targets":   {"fake/a", "native"},
		"options of fake targets": {"fake/a@create=soon"},
	} {
		f := newFrontEnd(t)
		if outcome, err := f.execute(t.Context(), fakePlan(t, targets...), nil, &recorder{}); !isUsage(err) || outcome.Recorded {
			t.Errorf("%s: Run() = %+v, %v, want a UsageError and no run", name, outcome, err)
		}
	}
}

func isUsage(err error) bool {
	var usage *UsageError
	return errors.As(err, &usage)
}

// A first container that fails once or twice does not drop the target, and the failures are recorded.
func TestFirstContainerIsTriedThreeTimes(t *testing.T) {
	f := newFrontEnd(t)
	const flaky, failure = "fake/flaky@fail=open#1+open#2+create#3", "fake/broken@fail=open"
	o := &recorder{}
	if _, err := f.execute(t.Context(), fakePlan(t, flaky, failure, "fake/good"), nil, o); err != nil {
		t.Fatal(err)
	}
	run, err := f.db.Run(t.Context(), "run")
	must.Do(t, err)
	for _, target := range run.Targets {
		failed, unavailable := 0, ""
		switch target.Name {
		case flaky:
			failed = 2
		case failure:
			unavailable = "scripted fault: call 3 of open fails"
		}
		if target.FailedTries != failed || target.Unavailable != unavailable {
			t.Errorf("%s has %d failed tries and is unavailable because %q", target.Name, target.FailedTries, target.Unavailable)
		}
	}
	if text := "2 of the first 3 containers of " + flaky + " did not work"; !o.mentions(text) {
		t.Errorf("the events lack %q: %v", text, o.events)
	}
	failed := map[string]int{}
	for _, trial := range run.Trials {
		for call, n := range trial.FailedCalls {
			failed[trial.Target+" "+call] += n
		}
	}
	if len(failed) != 1 || failed[flaky+" create"] != 1 {
		t.Errorf("failed calls %v", failed)
	}
}
