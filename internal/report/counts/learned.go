package counts

import (
	"slices"

	"github.com/touchstone-bench/touchstone/internal/analysis"
)

// Learned is the knowledge about a target from traces of the same runtime on both sides.
type Learned struct {
	Traces     int                `json:"traces" schema:"minimum=1" doc:"Number of traces of each benchmark."`
	Benchmarks []LearnedBenchmark `json:"benchmarks" doc:"The traced benchmarks."`
}

// LearnedBenchmark is the knowledge from one benchmark.
type LearnedBenchmark struct {
	analysis.Key
	Stable  int            `json:"stable" schema:"minimum=0" doc:"Number of system calls, by step and component, whose counts are equal in all traces."`
	Varying []VaryingCount `json:"varying" doc:"The counts that are not equal in all traces."`
}

// VaryingCount is a count that varies.
type VaryingCount struct {
	Place
	Range analysis.Range `json:"range" doc:"The counts of the traces."`
}

// varying returns the counts of a benchmark that vary. It reports false if the benchmark was not traced.
func (l *Learned) varying(key analysis.Key) (places map[Place]bool, isKnown bool) {
	if l == nil {
		return nil, false
	}
	places = map[Place]bool{}
	for i := range l.Benchmarks {
		if l.Benchmarks[i].Key == key {
			for _, v := range l.Benchmarks[i].Varying {
				places[v.Place] = true
			}
			return places, true
		}
	}
	return nil, false
}

// Learn returns the knowledge from cells whose sides are the same runtime; nil without a cell.
func Learn(cells []Cell) *Learned {
	if len(cells) == 0 {
		return nil
	}
	l := &Learned{Benchmarks: []LearnedBenchmark{}}
	for i := range cells {
		c := &cells[i]
		b := LearnedBenchmark{Key: c.Key, Varying: []VaryingCount{}}
		for _, count := range c.counts {
			union := analysis.Range{Least: min(count.A.Least, count.B.Least), Most: max(count.A.Most, count.B.Most)}
			switch {
			case !union.IsOne():
				b.Varying = append(b.Varying, VaryingCount{count.Place, union})
			case count.Step != AllSteps && !isGroup(count.Name):
				b.Stable++
			}
		}
		l.Benchmarks = append(l.Benchmarks, b)
		if traces := c.TracesA + c.TracesB; l.Traces == 0 || traces < l.Traces {
			l.Traces = traces
		}
	}
	return l
}

// Names lists the names of the varying system calls, each once.
func (b *LearnedBenchmark) Names() []string {
	var names []string
	for _, v := range b.Varying {
		if !isGroup(v.Name) && !slices.Contains(names, v.Name) {
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	return names
}
