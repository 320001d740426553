package study

import (
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/report/reproduce"
)

// checks are the claims of the study with their verdicts.
func checks(r *reproduce.Reproduction) []document.Check {
	statuses := map[reproduce.Verdict]document.Status{
		reproduce.Agrees: document.Passed, reproduce.Disagrees: document.Failed, reproduce.CannotTell: document.Undecided, reproduce.NotMeasured: document.Skipped,
	}
	list := []document.Check{}
	for i := range r.Claims {
		c := &r.Claims[i]
		message := c.Text
		if c.Reason != "" {
			message += ": " + c.Reason
		}
		list = append(list, document.Check{Suite: r.Heading(), Name: c.Name + ", " + c.Place, Status: statuses[c.Verdict], Answer: string(c.Verdict), Message: message})
	}
	return list
}
