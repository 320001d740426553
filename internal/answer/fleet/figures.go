package fleet

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/fleet"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

const (
	matrixNote = "Each cell has the cost of a target on a node, with its interval. A coloured cost is of an odd node, or of the whole fleet with a shown difference. Nodes that do not count are listed above with the reasons. A node’s own report has verdicts about it."
	// mostCells bounds the cells of the matrix. A page of more takes seconds to open.
	mostCells = 8_000
)

// oddOf returns the odd entry of a node, or nil.
func oddOf(c *fleet.Class, node int) *fleet.Odd {
	if i := slices.IndexFunc(c.Odd, func(o fleet.Odd) bool { return o.Node == node }); i >= 0 {
		return &c.Odd[i]
	}
	return nil
}

// matrix has the main metrics of all nodes. Metrics beyond mostCells are left out, and of the first one nodes that are like the others.
func matrix(r *fleet.Report, pages Pages) []document.Block {
	m := document.Matrix{RowNoun: "nodes", ColumnNoun: "targets", Columns: r.Targets, Baselines: []document.MatrixBaseline{{}}}
	var undrawn []string
	for _, metric := range r.Headline() {
		if (len(m.Rows)+len(r.Nodes))*len(r.Targets) > mostCells && len(m.Rows) > 0 {
			undrawn = append(undrawn, metric.Metric.Name+" of "+metric.Title())
			continue
		}
		addRows(r, &m, metric, pages)
	}
	if len(m.Rows) == 0 {
		return nil
	}
	blocks := []document.Block{document.Text{Text: matrixNote}, m}
	if undrawn != nil {
		blocks = append(blocks, document.Text{Text: "Left out for their size: " + strings.Join(undrawn, ", ") + ". CSV and JSON have them."})
	}
	return []document.Block{document.Section{ID: "matrix", Title: "Nodes and targets", Detail: true, Blocks: blocks}}
}

// addRows adds a row of the fleet and a row for each node.
func addRows(r *fleet.Report, m *document.Matrix, metric *fleet.Metric, pages Pages) {
	suite, _, _ := strings.Cut(metric.Key.Name, ".")
	group := document.Span{Text: fmt.Sprintf("%s %s", metric.Title(), metric.Metric.Name)}
	places := make([]*fleet.Class, len(r.Targets))
	for i, target := range r.Targets {
		if n := slices.IndexFunc(metric.Classes, func(c fleet.Class) bool { return c.Target == target }); n >= 0 {
			places[i] = &metric.Classes[n]
		}
	}
	add := func(name document.Cell, id string, cell func(c *fleet.Class) (document.Cell, document.MatrixCell)) {
		row := document.MatrixRow{ID: metric.Title() + "/" + metric.Metric.Name + "/" + id, Suite: suite, Group: group, Name: name}
		var cells []document.MatrixCell
		for _, c := range places {
			value, comparison := document.Cell{{Text: quantity.None}}, document.MatrixCell{Factor: document.Cell{{Text: quantity.None}}, Size: math.NaN()}
			if c != nil {
				value, comparison = cell(c)
			}
			row.Values, cells = append(row.Values, value), append(cells, comparison)
		}
		m.Rows, m.Baselines[0].Cells = append(m.Rows, row), append(m.Baselines[0].Cells, cells)
	}
	add(document.Cell{{Text: "all nodes", Tone: document.Strong}}, "all", func(c *fleet.Class) (document.Cell, document.MatrixCell) { return fleetCell(metric, c) })
	for i := range r.Nodes {
		n := &r.Nodes[i]
		name := document.Cell{{Text: n.Name, Link: pages(n.Run)}, {Text: n.Kind, Tone: document.Faint}}
		add(name, n.Run, func(c *fleet.Class) (document.Cell, document.MatrixCell) { return nodeCell(metric, c, i) })
	}
}

