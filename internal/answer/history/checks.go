package history

import (
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/report/history"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// checks have a check for each series. It fails if the last change of the level is for the worse.
func checks(h *history.History) []document.Check {
	list := []document.Check{}
	for i := range h.Series {
		s := &h.Series[i]
		c := document.Check{Suite: h.Metric, Name: s.Title(), Status: document.Passed, Answer: "no change for the worse", Message: s.Summary()}
		if n := len(s.Changes); n > 0 {
			if last := s.Changes[n-1]; (last.After > last.Before) == (s.Metric.Better == result.Lower) {
				c.Status, c.Answer, c.Message = document.Failed, "changed for the worse", s.Describe(last)
			}
		}
		list = append(list, c)
	}
	return list
}
