package finding

import (
	"fmt"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Warnings collects the reasons to trust the numbers of a run less. Warnings about all numbers come first.
func Warnings(a *analysis.Analysis, run int) []WarningGroup {
	r := &a.Runs[run]
	groups := []WarningGroup{
		state(r.State),
		emulation(&r.Host),
		dated(r),
		{Title: "The host", Items: r.Host.Warnings, Advice: "see touchstone host on that machine; touchstone host tune changes some of these settings"},
		{Title: "Caveats of this run", Items: r.Caveats},
		lostBlocks(a, run),
		fewBlocks(a, run),
		disagreements(a, run),
		disturbed(r),
		ofKind(a, run, stats.Bimodal, "Values in two groups"),
		ofKind(a, run, stats.Drift, "Drift over the run"),
		ofKind(a, run, stats.Dependence, "Values that depend on the ones before"),
		dependentRatios(a, run),
		carryOver(r),
		ofKind(a, run, stats.Outliers, "Outliers"),
	}
	return slices.DeleteFunc(groups, func(g WarningGroup) bool { return len(g.Items) == 0 })
}

func state(s result.State) WarningGroup {
	const suffix = "; the report has the trials until then"
	g := WarningGroup{Title: "The run is not complete", Advice: "resume it with touchstone benchmark --resume"}
	switch s {
	case result.Interrupted:
		g.Items = []string{"the run was interrupted" + suffix}
	case result.Killed:
		g.Items = []string{"the process of the run was killed" + suffix}
	case result.Running:
		g.Items, g.Advice = []string{"the run was in progress when this report was made"}, ""
	case result.Complete:
	}
	return g
}

// emulation warns of a machine with an emulated CPU.
func emulation(h *result.Host) WarningGroup {
	g := WarningGroup{Title: "The CPU is emulated", Advice: "use results of an emulated machine to check features and failures; measure on a real machine"}
	switch h.Nature() {
	case result.Emulated:
		g.Items = []string{"the emulator makes times many times longer, and by different factors for different operations; a real machine may give other ratios"}
	case result.GuestOrEmulated:
		g.Title = "The CPU may be emulated"
		g.Items = []string{"the machine is a QEMU machine that does not report whether its CPU is emulated; if it is, a real machine may give other ratios"}
	case result.Physical, result.Guest:
	}
	return g
}

// lostBlocks lists the cells with numbers that have lost blocks.
func lostBlocks(a *analysis.Analysis, run int) WarningGroup {
	g := WarningGroup{Title: "Lost blocks", Advice: fmt.Sprintf("trials are not lost by chance, and slow ones are lost first: a target that has lost more than "+
		"%.0f %% of its blocks is not called better, and if the baseline has lost more, no target is called worse", 100*stats.MostLost)}
	for _, b := range a.Benchmarks() {
		if b.Sections[run] == nil {
			continue
		}
		for _, o := range b.Sections[run].Targets {
			if o.Lost > 0 {
				g.Items = append(g.Items, fmt.Sprintf("%s on %s: %s: %s", b.Title(), o.Target, o.LostText(), firstLine(o.Reason)))
			}
		}
	}
	return g
}

// firstLine is the first line of a reason, which may have the output of a program behind it.
func firstLine(reason string) string {
	line, _, _ := strings.Cut(reason, "\n")
	return line
}

func fewBlocks(a *analysis.Analysis, run int) WarningGroup {
	g := WarningGroup{Title: "Too few blocks", Advice: "run more blocks: an interval needs six, and a verdict needs more with every target"}
	for _, b := range a.Benchmarks() {
		s := b.Sections[run]
		if s == nil {
			continue
		}
		need, what := stats.MinSamples, "an interval"
		for _, metric := range b.Metrics {
			for _, row := range metric.Rows {
				if n := row.Cells[run].BlocksNeeded; n > 0 {
					need, what = max(need, n), "a verdict"
				}
			}
		}
		var texts []string
		var counts []int
		for _, o := range s.Targets {
			if 0 < o.OK && o.OK < need {
				texts, counts = append(texts, fmt.Sprintf("%s %d", o.Target, o.OK)), append(counts, o.OK)
			}
		}
		if len(texts) == len(s.Targets) && len(texts) > 1 && slices.Min(counts) == slices.Max(counts) {
			texts = []string{fmt.Sprintf("%d on each target", counts[0])}
		}
		if len(texts) > 0 {
			g.Items = append(g.Items, fmt.Sprintf("%s: %s needs %d blocks; measured: %s", b.Title(), what, need, strings.Join(texts, ", ")))
		}
	}
	return g
}

// dependentRatios lists the comparisons whose blocks are not independent of each other.
func dependentRatios(a *analysis.Analysis, run int) WarningGroup {
	g := WarningGroup{
		Title: "Ratios that depend on the ones before",
		Advice: "one target has a mood of its own, such as a busy daemon, which pairs by block do not remove: false differences are then several times more likely; " +
			"run again later, and trust a difference that returns",
	}
	for _, b := range a.Benchmarks() {
		for _, m := range b.Metrics {
			for _, row := range m.Rows {
				if c := row.Cells[run].Comparison; c != nil && c.Dependent {
					g.Items = append(g.Items, fmt.Sprintf("%s, %s on %s", b.Title(), m.Name, row.Target))
				}
			}
		}
	}
	return g
}

// ofKind collects the warnings of one kind over all cells of a run. A derived metric would repeat the warnings of its source.
func ofKind(a *analysis.Analysis, run int, kind stats.WarningKind, title string) WarningGroup {
	g := WarningGroup{Title: title}
	for _, b := range a.Benchmarks() {
		for _, metric := range b.Metrics {
			if metric.DerivedFrom != "" {
				continue
			}
			for _, row := range metric.Rows {
				if row.Cells[run].Summary == nil {
					continue
				}
				for _, w := range row.Cells[run].Summary.Warnings {
					if w.Kind == kind {
						g.Advice = w.Advice
						g.Items = append(g.Items, fmt.Sprintf("%s, %s on %s: %s", b.Title(), metric.Name, row.Target, w.Message))
					}
				}
			}
		}
	}
	return g
}

// disturbed lists the disturbances of the trials behind the numbers.
func disturbed(run *analysis.Run) WarningGroup {
	g := WarningGroup{
		Title:  "Disturbed trials",
		Advice: "the trials count, and plots show them hollow; stop other programs on the host, and run more blocks",
	}
	for _, d := range run.Disturbances {
		g.Items = append(g.Items, wording.Counted(d.Trials, "trial")+": "+d.Mark)
	}
	return g
}

// carryOver lists the metrics whose values depend on the target before.
func carryOver(run *analysis.Run) WarningGroup {
	g := WarningGroup{
		Title: "Values that depend on the target before",
		Advice: "a target leaves something to the next: a warm cache, work of a daemon, a hot CPU; the order is random in each block, so the ratios are not biased towards one target, " +
			"but they hold for this set of targets; measure the two targets without each other to see how much it matters",
	}
	for _, c := range run.CarryOvers {
		previous := "as the first of its block"
		if c.Before != "" {
			previous = "after " + c.Before
		}
		g.Items = append(g.Items, fmt.Sprintf("%s, %s: %s has %s times its other values %s, in %d blocks", c.Title(), c.Metric, c.Target, quantity.FactorNumber(c.Ratio), previous, c.Blocks))
	}
	return g
}

// WarningGroup is the warnings of one kind.
type WarningGroup struct {
	Title  string   `json:"title" doc:"The kind of the warnings."`
	Advice string   `json:"advice,omitempty" doc:"The remedy."`
	Items  []string `json:"items" doc:"The warnings."`
}
