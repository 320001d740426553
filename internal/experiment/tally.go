package experiment

import (
	"context"
	"fmt"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/report/counts"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Tally traces one target, for a file of expected counts.
type Tally struct {
	Series
	// Target is the name of the target.
	Target string
	// Runs are the runs so far.
	Runs []result.Run

	plan plan.Plan
}

// NewTally returns the traces of a build by the benchmarks and the settings of a plan.
func NewTally(p plan.Plan, build Build) (*Tally, error) {
	t := build.Target
	if build.Path != "" {
		runtime := p.Runtimes[t.Runtime]
		runtime.Path = build.Path
		p = p.WithRuntimes(map[string]target.Runtime{t.Runtime: runtime})
	}
	p.Targets, p.Baseline = []plan.Pattern{plan.Pattern(t)}, t
	p.Name, p.Blocks, p.Precision, p.MaxBlocks, p.Warmup, p.Export, p.TouchstoneOutput = "counts", 1, 0, 0, 0, "", ""
	if _, _, err := execution.Check(p); err != nil {
		return nil, &execution.UsageError{Err: err}
	}
	return &Tally{Target: t.String(), plan: p}, nil
}

// Trace executes a run with so many more traces of each benchmark.
func (t *Tally) Trace(ctx context.Context, traces int) error {
	p := t.plan
	p.Trace = traces
	run, err := t.execute(ctx, Request{Plan: p})
	if err != nil || t.End == Interrupted {
		return err
	}
	if err := checkTargets(run.Run); err != nil {
		return err
	}
	t.Runs = append(t.Runs, run.Run)
	cells := counts.Collect(t.Runs)
	if !slices.ContainsFunc(cells, func(c counts.Traced) bool { return len(c.Traces) > 0 }) {
		return &UnavailableError{fmt.Errorf("count the calls of %s: %s", t.Target, withoutTraces(t.Runs, cells))}
	}
	return nil
}

// Check compares a target with a file, and confirms a difference by further traces. It returns nil after an interrupt.
func (t *Tally) Check(ctx context.Context, file string, e *counts.Expected) (*counts.Deviation, error) {
	var d *counts.Deviation
	for _, traces := range []int{countTraces, counts.ShownBy} {
		if err := t.Trace(ctx, traces); err != nil || t.End == Interrupted {
			return nil, err
		}
		d = e.Compare(file, counts.OriginOf(&t.Runs[0], t.Target), counts.Collect(t.Runs))
		if !d.Suspicious() {
			break
		}
	}
	return d, nil
}
