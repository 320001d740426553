package history

import (
	"time"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/report/history"
)

// records has a row for each run of each series.
func records(h *history.History) document.Records {
	out := document.Records{Columns: []string{
		"benchmark", "params", "target", "host", "metric", "unit", "better", "run", "started", "state", "median", "trials", "lost_share", "after_change",
	}}
	for i := range h.Series {
		s := &h.Series[i]
		changes := map[int]string{}
		for j := range s.Changes {
			changes[s.Changes[j].At] = s.Describe(s.Changes[j])
		}
		for n := range s.Points {
			p := &s.Points[n]
			var start, change any
			if !p.Started.IsZero() {
				start = p.Started.UTC().Format(time.RFC3339)
			}
			if text, ok := changes[n]; ok {
				change = text
			}
			out.Rows = append(out.Rows, []any{
				s.Benchmark, s.Params, s.Target, s.Machine, s.Metric.Name, string(s.Metric.Unit), string(s.Metric.Better), p.Run, start, string(p.State),
				document.Number(p.Value), p.Trials, document.Number(p.Lost), change,
			})
		}
	}
	return out
}
