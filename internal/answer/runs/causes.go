package runs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/answer/explain"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Limits on the parts of a page, which share its size.
const (
	// mostPairs is the largest number of pairs of targets of a benchmark with their causes: all pairs of five targets. fewestPairs is the number that a page
	// with many traced benchmarks has of each.
	mostPairs, fewestPairs = 10, 4
	// pageParts is the number of pairs, and of timelines, that the benchmarks share.
	pageParts = 40
)

// causes explain the differences of the timed calls between targets with traces. A page alone has them: their comparisons take time.
func (b *builder) causes(r *analysis.Run) []document.Block {
	cells := timedCells(r)
	if cells == nil {
		return nil
	}
	s := document.Section{ID: "causes", Title: "Causes", Detail: true, Blocks: []document.Block{text(explain.Method)}}
	s.Draw = func() (blocks []document.Block) {
		limit := partsOfEach(len(benchmarksOf(cells)))
		for _, bench := range b.report.Benchmarks() {
			var targets []string
			for i := range r.Targets {
				if slices.Contains(cells, result.Cell{Benchmark: bench.Name, Params: bench.Params, Target: r.Targets[i].Name}) {
					targets = append(targets, r.Targets[i].Name)
				}
			}
			lines := r.TraceTimelines(bench.Key)
			baselineFirst(lines, func(l analysis.TraceTimeline) bool { return l.Target == bench.Sections[0].Baseline })
			inner := timelineOf(lines[:min(len(lines), limit)])
			if rest := len(lines) - limit; rest > 0 {
				inner = append(inner, text(fmt.Sprintf("The processes on %s: touchstone export %s.", wording.Counted(rest, "more target"), r.ID)))
			}
			inner = append(inner, b.pairs(bench, targets, limit)...)
			if inner != nil {
				blocks = append(blocks, document.Section{Title: bench.Title(), Blocks: inner})
			}
		}
		return blocks
	}
	return []document.Block{s}
}

// partsOfEach is the largest number of pairs, and of timelines, of each of some benchmarks.
func partsOfEach(benchmarks int) int { return min(mostPairs, max(fewestPairs, pageParts/benchmarks)) }

// timedCells are the cells with traces of timed calls. A benchmark that chooses the steps of its traces has none.
func timedCells(r *analysis.Run) (cells []result.Cell) {
	for i := range r.Traces {
		t := &r.Traces[i]
		hasCall := slices.ContainsFunc(t.Counts, func(c result.TraceCounts) bool {
			return slices.ContainsFunc(t.Phases, func(p result.Phase) bool { return analysis.PhaseOf(p.Name) == analysis.PhaseOf(c.Step) })
		})
		if hasCall && !slices.Contains(cells, t.Cell) {
			cells = append(cells, t.Cell)
		}
	}
	return cells
}

// benchmarksOf are the benchmarks of cells.
func benchmarksOf(cells []result.Cell) (keys []analysis.Key) {
	for _, c := range cells {
		if key := (analysis.Key{Name: c.Benchmark, Params: c.Params}); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// pairs are the explanations of a benchmark for pairs of targets, those with the baseline first.
func (b *builder) pairs(bench *analysis.Benchmark, targets []string, limit int) []document.Block {
	var blocks []document.Block
	count, rest := 0, 0
	for _, pair := range pairsOf(targets, bench.Sections[0].Baseline) {
		if count == limit {
			rest++
			continue
		}
		if e := b.report.Explain(bench.Key, pair[0], pair[1]); e.Benchmarks != nil {
			blocks = append(blocks, explain.Pair(e, &e.Benchmarks[0]))
			count++
		}
	}
	if rest > 0 {
		blocks = append(blocks, text(fmt.Sprintf("%s of the targets %s: touchstone explain A B --run %s --benchmark %s.", wording.Counted(rest, "more pair"), strings.Join(targets, ", "), b.report.Runs[0].ID, bench.Name)))
	}
	return blocks
}

// pairsOf are the pairs of targets, those with the baseline first.
func pairsOf(targets []string, baseline string) (pairs [][2]string) {
	baselineFirst(targets, func(name string) bool { return name == baseline })
	for i, a := range targets {
		for _, name := range targets[i+1:] {
			pairs = append(pairs, [2]string{a, name})
		}
	}
	return pairs
}

// baselineFirst moves the item of the baseline to the begin of a list.
func baselineFirst[T any](list []T, isBaseline func(T) bool) {
	slices.SortStableFunc(list, func(a, b T) int {
		switch {
		case isBaseline(a) == isBaseline(b):
			return 0
		case isBaseline(a):
			return -1
		}
		return 1
	})
}
