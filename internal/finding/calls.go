package finding

import (
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// failedShare spells the share: "3 of 40 creates failed".
func failedShare(f analysis.FailedCalls) string {
	return fmt.Sprintf("%d of %s failed", f.Failed, wording.Counted(f.Total, f.Call))
}

// failures states the failed calls of all runs, one sentence for each target of a run.
func failures(a *analysis.Analysis) []string {
	var texts []string
	for i := range a.Runs {
		run := &a.Runs[i]
		place := ""
		if len(a.Runs) > 1 {
			place = " on " + run.Label
		}
		for _, t := range run.Targets {
			var parts []string
			for _, f := range run.FailedCalls {
				if f.Target == t.Name {
					parts = append(parts, failedShare(f))
				}
			}
			if parts != nil {
				texts = append(texts, t.Name+place+": "+wording.Listed(parts)+".")
			}
		}
	}
	return texts
}
