package document

import (
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/stats"
)

// AnswerTone is the tone of an answer.
func AnswerTone(a stats.Answer) Tone {
	switch a {
	case stats.Worse:
		return Bad
	case stats.NotWorse:
		return Good
	case stats.Inconclusive:
		return Strong
	}
	return Plain
}

// AnswerStatus is an answer as the result of a check.
func AnswerStatus(a stats.Answer) Status {
	switch a {
	case stats.Worse:
		return Failed
	case stats.NotWorse:
		return Passed
	case stats.Inconclusive:
	}
	return Undecided
}

// Settle gives another status to the undecided checks, and says so in the answer.
func (d *Document) Settle(status Status) {
	count := 0
	for i := range d.Checks {
		if d.Checks[i].Status == Undecided {
			d.Checks[i].Status = status
			count++
		}
	}
	if count > 0 {
		words := map[Status]string{Warned: "warnings", Skipped: "skipped checks"}
		d.Answer = append(d.Answer, Text{Text: fmt.Sprintf("Inconclusive checks count as %s here: %d of %d.", words[status], count, len(d.Checks)), Tone: Advice})
	}
}
