package report_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// A target that leaves something to the next one is in the warnings, and the order of the trials alone is not.
func TestCarryOverIsReported(t *testing.T) {
	warn := func(run result.Run) []string {
		r := report.New([]result.Run{run}, analysis.Options{})
		for _, g := range r.Warnings[0] {
			if g.Title == "Values that depend on the target before" {
				return g.Items
			}
		}
		return nil
	}
	run := comparedRun()
	random := rand.New(rand.NewPCG(1, 0))
	for block := range slices.Chunk(run.Trials, len(run.Targets)) {
		random.Shuffle(len(block), func(i, j int) { block[i], block[j] = block[j], block[i] })
	}
	for i := range run.Trials {
		run.Trials[i].Seq = i + 1
	}
	if items := warn(run); items != nil {
		t.Errorf("without carry-over: %q", items)
	}
	for i := 1; i < len(run.Trials); i++ {
		last, trial := &run.Trials[i-1], &run.Trials[i]
		if trial.Benchmark != cpu || trial.Target != "oci/crun" || last.Target != "oci/runsc" || last.Block != trial.Block {
			continue
		}
		for n := range trial.Samples {
			trial.Samples[n].Value *= 1.2
		}
	}
	items := warn(run)
	if len(items) != 1 || !strings.HasPrefix(items[0], cpu+", ") || !strings.Contains(items[0], ": oci/crun has 1.2") || !strings.Contains(items[0], " times its other values after oci/runsc, in ") {
		t.Errorf("with carry-over: %q", items)
	}
}
