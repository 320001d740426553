package report

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// componentSet is the metrics that tell apart which component caused a cost: they are named by a
// prefix and the component, such as HostCPUShim, and stand together instead of each by itself.
type componentSet struct {
	prefix, title string
	unit          result.Unit
}

func componentSets() []componentSet {
	return []componentSet{
		{"HostCPU", "CPU time by component", result.Seconds},
		{"PSS", "Memory by component", result.Bytes},
	}
}

// component is the component that a metric of the set is about, false if it is none of the set.
func (s componentSet) component(metric string) (string, bool) {
	rest, is := strings.CutPrefix(metric, s.prefix)
	if first, _ := utf8.DecodeRuneInString(rest); !is || !unicode.IsUpper(first) {
		return "", false
	}
	return strings.ToLower(rest), true
}

// isComponent tells whether a metric is of any set.
func isComponent(metric string) bool {
	return slices.ContainsFunc(componentSets(), func(s componentSet) bool {
		_, is := s.component(metric)
		return is
	})
}

// Components is a cost told apart by component: daemon, shim, runtime and so on.
type Components struct {
	// Title says which cost it is, in Unit.
	Title string
	Unit  result.Unit
	// Names are the components of which some target has a value, Metrics their metrics.
	Names, Metrics []string
	// Rows are the targets that have a value of any.
	Rows []ComponentRow
}

// ComponentRow is the cost on one target.
type ComponentRow struct {
	Target string
	// Total is the sum over the components in a trial, as a median over trials.
	Total stats.Summary
	// Cells stand in the order of Components.Names, nil for components that the target has not.
	Cells []*stats.Summary
}

// components takes the metrics of a set out of those of a benchmark.
func (b *builder) components(described []result.Metric, bench *Benchmark) []Components {
	var all []Components
	for _, set := range componentSets() {
		c := Components{Title: set.title, Unit: set.unit}
		for _, m := range described {
			name, is := set.component(m.Name)
			if is && slices.ContainsFunc(bench.Targets, func(o Outcome) bool { return len(points(b.valid(o.Target), m.Name)) > 0 }) {
				c.Names, c.Metrics = append(c.Names, name), append(c.Metrics, m.Name)
			}
		}
		for _, o := range bench.Targets {
			if row, has := b.componentRow(o.Target, c.Metrics, set.prefix); has {
				c.Rows = append(c.Rows, row)
			}
		}
		if len(c.Rows) > 0 {
			all = append(all, c)
		}
	}
	return all
}

// componentRow is false for a target that has no value. A trial that tells of other components and not
// of this one had none of it: it counts as nothing there, as it does in the trial's sum.
func (b *builder) componentRow(target string, metrics []string, total string) (ComponentRow, bool) {
	row := ComponentRow{Target: target, Cells: make([]*stats.Summary, len(metrics))}
	var sums []float64
	values := make([][]float64, len(metrics))
	seen := make([]bool, len(metrics))
	for _, t := range b.valid(target) {
		var sum float64
		told := false
		costs := make([]float64, len(metrics))
		for i, metric := range metrics {
			if of := t.Values(metric); len(of) > 0 {
				costs[i] = median(of)
				sum += costs[i]
				seen[i], told = true, true
			}
		}
		if !told {
			continue
		}
		sums = append(sums, sum)
		for i, cost := range costs {
			values[i] = append(values[i], cost)
		}
	}
	for i, metric := range metrics {
		if seen[i] {
			summary := stats.Summarize(values[i], b.cellSeed(target, metric))
			row.Cells[i] = &summary
		}
	}
	row.Total = stats.Summarize(sums, b.cellSeed(target, total+" of components"))
	return row, len(sums) > 0
}
