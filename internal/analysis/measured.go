package analysis

import (
	"strings"

	"github.com/touchstone-bench/touchstone/internal/fact"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Measured is a metric of a cell in one run: its values, one for each ok trial without warm-up.
type Measured struct {
	result.Cell
	Metric result.Metric
	// Values are in the order of measurement. They are empty if no trial was ok; Why is the reason then.
	Values []float64
	Why    string
	// Lost is the share (0–1) of the blocks that the cell has lost, see [Outcome.LostShare]. It is 1 if trials failed and none was ok.
	Lost float64
	// Conditions are the conditions of the measurement in words, without results.
	Conditions []fact.Fact
}

// MeasuredIn lists the metrics of a run that can be compared with other runs. Components of a cost and derived metrics have no verdicts, and
// are not among them, as are metrics that a target does not have.
func MeasuredIn(run *result.Run) []Measured {
	var cells []Measured
	for _, b := range builders(run, nil) {
		targets := b.outcomes()
		samples := map[string]map[string][]stats.Sample{} // by metric and target
		for _, m := range b.described.Metrics {
			samples[m.Name] = b.samples(targets, m)
		}
		for _, o := range targets {
			_, conditions := b.conditions([]Outcome{o})
			var words []fact.Fact
			for _, c := range conditions {
				var values []string
				for _, v := range c.Values {
					values = append(values, v.Value)
				}
				words = append(words, fact.Fact{ID: fact.ID{Kind: fact.Condition, Subject: c.Name}, Text: strings.Join(values, ", ")})
			}
			for _, m := range b.described.Metrics {
				if !m.IsJudged() {
					continue
				}
				cell := Measured{
					Cell:   result.Cell{Benchmark: b.key.Name, Params: b.key.Params, Target: o.Target},
					Metric: m, Lost: o.LostShare(), Conditions: words,
				}
				for _, s := range samples[m.Name][o.Target] {
					cell.Values = append(cell.Values, s.Value)
				}
				switch {
				case len(cell.Values) > 0:
				case o.OK == 0:
					cell.Why = o.Why()
					if o.Failed+o.Timeout > 0 {
						cell.Lost = 1
					}
				default:
					continue
				}
				cells = append(cells, cell)
			}
		}
	}
	return cells
}
