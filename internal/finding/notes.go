package finding

import (
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// FamiliesNote explains families and counts the families of the report.
func FamiliesNote(a *analysis.Analysis) string {
	families, comparisons := a.Families()
	note := fmt.Sprintf("A family is all targets on one metric in one run. Holm's correction keeps the chance of a false verdict in it below %s.", quantity.Percent(stats.Alpha))
	if a.MinEffect > 0 {
		note += fmt.Sprintf(` A difference is "%s" if the 95 %% interval of its ratio and all parts that differ are within %s of equality (--min-effect).`,
			stats.Negligible, quantity.Percent(a.MinEffect))
	}
	if families == 0 && a.AnyWithheld() {
		return note + " No comparison of this report has a verdict."
	}
	if families == 0 {
		return note + " No comparison of this report has enough samples for a verdict."
	}
	return note + fmt.Sprintf(" The verdicts of this report are on %s in %s. If no target differed, about %s families would still show a difference by chance.",
		wording.Counted(comparisons, "comparison"), wording.Counted(families, "family"), quantity.Significant(stats.Alpha*float64(families), 2))
}

// DependenceNote states that the report cannot test the independence of blocks. It is empty if every benchmark has enough blocks.
func DependenceNote(a *analysis.Analysis) string {
	for _, b := range a.Benchmarks() {
		for _, s := range b.Sections {
			if s != nil && s.Blocks < stats.MinDependence {
				return fmt.Sprintf("Intervals assume that blocks are independent of each other; whether they are can be tested from %d blocks on.", stats.MinDependence)
			}
		}
	}
	return ""
}

// Heading is the title of the report.
func Heading(a *analysis.Analysis) string {
	switch {
	case len(a.Runs) == 1 && a.Runs[0].Name != "":
		return a.Runs[0].Name
	case len(a.Runs) == 1:
		return "Run " + a.Runs[0].ID
	case len(a.Machines) == 1:
		return fmt.Sprintf("%d runs of one machine", len(a.Runs))
	}
	return fmt.Sprintf("%d runs of %d machines", len(a.Runs), len(a.Machines))
}

// AbsoluteNote states whether absolute values of the runs are compared.
func AbsoluteNote(a *analysis.Analysis) string {
	switch {
	case a.AcrossMachines:
		return "Absolute values of different runs are compared because of --across-machines: by the typical ratio to " + a.Runs[0].Label +
			" (the median of the quotients of all pairs of values, of Hodges and Lehmann). Their intervals cover the noise within the two runs and no other difference between them. They have no verdicts."
	case len(a.Machines) == 1:
		return "All runs are of one machine, so absolute values share a scale. Runs are not judged against each other."
	}
	return "Absolute values are the measurements of each machine. They are not compared across machines: no ratio, no verdict, no common axis (--across-machines compares them)."
}

// tiersNote counts the differences of a run by tier, with the number of false ones to expect. It is empty without a difference.
func tiersNote(r *analysis.Run) string {
	if r.Differences == 0 {
		return ""
	}
	single := fmt.Sprintf("in its metric alone: if no target differed, about %s of %s would show a difference by chance.",
		quantity.Significant(stats.Alpha*float64(r.Families), 2), wording.Counted(r.Families, "metric"))
	total := wording.Counted(r.Together, "comparison") + " of the run"
	switch r.Everywhere {
	case 0:
		return fmt.Sprintf("None of the differences holds over all %s, which needs at least %d blocks. Each holds %s", total, stats.BlocksNeeded(r.Together), single)
	case r.Differences:
		return fmt.Sprintf("All differences hold over the %s together: the chance that one of them is false is at most %s.", total, quantity.Percent(stats.Alpha))
	}
	return fmt.Sprintf("%d of the differences hold over all %s: the chance that one of them is false is at most %s. Each of the other %d holds %s",
		r.Everywhere, total, quantity.Percent(stats.Alpha), r.Differences-r.Everywhere, single)
}
