package analysis

import (
	"slices"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Source compares the benchmarks of one run with any baseline, without an analysis of the whole run.
type Source struct {
	// Run is the run without its trials.
	Run      Run
	builders []builder
}

// NewSource returns a source for a run. It reads the samples of the run when they are needed.
func NewSource(run *result.Run, o Options) *Source {
	s := &Source{Run: newRun(run, run.Host.Hostname), builders: builders(run, nil)}
	s.Run.Unjudged = run.Host.MayBeEmulated() && !o.EmulatedVerdicts
	for i := range s.builders {
		s.builders[i].configure(&s.Run, o)
	}
	return s
}

// Comparison is the comparison of a metric on a target with the baseline in the only run. It is nil without one.
func (b *Benchmark) Comparison(metric, target string) *stats.Comparison {
	for i := range b.Metrics {
		m := &b.Metrics[i]
		index := slices.IndexFunc(m.Rows, func(r Row) bool { return r.Target == target })
		if m.Name == metric && index >= 0 && m.Rows[index].Cells[0].Comparison != nil {
			return m.Rows[index].Cells[0].Comparison
		}
	}
	return nil
}

// Item is one value of a series: the place of the value in each trial.
type Item struct {
	Metric string
	Place  int
}

// Compare returns a benchmark with the comparisons with a baseline, or the reason why the run has none. A baseline without a trial that is ok is replaced, as
// in an analysis of the run: see [Section].Baseline. With an item its series has only this value. All comparisons of this
// benchmark are judged together, without the rest of the run, and cells have no worst cases.
func (s *Source) Compare(key Key, baseline string, item *Item) (*Benchmark, string) {
	index := slices.IndexFunc(s.builders, func(b builder) bool { return b.key == key })
	if index < 0 {
		return nil, s.Run.Without(key.Title())
	}
	b := s.builders[index]
	b.wanted = baseline
	if item != nil {
		b.item, b.values, b.curves = item, map[string]map[string][]Point{}, map[string]map[string][]Place{}
	}
	a := &Analysis{Runs: []Run{s.Run}}
	section := b.compared()
	if section.skipped() {
		a.Runs[0].leaveOut(key.Title(), section)
		return nil, a.Runs[0].Without(key.Title())
	}
	a.Suites = []Suite{{Benchmarks: []Benchmark{b.benchmark(1)}}}
	out := &a.Suites[0].Benchmarks[0]
	out.Sections[0] = section
	b.metrics(0, out, section)
	a.judgeTogether(0)
	a.finish(out, false)
	return out, ""
}
