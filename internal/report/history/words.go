package history

import (
	"fmt"
	"math"

	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// StartedText spells the start of the run in UTC.
func (p *Point) StartedText() string {
	if p.Started.IsZero() {
		return "unknown time"
	}
	return p.Started.UTC().Format("2006-01-02 15:04")
}

// Describe states a change: "slower: +8.0 %, from 20.0 ms to 21.6 ms (p = 0.001)".
func (s *Series) Describe(c Change) string {
	if c.Verdict == "" {
		return fmt.Sprintf("the variation alone changed, with the level %s before and after (p = %s)", quantity.Text(c.After, s.Metric.Unit), quantity.PValue(c.P))
	}
	text := "from " + quantity.Text(c.Before, s.Metric.Unit) + " to " + quantity.Text(c.After, s.Metric.Unit)
	if !math.IsNaN(c.Ratio) {
		text = quantity.Change(c.Ratio) + ", " + text
	}
	return fmt.Sprintf("%s: %s (p = %s)", s.Word(&c), text, quantity.PValue(c.P))
}

// Word is the verdict of a change in the words of the metric. It is empty if only the variation changed.
func (s *Series) Word(c *Change) string { return quantity.VerdictWord(c.Verdict, s.Metric) }

// Lines are the reason of a verdict without a direction, and the facts.
func (c *Change) Lines() []string {
	if c.Why == "" {
		return c.Facts
	}
	return append([]string{"No direction: " + c.Why + "."}, c.Facts...)
}

// Summary states the number of changes, or that the runs are too few for one.
func (s *Series) Summary() string {
	switch {
	case s.Short():
		return fmt.Sprintf("%s; a change needs at least %d.", wording.Counted(len(s.Points), "run"), stats.MinHistory)
	case len(s.Changes) == 0:
		return fmt.Sprintf("%s; no change is shown.", wording.Counted(len(s.Points), "run"))
	}
	return fmt.Sprintf("%s; %s. One series in twenty has a change by chance, and more if the machine drifts.", wording.Counted(len(s.Points), "run"), wording.Counted(len(s.Changes), "change"))
}
