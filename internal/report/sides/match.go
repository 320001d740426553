package sides

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/fact"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// subject is a benchmark on a target, with any parameters.
type subject struct{ benchmark, target string }

// cellsOf lists the cells of a side by subject.
func cellsOf(order []identity) map[subject][]result.Cell {
	cells := map[subject][]result.Cell{}
	for _, id := range order {
		s := subject{id.Benchmark, id.Target}
		if !slices.Contains(cells[s], id.Cell) {
			cells[s] = append(cells[s], id.Cell)
		}
	}
	return cells
}

// paramsDiffer lists the benchmarks that both sides measured on a target, but not with the same parameters.
func paramsDiffer(orderA, orderB []identity) []Difference {
	a, b := cellsOf(orderA), cellsOf(orderB)
	var list []Difference
	for _, id := range orderA {
		s := subject{id.Benchmark, id.Target}
		if len(b[s]) == 0 || slices.ContainsFunc(a[s], func(c result.Cell) bool { return slices.Contains(b[s], c) }) {
			continue
		}
		d := Difference{Class: ClassParams, Fact: fact.ID{Kind: fact.Parameters, Subject: s.benchmark + " on " + s.target}, A: paramsOf(a[s]), B: paramsOf(b[s])}
		if !slices.ContainsFunc(list, func(item Difference) bool { return item.Fact == d.Fact }) {
			list = append(list, d)
		}
	}
	return list
}

func paramsOf(cells []result.Cell) (list []string) {
	for _, c := range cells {
		list = append(list, cmp.Or(c.Params, "none"))
	}
	return list
}

// match pairs the metrics of both sides, in the order of side A. If other parameters are allowed, the only cell of a benchmark on a target is also
// paired with the only one of the other side.
func match(orderA []identity, cellsA map[identity]measured, orderB []identity, cellsB map[identity]measured, otherParams bool) [][2]identity {
	a, b := cellsOf(orderA), cellsOf(orderB)
	var pairs [][2]identity
	for _, id := range orderA {
		partner := id
		if s := (subject{id.Benchmark, id.Target}); otherParams && len(a[s]) == 1 && len(b[s]) == 1 {
			partner.Cell = b[s][0]
		}
		if _, ok := cellsB[partner]; ok && len(cellsA[id].cells) > 0 {
			pairs = append(pairs, [2]identity{id, partner})
		}
	}
	return pairs
}

// oneSided lists the metrics that only one side has, by cell.
func (c *Comparison) oneSided(pairs [][2]identity, orderA []identity, cellsA map[identity]measured, orderB []identity, cellsB map[identity]measured, runsA, runsB []result.Run) {
	for side, group := range []struct {
		name         string
		order        []identity
		cells, other map[identity]measured
		runs         []result.Run // of the other side
	}{{"A", orderA, cellsA, cellsB, runsB}, {"B", orderB, cellsB, cellsA, runsA}} {
		matches, cells := map[identity]bool{}, map[result.Cell]bool{}
		for _, p := range pairs {
			if group.cells[p[side]].any() && group.other[p[1-side]].any() {
				matches[p[side]], cells[p[side].Cell] = true, true
			}
		}
		for _, id := range group.order {
			if matches[id] || !group.cells[id].any() {
				continue
			}
			index := slices.IndexFunc(c.OneSided, func(o OneSided) bool { return o.Cell == id.Cell && o.Has == group.name })
			if index < 0 {
				index = len(c.OneSided)
				c.OneSided = append(c.OneSided, OneSided{Cell: id.Cell, Has: group.name, Whole: !cells[id.Cell], Why: absence(id, group.other, group.runs)})
			}
			c.OneSided[index].Metrics = append(c.OneSided[index].Metrics, group.cells[id].cells[0].Metric)
		}
	}
}

// gaps are notes about runs that lack a cell which other runs of their side have.
func (c *Comparison) gaps(side string, order []identity, cells map[identity]measured, runs []result.Run) (notes []string) {
	has := map[result.Cell]map[int]bool{} // the runs with a value
	var list []identity                   // the first metric of each cell
	for _, id := range order {
		if has[id.Cell] == nil {
			has[id.Cell] = map[int]bool{}
			list = append(list, id)
		}
		for i, cell := range cells[id].cells {
			if len(cell.Values) > 0 {
				has[id.Cell][cells[id].run[i]] = true
			}
		}
	}
	for i := range runs {
		var part map[identity]measured
		for _, id := range list {
			if len(has[id.Cell]) == 0 || has[id.Cell][i] {
				continue
			}
			if part == nil {
				_, part = collect(runs[i : i+1])
			}
			notes = append(notes, fmt.Sprintf("Run %s (side %s) has no value of %s on %s: %s.",
				runs[i].ID, side, analysis.Key{Name: id.Benchmark, Params: id.Params}.Title(), id.Target, absence(id, part, runs[i:i+1])))
		}
	}
	return notes
}

// absence is the reason why a side has no value of a cell.
func absence(id identity, partners map[identity]measured, runs []result.Run) string {
	if reason := partners[id].why(); reason != "" {
		return reason
	}
	title := analysis.Key{Name: id.Benchmark, Params: id.Params}.Title()
	for i := range runs {
		for _, t := range runs[i].Targets {
			if t.Name == id.Target && t.Unavailable != "" {
				return "the target was not available: " + t.Unavailable
			}
		}
		for j := range runs[i].Trials {
			t := &runs[i].Trials[j]
			if (analysis.Key{Name: t.Benchmark, Params: t.Params}).Title() == title && t.Target == id.Target && t.Reason != "" {
				return t.Why()
			}
		}
	}
	return "not measured"
}
