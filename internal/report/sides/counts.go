package sides

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/report/counts"
)

// compareCounts compares the counts of the cells that both sides have traced. The error is a *[GateError] for a gate without traces.
func compareCounts(a, b Side, o Options) (*counts.Comparison, error) {
	tracedA, tracedB := counts.Collect(a.Runs), counts.Collect(b.Runs)
	for _, side := range []struct {
		name  string
		cells []counts.Traced
	}{{"A, " + a.Name, tracedA}, {"B, " + b.Name, tracedB}} {
		if len(side.cells) == 0 && len(o.CountGates) > 0 {
			g := o.CountGates[0]
			return nil, &GateError{At: g.At, Problem: fmt.Sprintf("side %s has no traces, so %s has no counts to compare; record its runs with touchstone benchmark --trace %d", side.name, g, counts.ShownBy)}
		}
	}
	var cells []counts.Cell
	missing := counts.New(nil, nil)
	for i := range tracedA {
		t := &tracedA[i]
		place := slices.IndexFunc(tracedB, func(partner counts.Traced) bool { return partner.Cell == t.Cell })
		key := analysis.Key{Name: t.Benchmark, Params: t.Params}
		switch {
		case place < 0:
			missing.Missing(o.CountGates, key, t.Target, "side B has no trace of it; record one with --trace")
		case len(t.Traces) == 0:
			missing.Missing(o.CountGates, key, t.Target, withoutCounts("A", t))
		case len(tracedB[place].Traces) == 0:
			missing.Missing(o.CountGates, key, t.Target, withoutCounts("B", &tracedB[place]))
		default:
			var learned *counts.Learned
			if o.Learned != nil {
				learned = o.Learned(t.Target)
			}
			cells = append(cells, counts.Compare(key, counts.Side{Target: t.Target, Traces: t.Traces}, counts.Side{Target: t.Target, Traces: tracedB[place].Traces}, learned))
		}
	}
	for i := range tracedB {
		t := &tracedB[i]
		if !slices.ContainsFunc(tracedA, func(partner counts.Traced) bool { return partner.Cell == t.Cell }) {
			missing.Missing(o.CountGates, analysis.Key{Name: t.Benchmark, Params: t.Params}, t.Target, "side A has no trace of it; record one with --trace")
		}
	}
	c := counts.New(cells, o.CountGates)
	c.Checks = append(c.Checks, missing.Checks...)
	if len(c.Cells)+len(c.Checks) == 0 {
		return nil, nil
	}
	return c, nil
}

// CountChecks are the answers of the gates by counts.
func (c *Comparison) CountChecks() []counts.Check {
	if c.Counts == nil {
		return nil
	}
	return c.Counts.Checks
}

func withoutCounts(side string, t *counts.Traced) string {
	return fmt.Sprintf("side %s has no trace with counts: %s", side, cmp.Or(t.Reason, "the reason is unknown"))
}
