package reproduce

import (
	"cmp"
	"maps"
	"math"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/paper"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Table is a table of the paper, with the values of the runs beside the printed ones.
type Table struct {
	*paper.Table
	// Cells are by row and column.
	Cells [][]Cell
	// Where is the place of our values in a sentence, see Options.
	Where string
	// Reason is the reason why nothing of the table was measured. It is empty if something was.
	Reason string
}

// Cell is a printed value beside ours.
type Cell struct {
	paper.Cell
	Of paper.Of
	// Published is the printed ratio to the reference of the table. It is NaN without one.
	Published float64
	// Reference is set for a value of the reference.
	Reference bool
	Metric    result.Metric
	// Ours is nil if it was not measured, for a Reason.
	Ours   *stats.Summary
	Reason string
	// Ratio is our ratio to the reference. It is nil without one, because of WhyNoRatio.
	Ratio      *stats.Comparison
	WhyNoRatio string
	// Emulated is set if the value depends on the speed of an emulated CPU.
	Emulated bool
}

// Value spells our value: "21.3 ± 0.42 ms". It is [quantity.None] if it was not measured.
func (c *Cell) Value() string { return quantity.Median(c.Ours, c.Metric.Unit) }

// OurRatio spells our ratio to the reference with its interval: "3.20 (3.10 to 3.30)". It is empty without one.
func (c *Cell) OurRatio() string {
	if c.Ratio == nil || math.IsNaN(c.Ratio.Ratio) {
		return ""
	}
	text := quantity.Number(c.Ratio.Ratio)
	if ci := c.Ratio.CI; ci != nil {
		text += " (" + quantity.Number(ci.Lo) + " to " + quantity.Number(ci.Hi) + ")"
	}
	return text
}

// PublishedRatio spells the paper's own ratio. It is empty without one.
func (c *Cell) PublishedRatio() string {
	if math.IsNaN(c.Published) {
		return ""
	}
	return quantity.Number(c.Published)
}

// table compares a table with the runs.
func (s *source) table(t *paper.Table) Table {
	out := Table{Table: t, Where: s.where}
	reason, hasAny := "", false
	for row := range t.Rows {
		var cells []Cell
		for column := range t.Rows[row].Cells {
			c := s.cell(t, row, column)
			hasAny = hasAny || c.Ours != nil
			reason = cmp.Or(reason, c.Reason)
			cells = append(cells, c)
		}
		out.Cells = append(out.Cells, cells)
	}
	if !hasAny {
		out.Reason = reason
	}
	return out
}

func (s *source) cell(t *paper.Table, row, column int) Cell {
	origin := t.OfCell(row, column)
	reference := referenceOf(t, origin)
	c := Cell{Cell: t.Rows[row].Cells[column], Of: origin, Published: published(t, row, column), Reference: origin.Target != "" && origin.Target == reference}
	c.Reason = s.otherArch(origin.Arch)
	if c.Reason == "" && origin.Target == "" && origin.Unmeasured == "" {
		c.Reason = "it is no value of a target"
	}
	if c.Reason != "" {
		return c
	}
	m := s.measure(origin, origin.Target, reference)
	if value, ok := c.Number(); ok && origin.Compared != "" {
		c.Published = comparedRatio(origin.Compared, value, m.metric.Better)
	}
	c.Reason = m.lack
	if m.lack != "" {
		return c
	}
	c.Ours, c.Metric, c.Emulated = m.Summary, m.metric, m.Emulated
	if !c.Reference {
		c.Ratio, c.WhyNoRatio = m.Comparison, m.lackRatio
	}
	return c
}

// referenceOf is the reference of a value: the table's reference, on the engine of the value.
func referenceOf(t *paper.Table, value paper.Of) string {
	if _, runtime, ok := strings.Cut(t.Reference, "/"); ok && value.Engine != "" {
		return value.Engine + "/" + runtime
	}
	return t.Reference
}

// comparedRatio is the ratio to the reference behind a value that is printed in relation to it. It is NaN if the metric is unknown.
func comparedRatio(c paper.Comparison, value float64, direction result.Direction) float64 {
	rate := func(ratio float64) float64 {
		switch direction {
		case result.Higher:
			return ratio
		case result.Lower:
			return 1 / ratio
		}
		return math.NaN()
	}
	switch c {
	case paper.Loss:
		return rate(1 - value/100)
	case paper.Gain:
		return rate(1 + value/100)
	case paper.Excess:
		return rate(1 / (1 + value/100))
	case paper.Share:
		return value / 100
	case paper.Factor:
		return value
	case paper.Difference:
	}
	return math.NaN()
}

// published is the printed ratio of a cell to the same value of the reference. That is in another column, or in another row of its group.
func published(t *paper.Table, row, column int) float64 {
	value, ok := t.Rows[row].Cells[column].Number()
	origin := t.OfCell(row, column)
	reference := referenceOf(t, origin)
	if !ok || origin.Compared != "" || reference == "" || origin.Target == "" || origin.Target == reference {
		return math.NaN()
	}
	ratio := func(row, column int) float64 {
		base := t.OfCell(row, column)
		isSame := base.Target == reference && base.Compared == "" && base.Arch == origin.Arch && base.Benchmark == origin.Benchmark && base.Metric == origin.Metric && base.Unit == origin.Unit && maps.Equal(base.Params, origin.Params)
		if total, ok := t.Rows[row].Cells[column].Number(); isSame && ok && total != 0 {
			return value / total
		}
		return math.NaN()
	}
	for index := range t.Rows[row].Cells {
		if r := ratio(row, index); !math.IsNaN(r) {
			return r
		}
	}
	for index := range t.Rows {
		if t.Rows[index].Group != t.Rows[row].Group || column >= len(t.Rows[index].Cells) {
			continue
		}
		if r := ratio(index, column); !math.IsNaN(r) {
			return r
		}
	}
	return math.NaN()
}
