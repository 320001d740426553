package selfcheck

import (
	"time"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/report/selfcheck"
)

// records has a row for each delay of each selfcheck.
func records(list []selfcheck.Record) document.Records {
	out := document.Records{Columns: []string{"date", "target", "operation", "by", "delay_s", "share", "found_in_runs", "runs", "measured_s"}}
	for i := range list {
		r := &list[i]
		for _, d := range r.Delays {
			out.Rows = append(out.Rows, []any{
				r.Date.UTC().Format(time.RFC3339), r.Target, d.Verb, string(d.Kind), document.Number(d.Delay), document.Number(d.Share), d.Found, d.Runs,
				document.NumberOf(d.Measured),
			})
		}
	}
	return out
}
