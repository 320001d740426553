package report

import (
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Components is a cost by component: daemon, shim, runtime and so on. It is the metrics of one group.
type Components struct {
	// Title is the group's heading.
	Title string
	Unit  result.Unit
	// Names are the components with a value on some target, Metrics their metrics.
	Names, Metrics []string
	// Rows are the targets with a value of any component.
	Rows []ComponentRow
}

// ComponentRow is the cost on one target.
type ComponentRow struct {
	Target string
	// Total is the median over trials of the sum over components.
	Total stats.Summary
	// Cells are in the order of Components.Names, nil for components that the target does not have.
	Cells []*stats.Summary
}

// components collects the groups of the benchmark's metrics, in the order of their first metrics.
func (b *builder) components(targets []Outcome) []Components {
	var all []Components
	for _, m := range b.described.Metrics {
		if m.Group == "" || len(b.samples(targets, m.Name)) == 0 {
			continue
		}
		c := place(&all, func(c *Components) bool { return c.Title == m.Group }, Components{Title: m.Group, Unit: m.Unit})
		c.Names, c.Metrics = append(c.Names, m.Component), append(c.Metrics, m.Name)
	}
	for i := range all {
		for _, o := range targets {
			if row, has := b.componentRow(o.Target, &all[i]); has {
				all[i].Rows = append(all[i].Rows, row)
			}
		}
	}
	return all
}

// componentRow returns false for a target without a value. A trial with values of other components counts as 0 for a
// component without one, both here and in the sum.
func (b *builder) componentRow(target string, c *Components) (ComponentRow, bool) {
	row := ComponentRow{Target: target, Cells: make([]*stats.Summary, len(c.Metrics))}
	var sums []float64
	values := make([][]float64, len(c.Metrics))
	seen := make([]bool, len(c.Metrics))
	for _, t := range b.valid(target) {
		var sum float64
		has := false
		costs := make([]float64, len(c.Metrics))
		for i, metric := range c.Metrics {
			if of := t.Values(metric); len(of) > 0 {
				costs[i] = stats.Median(of)
				sum += costs[i]
				seen[i], has = true, true
			}
		}
		if !has {
			continue
		}
		sums = append(sums, sum)
		for i, cost := range costs {
			values[i] = append(values[i], cost)
		}
	}
	for i, metric := range c.Metrics {
		if seen[i] {
			summary := stats.Summarize(values[i], b.cellSeed(target, metric))
			row.Cells[i] = &summary
		}
	}
	row.Total = stats.Summarize(sums, b.cellSeed(target, c.Title))
	return row, len(sums) > 0
}