func fleetCell(m *fleet.Metric, c *fleet.Class) (document.Cell, document.MatrixCell) {
	value := document.Cell{{Text: quantity.Text(c.Typical, m.Unit)}}
	if c.Comparison == nil {
		text := quantity.None
		if c.Baseline {
			text = quantity.Cost(1, m.Metric)
		}
		return value, document.MatrixCell{Factor: document.Cell{{Text: text, Tone: document.Faint}}, Size: math.NaN()}
	}
	cell := document.MatrixCell{Size: math.Log(m.Cost(c.Comparison.Ratio)), Shown: c.Comparison.Differs()}
	span := document.Span{Text: quantity.Cost(c.Comparison.Ratio, m.Metric), Tone: tone(c.Comparison)}
	if cell.Shown {
		span.Strength = document.Strength(c.Comparison.Ratio)
	}
	cell.Factor = document.Cell{span}
	if c.Comparison.CI != nil {
		cell.Factor = append(cell.Factor, document.Span{Text: quantity.CostInterval(c.Comparison.CI, m.Metric)})
	}
	return value, cell
}

func nodeCell(m *fleet.Metric, c *fleet.Class, node int) (document.Cell, document.MatrixCell) {
	v, odd := &c.Values[node], oddOf(c, node)
	value, factor := document.Span{Text: quantity.None}, document.Span{Text: quantity.None, Tone: document.Faint}
	if !math.IsNaN(v.Median) {
		value.Text = quantity.Text(v.Median, m.Unit)
	}
	cell := document.MatrixCell{Size: math.NaN(), Shown: odd != nil}
	switch {
	case !math.IsNaN(v.Ratio):
		factor.Text, cell.Size = quantity.Cost(v.Ratio, m.Metric), math.Log(m.Cost(v.Ratio))
	case c.Baseline && !math.IsNaN(v.Median):
		factor.Text = quantity.Cost(1, m.Metric)
	}
	var remarks document.Cell
	if v.CI != nil {
		remarks = append(remarks, document.Span{Text: quantity.CostInterval(v.CI, m.Metric)})
	}
	if odd != nil {
		span := &factor
		if c.Baseline {
			span = &value
			cell.Size = math.Log(m.Cost(odd.Quotient))
		}
		span.Tone, span.Strength = document.Good, document.Strength(odd.Quotient)
		if m.Cost(odd.Quotient) > 1 {
			span.Tone = document.Bad
		}
		if c.Baseline {
			factor.Tone, factor.Strength = span.Tone, span.Strength
		}
		remarks = append(remarks, document.Span{Text: "odd: " + quantity.Change(odd.Quotient)})
	}
	switch {
	case math.IsNaN(v.Median):
		remarks = append(remarks, document.Span{Text: "no value", Tone: document.Faint})
	case !v.Counts:
		remarks = append(remarks, document.Span{Text: "does not count", Tone: document.Faint})
	}
	cell.Factor = append(document.Cell{factor}, remarks...)
	return document.Cell{value}, cell
}

// strips are a figure of each main metric, with a lane for each target and a dot for each node.
func strips(r *fleet.Report) []document.Block {
	var blocks []document.Block
	for _, m := range r.Headline() {
		if figure, ok := strip(r, m); ok {
			blocks = append(blocks, figure)
		}
	}
	if blocks == nil {
		return nil
	}
	return []document.Block{document.Section{ID: "strips", Title: "Spread between nodes", Detail: true, Blocks: blocks}}
}

