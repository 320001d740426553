package analysis

import (
	"math"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Against is a run compared with a baseline: the numbers that [New] gives for the run with this baseline.
type Against struct {
	// Baselines are the targets of the ratios by benchmark. A benchmark without a trial of the baseline that is ok has another one, as in New.
	Baselines map[*Benchmark]string
	// Cells are by metric and by row.
	Cells map[*Metric][]AgainstCell
}

// AgainstCell is the comparison of a cell with a baseline. It is nil on the baseline and without a number. Difference is the median of the differences
// within blocks then, in the unit of the metric.
type AgainstCell struct {
	Comparison *stats.Comparison
	Difference float64
}

// PairedBlocks counts the blocks of all comparisons of targets with each other. They are the work of [Analysis.Against] for all baselines.
func (a *Analysis) PairedBlocks(run int) int {
	blocks := 0
	for _, b := range a.Benchmarks() {
		for i := range b.Metrics {
			if b.Sections[run] == nil || !b.Metrics[i].IsJudged() {
				continue
			}
			cells := 0
			for _, row := range b.Metrics[i].Rows {
				if row.Cells[run].Summary != nil {
					cells++
				}
			}
			blocks += cells * max(0, cells-1) * b.Sections[run].Blocks
		}
	}
	return blocks
}

// Against compares a run with a baseline, in families of its own.
func (a *Analysis) Against(run int, baseline string) Against {
	out := Against{Baselines: map[*Benchmark]string{}, Cells: map[*Metric][]AgainstCell{}}
	isOwn := true // the baseline of the run, whose comparisons exist
	for _, b := range a.Benchmarks() {
		if s := b.Sections[run]; s != nil && s.Baseline != "" {
			out.Baselines[b] = s.baselineOr(baseline)
			isOwn = isOwn && out.Baselines[b] == s.Baseline
		}
	}
	var calls []func()
	for b, name := range out.Baselines {
		for i := range b.Metrics {
			calls = append(calls, a.against(run, b, &b.Metrics[i], name, isOwn, out.Cells)...)
		}
	}
	concurrently(len(calls), func(i int) { calls[i]() })
	if !isOwn {
		a.judgeAgainst(run, out.Cells)
	}
	return out
}

// baselineOr is the baseline if it has numbers, else the first target that has, as in [New].
func (s *Section) baselineOr(baseline string) string {
	if o := s.outcome(baseline); o != nil && o.OK > 0 {
		return baseline
	}
	return s.Targets[slices.IndexFunc(s.Targets, func(o Outcome) bool { return o.OK > 0 })].Target
}

// against adds the cells of a metric, and returns the calls that fill them in.
func (a *Analysis) against(run int, b *Benchmark, m *Metric, baseline string, isOwn bool, cells map[*Metric][]AgainstCell) (calls []func()) {
	list := make([]AgainstCell, len(m.Rows))
	cells[m] = list
	index := slices.IndexFunc(m.Rows, func(r Row) bool { return r.Target == baseline })
	if index < 0 || !m.IsJudged() || allZero(m.Rows[index].Cells[run].Points) {
		return nil
	}
	base := m.Rows[index].Cells[run].Points
	for n := range m.Rows {
		row := &m.Rows[n]
		cell := &row.Cells[run]
		if n == index || len(cell.Points) == 0 {
			continue
		}
		calls = append(calls, func() {
			seed := cellSeed(a.Runs[run].Seed, b.Key, row.Target, m.Name)
			if list[n].Comparison = cell.Comparison; !isOwn {
				c := b.Sections[run].compare(m.Better, baseline, row.Target, base, cell.Points, seed)
				list[n].Comparison = &c
			}
			list[n].Difference = difference(base, cell.Points)
		})
	}
	return calls
}

// difference is the median of the differences within blocks. It is NaN without a block that both have.
func difference(base, points []Point) float64 {
	values := map[int]float64{} // by block
	for _, p := range base {
		values[p.Block] = p.Value
	}
	var differences []float64
	for _, p := range points {
		if value, ok := values[p.Block]; ok {
			differences = append(differences, p.Value-value)
		}
	}
	if differences == nil {
		return math.NaN()
	}
	return stats.Median(differences)
}

// judgeAgainst judges the comparisons of each metric as one family, and all of them together.
func (a *Analysis) judgeAgainst(run int, cells map[*Metric][]AgainstCell) {
	var tier []*stats.Comparison
	for _, b := range a.Benchmarks() {
		for i := range b.Metrics {
			m := &b.Metrics[i]
			var family []stats.Comparison
			for _, c := range cells[m] {
				if c.Comparison != nil {
					family = append(family, *c.Comparison)
				}
			}
			family = judge(family, a.Runs[run].Unjudged && m.OfSpeed(), a.MinEffect)
			for n := range cells[m] {
				if c := &cells[m][n]; c.Comparison != nil {
					c.Comparison, family = &family[0], family[1:]
					if hasP(c.Comparison) {
						tier = append(tier, c.Comparison)
					}
				}
			}
		}
	}
	stats.JudgeTogether(tier, stats.Alpha)
}
