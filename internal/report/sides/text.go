package sides

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// side spells the value of one side: "21.3 ms".
func (c *Cell) side(v Values) string {
	if math.IsNaN(v.Median) {
		return quantity.None
	}
	return quantity.Text(v.Median, c.Metric.Unit)
}

// Summary states the result in a sentence or two.
func (c *Comparison) Summary() string {
	text := quantity.Counted(len(c.Cells), "metric") + " compared"
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
	count := func(a Answer) (n int) {
		for _, k := range c.Gates {
			if k.Answer == a {
				n++
			}
		}
		return n
	}
	worse, open, fine := count(Worse), count(Inconclusive), count(NotWorse)
	gated := quantity.Counted(len(c.Gates), "gated metric")
	switch c.Outcome() {
	case Worse:
		return fmt.Sprintf("Regression: of %s %d worse than the margin, %d undecided, %d not worse.", gated, worse, open, fine)
	case Inconclusive:
		return fmt.Sprintf("Inconclusive, which is no pass: of %s %d undecided, %d not worse by the margin.", gated, open, fine)
	case NotWorse:
		return fmt.Sprintf("Passed: %s not worse by the margin.", gated)
	}
	return ""
}

// Text writes the comparison as tables.
func (c *Comparison) Text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(cells ...string) {
		for i, cell := range cells {
			cells[i] = quantity.OneLine(cell)
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	for _, side := range []struct {
		name, of string
		runs     []Run
	}{{"A", c.NameA, c.A}, {"B", c.NameB, c.B}} {
		line(side.name, side.of, quantity.Counted(len(side.runs), "run"))
		for _, r := range side.runs {
			line("", "  "+r.ID, r.Started, r.Host, r.Plan, quantity.Counted(r.Trials, "trial"))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(c.Differences) > 0 {
		fmt.Fprintln(w, "\nThe runs differ, and the comparison was asked for nevertheless:")
		for _, d := range c.Differences {
			fmt.Fprintln(w, "  "+quantity.OneLine(d.String()))
		}
	}
	for _, n := range c.Notes {
		fmt.Fprintln(w, "\nNote: "+quantity.OneLine(n))
	}
	for title, cells := range c.byTitle {
		fmt.Fprintln(w, "\n"+quantity.OneLine(title))
		line("  TARGET", "METRIC", "A", "B", "B AGAINST A", "95 % INTERVAL", "OF MEANS", "RUNS", "VERDICT")
		for _, cell := range cells {
			line("  "+cell.Target, cell.Metric.Name, cell.side(cell.A), cell.side(cell.B), quantity.Change(cell.Ratio), quantity.ChangeInterval(cell.CI), quantity.Change(cell.MeanRatio),
				fmt.Sprintf("%d, %d", len(cell.A.Runs), len(cell.B.Runs)), because(cell.Word(), cell.Why))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if len(c.OneSided) > 0 {
		fmt.Fprintln(w, "\nOnly on one side")
		for _, o := range c.OneSided {
			line("  "+o.Has, o.Title(), o.Target, o.Why)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if len(c.Gates) > 0 {
		fmt.Fprintln(w, "\nGates")
		for _, k := range c.sortedGates() {
			line("  "+string(k.Answer), k.subject(), k.Gate.String(), k.Why)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintln(w, "\n"+c.Summary())
	if text := c.GateSummary(); text != "" {
		fmt.Fprintln(w, text)
	}
	return nil
}

func because(word, why string) string {
	if why == "" {
		return word
	}
	return word + ": " + why
}

// byTitle calls yield for each benchmark with its cells.
func (c *Comparison) byTitle(yield func(title string, cells []Cell) bool) {
	var titles []string
	cells := map[string][]Cell{}
	for _, cell := range c.Cells {
		title := cell.Title()
		if cells[title] == nil {
			titles = append(titles, title)
		}
		cells[title] = append(cells[title], cell)
	}
	for _, title := range titles {
		if !yield(title, cells[title]) {
			return
		}
	}
}

// sortedGates are the checks, the worst first.
func (c *Comparison) sortedGates() []Check {
	order := []Answer{Worse, Inconclusive, NotWorse}
	all := slices.Clone(c.Gates)
	slices.SortStableFunc(all, func(a, b Check) int { return slices.Index(order, a.Answer) - slices.Index(order, b.Answer) })
	return all
}

// subject names the metric of a check.
func (k *Check) subject() string {
	if k.Metric.Name == "" {
		return "no metric"
	}
	return fmt.Sprintf("%s %s on %s", analysis.Key{Name: k.Benchmark, Params: k.Params}.Title(), k.Metric.Name, k.Target)
}
