package runs

import (
	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// records has a row for each metric of each benchmark on each target in each run, also without a value. A metric that the target lacks by its
// nature has none.
func records(r *report.Report) document.Records {
	out := document.Records{Columns: []string{
		"run", "host", "benchmark", "params", "target", "metric", "unit", "better", "n", "median", "low", "high", "mean", "sd", "min", "max",
		"baseline", "ratio", "ratio_low", "ratio_high", "p", "p_adjusted", "verdict", "holds_everywhere", "reason", "ok", "failed", "timeout", "skipped", "disturbed",
	}}
	for _, bench := range r.Benchmarks() {
		for run, section := range bench.Sections {
			if section == nil {
				continue
			}
			outcomes := map[string]*analysis.Outcome{}
			for i := range section.Targets {
				outcomes[section.Targets[i].Target] = &section.Targets[i]
			}
			for i := range bench.Metrics {
				m := &bench.Metrics[i]
				for _, row := range m.Rows {
					cell := &row.Cells[run]
					if cell.Absent {
						continue
					}
					values := []any{r.Runs[run].ID, r.Runs[run].Host.Hostname, bench.Name, bench.Params, row.Target, m.Name, string(m.Unit), string(m.Better)}
					values = append(values, summary(cell.Summary)...)
					values = append(values, section.Baseline)
					values = append(values, comparison(cell.Comparison, m)...)
					values = append(values, cell.Reason)
					out.Rows = append(out.Rows, append(values, trials(outcomes[row.Target])...))
				}
			}
		}
	}
	return out
}

// summary is the columns from n to max.
func summary(s *stats.Summary) []any {
	if s == nil {
		return make([]any, 8)
	}
	low, high := document.Ends(s.CI)
	return []any{
		s.N, document.Number(s.Median), low, high, document.Number(s.Mean), document.Number(s.SD), document.Number(s.Min), document.Number(s.Max),
	}
}

// comparison is the columns from ratio to holds_everywhere.
func comparison(c *stats.Comparison, m *analysis.Metric) []any {
	if c == nil {
		return make([]any, 7)
	}
	low, high := document.Ends(c.CI)
	return []any{document.Number(c.Ratio), low, high, document.Number(c.P), document.Number(c.Adjusted), quantity.VerdictWord(c.Verdict, m.Metric), c.Everywhere}
}

// trials is the columns ok, failed, timeout, skipped and disturbed.
func trials(o *analysis.Outcome) []any {
	if o == nil {
		return make([]any, 5)
	}
	return []any{o.OK, o.Failed, o.Timeout, o.Skipped, o.Disturbed}
}
