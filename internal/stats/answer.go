package stats

import "slices"

// Answer is the answer to the question whether one side is worse than another by more than a margin. Comparisons of two builds and gates decide by it.
// A [Verdict] answers another question: which side is better. A side can be worse, and not worse by the margin.
type Answer string

// The answers. Inconclusive is no pass.
const (
	Worse        Answer = "worse than the margin"
	NotWorse     Answer = "not worse by the margin"
	Inconclusive Answer = "inconclusive"
)

// Answers lists the answers, the worst first.
func Answers() []Answer { return []Answer{Worse, Inconclusive, NotWorse} }

// Overall is the worst of several answers. It is empty without any.
func Overall(answers []Answer) Answer {
	for _, worst := range Answers() {
		if slices.Contains(answers, worst) {
			return worst
		}
	}
	return ""
}
