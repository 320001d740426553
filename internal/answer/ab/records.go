package ab

import (
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/report/ab"
)

// records has a row for each value, and for each gate by counts.
func records(c *ab.Document) document.Records {
	r := document.Records{Columns: []string{
		"benchmark", "params", "metric", "unit", "better", "target_a", "target_b", "margin", "ratio", "ratio_low", "ratio_high", "between_runs_log_sd",
		"lost_a", "lost_b", "runs", "decided_after_runs", "answer", "reason",
	}}
	for i := range c.Values {
		v := &c.Values[i]
		var decision any
		if v.After > 0 {
			decision = v.After
		}
		r.Rows = append(r.Rows, []any{
			v.Benchmark, v.Params, v.Metric, string(v.Unit), string(v.Better), c.A.Target, c.B.Target, c.Margin,
			document.NumberOf(v.Ratio), document.NumberOf(v.Lo), document.NumberOf(v.Hi), document.NumberOf(v.Between),
			v.LostA, v.LostB, len(v.Ratios), decision, string(v.Answer), v.Reason,
		})
	}
	if c.Counts == nil {
		return r
	}
	for _, k := range c.Counts.Checks {
		row := make([]any, len(r.Columns))
		row[0], row[2], row[5], row[6] = k.Title, "counts of "+k.Name, c.A.Target, c.B.Target
		copy(row[len(row)-2:], []any{string(k.Answer), k.Gate + ": " + k.Reason})
		r.Rows = append(r.Rows, row)
	}
	return r
}
