package execution

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/runner/decision"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// rule is the plan's rule that ends single cells, fixed before the run; nil for none.
func (e *Execution) rule() *result.Stopping {
	if e.Plan.Until != plan.Decided {
		return nil
	}
	return &result.Stopping{
		Looks:       stats.Looks(e.Plan.Blocks, e.Plan.BlockLimit()),
		Comparisons: decision.Comparisons(e.work, len(e.working())),
		Precision:   float64(e.Plan.Precision),
	}
}

// working are the targets that work.
func (e *Execution) working() []runner.Target { return lists.Filter(e.targets, available) }

// checkRule refuses a rule that compares targets if only one works.
func (e *Execution) checkRule() error {
	working := e.working()
	if e.Plan.Until == "" || len(working) != 1 {
		return nil
	}
	err := fmt.Errorf("until: %s compares targets with the baseline, and only %s is available; add a target (see touchstone targets), or leave until out", e.Plan.Until, working[0].Name)
	if len(e.targets) > 1 { // the others do not work on this machine
		return &MachineError{err}
	}
	return &UsageError{err}
}

// useRule makes the runner end cells by the rule of a run, and records the ends in run.Stopping and in the store. A resumed run repeats the
// decisions of its first part, so the list begins again.
func (e *Execution) useRule(ctx context.Context, run result.Run, config *runner.Config) {
	rule := run.Stopping
	if rule == nil {
		return
	}
	stops := rule.Stopped
	rule.Stopped = nil
	config.Stop = stats.StopRule{Min: e.Plan.Blocks, Max: e.Plan.BlockLimit()}
	config.Decide = &decision.Rule{Looks: rule.Looks, Comparisons: rule.Comparisons, Precision: rule.Precision, Baseline: run.Baseline}
	config.Stopped = func(stop result.Stop) error {
		rule.Stopped = append(rule.Stopped, stop)
		if slices.Contains(stops, stop) {
			return nil
		}
		e.report(Ended, fmt.Sprintf("%s on %s ended after %s: %s", strings.TrimSpace(stop.Benchmark+" "+stop.Params), stop.Target, wording.Counted(stop.Blocks, "block"), stop.Reason))
		return e.Store.Stopping(context.WithoutCancel(ctx), e.RunID, rule)
	}
}

// stopped is the caveat that cells have different numbers of blocks.
func (e *Execution) stopped(rule *result.Stopping) []string {
	if rule == nil {
		return nil
	}
	counts := map[result.StopReason]int{}
	for _, s := range rule.Stopped {
		counts[s.Reason]++
	}
	maximum := rule.Looks[len(rule.Looks)-1]
	if len(rule.Stopped) == 0 {
		return []string{fmt.Sprintf("no cell was decided before %d blocks; each p-value is for all looks of the rule together", maximum)}
	}
	var parts []string
	for _, reason := range []result.StopReason{result.Decided, result.Precise, result.Incomparable, result.AllStopped} {
		if counts[reason] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[reason], reason))
		}
	}
	return []string{fmt.Sprintf("%s ended before %d blocks by the rule of the plan (%s), so numbers of blocks differ; each p-value is for all looks of the rule together",
		wording.Counted(len(rule.Stopped), "cell"), maximum, strings.Join(parts, ", "))}
}

// estimate spells the time that a run of targets takes, and the number of blocks that a short budget is enough for.
func estimate(p runner.Progress, targets int) string {
	upper, lower := p.Left.Round(time.Second), p.Least.Round(time.Second)
	switch {
	case p.Goal > 0:
		text := fmt.Sprintf("the run takes about %v more: its budget is enough for about %d of %s", upper, p.Blocks, wording.Counted(p.Goal, "block"))
		if need := stats.BlocksNeeded(targets - 1); targets > 1 && p.Blocks < need && need <= p.Goal {
			text += fmt.Sprintf(", and a difference between %d targets is shown from %d on; raise the budget, or measure fewer targets or benchmarks", targets, need)
		}
		return text
	case upper == 0:
		return "the run takes less than a second more"
	case !p.AtMost || lower == upper:
		return fmt.Sprintf("the run takes about %v more", upper)
	case lower == 0:
		return fmt.Sprintf("the run takes at most about %v more", upper)
	default:
		return fmt.Sprintf("the run takes at most about %v more, and at least about %v", upper, lower)
	}
}
