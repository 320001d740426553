package document

import "github.com/touchstone-bench/touchstone/internal/stats"

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
