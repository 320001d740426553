package history

import (
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/report/history"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// checks have a check for each series. It fails if the last change of the level is for the worse, and is undecided if that change has no direction.
func checks(h *history.History) []document.Check {
	list := []document.Check{}
	for i := range h.Series {
		s := &h.Series[i]
		pass := document.Check{Suite: h.Metric, Name: s.Title(), Status: document.Passed, Answer: "no change for the worse", Message: s.Summary()}
		c := pass
		for _, change := range s.Changes {
			switch change.Verdict {
			case "": // the level is that before
			case stats.Faster:
				c = pass
			case stats.Slower:
				c.Status, c.Answer, c.Message = document.Failed, "changed for the worse", s.Describe(change)
			default:
				c.Status, c.Answer, c.Message = document.Undecided, "changed without a direction", s.Describe(change)+"; "+change.Why
			}
		}
		list = append(list, c)
	}
	return list
}
