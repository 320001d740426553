package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

var errBudget = errors.New("the budget of the run has ended")

// withBudget ends ctx when the budget ends.
func (r *run) withBudget(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.Budget <= 0 {
		return context.WithCancel(ctx)
	}
	return r.Clock.WithTimeoutCause(ctx, r.Budget-r.elapsed(), errBudget)
}

// cut records that the budget has ended: a caveat, and one skipped trial for each cell without a measured block.
func (r *run) cut() error {
	goal, block := r.goal(), r.complete()
	outcome := fmt.Sprintf("after %d of %s", block, wording.Counted(goal, "block"))
	switch {
	case r.Decide != nil:
		outcome = fmt.Sprintf("after %s, before all comparisons were decided", wording.Counted(block, "block"))
	case block >= goal:
		outcome = fmt.Sprintf("after %s, before all results reached the requested precision", wording.Counted(block, "block"))
	}
	r.out.Caveats = append(r.out.Caveats, result.BudgetCaveat(r.Budget, outcome))
	for _, w := range r.Work {
		for _, t := range r.Targets {
			next := slot{Cell: cellOf(w, t.Name)}
			if r.done[next] {
				continue
			}
			reason := r.stopped(next.Cell)
			if reason == "" {
				reason = fmt.Sprintf("the budget of %v ended before its first measured trial", r.Budget)
			}
			if err := r.skip(next, reason); err != nil {
				return err
			}
		}
	}
	return nil
}

// complete is the number of blocks that each benchmark has, except benchmarks that need fewer. It is called if one lacks a block.
func (r *run) complete() int {
	for block := 0; ; block++ {
		for i := range r.Work {
			if !r.enough(i, block) && r.remains(i, block, false) {
				return block
			}
		}
	}
}
