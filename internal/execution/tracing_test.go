package execution

import (
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// A run whose targets cannot be traced has its timed trials, and a caveat with the reason.
func TestRunWithoutItsTraces(t *testing.T) {
	f := newFrontEnd(t)
	p := fakePlan(t, "fake/a")
	p.Trace = 2
	observer := &recorder{}
	outcome, err := f.execute(t.Context(), p, nil, observer)
	must.Do(t, err)
	if outcome.Interrupted || !observer.mentions("no trial was traced: fake targets have no processes") {
		t.Errorf("the outcome is %+v with the events %v", outcome, observer.events)
	}
	run, err := f.db.Run(t.Context(), "run")
	must.Do(t, err)
	isReason := func(caveat string) bool { return strings.HasPrefix(caveat, "no trial was traced: ") }
	if len(run.Trials) == 0 || len(run.Traces) > 0 || !slices.ContainsFunc(run.Caveats, isReason) {
		t.Errorf("%d trials, %d traces, caveats %q", len(run.Trials), len(run.Traces), run.Caveats)
	}
}
