package report_test

import (
	"slices"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// A cell that the rule of its run stopped has lost nothing, and its verdict is that of its look.
//
// Invariant stopped-cells: A cell that its rule ended has lost no blocks, and is judged at its look.
func TestStoppedCells(t *testing.T) {
	looks := stats.Looks(10, 40)
	for name, tt := range map[string]struct {
		blocks  int // of oci/crun, which is faster
		stopped bool
		state   result.State
		want    stats.Verdict
		last    bool
	}{
		"stopped at a look with enough blocks":     {20, true, result.Complete, stats.Faster, false},
		"stopped at a look with too few blocks":    {10, true, result.Complete, stats.TooFew, false},
		"a budget ended the run at the same block": {10, false, result.Complete, stats.Faster, true},
		"more looks may follow":                    {10, false, result.Interrupted, stats.TooFew, false},
		"all blocks":                               {40, false, result.Complete, stats.Faster, true},
	} {
		run := comparedRun()
		run.State = tt.state
		run.Stopping = &result.Stopping{Looks: looks, Comparisons: 4}
		if tt.stopped {
			run.Stopping.Stopped = []result.Stop{{Cell: result.Cell{Benchmark: cpu, Target: "oci/crun"}, Blocks: tt.blocks, Reason: result.Decided}}
		}
		without(&run, tt.blocks)
		r := report.New([]result.Run{run}, analysis.Options{})
		index := slices.IndexFunc(r.Benchmarks(), func(b *analysis.Benchmark) bool { return b.Name == cpu })
		b := r.Benchmarks()[index]
		for _, row := range b.Metrics[0].Rows {
			c := row.Cells[0].Comparison
			switch row.Target {
			case "oci/crun":
				if c.Verdict != tt.want || c.Look == nil || c.Look.Blocks != tt.blocks || c.Look.Last != tt.last {
					t.Errorf("%s: %s at the look %+v, want %s after %d blocks", name, c.Verdict, c.Look, tt.want, tt.blocks)
				}
			case "oci/runsc":
				if c.Verdict != stats.Slower || c.Look.Blocks != 40 || !c.Look.Last {
					t.Errorf("%s: %s is %s at the look %+v", name, row.Target, c.Verdict, c.Look)
				}
			}
		}
		for _, o := range b.Sections[0].Targets {
			if o.Lost != 0 {
				t.Errorf("%s: %s has lost %d blocks", name, o.Target, o.Lost)
			}
		}
		if slices.ContainsFunc(r.Warnings[0], func(g finding.WarningGroup) bool { return g.Title == "Lost blocks" }) {
			t.Errorf("%s: the report warns of lost blocks", name)
		}
	}
}
