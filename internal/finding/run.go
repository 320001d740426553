package finding

import (
	"fmt"
	"time"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/fact"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Started spells the start of the run in UTC. A run that another program measured may have none.
func Started(r *analysis.Run, layout string) string {
	if r.Started.IsZero() {
		return "at an unknown time"
	}
	return r.Started.UTC().Format(layout)
}

// State spells the state of the run with its duration: "complete after 2m51s". The duration is not known if the clock was set back
// before the run was resumed.
func State(r *analysis.Run) string {
	took := r.Ended.Sub(r.Started)
	if r.Ended.IsZero() || took < 0 {
		return string(r.State)
	}
	return string(r.State) + " after " + took.Round(time.Second).String()
}

// StatusCounts spells the numbers of trials by status: "10 ok", "2 timed out". The number of ok trials is always in it.
func StatusCounts(r *analysis.Run) []string {
	var texts []string
	for _, s := range []result.Status{result.OK, result.Failed, result.Timeout, result.Skipped} {
		if n := r.Counts[s]; n > 0 || s == result.OK {
			texts = append(texts, fmt.Sprintf("%d %s", n, quantity.StatusWord(s)))
		}
	}
	return texts
}

// Extent is the extent of a benchmark in words, by run.
func Extent(c *analysis.Coverage) fact.Row {
	f := fact.Row{ID: fact.ID{Kind: fact.Extent, Subject: c.Title()}, Differs: c.Differs}
	for i := range c.Cells {
		f.Values = append(f.Values, c.Cells[i].String())
	}
	return f
}
