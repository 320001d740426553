package report

import (
	"encoding/binary"
	"hash/fnv"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// metric makes one metric of a benchmark on all its targets.
func (b *builder) metric(described result.Metric, bench *Benchmark) Metric {
	m := Metric{Metric: described}
	samples := map[string][]stats.Sample{}
	for i := range bench.Targets {
		outcome := &bench.Targets[i]
		cell := Cell{Target: outcome.Target}
		trials := b.valid(outcome.Target)
		cell.Points = points(trials, described.Name)
		if len(cell.Points) == 0 {
			cell.Reason = outcome.Why()
			if outcome.OK > 0 {
				cell.Reason = "not recorded on this target"
				cell.Absent = described.Optional
			}
			m.Cells = append(m.Cells, cell)
			continue
		}
		for _, p := range cell.Points {
			samples[cell.Target] = append(samples[cell.Target], stats.Sample{Block: p.Block, Value: p.Value})
		}
		summary := stats.Summarize(valuesOf(cell.Points), b.cellSeed(cell.Target, described.Name))
		cell.Summary = &summary
		cell.Baseline = cell.Target == bench.Baseline
		if described.Series {
			cell.Curve = curve(trials, described.Name)
		}
		m.Cells = append(m.Cells, cell)
	}
	b.compare(&m, bench.Baseline, samples)
	return m
}

// compare fills in the comparisons with the baseline and judges them as one family.
func (b *builder) compare(m *Metric, baseline string, samples map[string][]stats.Sample) {
	if len(samples[baseline]) == 0 {
		return
	}
	var reference float64
	for _, c := range m.Cells {
		if c.Baseline {
			reference = c.Summary.Median
		}
	}
	var family []stats.Comparison
	var members []*Cell
	for i := range m.Cells {
		c := &m.Cells[i]
		if c.Baseline || c.Summary == nil {
			continue
		}
		family = append(family, stats.Compare(samples[baseline], samples[c.Target], stats.Direction(m.Better), b.cellSeed(c.Target, m.Name)))
		members = append(members, c)
		if baseline == target.Native && reference > 0 {
			overhead := stats.Overhead(reference, c.Summary.Median)
			c.Overhead = &overhead
		}
	}
	for i, c := range stats.Judge(family, stats.Alpha) {
		members[i].Comparison = &c
	}
	m.BlocksNeeded = stats.BlocksNeeded(max(1, len(family)))
}

// points gives one value a trial, the median if the trial took several.
func points(trials []*result.Trial, metric string) []Point {
	var all []Point
	for _, t := range trials {
		if values := t.Values(metric); len(values) > 0 {
			all = append(all, Point{Seq: t.Seq, Block: t.Block, Value: median(values), Disturbed: len(t.Host.Marks) > 0})
		}
	}
	return all
}

func valuesOf(points []Point) []float64 {
	values := make([]float64, len(points))
	for i, p := range points {
		values[i] = p.Value
	}
	return values
}

// curve gives a series by the place of its values. Trials of different lengths count as
// far as they go.
func curve(trials []*result.Trial, metric string) []Place {
	var all []Place
	for _, t := range trials {
		for i, v := range t.Values(metric) {
			if i == len(all) {
				all = append(all, Place{})
			}
			all[i].Values = append(all[i].Values, v)
		}
	}
	for i := range all {
		all[i].Median = median(all[i].Values)
	}
	return all
}

// cellSeed gives every cell a seed of its own that depends on nothing but its name, so that
// its interval stays when other benchmarks or targets come or go.
func (b *builder) cellSeed(target, metric string) uint64 {
	h := fnv.New64a()
	_ = binary.Write(h, binary.LittleEndian, b.seed)
	for _, s := range []string{b.key.benchmark, b.key.params, target, metric} {
		_, _ = h.Write([]byte(s))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}
