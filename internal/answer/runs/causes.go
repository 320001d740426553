package runs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/answer/explain"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/result"
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
		limit := min(mostPairs, max(fewestPairs, pageParts/len(benchmarksOf(cells))))
		for _, bench := range b.report.Benchmarks() {
			var targets []string
			for _, cell := range cells {
				if (analysis.Key{Name: cell.Benchmark, Params: cell.Params}) == bench.Key {
					targets = append(targets, cell.Target)
				}
			}
			lines := r.TraceTimelines(bench.Key)
			baselineFirst(lines, func(l analysis.TraceTimeline) bool { return l.Target == bench.Sections[0].Baseline })
			inner := append(timelineOf(lines[:min(len(lines), limit)]), b.pairs(bench, targets, limit)...)
			if inner != nil {
				blocks = append(blocks, document.Section{Title: bench.Title(), Blocks: inner})
			}
		}
		return blocks
	}
	return []document.Block{s}
}

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
	var rest []string
	count := 0
	for _, pair := range pairsOf(targets, bench.Sections[0].Baseline) {
		if count == limit {
			rest = append(rest, "touchstone explain "+pair[0]+" "+pair[1])
			continue
		}
		if e := b.report.Explain(bench.Key, pair[0], pair[1]); e.Benchmarks != nil {
			blocks = append(blocks, explain.Pair(e, &e.Benchmarks[0]))
			count++
		}
	}
	if rest != nil {
		blocks = append(blocks, document.List{Title: fmt.Sprintf("The causes of other pairs, in run %s:", b.report.Runs[0].ID), Items: []document.Item{item(strings.Join(rest, "; "))}})
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
