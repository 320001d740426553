package fleet

import (
	"math"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Stages are the parts of a quantity, such as the stages of a start, on each target.
type Stages struct {
	analysis.Key
	Title string
	Unit  result.Unit
	// Parts are the names of the parts, and Metrics their metrics.
	Parts, Metrics []string
	Rows           []StageRow
}

// StageRow is the parts on one target.
type StageRow struct {
	Target string
	// Stages are by part.
	Stages []Stage
}

// Stage is a part on one target: the mean over nodes of the nodes' medians. Means add up to the whole, and medians do not.
type Stage struct {
	// Nodes is the number of nodes with a value. Mean is NaN without one, and CI nil below [stats.MinNodes].
	Nodes int
	Mean  float64
	CI    *stats.Interval

	effects []stats.Effect
}

// stage adds a value of a node to its stage.
func (r *Report) stage(e *analysis.Estimated) {
	s := lists.Place(&r.Stages, func(s *Stages) bool { return s.Key == e.Key && s.Title == e.Metric.Group && s.Unit == e.Metric.Unit },
		Stages{Key: e.Key, Title: e.Metric.Group, Unit: e.Metric.Unit})
	part := slices.Index(s.Metrics, e.Metric.Name)
	if part < 0 {
		part = len(s.Metrics)
		s.Parts, s.Metrics = append(s.Parts, e.Metric.Component), append(s.Metrics, e.Metric.Name)
	}
	row := lists.Place(&s.Rows, func(row *StageRow) bool { return row.Target == e.Target }, StageRow{Target: e.Target})
	for len(row.Stages) <= part {
		row.Stages = append(row.Stages, Stage{Mean: math.NaN()})
	}
	if !math.IsNaN(e.Median) {
		row.Stages[part].effects = append(row.Stages[part].effects, stats.Effect{Log: e.Median})
	}
}

// finish computes the means of all stages.
func (s *Stages) finish(targets []string) {
	slices.SortStableFunc(s.Rows, func(x, y StageRow) int { return slices.Index(targets, x.Target) - slices.Index(targets, y.Target) })
	for i := range s.Rows {
		row := &s.Rows[i]
		for len(row.Stages) < len(s.Parts) {
			row.Stages = append(row.Stages, Stage{Mean: math.NaN()})
		}
		for n := range row.Stages {
			stage := &row.Stages[n]
			pooled := stats.Pool(stage.effects)
			stage.Nodes, stage.Mean = pooled.N, pooled.Log
			if pooled.N >= stats.MinNodes {
				ci := pooled.Interval(1 - stats.Level)
				stage.CI = &ci
			}
		}
	}
	s.Rows = slices.DeleteFunc(s.Rows, func(row StageRow) bool {
		return !slices.ContainsFunc(row.Stages, func(stage Stage) bool { return stage.Nodes > 0 })
	})
}
