package runs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// method describes the measurement, the numbers and the drawings.
func (b *builder) method() document.Block {
	s := document.Section{ID: "method", Title: "Method", Detail: true}
	add := func(title string, blocks ...document.Block) {
		s.Blocks = append(s.Blocks, document.Section{Title: title, Blocks: blocks})
	}
	if b.single {
		add("Measurement", text(measurement(&b.report.Runs[0])))
	}
	numbers := []document.Block{
		text(fmt.Sprintf("The main number is the median over blocks. Its 95 %% interval is the expanded percentile bootstrap (Hesterberg, 2015) with the exact distribution of the resampled medians. It needs at least %d blocks. "+
			"A percentile needs at least two values above it.", stats.MinSamples)),
		text(fmt.Sprintf("Targets are compared with the baseline block by block. The ratio is the typical value of target / baseline within blocks: the estimate of Hodges and Lehmann on the logarithms. "+
			"Tables have it as the cost, which is the ratio itself, or its reciprocal if a higher value is better: “3 ×” is three times the time, or a third of the rate. Sentences have a factor of at least 1 in the direction of the difference: “3 × slower”. It need not be the quotient of the two medians. "+
			"Its interval inverts Wilcoxon’s signed-rank test, in the same direction. "+
			"The p-value is from one permutation test within blocks of five parts together: the typical value, all values (their ranks among the values of both targets), the lowest quarter, the lower half and the highest quarter (Westfall and Young, 1993). "+
			"A difference is shown if the adjusted p is below %s; the verdict names the part, if the typical value is not shown to differ. As the parts share the error, the interval of the ratio may exclude 1 without a shown difference. "+
			"“In this metric alone” marks a difference that does not hold over all comparisons of the run (Holm). A derived metric is computed from another one and has neither ratio nor verdict.", quantity.Percent(stats.Alpha))),
	}
	plots := "A mark is a cost against the baseline, and the line its interval. A hollow mark has no shown difference from the baseline. The report of each run has its layers, phases, components, curves, timelines and single trials: touchstone report RUN -o html."
	if b.single {
		numbers = append(numbers,
			text("In the tables of all statistics, “p adj.” is the p-value after Holm’s correction. “Detectable” is the smallest difference that the comparison would have found with a power of "+quantity.Percent(stats.Power)+": "+
				"“no difference shown” is no proof of equality. “Means” is the cost by the means with its 95 % interval, because who pays for CPU time pays for the mean. SD is the sample standard deviation, and MAD the median absolute deviation from the median."),
			text("Overhead is |ratio − 1|, which is |virt − native| / native of Wang et al., equation 1, within blocks. It exists if the baseline is native. It has no sign; the cost has the direction."))
		plots = "Each point is one trial. Within a target’s lane time runs from top to bottom, by block. The line is the median, the shade its 95 % interval. Hollow points are trials that other activity on the host disturbed. They count like the others. Axes need not begin at zero. Shaded bands of timelines are the timed regions, named or with a letter."
	} else {
		numbers = append(numbers, text("Each run has the numbers of its own report. Runs are not judged against each other: two ratios with separate intervals may differ because of any difference between the runs. "+
			"Benchmarks share a row if name and parameters are the same. Runs are of one machine if name, architecture, model and number of CPUs, hypervisor and memory are the same, apart from the memory that kernels reserve."))
	}
	add("Numbers", numbers...)
	add("Plots", text(plots))
	if b.single && b.report.Runs[0].Plan != "" {
		add("Plan", document.Verbatim{Text: b.report.Runs[0].Plan})
	}
	return s
}

// measurement describes how the only run measured, and Touchstone's own cost.
func measurement(r *analysis.Run) string {
	var requests strings.Builder
	for _, engine := range slices.Sorted(maps.Keys(r.Overhead.Requests)) {
		fmt.Fprintf(&requests, "%s for a request to %s that does nothing, ", quantity.Text(r.Overhead.Requests[engine].Seconds(), result.Seconds), engine)
	}
	return fmt.Sprintf("A block is one trial of a benchmark on each target, in an order shuffled from the seed %d, so that disturbances of the host affect all targets alike. Warm-up blocks come first. "+
		"The run keeps them, but this report neither counts nor draws them. Times are from the host’s monotonic clock, each around exactly one call. A failed trial gives no number. "+
		"Touchstone’s own cost: %s for an empty timed region, %s to start and await a bare process, %s%s of the time of all trials on the CPU.",
		r.Seed, quantity.Text(r.Overhead.EmptyRegion.Seconds(), result.Seconds), quantity.Text(r.Overhead.Exec.Seconds(), result.Seconds), requests.String(), quantity.Percent(r.Self))
}
