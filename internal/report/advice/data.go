package advice

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Source is a metric of a benchmark in a run.
type Source struct {
	analysis.Key
	Run     string
	Metric  result.Metric
	run     int
	section *analysis.Section
	logs    map[string]map[int]float64 // the logarithm of the cost by target and block
	cells   map[string]*analysis.Cell  // by target
	blocks  []int                      // with values of all ranked targets
}

// data is the values of a profile's dimensions.
type data struct {
	*analysis.Analysis
	sources map[result.Dimension][]Source
	native  string // the name of bare metal; empty without it
	unit    string // of observation
}

func newData(a *analysis.Analysis, p Profile, unit string) *data {
	d := &data{Analysis: a, unit: unit, sources: map[result.Dimension][]Source{}}
	for _, b := range a.Benchmarks() {
		for i := range b.Metrics {
			m := &b.Metrics[i]
			for run := range a.Runs {
				for _, w := range p.Weights {
					if b.Sections[run] != nil && m.DerivedFrom == "" && measures(b.Name, m.Metric, w.Dimension) {
						d.sources[w.Dimension] = append(d.sources[w.Dimension], d.source(b, m, run))
					}
				}
			}
		}
	}
	return d
}

// measures reports whether a metric belongs to a dimension.
func measures(benchmark string, m result.Metric, d result.Dimension) bool {
	if d == WorstCase {
		return strings.HasPrefix(benchmark, Benchmarks(WorstCase)+".") && strings.HasSuffix(m.Name, "Max")
	}
	return m.Dimension == d
}

func (d *data) source(b *analysis.Benchmark, m *analysis.Metric, run int) Source {
	s := Source{
		Key: b.Key, Run: d.Runs[run].ID, Metric: m.Metric, run: run, section: b.Sections[run],
		logs: map[string]map[int]float64{}, cells: map[string]*analysis.Cell{},
	}
	for i := range m.Rows {
		row := &m.Rows[i]
		c := &row.Cells[run]
		logs := map[int]float64{}
		for _, p := range c.Points {
			log := math.Log(p.Value)
			if m.Better == result.Higher {
				log = -log
			}
			if !c.Emulated && !math.IsNaN(log) && !math.IsInf(log, 0) {
				logs[p.Block] = log
			}
		}
		s.cells[row.Target], s.logs[row.Target] = c, logs
	}
	return s
}

func (s *Source) usable(target string) bool { return len(s.logs[target]) >= stats.MinSamples }

// has reports whether a target has a usable value of a dimension.
func (d *data) has(dimension result.Dimension, target string) bool {
	return slices.ContainsFunc(d.sources[dimension], func(s Source) bool { return s.usable(target) })
}

// emulated reports whether all values of a dimension are values of speed from an emulated CPU.
func (d *data) emulated(dimension result.Dimension) bool {
	list := d.sources[dimension]
	return len(list) > 0 && !slices.ContainsFunc(list, func(s Source) bool { return !d.Runs[s.run].Unjudged || !s.Metric.OfSpeed() })
}

// lack is the reason why a target has no usable value of a dimension.
func (d *data) lack(dimension result.Dimension, target string) string {
	if d.emulated(dimension) {
		return "measured on an emulated CPU, which gives no verdict of speed"
	}
	reason := "not measured"
	for i := range d.sources[dimension] {
		s := &d.sources[dimension][i]
		switch c := s.cells[target]; {
		case c == nil:
		case len(c.Points) >= stats.MinSamples:
			reason = s.Metric.Name + " is not above 0, so it has no ratio"
		case len(c.Points) > 0:
			reason = fmt.Sprintf("%s has %s, and needs %d", s.Metric.Name, wording.Counted(len(c.Points), d.unit), stats.MinSamples)
		case c.Reason != "":
			reason = c.Reason
		}
	}
	return reason
}

// common lists the sources by dimension that all targets have in enough blocks. The sources of one benchmark share their trials, so they have the same blocks:
// those with values of all of them.
func (d *data) common(targets []result.Target) map[result.Dimension][]Source {
	type part struct {
		analysis.Key
		run int
	}
	out, blocks := map[result.Dimension][]Source{}, map[part][]int{}
	for dimension, list := range d.sources {
		out[dimension] = lists.Filter(list, func(s Source) bool {
			return len(targets) > 0 && !slices.ContainsFunc(targets, func(t result.Target) bool { return !s.usable(t.Name) })
		})
		for _, s := range out[dimension] {
			for _, t := range targets {
				in := slices.Sorted(maps.Keys(s.logs[t.Name]))
				if rest, ok := blocks[part{s.Key, s.run}]; ok {
					in = lists.Filter(in, func(block int) bool { return slices.Contains(rest, block) })
				}
				blocks[part{s.Key, s.run}] = in
			}
		}
	}
	for dimension, list := range out {
		for i := range list {
			list[i].blocks = blocks[part{list[i].Key, list[i].run}]
		}
		out[dimension] = lists.Filter(list, func(s Source) bool { return len(s.blocks) >= stats.MinSamples })
	}
	return out
}
