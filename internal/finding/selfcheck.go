package finding

import (
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/fact"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// SelfcheckNote states the differences that the machine of the report shows, or the command that finds them. It is empty for several
// machines, which list their selfchecks among the facts, and for fake targets, which are no machine.
func SelfcheckNote(a *analysis.Analysis) string {
	if len(a.Machines) != 1 {
		return ""
	}
	newest := (*result.Selfcheck)(nil)
	for i := range a.Runs {
		if c := a.Runs[i].Host.Selfcheck; c != nil && (newest == nil || c.Date.After(newest.Date)) {
			newest = c
		}
	}
	if text := fact.SelfcheckText(newest); text != "" {
		return wording.Capital(text) + "."
	}
	if slices.ContainsFunc(a.Runs, func(run analysis.Run) bool {
		return slices.ContainsFunc(run.Targets, func(t analysis.Target) bool { return strings.HasPrefix(t.Name, "fake/") })
	}) {
		return ""
	}
	return "touchstone selfcheck finds the smallest difference that a machine shows."
}
