package finding

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// leastPart is the smallest part of a difference that a text names, relative to the difference.
const leastPart = 0.05

// disagreements describes the metrics whose medians differ from another measurement of the same quantity by more than the
// tolerance, with the parts of the difference.
func disagreements(a *analysis.Analysis, run int) WarningGroup {
	g := WarningGroup{
		Title:  "Two measurements of one quantity differ",
		Advice: "each listed part is in one of the two measurements only",
	}
	for _, b := range a.Benchmarks() {
		s := b.Sections[run]
		if s == nil {
			continue
		}
		for i := range b.Metrics {
			m := &b.Metrics[i]
			index := slices.IndexFunc(b.Metrics, func(o analysis.Metric) bool {
				return m.Agreement.With != "" && o.Name == m.Agreement.With && o.Unit == m.Unit
			})
			if index < 0 {
				continue
			}
			for _, row := range m.Rows {
				summary, reference := row.Cells[run].Summary, summaryOf(&b.Metrics[index], row.Target, run)
				if summary == nil || reference == nil || math.Abs(summary.Median-reference.Median) <= m.Agreement.Tolerance*max(math.Abs(summary.Median), math.Abs(reference.Median)) {
					continue
				}
				text := fmt.Sprintf("%s on %s: %s is %s, and %s is %s%s", b.Title(), row.Target,
					m.Name, quantity.Signed(summary.Median, m.Unit), m.Agreement.With, quantity.Signed(reference.Median, m.Unit), parts(s, m, row.Target, summary.Median-reference.Median))
				if summary.Median < 0 {
					text += fmt.Sprintf("; a cost below zero is noise of the host: compare %s instead", m.Agreement.With)
				}
				g.Items = append(g.Items, text)
			}
		}
	}
	return g
}

// summaryOf is the summary of a target in a run, or nil.
func summaryOf(m *analysis.Metric, target string, run int) *stats.Summary {
	for i := range m.Rows {
		if m.Rows[i].Target == target {
			return m.Rows[i].Cells[run].Summary
		}
	}
	return nil
}

// parts spells the parts of a difference on a target, from the largest: "; the difference of 60 kB is slab 40 kB, page tables 20 kB".
func parts(s *analysis.Section, m *analysis.Metric, target string, difference float64) string {
	type part struct {
		name  string
		value float64
	}
	var parts []part
	for _, c := range s.Components {
		for _, row := range c.Rows {
			if c.Title != m.Agreement.Rest || row.Target != target {
				continue
			}
			for i, cell := range row.Cells {
				if cell != nil && math.Abs(cell.Median) >= leastPart*math.Abs(difference) {
					parts = append(parts, part{c.Names[i], cell.Median})
				}
			}
		}
	}
	if len(parts) == 0 {
		return ""
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(math.Abs(b.value), math.Abs(a.value)) })
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.name+" "+quantity.Signed(p.value, m.Unit))
	}
	return fmt.Sprintf("; the difference of %s is mostly %s", quantity.Signed(difference, m.Unit), strings.Join(texts, ", "))
}
