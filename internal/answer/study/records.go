package study

import (
	"maps"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/report/reproduce"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// columns are the columns of a record. The part is "claim" for a comparison of a claim, and "cell" for a cell of a table.
var columns = []string{
	"part", "name", "place", "text", "verdict", "target", "other", "benchmark", "params", "metric", "unit", "n", "median", "low", "high",
	"ratio", "ratio_low", "ratio_high", "printed", "printed_unit", "printed_ratio", "flag", "reason",
}

// records has a row for each comparison of a claim, one for a claim without comparisons, and one for each cell of a table with a text or a value.
func records(r *reproduce.Reproduction) document.Records {
	out := document.Records{Columns: columns}
	for i := range r.Claims {
		c := &r.Claims[i]
		if len(c.Comparisons) == 0 {
			out.Rows = append(out.Rows, record(map[string]any{"part": "claim", "name": c.Name, "place": c.Place, "text": c.Text, "verdict": string(c.Verdict), "reason": c.Reason}))
		}
		for n := range c.Comparisons {
			out.Rows = append(out.Rows, claimed(c, &c.Comparisons[n]))
		}
	}
	for i := range r.Tables {
		t := &r.Tables[i]
		for row := range t.Cells {
			for column := range t.Cells[row] {
				if c := &t.Cells[row][column]; c.Printed != "" || c.Ours != nil {
					out.Rows = append(out.Rows, printed(t, c, t.Rows[row].Label, t.Columns[column].Heading))
				}
			}
		}
	}
	return out
}

// claimed is the row of a comparison of a claim.
func claimed(c *reproduce.Claim, k *reproduce.Comparison) []any {
	values := map[string]any{
		"part": "claim", "name": c.Name, "place": c.Place, "text": c.Text, "verdict": string(k.Verdict), "target": k.Target, "other": k.Other,
		"benchmark": k.Of.Benchmark, "params": params(k.Of.Params), "metric": k.Of.Metric, "reason": k.Reason,
	}
	ratio(values, k.Compared)
	return record(values)
}

// printed is the row of a cell of a table.
func printed(t *reproduce.Table, c *reproduce.Cell, row, column string) []any {
	values := map[string]any{
		"part": "cell", "name": t.Name, "place": t.Place, "text": row + ", " + column, "target": c.Of.Target, "benchmark": c.Of.Benchmark, "params": params(c.Of.Params),
		"metric": c.Of.Metric, "printed": c.Printed, "printed_unit": c.Of.Unit, "printed_ratio": document.Number(c.Published), "flag": c.Flag, "reason": c.Reason,
	}
	if c.Ratio != nil {
		values["other"] = t.Reference
		ratio(values, c.Ratio)
	}
	if c.Ours != nil {
		values["unit"], values["n"], values["median"] = string(c.Metric.Unit), c.Ours.N, document.Number(c.Ours.Median)
		if ci := c.Ours.CI; ci != nil {
			values["low"], values["high"] = document.Number(ci.Lo), document.Number(ci.Hi)
		}
	}
	return record(values)
}

func ratio(values map[string]any, c *stats.Comparison) {
	if c == nil {
		return
	}
	values["ratio"] = document.Number(c.Ratio)
	if c.CI != nil {
		values["ratio_low"], values["ratio_high"] = document.Number(c.CI.Lo), document.Number(c.CI.Hi)
	}
}

// record puts values into the order of the columns.
func record(values map[string]any) []any {
	var row []any
	for _, name := range columns {
		row = append(row, values[name])
	}
	return row
}

func params(values map[string]string) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		words = append(words, name+"="+values[name])
	}
	return strings.Join(words, " ")
}
