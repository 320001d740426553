package report

import (
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// scored is the score of one metric on one target.
type scored struct {
	Score
	target string
	cost   float64 // larger is worse, for metrics with the same goal
	points []Point // of the target, and of bare metal
	native []Point
}

// scores lists the scores of all metrics with a dimension.
func (r *Report) scores(run int) []scored {
	of := &r.Runs[run]
	native := ""
	for _, t := range of.Targets {
		if t.Kind == result.KindNative {
			native = t.Name
		}
	}
	var all []scored
	for _, b := range r.Benchmarks() {
		section := b.Sections[run]
		if section == nil {
			continue
		}
		for i := range b.Metrics {
			m := &b.Metrics[i]
			if m.Dimension == "" {
				continue
			}
			var bare []Point
			for _, row := range m.Rows {
				if row.Target == native {
					bare = row.Cells[run].Points
				}
			}
			for _, row := range m.Rows {
				c := &row.Cells[run]
				if c.Summary == nil || row.Target == native {
					continue
				}
				s := scored{target: row.Target, points: c.Points, native: bare, Score: Score{
					Benchmark: b.Key, Metric: m.Metric, Baseline: section.Baseline, Value: c.Summary, Comparison: c.Comparison, Metrics: 1,
				}}
				s.judge(section.Baseline == native && native != "", float64(of.Host.Memory), of.Seed)
				all = append(all, s)
			}
		}
	}
	return all
}

// judge sets the verdict on one metric. against reports whether the comparison is with bare metal.
func (s *scored) judge(against bool, memory float64, seed uint64) {
	switch goalOf(s.Metric.Dimension) {
	case NoGoal:
		s.Verdict = NoVerdict
	case SpeedGoal:
		s.judgeSpeed(against)
	case MemoryGoal:
		s.judgeMemory(memory, seed)
	}
}

func (s *scored) judgeSpeed(against bool) {
	s.Verdict = NotShown
	c := s.Comparison
	if c == nil || !against || !finite(c.Ratio) {
		return
	}
	slowdown := func(ratio float64) float64 {
		if s.Metric.Better == result.Higher {
			return 1 / ratio
		}
		return ratio
	}
	s.cost = slowdown(c.Ratio)
	if c.CI == nil {
		return
	}
	lo, hi := slowdown(c.CI.Lo), slowdown(c.CI.Hi)
	lo, hi = min(lo, hi), max(lo, hi)
	switch {
	case hi <= 1/idealSpeed:
		s.Verdict = Met
	case lo > 1/idealSpeed && c.Verdict == stats.Slower:
		s.Verdict = Missed
	}
}

func (s *scored) judgeMemory(memory float64, seed uint64) {
	s.Verdict = NotShown
	var less [][]stats.Sample
	if s.native != nil {
		less = append(less, samplesOf(s.native))
	}
	d := stats.Subtract(samplesOf(s.points), less, seed)
	if !finite(d.Median) || memory <= 0 {
		return
	}
	s.Memory, s.Share, s.cost = &d, d.Median/memory, d.Median
	if d.CI == nil {
		return
	}
	switch {
	case d.CI.Hi <= idealMemory*memory:
		s.Verdict = Met
	case d.CI.Lo > idealMemory*memory:
		s.Verdict = Missed
	}
}

func samplesOf(points []Point) []stats.Sample {
	var all []stats.Sample
	for _, p := range points {
		all = append(all, stats.Sample{Block: p.Block, Value: p.Value})
	}
	return all
}
