package ab

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Question is the question of the comparison.
func (d *Document) Question() string {
	if d.Untimed {
		return fmt.Sprintf("Do the counts of %s and %s differ?", d.A.Target, d.B.Target)
	}
	return fmt.Sprintf("Is %s worse than %s by more than %s?", d.B.Target, d.A.Target, quantity.Percent(d.Margin))
}

// Sentence is the answer as a sentence without a full stop.
func (d *Document) Sentence() string {
	switch {
	case d.Untimed && d.Answer == stats.Worse, d.Counts != nil && d.Counts.Outcome() == stats.Worse:
		return "B is worse than a gate by counts allows"
	case d.Untimed && d.Answer == stats.Inconclusive:
		return "A gate by counts is undecided: inconclusive"
	case d.Untimed:
		return "No stable count differs, so no time was measured"
	}
	if d.Answer == stats.Inconclusive {
		return "B is neither shown to be worse than the margin, nor shown not to be: inconclusive"
	}
	return "B is " + string(d.Answer)
}

// Extent spells the margin, the runs and the time.
func (d *Document) Extent() string {
	if d.Untimed {
		return fmt.Sprintf("counts alone; %v", quantity.RoundedTime(seconds(d.Spent)))
	}
	runs := "no run after the calibration"
	if d.MostRuns > 0 {
		runs = fmt.Sprintf("%d of %d runs of %s", len(d.Runs), d.MostRuns, wording.Counted(d.Blocks, "block"))
	}
	return fmt.Sprintf("margin %s; %s; %v", quantity.Percent(d.Margin), runs, quantity.RoundedTime(seconds(d.Spent)))
}

// Advice states the way to a decision: the remedy of its cause, or the time and the flags of a comparison that would decide. It is empty with an
// answer, and without runs.
func (d *Document) Advice() string {
	if d.Answer != stats.Inconclusive || len(d.Runs) == 0 {
		return ""
	}
	var remedies []string
	rest := seconds(d.Spent) // the calibration, and a run that did not end
	for i := range d.Values {
		if remedy := d.Values[i].Remedy; remedy != "" && !slices.Contains(remedies, remedy) {
			remedies = append(remedies, remedy)
		}
	}
	for _, r := range d.Runs {
		rest -= seconds(r.Took)
	}
	took := seconds(d.Decision)
	budget := took + max(0, rest)
	switch {
	case remedies != nil:
		return "more runs would not decide: " + strings.Join(remedies, "; ")
	case took == 0 && len(d.Runs) < LeastRuns:
		return "the runs are too few to predict the time of a decision: repeat the comparison"
	case took == 0:
		return fmt.Sprintf("no comparison of up to %d runs and %v would decide, as far as these runs show: the ratio is too close to the margin; choose another margin", MostRuns, Longest)
	case d.DecisionRuns <= d.MostRuns && d.DecisionBlocks <= d.Blocks && budget <= seconds(d.Budget):
		return fmt.Sprintf("repeat the comparison: a decision would take about %v, as far as these runs show", quantity.RoundedTime(took))
	default: // the flags come first, so that a terminal does not break the line between them
		return fmt.Sprintf("repeat with --repeat %d --blocks %d --budget %v: a decision would take about %v, as far as these runs show",
			d.DecisionRuns, d.DecisionBlocks, quantity.TimeWithReserve(budget), quantity.RoundedTime(took))
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Title is the benchmark with its parameters.
func (v *Outcome) Title() string { return analysis.Key{Name: v.Benchmark, Params: v.Params}.Title() }

// RatioText spells the ratio.
func (v *Outcome) RatioText() string { return ratioText(v.Ratio) }

// IntervalText spells the interval of the ratio.
func (v *Outcome) IntervalText() string { return intervalText(v.Lo, v.Hi) }

// BetweenText spells the variation of the ratio between runs.
func (v *Outcome) BetweenText() string {
	if v.Between == nil {
		return quantity.None
	}
	return "± " + quantity.Percent(math.Expm1(*v.Between))
}

// AnswerText is the answer, with the number of runs that it took if the comparison has more.
func (v *Outcome) AnswerText(runs int) string {
	if v.After > 0 && runs > v.After {
		return fmt.Sprintf("%s, after %d runs", v.Answer, v.After)
	}
	return string(v.Answer)
}

// State spells the value in a few words.
func (v *Outcome) State(runs int) string {
	if v.Lo == nil && v.Hi == nil {
		return v.RatioText() + " so far"
	}
	return v.RatioText() + " (" + v.IntervalText() + ") × A, " + v.AnswerText(runs)
}

// RatioText spells the ratio of the run.
func (r *OfRun) RatioText() string { return ratioText(r.Ratio) }

// IntervalText spells the run's own interval.
func (r *OfRun) IntervalText() string { return intervalText(r.Lo, r.Hi) }

func ratioText(ratio *float64) string {
	if ratio == nil {
		return quantity.None
	}
	return quantity.PreciseRatio(*ratio)
}

func intervalText(lo, hi *float64) string {
	if lo == nil && hi == nil {
		return quantity.None
	}
	return ratioText(lo) + " to " + ratioText(hi)
}
