// Package archive reads recorded runs for a front end: the runs of a name, a metric over all runs, and the progress of a run under way.
//
// Front ends show the same runs, so they share the rules here: names of baselines go before IDs of runs, and no run has the values of
// environment variables. The package opens no file: its caller has the store.
//
// It refuses a name without runs, and a metric without values.
package archive

import (
	"context"
	"errors"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
)

// BaselinePrefix precedes the name of a baseline among references to runs.
const BaselinePrefix = "baseline:"

// WithoutVariables leaves out the values of environment variables in the plan of a run, also where a program printed them.
func WithoutVariables(run result.Run) result.Run {
	text, values := plan.Redact(run.Plan)
	run.Plan = text
	return result.NewHider(values).Run(run)
}

// Runs returns the runs of a reference: a baseline with the prefix, else the baseline of that name, else a run as in [store.Store.Run].
func Runs(ctx context.Context, db *store.Store, ref string) ([]result.Run, error) {
	name, ok := strings.CutPrefix(ref, BaselinePrefix)
	runs, err := db.Baseline(ctx, name)
	if ok || !errors.Is(err, store.ErrNoBaseline) {
		return runs, err
	}
	run, err := db.Run(ctx, ref)
	return []result.Run{run}, err
}
