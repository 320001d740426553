package compare

import (
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/report/sides"
)

// records has a row for each metric, for each that only one side has, for each gate without a metric, and for each gate by counts.
func records(c *sides.Comparison) document.Records {
	r := document.Records{Columns: []string{
		"benchmark", "params", "params_b", "target", "metric", "unit", "better", "median_a", "median_b", "ratio", "ratio_low", "ratio_high",
		"ratio_of_means", "ratio_of_means_low", "ratio_of_means_high", "runs_a", "runs_b", "trials_a", "trials_b", "lost_a", "lost_b",
		"p", "p_adjusted", "verdict", "in_metric_alone", "reason", "gate", "gate_answer", "gate_reason",
	}}
	gates := map[int]*sides.Check{}
	for i := range c.Gates {
		gates[c.Gates[i].Index] = &c.Gates[i]
	}
	for i := range c.Cells {
		cell := &c.Cells[i]
		low, high := document.Ends(cell.CI)
		meanLow, meanHigh := document.Ends(cell.MeanCI)
		row := []any{
			cell.Benchmark, cell.Params, cell.ParamsB, cell.Target, cell.Metric.Name, string(cell.Metric.Unit), string(cell.Metric.Better),
			document.Number(cell.A.Median), document.Number(cell.B.Median), document.Number(cell.Ratio), low, high,
			document.Number(cell.MeanRatio), meanLow, meanHigh, len(cell.A.Runs), len(cell.B.Runs), cell.A.Trials, cell.B.Trials, cell.A.Lost, cell.B.Lost,
			document.Number(cell.P), document.Number(cell.Adjusted), cell.Word(), cell.Alone, cell.Why, nil, nil, nil,
		}
		if k := gates[i]; k != nil {
			gate(row, k)
		}
		r.Rows = append(r.Rows, row)
	}
	for _, o := range c.OneSided {
		for _, m := range o.Metrics {
			row := make([]any, len(r.Columns))
			copy(row, []any{o.Benchmark, o.Params, "", o.Target, m.Name, string(m.Unit), string(m.Better)})
			row[len(row)-4] = "only side " + o.Has + " has values: " + o.Why
			for i := range c.Gates {
				if k := &c.Gates[i]; k.Index < 0 && k.Cell == o.Cell && k.Metric.Name == m.Name {
					gate(row, k)
				}
			}
			r.Rows = append(r.Rows, row)
		}
	}
	for i := range c.Gates {
		if k := &c.Gates[i]; k.Index < 0 && k.Metric.Name == "" {
			row := make([]any, len(r.Columns))
			gate(row, k)
			r.Rows = append(r.Rows, row)
		}
	}
	for _, k := range c.CountChecks() {
		row := make([]any, len(r.Columns))
		row[0], row[3] = k.Title, k.Target
		copy(row[len(row)-3:], []any{k.Gate, string(k.Answer), k.Reason})
		r.Rows = append(r.Rows, row)
	}
	return r
}

// gate fills the last columns of a row.
func gate(row []any, k *sides.Check) {
	copy(row[len(row)-3:], []any{k.Gate.String(), string(k.Answer), k.Why})
}
