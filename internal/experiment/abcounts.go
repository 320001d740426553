package experiment

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/report/ab"
	"github.com/touchstone-bench/touchstone/internal/report/counts"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// countTraces is the number of traces a side of the first look at the counts.
const countTraces = 3

// Counting configures the comparison of counts, which precedes all measurements of time.
type Counting struct {
	// First is set if time is measured only where counts differ.
	First bool
	Gates []counts.Gate
	// Learned is the knowledge about the counts of both sides, or nil.
	Learned *counts.Learned
	// Wanted is set if the user wants a time in any case.
	Wanted bool
}

// count compares the counts of traced trials. Fresh traces of both sides confirm or refute a difference: few traces show little. It reports
// whether times must be measured too.
func (c *AB) count(ctx context.Context) (measure bool, err error) {
	if !c.Counting.First && len(c.Counting.Gates) == 0 {
		return true, nil
	}
	var runs []result.Run
	for _, traces := range []int{countTraces, counts.ShownBy} {
		request := c.request(1)
		request.Plan.Name, request.Plan.Warmup, request.Plan.Trace = "ab counts", 0, traces
		run, err := c.execute(ctx, request)
		if len(runs) == 0 {
			c.Pilot = run.Run
		}
		if err != nil || c.End == Interrupted {
			return false, err
		}
		if err := checkTargets(run.Run); err != nil {
			return false, err
		}
		runs = append(runs, run.Run)
		if c.Counts, err = c.compareCounts(runs); err != nil {
			return false, err
		}
		if !c.Counts.Suspicious() {
			break
		}
		if traces == countTraces {
			c.Line(fmt.Sprintf("counts seem to differ after %d traces a side; %d more of each will show it", countTraces, counts.ShownBy))
		}
	}
	c.traced = c.executed
	c.Line(c.Counts.Summary())
	switch {
	case c.Counting.Wanted:
		return true, nil
	case c.Counts.Outcome() == stats.Worse:
		return false, nil
	case c.Counting.First:
		return c.measureDifferent(), nil
	}
	return true, nil
}

// compareCounts compares the traces of both builds.
func (c *AB) compareCounts(runs []result.Run) (*counts.Comparison, error) {
	var cells []counts.Cell
	traced := counts.Collect(runs)
	for _, key := range c.keys {
		a, err := tracedSide(runs, traced, key, c.Design.A)
		if err != nil {
			return nil, err
		}
		b, err := tracedSide(runs, traced, key, c.Design.B)
		if err != nil {
			return nil, err
		}
		cells = append(cells, counts.Compare(key, a, b, c.Counting.Learned))
	}
	return counts.New(cells, c.Counting.Gates), nil
}

// tracedSide returns the traces of a target. Without traces the error has the reason.
func tracedSide(runs []result.Run, traced []counts.Traced, key analysis.Key, target string) (counts.Side, error) {
	cell := counts.Traced{}
	if place := slices.IndexFunc(traced, func(t counts.Traced) bool {
		return t.Cell == result.Cell{Benchmark: key.Name, Params: key.Params, Target: target}
	}); place >= 0 {
		cell = traced[place]
	}
	if len(cell.Traces) > 0 {
		return counts.Side{Target: target, Traces: cell.Traces}, nil
	}
	return counts.Side{}, &UnavailableError{fmt.Errorf("count the calls of %s on %s: %s; compare times alone without --first counts and gates by counts",
		key.Title(), target, withoutTraces(runs, []counts.Traced{cell}))}
}

// withoutTraces is the reason why cells have no traces.
func withoutTraces(runs []result.Run, cells []counts.Traced) string {
	for _, c := range cells {
		if c.Reason != "" {
			return c.Reason
		}
	}
	for i := range runs {
		for _, caveat := range runs[i].Caveats {
			if reason, ok := strings.CutPrefix(caveat, execution.NotTraced); ok {
				return reason
			}
		}
	}
	return "the trial failed, and the page of the run has the reason"
}

// measureDifferent leaves the benchmarks whose counts differ in the comparison. It reports false without one.
func (c *AB) measureDifferent() bool {
	differences := map[analysis.Key]bool{}
	for i := range c.Counts.Cells {
		if cell := &c.Counts.Cells[i]; cell.Different() || cell.Suspicious() {
			differences[cell.Key] = true
		}
	}
	var items []plan.Item
	for _, item := range c.plan.Benchmarks {
		for _, key := range c.keys {
			if differences[key] && bench.Matches(item.Name, key.Name) && !slices.ContainsFunc(items, func(i plan.Item) bool { return i.Name == key.Name }) {
				item.Name = key.Name
				items = append(items, item)
			}
		}
	}
	c.plan.Benchmarks = items
	c.Design.Values = lists.Filter(c.Design.Values, func(v ab.Value) bool { return differences[v.Key] })
	return len(c.Design.Values) > 0
}
