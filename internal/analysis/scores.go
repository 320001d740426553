package analysis

import (
	"slices"

	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// scored is the score of one metric on one target.
type scored struct {
	Score
	target string
	cost   float64 // larger is worse, for metrics of the same dimension
	points []Point // of the target, and of bare metal
	native []Point
	lost   stats.Losses // of bare metal and the target
}

// scores lists the scores of all metrics with a dimension. metrics counts the metrics that have a value on some target, by dimension. bare has the dimensions
// with a value on bare metal.
func (a *Analysis) scores(run int) (list []scored, metrics map[result.Dimension]int, bare map[result.Dimension]bool) {
	r := &a.Runs[run]
	metrics, bare = map[result.Dimension]int{}, map[result.Dimension]bool{}
	for _, b := range a.Benchmarks() {
		section := b.Sections[run]
		if section == nil {
			continue
		}
		for i := range b.Metrics {
			m := &b.Metrics[i]
			rows := lists.Filter(m.Rows, func(row Row) bool { return row.Cells[run].Summary != nil })
			if m.Dimension == "" || len(rows) == 0 {
				continue
			}
			metrics[m.Dimension]++
			native := r.bareMetal(rows, section.Baseline)
			bare[m.Dimension] = bare[m.Dimension] || native != nil
			var comparisons map[string]*stats.Comparison
			if native != nil && native.Target != section.Baseline && m.DerivedFrom == "" {
				comparisons = compareRows(native, rows, run, m.Metric, section, r.Unjudged && m.OfSpeed(), a.MinEffect, func(target string) uint64 { return cellSeed(r.Seed, b.Key, target, m.Name) })
			}
			for _, row := range rows {
				if r.native(row.Target) {
					continue
				}
				c := &row.Cells[run]
				s := scored{target: row.Target, points: c.Points, Score: Score{
					Benchmark: b.Key, Metric: m.Metric, Value: c.Summary, Comparison: c.Comparison, Baseline: section.Baseline, Metrics: 1,
				}}
				if native != nil {
					s.native, s.Bare, s.Baseline = native.Cells[run].Points, true, native.Target
					s.lost = section.lost(native.Target, row.Target)
				}
				if comparisons != nil {
					s.Comparison = comparisons[row.Target]
				}
				s.judge(float64(r.Host.Memory))
				if c.Emulated && s.Verdict != NoVerdict {
					s.Verdict = EmulatedScore
				}
				list = append(list, s)
			}
		}
	}
	return list, metrics, bare
}

// native reports whether a target is bare metal.
func (r *Run) native(target string) bool {
	return slices.ContainsFunc(r.Targets, func(t Target) bool { return t.Name == target && t.Kind == result.KindNative })
}

// bareMetal is the row of bare metal: the baseline if it is one, else the first one. It is nil without bare metal.
func (r *Run) bareMetal(rows []Row, baseline string) *Row {
	var bare *Row
	for i := range rows {
		if r.native(rows[i].Target) && (bare == nil || rows[i].Target == baseline) {
			bare = &rows[i]
		}
	}
	return bare
}

// compareRows compares rows with bare metal that is not their baseline, as one family.
func compareRows(bare *Row, rows []Row, run int, m result.Metric, section *Section, withhold bool, margin float64, seed func(target string) uint64) map[string]*stats.Comparison {
	var family []stats.Comparison
	var targets []string
	for _, row := range rows {
		if row.Target != bare.Target {
			comparison := section.compare(m.Better, bare.Target, row.Target, bare.Cells[run].Points, row.Cells[run].Points, seed(row.Target))
			family, targets = append(family, comparison), append(targets, row.Target)
		}
	}
	comparisons := map[string]*stats.Comparison{}
	for i, comparison := range judge(family, withhold, margin) {
		comparisons[targets[i]] = &comparison
	}
	return comparisons
}

// judge sets the cost and the verdict of one metric.
func (s *scored) judge(memory float64) {
	if s.Compared() {
		s.cost = s.Metric.Cost(s.Comparison.Ratio)
	}
	switch goalOf(s.Metric.Dimension) {
	case NoGoal:
		s.Verdict = NoVerdict
	case SpeedGoal:
		s.judgeSpeed()
	case MemoryGoal:
		s.judgeMemory(memory)
	}
	// The trials that are left look better than all of them.
	if (s.Verdict == Met || s.Verdict == Missed) && s.lost.OfBetter(s.Verdict == Met) > 0 {
		s.Verdict, s.TrialsLost = NotShown, true
	}
}

func (s *scored) judgeSpeed() {
	s.Verdict = NotShown
	c := s.Comparison
	if !s.Bare || !s.Compared() || c.CI == nil {
		return
	}
	lo, hi := s.Metric.Cost(c.CI.Lo), s.Metric.Cost(c.CI.Hi)
	lo, hi = min(lo, hi), max(lo, hi)
	switch {
	case hi <= 1/idealSpeed:
		s.Verdict = Met
	case lo > 1/idealSpeed && c.Verdict == stats.Slower:
		s.Verdict = Missed
	}
}

// judgeMemory needs bare metal: the memory of a container includes the program's own.
func (s *scored) judgeMemory(memory float64) {
	s.Verdict, s.cost = NotShown, s.Value.Median
	if !s.Bare || memory <= 0 {
		return
	}
	d := stats.Subtract(samplesOf(s.points), [][]stats.Sample{samplesOf(s.native)})
	if !finite(d.Median) {
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
	samples := make([]stats.Sample, len(points))
	for i, p := range points {
		samples[i] = stats.Sample{Block: p.Block, Value: p.Value}
	}
	return samples
}
