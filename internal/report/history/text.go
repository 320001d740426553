package history

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// plotWidth is the width of the plot in characters.
const plotWidth = 32

// Text writes each series as a table with a plot from the smallest value to the largest.
func (h *History) Text(w io.Writer) error {
	for _, n := range h.Notes {
		fmt.Fprintln(w, "Note: "+n+"\n")
	}
	for i := range h.Series {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := h.Series[i].text(w); err != nil {
			return err
		}
	}
	return nil
}

func (s *Series) text(w io.Writer) error {
	fmt.Fprintln(w, s.Title())
	lo, hi := s.extent()
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	next := 0
	for i, p := range s.Points {
		if next < len(s.Changes) && s.Changes[next].At == i {
			if err := t.Flush(); err != nil {
				return err
			}
			fmt.Fprintln(w, "  ── change: "+s.Describe(s.Changes[next]))
			for _, line := range s.Changes[next].lines() {
				fmt.Fprintln(w, "     "+line)
			}
			next++
		}
		row := []string{p.StartedText(), p.Run, quantity.Text(p.Value, s.Metric.Unit), quantity.Counted(p.Trials, "trial"), plot(p.Value, lo, hi)}
		if remark := p.Remark(); remark != "" {
			row = append(row, remark)
		}
		fmt.Fprintln(t, "  "+strings.Join(row, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "  "+s.Summary())
	return nil
}

// StartedText spells the start of the run in UTC.
func (p *Point) StartedText() string {
	if p.Started.IsZero() {
		return "unknown time"
	}
	return p.Started.UTC().Format("2006-01-02 15:04")
}

// Describe states a change: "1.08 × slower, from 20.0 ms to 21.6 ms (p = 0.001)".
func (s *Series) Describe(c Change) string {
	text := "from " + quantity.Text(c.Before, s.Metric.Unit) + " to " + quantity.Text(c.After, s.Metric.Unit)
	if !math.IsNaN(c.Ratio) {
		text = quantity.Change(c.Ratio) + ", " + text
	}
	if c.Word != "" {
		text = c.Word + ": " + text
	}
	return fmt.Sprintf("%s (p = %s)", text, quantity.PValue(c.P))
}

// lines are the reason of the word, if it has one, and the facts.
func (c *Change) lines() []string {
	if c.Why == "" {
		return c.Facts
	}
	return append([]string{"No direction: " + c.Why + "."}, c.Facts...)
}

// Summary states the number of changes, or that the runs are too few for one.
func (s *Series) Summary() string {
	switch {
	case s.Short():
		return fmt.Sprintf("%s; a change needs at least %d.", quantity.Counted(len(s.Points), "run"), stats.MinHistory)
	case len(s.Changes) == 0:
		return fmt.Sprintf("%s; no change is shown.", quantity.Counted(len(s.Points), "run"))
	}
	return fmt.Sprintf("%s; %s. One series in twenty has a change by chance, and more if the machine drifts.", quantity.Counted(len(s.Points), "run"), quantity.Counted(len(s.Changes), "change"))
}

// extent returns the smallest and the largest value.
func (s *Series) extent() (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, p := range s.Points {
		lo, hi = min(lo, p.Value), max(hi, p.Value)
	}
	return lo, hi
}

// plot places a dot between the smallest and the largest value.
func plot(value, lo, hi float64) string {
	at := 0
	if hi > lo {
		at = int((value - lo) / (hi - lo) * (plotWidth - 1))
	}
	return "│" + strings.Repeat(" ", at) + "●" + strings.Repeat(" ", plotWidth-1-at) + "│"
}
