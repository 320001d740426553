package analysis

import (
	"math"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Estimated is a metric on a target in one run of a fleet, without tests and bootstraps. A fleet of a thousand nodes has no time for them, and its verdicts are
// about all nodes.
type Estimated struct {
	Key
	Metric           result.Metric
	Target, Baseline string
	// Blocks is the number of values, and Median their median. It is NaN without a value. Reason is the reason then.
	Blocks int
	Median float64
	Reason string
	// Level is the typical value as a logarithm.
	Level stats.Effect
	// Comparison is the comparison with the baseline, without a verdict. It is nil on the baseline, without a value, and for a metric that is not compared. Lost are its
	// lost trials, also without a value.
	Comparison *stats.Comparison
	Lost       stats.Losses
	// Emulated is set if the metric depends on the speed of an emulated CPU.
	Emulated bool
}

// Estimates are the metrics of a run on its available targets, in the order of its benchmarks. Derived metrics are not among them. Parts of a quantity are, without a
// comparison.
func Estimates(run *result.Run, o Options) []Estimated {
	var list []Estimated
	unjudged := run.Host.MayBeEmulated() && !o.EmulatedVerdicts
	for _, b := range builders(run, nil) {
		s := b.compared()
		for _, m := range b.described.Metrics {
			if m.DerivedFrom != "" {
				continue
			}
			for i := range s.Targets {
				e := b.estimated(m, s, &s.Targets[i])
				e.Emulated = unjudged && m.OfSpeed()
				list = append(list, e)
			}
		}
	}
	return list
}

func (b *builder) estimated(m result.Metric, s *Section, o *Outcome) Estimated {
	e := Estimated{Key: b.key, Metric: m, Target: o.Target, Baseline: s.Baseline, Median: math.NaN(), Lost: s.lost(s.Baseline, o.Target)}
	points := b.points(o.Target, m.Name)
	e.Blocks = len(points)
	if o.OK == 0 && o.Failed+o.Timeout > 0 {
		e.Lost.Other = 1
	}
	if e.Blocks == 0 {
		e.Reason = o.Why()
		if o.OK > 0 {
			e.Reason = "not recorded on this target"
		}
		return e
	}
	e.Median = stats.Median(valuesOf(points))
	if !m.IsJudged() {
		return e
	}
	samples := samplesOf(points)
	e.Level = stats.LevelOf(samples)
	if baseline := b.points(s.Baseline, m.Name); o.Target != s.Baseline && len(baseline) > 0 && !allZero(baseline) {
		c := stats.Estimate(samplesOf(baseline), samples, stats.Direction(m.Better))
		c.Lost = e.Lost
		e.Comparison = &c
	}
	return e
}
