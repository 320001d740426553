package ab_test

import (
	"testing"

	"github.com/touchstone-bench/touchstone/internal/report/ab"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

func TestAdvice(t *testing.T) {
	const decides = "a decision would take about 5m0s, as far as these runs show"
	runs := func(n int) []ab.Done { return make([]ab.Done, n) }
	complete := func(d ab.Document) ab.Document {
		d.Answer, d.MostRuns, d.Blocks, d.Budget, d.Spent = stats.Inconclusive, 8, 30, 600, 100
		if d.Runs == nil {
			d.Runs = []ab.Done{{Took: 20}, {Took: 25}, {Took: 20}, {Took: 25}} // 10 s for the calibration
		}
		return d
	}
	decided := complete(ab.Document{})
	decided.Answer = stats.Worse
	for want, d := range map[string]ab.Document{
		"": decided,
		"no comparison of up to 200 runs and 24h0m0s would decide, as far as these runs show: the ratio is too close to the margin; choose another margin": complete(ab.Document{}),
		"the runs are too few to predict the time of a decision: repeat the comparison":                                                                    complete(ab.Document{Runs: runs(1)}),
		"repeat the comparison: " + decides:                                                                                  complete(ab.Document{Decision: 300, DecisionRuns: 8, DecisionBlocks: 30}),
		"repeat with --repeat 12 --blocks 30 --budget 6m12s: " + decides:                                                     complete(ab.Document{Decision: 300, DecisionRuns: 12, DecisionBlocks: 30}),
		"repeat with --repeat 8 --blocks 60 --budget 6m12s: " + decides:                                                      complete(ab.Document{Decision: 300, DecisionRuns: 8, DecisionBlocks: 60}),
		"repeat with --repeat 8 --blocks 30 --budget 2h1m0s: a decision would take about 1h40m0s, as far as these runs show": complete(ab.Document{Decision: 6000, DecisionRuns: 8, DecisionBlocks: 30}),
		"more runs would not decide: do this; do that":                                                                       complete(ab.Document{Decision: 300, Values: []ab.Outcome{{Remedy: "do this"}, {Remedy: "do that"}, {Remedy: "do this"}}}),
	} {
		if got := d.Advice(); got != want {
			t.Errorf("the advice is %q, want %q", got, want)
		}
	}
}
