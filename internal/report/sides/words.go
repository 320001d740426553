package sides

import (
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Summary states the result in a sentence or two.
func (c *Comparison) Summary() string {
	text := wording.Counted(len(c.Cells), "metric") + " compared"
	switch {
	case c.Compared == 0:
		text += "; none of them has a test."
	case c.Shown+c.Alone == 0:
		text += "; no difference is shown, which does not prove equality."
	case c.Single:
		text += fmt.Sprintf("; %d differ between these two runs, and the cause may be the runs.", c.Shown+c.Alone)
	default:
		text += fmt.Sprintf("; %d differ over the whole comparison, and %d in their metric alone. Without any difference, about %.1f of %d would differ in their metric alone by chance.",
			c.Shown, c.Alone, stats.Alpha*float64(c.Compared), c.Compared)
	}
	return text
}

// GateSummary states the answer of all gates. It is empty without a gate.
func (c *Comparison) GateSummary() string {
	answers := c.answers()
	count := func(a stats.Answer) int {
		return len(lists.Filter(answers, func(answer stats.Answer) bool { return answer == a }))
	}
	failures, open, fine := count(stats.Worse), count(stats.Inconclusive), count(stats.NotWorse)
	noun := "gated metric"
	if len(answers) > len(c.Gates) {
		noun = "gated value"
	}
	gated := wording.Counted(len(answers), noun)
	switch c.Outcome() {
	case stats.Worse:
		return fmt.Sprintf("Regression: of %s %d worse than the margin, %d undecided, %d not worse.", gated, failures, open, fine)
	case stats.Inconclusive:
		return fmt.Sprintf("Inconclusive, which is no pass: of %s %d undecided, %d not worse by the margin.", gated, open, fine)
	case stats.NotWorse:
		return fmt.Sprintf("Passed: %s not worse by the margin.", gated)
	}
	return ""
}