func strip(r *fleet.Report, m *fleet.Metric) (document.Lanes, bool) {
	figure := document.Lanes{
		Name: m.Metric.Name, Unit: result.Score, Lines: []document.Line{{Name: "equal to the baseline", Value: 1}}, Groups: []string{"an odd node"},
		Caption: fmt.Sprintf("cost against %s; %s; a dot is a node, nodes of a kind are adjacent, a ring does not count; line and band are the fleet", r.Baseline, m.Title()),
	}
	for i := range m.Classes {
		c := &m.Classes[i]
		if c.Comparison == nil {
			continue
		}
		lane := document.Lane{Name: c.Target, Text: quantity.Cost(c.Comparison.Ratio, m.Metric), Samples: &document.Samples{Median: m.Cost(c.Comparison.Ratio)}}
		if ci := c.Comparison.CI; ci != nil {
			low, high := m.Cost(ci.Lo), m.Cost(ci.Hi)
			low, high = min(low, high), max(low, high)
			lane.Samples.Low, lane.Samples.High = &low, &high
		}
		var names []string
		for node := range c.Values {
			v := &c.Values[node]
			if math.IsNaN(v.Ratio) {
				continue
			}
			text := fmt.Sprintf("%s (%s) %s", r.Nodes[node].Name, r.Nodes[node].Kind, quantity.Cost(v.Ratio, m.Metric))
			if oddOf(c, node) != nil {
				mark := document.Mark{Value: m.Cost(v.Ratio), Text: text}
				if v.CI != nil {
					low, high := m.Cost(v.CI.Lo), m.Cost(v.CI.Hi)
					low, high = min(low, high), max(low, high)
					mark.Low, mark.High = &low, &high
				}
				lane.Marks, names = append(lane.Marks, mark), append(names, r.Nodes[node].Name)
				continue
			}
			lane.Samples.Values = append(lane.Samples.Values, document.Sample{Value: m.Cost(v.Ratio), Order: int32(node), Hollow: !v.Counts, Note: text})
		}
		if names != nil {
			lane.Text += "; odd: " + wording.Shortlist(names, "nodes")
		}
		figure.Lanes = append(figure.Lanes, lane)
	}
	return figure, figure.Lanes != nil
}

// stages are stacked bars of the parts of a quantity, with their intervals in a table.
func stages(r *fleet.Report) []document.Block {
	var blocks []document.Block
	for i := range r.Stages {
		s := &r.Stages[i]
		bars := document.Bars{Parts: s.Parts, Unit: s.Unit, Caption: "means over nodes of the medians on each node; all bars have the same scale"}
		t := document.Table{Rows: [][]document.Cell{document.Cells(append([]string{"Target"}, s.Parts...)...)}}
		for _, row := range s.Rows {
			bar, cells, sum := document.Bar{Name: row.Target}, document.Cells(row.Target), 0.0
			for part, stage := range row.Stages {
				text := quantity.None
				if stage.Nodes > 0 {
					text = quantity.Text(stage.Mean, s.Unit)
					sum += stage.Mean
					bar.Pieces = append(bar.Pieces, document.Piece{First: part, Last: part, Value: max(stage.Mean, 0), Text: s.Parts[part] + " " + text + interval(stage.CI, s.Unit)})
				}
				cell := document.Cell{{Text: text}}
				if stage.CI != nil {
					cell = append(cell, document.Span{Text: quantity.Range(stage.CI.Lo, stage.CI.Hi, s.Unit), Tone: document.Faint})
				}
				cells = append(cells, cell)
			}
			bar.Text = quantity.Text(sum, s.Unit)
			bars.Bars, t.Rows = append(bars.Bars, bar), append(t.Rows, cells)
		}
		if len(bars.Bars) == 0 {
			continue
		}
		note := fmt.Sprintf("The interval of a part is over nodes, and needs %d of them.", stats.MinNodes)
		blocks = append(blocks, document.Section{
			ID: "stages/" + s.Key.Title() + "/" + s.Title, Title: s.Title, Note: s.Key.Title(), Detail: true, Blocks: []document.Block{bars, t, document.Text{Text: note, Tone: document.Faint}},
		})
	}
	return blocks
}

func interval(ci *stats.Interval, unit result.Unit) string {
	if ci == nil {
		return ""
	}
	return " (" + quantity.Range(ci.Lo, ci.Hi, unit) + ")"
}
