package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// warnings collects what makes the numbers less trustworthy, what concerns all of them
// first.
func warnings(m *Model, trials []result.Trial) []WarningGroup {
	groups := []WarningGroup{
		state(m.Run.State),
		emulation(&m.Run.Host),
		{Title: "The host", Items: m.Run.Host.Warnings},
		{Title: "Caveats of this run", Items: m.Run.Caveats},
		fewBlocks(m),
		disturbed(trials),
		ofKind(m, stats.Bimodal, "Values in two groups"),
		ofKind(m, stats.Drift, "Drift over the run"),
		ofKind(m, stats.Outliers, "Outliers"),
	}
	return slices.DeleteFunc(groups, func(g WarningGroup) bool { return len(g.Items) == 0 })
}

func state(s result.State) WarningGroup {
	g := WarningGroup{Title: "The run is not complete", Advice: "go on with touchstone benchmark --resume"}
	switch s {
	case result.Interrupted:
		g.Items = []string{"it was interrupted; the report shows what was measured until then"}
	case result.Running:
		g.Items = []string{"it was still under way when this report was made"}
		g.Advice = ""
	case result.Killed:
		g.Items = []string{"it was killed; the report shows the trials that were recorded until then"}
	case result.Complete:
	}
	return g
}

// emulation warns of a machine whose CPU is a program.
func emulation(h *result.Host) WarningGroup {
	g := WarningGroup{Title: "The CPU is emulated", Advice: "take results of an emulated machine for what works and what does not, and measure on a real one"}
	switch h.Nature() {
	case result.Emulated:
		g.Items = []string{"times are those of the emulator, many times longer, and not by the same factor everywhere, so that ratios too need not be those of a real machine"}
	case result.GuestOrEmulated:
		g.Title = "The CPU may be emulated"
		g.Items = []string{"the machine is QEMU's, and does not tell whether its CPU is a program; if so, ratios too need not be those of a real machine"}
	case result.Physical, result.Guest:
	}
	return g
}

func fewBlocks(m *Model) WarningGroup {
	g := WarningGroup{Title: "Too few blocks", Advice: "run more blocks: an interval needs six, a verdict more with every target"}
	for _, s := range m.Suites {
		for _, b := range s.Benchmarks {
			need := stats.MinSamples
			for _, metric := range b.Metrics {
				need = max(need, metric.BlocksNeeded)
			}
			var few []string
			var counts []int
			for _, o := range b.Targets {
				if 0 < o.OK && o.OK < need {
					few, counts = append(few, fmt.Sprintf("%s %d", o.Target, o.OK)), append(counts, o.OK)
				}
			}
			if len(few) == len(b.Targets) && len(few) > 1 && slices.Min(counts) == slices.Max(counts) {
				few = []string{fmt.Sprintf("%d on each target", counts[0])}
			}
			if len(few) > 0 {
				g.Items = append(g.Items, fmt.Sprintf("%s: of the %d blocks that a verdict needs here there are: %s", b.Title(), need, strings.Join(few, ", ")))
			}
		}
	}
	return g
}

// disturbed counts the trials behind the numbers by what the host did. Marks that differ in
// their numbers only are counted together.
func disturbed(trials []result.Trial) WarningGroup {
	g := WarningGroup{
		Title:  "Disturbed trials",
		Advice: "they are kept, and hollow in plots; stop what else runs on the host, and run more blocks",
	}
	var kinds []string
	count := map[string]int{}
	example := map[string]string{}
	for _, t := range trials {
		if t.Warmup || t.Status != result.OK {
			continue
		}
		for _, mark := range t.Host.Marks {
			kind := withoutNumbers(mark)
			if count[kind] == 0 {
				kinds = append(kinds, kind)
				example[kind] = mark
			}
			count[kind]++
		}
	}
	for _, kind := range kinds {
		if count[kind] == 1 {
			g.Items = append(g.Items, "1 trial: "+example[kind])
		} else {
			g.Items = append(g.Items, fmt.Sprintf("%d trials: %s", count[kind], kind))
		}
	}
	return g
}

// withoutNumbers puts an ellipsis in the place of each number.
func withoutNumbers(s string) string {
	var b strings.Builder
	inNumber := false
	for _, r := range s {
		switch {
		case unicode.IsDigit(r):
			if !inNumber {
				b.WriteRune('…')
			}
			inNumber = true
		case inNumber && (r == '.' || r == ','):
		default:
			inNumber = false
			b.WriteRune(r)
		}
	}
	return b.String()
}

// ofKind collects the warnings of one kind over all cells.
func ofKind(m *Model, kind stats.WarningKind, title string) WarningGroup {
	g := WarningGroup{Title: title}
	for _, s := range m.Suites {
		for _, b := range s.Benchmarks {
			for _, metric := range b.Metrics {
				for _, c := range metric.Cells {
					if c.Summary == nil {
						continue
					}
					for _, w := range c.Summary.Warnings {
						if w.Kind == kind {
							g.Advice = w.Advice
							g.Items = append(g.Items, fmt.Sprintf("%s, %s on %s: %s", b.Title(), metric.Name, c.Target, w.Message))
						}
					}
				}
			}
		}
	}
	return g
}
