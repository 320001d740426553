package analysis

import (
	"slices"

	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// counts are the judged families of a benchmark in a run, the comparisons in them, and the comparisons without a verdict because the
// CPU is emulated.
type counts struct{ families, comparisons, withheld int }

// metrics fills in the cells of one run in the metrics of a benchmark.
func (b *builder) metrics(run int, bench *Benchmark, s *Section) counts {
	filled := b.lay(run, bench, s)
	// A row depends on no other row, and its seed on no order.
	var rows []func()
	for _, m := range filled {
		for i := range m.Rows {
			rows = append(rows, func() { b.estimate(m, &m.Rows[i], run, s) })
		}
	}
	concurrently(len(rows), func(i int) { rows[i]() })
	var sum counts
	for _, m := range filled {
		if !b.hasComparison(m, s) {
			continue
		}
		comparisons, withheld := b.judge(m, run, s)
		if comparisons > 0 {
			sum.families++
		}
		sum.comparisons += comparisons
		sum.withheld += withheld
	}
	return sum
}

// lay places the metrics that have values in the run, and their values.
func (b *builder) lay(run int, bench *Benchmark, s *Section) (filled []*Metric) {
	bench.Metrics = slices.Grow(bench.Metrics, len(b.described.Metrics)) // the pointers into it stay valid
	for _, metric := range b.described.Metrics {
		if metric.Group != "" {
			continue
		}
		if !slices.ContainsFunc(s.Targets, func(o Outcome) bool { return len(b.points(o.Target, metric.Name)) > 0 }) {
			if !metric.Optional {
				s.Unrecorded = append(s.Unrecorded, metric.Name)
			}
			continue
		}
		m := lists.Place(&bench.Metrics, func(m *Metric) bool {
			return m.Name == metric.Name && m.Unit == metric.Unit && m.Better == metric.Better
		}, Metric{Metric: metric})
		for i := range s.Targets {
			o := &s.Targets[i]
			row := lists.Place(&m.Rows, func(r *Row) bool { return r.Target == o.Target }, Row{Target: o.Target, Cells: make([]Cell, len(bench.Sections))})
			row.Cells[run] = b.newCell(metric, s, o)
		}
		filled = append(filled, m)
		switch baseline := b.points(s.Baseline, metric.Name); {
		case len(baseline) == 0:
			s.Unbased = append(s.Unbased, metric.Name)
		case allZero(baseline):
			s.Zero = append(s.Zero, metric.Name)
		}
	}
	return filled
}

func allZero(points []Point) bool {
	return !slices.ContainsFunc(points, func(p Point) bool { return p.Value != 0 })
}

// hasComparison reports whether the metric is compared with the baseline.
func (b *builder) hasComparison(m *Metric, s *Section) bool {
	return m.IsJudged() && !allZero(b.points(s.Baseline, m.Name))
}

// newCell is a cell without its summary and its comparison.
func (b *builder) newCell(metric result.Metric, s *Section, o *Outcome) Cell {
	c := Cell{Points: b.points(o.Target, metric.Name), Emulated: b.unjudged && metric.OfSpeed()}
	if len(c.Points) == 0 {
		c.Absent = o.OK > 0 && metric.Optional
		return c
	}
	c.Baseline = o.Target == s.Baseline
	c.Worst = b.worsts[[2]string{o.Target, metric.Name}]
	if metric.Series {
		c.Curve = b.curve(o.Target, metric.Name)
	}
	if metric.Trend != "" {
		c.Trend = trend(c.Curve, b.cellSeed(o.Target, metric.Name))
	}
	return c
}

// estimate fills in the summary of a cell, and its comparison with the baseline, which judge judges. It runs for several cells at the
// same time, so it changes nothing else.
func (b *builder) estimate(m *Metric, row *Row, run int, s *Section) {
	c := &row.Cells[run]
	if len(c.Points) == 0 {
		return
	}
	summary := stats.Summarize(valuesOf(c.Points))
	c.Summary = &summary
	if c.Baseline || !b.hasComparison(m, s) {
		return
	}
	comparison := s.compare(m.Better, s.Baseline, row.Target, b.points(s.Baseline, m.Name), c.Points, b.cellSeed(row.Target, m.Name))
	c.Comparison = &comparison
}

// compare compares a target with a baseline, without the judgement of their family.
func (s *Section) compare(direction result.Direction, baseline, target string, baselinePoints, points []Point, seed uint64) stats.Comparison {
	c := stats.Compare(samplesOf(baselinePoints), samplesOf(points), stats.Direction(direction), seed).AtLook(s.look(baseline, target))
	c.Lost = s.lost(baseline, target)
	return c
}

// trend fits a trend to the medians of a curve.
func trend(curve []Place, seed uint64) *stats.Trend {
	if len(curve) < stats.MinTrendPlaces {
		return nil
	}
	var places, medians []float64
	for i, p := range curve {
		places, medians = append(places, float64(i+1)), append(medians, p.Median)
	}
	fit := stats.FitTrend(places, medians, seed)
	return &fit
}

// judge judges the comparisons of a metric as one family. It returns the numbers of judged comparisons and of those without a verdict
// because the CPU is emulated.
func (b *builder) judge(m *Metric, run int, s *Section) (judgedCount, withheldCount int) {
	native := slices.ContainsFunc(b.run.Targets, func(t result.Target) bool { return t.Name == s.Baseline && t.Kind == result.KindNative })
	var family []stats.Comparison
	var members []*Cell
	for i := range m.Rows {
		if c := &m.Rows[i].Cells[run]; c.Comparison != nil {
			family, members = append(family, *c.Comparison), append(members, c)
		}
	}
	withhold := b.unjudged && m.OfSpeed()
	for i, comparison := range judge(family, withhold, b.margin) {
		members[i].Comparison = &comparison
		if native && finite(comparison.Ratio) {
			overhead := stats.Overhead(comparison.Ratio)
			members[i].Overhead = &overhead
		}
		if judged(comparison) {
			judgedCount++
		}
	}
	if withhold {
		return 0, len(family)
	}
	blocks := stats.BlocksNeeded(max(1, len(family)))
	for i := range m.Rows {
		m.Rows[i].Cells[run].BlocksNeeded = blocks
	}
	return judgedCount, 0
}

// judged reports whether the comparison has a verdict.
func judged(c stats.Comparison) bool {
	return c.Verdict != stats.TooFew && c.Verdict != stats.NotComparable && c.Verdict != stats.Withheld
}

// pointsOf gives one value a trial for each metric. If the trial has several, it is the last value of a growth, and the median of the others.
func pointsOf(trials []*result.Trial, metrics []result.Metric) map[string][]Point {
	index := make(map[string]int, len(metrics))
	for i, m := range metrics {
		index[m.Name] = i
	}
	values := make([][]float64, len(metrics)) // of the current trial
	points := make(map[string][]Point, len(metrics))
	for n, t := range trials {
		for _, s := range t.Samples {
			if i, ok := index[s.Metric]; ok {
				values[i] = append(values[i], s.Value)
			}
		}
		for i, series := range values {
			if len(series) == 0 {
				continue
			}
			value := series[len(series)-1]
			if len(series) > 1 && !metrics[i].Growth {
				value = stats.Median(series)
			}
			name := metrics[i].Name
			if points[name] == nil {
				points[name] = make([]Point, 0, len(trials)-n)
			}
			points[name] = append(points[name], Point{t, value})
			values[i] = series[:0]
		}
	}
	return points
}

// pointsAt gives one value of a series in each trial that has it.
func pointsAt(trials []*result.Trial, item Item) []Point {
	var points []Point
	for _, t := range trials {
		if series := t.Values(item.Metric); item.Place < len(series) {
			points = append(points, Point{t, series[item.Place]})
		}
	}
	return points
}

func valuesOf(points []Point) []float64 {
	values := make([]float64, len(points))
	for i, p := range points {
		values[i] = p.Value
	}
	return values
}

// curve gives a series by place. A shorter trial counts up to its end. The values of all places share one list.
func curve(trials []*result.Trial, metric string) []Place {
	var series [][]float64
	total, length := 0, 0
	for _, t := range trials {
		row := t.Values(metric)
		series = append(series, row)
		total, length = total+len(row), max(length, len(row))
	}
	values := make([]float64, 0, total)
	places := make([]Place, length)
	for i := range places {
		start := len(values)
		for _, row := range series {
			if i < len(row) {
				values = append(values, row[i])
			}
		}
		places[i].Values = values[start:len(values):len(values)]
		places[i].Median = stats.Median(places[i].Values)
	}
	return places
}

// cellSeed is the seed of a cell of this benchmark.
func (b *builder) cellSeed(target, metric string) uint64 {
	return cellSeed(b.run.Seed, b.key, target, metric)
}

// cellSeed is result.Cell.Seed for a cell of an analysis.
func cellSeed(run uint64, key Key, target, metric string) uint64 {
	return result.Cell{Benchmark: key.Name, Params: key.Params, Target: target}.Seed(run, metric)
}
