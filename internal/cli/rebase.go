package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/touchstone-bench/touchstone/internal/result"
)

func addBaseline(cmd *cobra.Command, baseline *string) {
	cmd.Flags().StringVar(baseline, "baseline", "", "`TARGET` that the others are compared with")
}

// rebase changes the baseline of runs, unless it is empty. A run with a rule that decides while it goes on has stopped by its own baseline, so another one
// would have more false differences than the report states.
func rebase(runs []result.Run, baseline string) error {
	for i := range runs {
		r := &runs[i]
		if baseline == "" || baseline == r.Baseline {
			continue
		}
		var names []string
		for _, t := range r.Targets {
			if t.Unavailable == "" {
				names = append(names, t.Name)
			}
		}
		if !slices.Contains(names, baseline) {
			return usage(fmt.Errorf("--baseline: run %s has no target %q; its targets are %s", r.ID, baseline, strings.Join(names, ", ")))
		}
		if r.Stopping != nil {
			return usage(fmt.Errorf("--baseline: run %s ended its cells by differences from %s (--until decided), so verdicts against %s would not hold; measure with --baseline %s", r.ID, r.Baseline, baseline, baseline))
		}
		r.Baseline = baseline
	}
	return nil
}
