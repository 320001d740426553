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
	all := map[subject][]result.Cell{}
	for _, id := range order {
		s := subject{id.Benchmark, id.Target}
		if !slices.Contains(all[s], id.Cell) {
			all[s] = append(all[s], id.Cell)
		}
	}
	return all
}

// paramsDiffer lists the benchmarks that both sides measured on a target, but not with the same parameters.
func paramsDiffer(orderA, orderB []identity) []Difference {
	a, b := cellsOf(orderA), cellsOf(orderB)
	var all []Difference
	for _, id := range orderA {
		s := subject{id.Benchmark, id.Target}
		if len(b[s]) == 0 || slices.ContainsFunc(a[s], func(c result.Cell) bool { return slices.Contains(b[s], c) }) {
			continue
		}
		d := Difference{Class: ClassParams, Fact: fact.ID{Kind: fact.Parameters, Subject: s.benchmark + " on " + s.target}, A: paramsOf(a[s]), B: paramsOf(b[s])}
		if !slices.ContainsFunc(all, func(known Difference) bool { return known.Fact == d.Fact }) {
			all = append(all, d)
		}
	}
	return all
}

func paramsOf(cells []result.Cell) (all []string) {
	for _, c := range cells {
		all = append(all, cmp.Or(c.Params, "none"))
	}
	return all
}

// match pairs the metrics of both sides, in the order of side A. If other parameters are allowed, the only cell of a benchmark on a target is also
// paired with the only one of the other side.
func match(orderA []identity, cellsA map[identity]measured, orderB []identity, cellsB map[identity]measured, otherParams bool) [][2]identity {
	a, b := cellsOf(orderA), cellsOf(orderB)
	var pairs [][2]identity
	for _, id := range orderA {
		other := id
		if s := (subject{id.Benchmark, id.Target}); otherParams && len(a[s]) == 1 && len(b[s]) == 1 {
			other.Cell = b[s][0]
		}
		if _, both := cellsB[other]; both && len(cellsA[id].cells) > 0 {
			pairs = append(pairs, [2]identity{id, other})
		}
	}
	return pairs
}

// oneSided lists the metrics that only one side has, by cell.
func (c *Comparison) oneSided(pairs [][2]identity, orderA []identity, cellsA map[identity]measured, orderB []identity, cellsB map[identity]measured, runsA, runsB []result.Run) {
	for side, this := range []struct {
		name         string
		order        []identity
		cells, other map[identity]measured
		runs         []result.Run // of the other side
	}{{"A", orderA, cellsA, cellsB, runsB}, {"B", orderB, cellsB, cellsA, runsA}} {
		compared, partly := map[identity]bool{}, map[result.Cell]bool{}
		for _, p := range pairs {
			if this.cells[p[side]].any() && this.other[p[1-side]].any() {
				compared[p[side]], partly[p[side].Cell] = true, true
			}
		}
		for _, id := range this.order {
			if compared[id] || !this.cells[id].any() {
				continue
			}
			at := slices.IndexFunc(c.OneSided, func(o OneSided) bool { return o.Cell == id.Cell && o.Has == this.name })
			if at < 0 {
				at = len(c.OneSided)
				c.OneSided = append(c.OneSided, OneSided{Cell: id.Cell, Has: this.name, Whole: !partly[id.Cell], Why: absence(id, this.other, this.runs)})
			}
			c.OneSided[at].Metrics = append(c.OneSided[at].Metrics, this.cells[id].cells[0].Metric)
		}
	}
}

// gaps are notes about runs that lack a cell which other runs of their side have.
func (c *Comparison) gaps(side string, order []identity, cells map[identity]measured, runs []result.Run) (notes []string) {
	has := map[result.Cell]map[int]bool{} // the runs with a value
	var all []identity                    // the first metric of each cell
	for _, id := range order {
		if has[id.Cell] == nil {
			has[id.Cell] = map[int]bool{}
			all = append(all, id)
		}
		for i, of := range cells[id].cells {
			if len(of.Values) > 0 {
				has[id.Cell][cells[id].run[i]] = true
			}
		}
	}
	for i := range runs {
		var own map[identity]measured
		for _, id := range all {
			if len(has[id.Cell]) == 0 || has[id.Cell][i] {
				continue
			}
			if own == nil {
				_, own = collect(runs[i : i+1])
			}
			notes = append(notes, fmt.Sprintf("Run %s (side %s) has no value of %s on %s: %s.",
				runs[i].ID, side, analysis.Key{Name: id.Benchmark, Params: id.Params}.Title(), id.Target, absence(id, own, runs[i:i+1])))
		}
	}
	return notes
}

// absence is the reason why a side has no value of a cell.
func absence(id identity, other map[identity]measured, runs []result.Run) string {
	if why := other[id].why(); why != "" {
		return why
	}
	title := analysis.Key{Name: id.Benchmark, Params: id.Params}.Title()
	for i := range runs {
		for _, t := range runs[i].Targets {
			if t.Name == id.Target && t.Unavailable != "" {
				return "the target was not available: " + t.Unavailable
			}
		}
		for _, t := range runs[i].Trials {
			if (analysis.Key{Name: t.Benchmark, Params: t.Params}).Title() == title && t.Target == id.Target && t.Reason != "" {
				return t.Reason
			}
		}
	}
	return "not measured"
}
