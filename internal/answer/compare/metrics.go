package compare

import (
	"fmt"
	"math"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/sides"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// metrics are the metrics that show something, and then the others.
func metrics(c *sides.Comparison) []document.Block {
	var findings, rest []*sides.Cell
	for i := range c.Cells {
		if cell := &c.Cells[i]; cell.Notable() {
			findings = append(findings, cell)
		} else {
			rest = append(rest, cell)
		}
	}
	var blocks []document.Block
	if findings != nil {
		blocks = append(blocks, document.Section{ID: "shown", Title: wording.Counted(len(findings), "metric") + " with a difference", Blocks: byBenchmark(findings)})
	}
	if rest != nil {
		blocks = append(blocks, document.Section{ID: "others", Title: wording.Counted(len(rest), "metric") + " without a shown difference", Folded: true, Blocks: byBenchmark(rest)})
	}
	return blocks
}

// byBenchmark is a section for each benchmark, in the order of their first metrics.
func byBenchmark(cells []*sides.Cell) []document.Block {
	var titles []string
	tables := map[string]*document.Table{}
	for _, cell := range cells {
		title := cell.Title()
		if tables[title] == nil {
			titles = append(titles, title)
			t := listing("Target", "Metric", "A", "B", "B against A", "95 % interval", "Of means", "Runs", "Verdict")
			tables[title] = &t
		}
		tables[title].Rows = append(tables[title].Rows, metric(cell))
	}
	var blocks []document.Block
	for _, title := range titles {
		blocks = append(blocks, document.Section{Title: title, Blocks: []document.Block{*tables[title]}})
	}
	return blocks
}

// metric is the row of a metric.
func metric(c *sides.Cell) []document.Cell {
	verdict := c.Word()
	if c.Why != "" {
		verdict += ": " + c.Why
	}
	cells := document.Cells(
		c.Target, c.Metric.Name, value(c, &c.A), value(c, &c.B), quantity.ChangeBeside(c.CI, c.Ratio), quantity.ChangeInterval(c.CI), quantity.ChangeBeside(c.CI, c.MeanRatio),
		fmt.Sprintf("%d, %d", len(c.A.Runs), len(c.B.Runs)), verdict,
	)
	tone := verdictTone(c.Verdict)
	cells[len(cells)-1][0].Tone = tone
	if tone == document.Strong { // a verdict to notice, without a shown change
		tone = document.Faint
	}
	cells[4][0].Tone, cells[5][0].Tone, cells[6][0].Tone = tone, document.Faint, document.Faint
	return cells
}

// verdictTone is the tone of a verdict. A metric without a difference, or without a ratio, is faint.
func verdictTone(v stats.Verdict) document.Tone {
	switch v {
	case stats.Slower:
		return document.Bad
	case stats.Faster:
		return document.Good
	case sides.MaybeRun, stats.TrialsLost, stats.TooNoisy:
		return document.Strong
	default:
		return document.Faint
	}
}

// value spells the value of one side.
func value(c *sides.Cell, v *sides.Values) string {
	if math.IsNaN(v.Median) {
		return quantity.None
	}
	return quantity.Text(v.Median, c.Metric.Unit)
}
