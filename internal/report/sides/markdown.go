package sides

import (
	"fmt"
	"io"

	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/ci"
)

// Markdown writes the comparison for a comment of a pull request: the answer, the metrics that decide, and all others folded. A long
// comparison ends with the number of rows that are left out.
func (c *Comparison) Markdown(w io.Writer) error {
	m := ci.Markdown{Whole: "touchstone compare -o table"}
	headline := c.GateSummary()
	if headline == "" {
		headline = c.Summary()
	}
	m.Heading(c.NameA + " against " + c.NameB)
	m.Paragraph(headline)
	for _, n := range c.Notes {
		m.Note(n)
	}
	if len(c.Gates) > 0 {
		rows := [][]string{}
		for _, k := range c.sortedGates() {
			row := []string{string(k.Answer), k.subject(), k.Gate.String(), "", "", k.Why}
			if k.Index >= 0 {
				cell := &c.Cells[k.Index]
				row[3], row[4] = quantity.Change(cell.Ratio), quantity.ChangeInterval(cell.CI)
			}
			rows = append(rows, row)
		}
		m.Table([]string{"Answer", "Metric", "Gate", "B against A", "95 % interval", "Reason"}, rows)
	}
	var shown, others [][]string
	for i := range c.Cells {
		cell := &c.Cells[i]
		row := []string{
			cell.Title(), cell.Target, cell.Metric.Name, cell.side(cell.A), cell.side(cell.B), quantity.Change(cell.Ratio), quantity.ChangeInterval(cell.CI), because(cell.Word(), cell.Why),
		}
		if cell.notable() {
			shown = append(shown, row)
		} else {
			others = append(others, row)
		}
	}
	header := []string{"Benchmark", "Target", "Metric", "A", "B", "B against A", "95 % interval", "Verdict"}
	if len(shown) > 0 {
		m.Table(header, shown)
	}
	m.Fold(fmt.Sprintf("%s without a shown difference", quantity.Counted(len(others), "metric")), header, others)
	var oneSided [][]string
	for _, o := range c.OneSided {
		oneSided = append(oneSided, []string{o.Has, o.Title(), o.Target, o.Why})
	}
	m.Fold(quantity.Counted(len(oneSided), "benchmark")+" only on one side", []string{"Side", "Benchmark", "Target", "Reason"}, oneSided)
	var differences [][]string
	for _, d := range c.Differences {
		differences = append(differences, []string{d.Fact.Name(), values(d.A), values(d.B)})
	}
	m.Fold(quantity.Counted(len(differences), "fact")+" that the runs differ in", []string{"Fact", "A", "B"}, differences)
	var runs [][]string
	for _, side := range []struct {
		name string
		runs []Run
	}{{"A", c.A}, {"B", c.B}} {
		for _, r := range side.runs {
			runs = append(runs, []string{side.name, r.ID, r.Started, r.Host, r.Plan, quantity.Counted(r.Trials, "trial")})
		}
	}
	m.Fold(quantity.Counted(len(runs), "run"), []string{"Side", "Run", "Started", "Host", "Plan", "Trials"}, runs)
	return m.Write(w)
}
