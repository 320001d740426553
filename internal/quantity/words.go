package quantity

import (
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// StatusWord spells the status of a trial.
func StatusWord(s result.Status) string {
	if s == result.Timeout {
		return "timed out"
	}
	return string(s)
}

// EmulatedCPU is the reason of the verdict [stats.Withheld].
const EmulatedCPU = "the CPU is emulated, or may be"

// VerdictWord spells a verdict for a metric: less time or a higher rate is faster, fewer bytes or less CPU time are less, a
// higher score is better.
func VerdictWord(v stats.Verdict, m result.Metric) string {
	lower := m.Better == result.Lower
	gain, cost := "more", "less"
	if lower {
		gain, cost = cost, gain
	}
	switch m.Unit {
	case result.Score, result.Ratio:
		gain, cost = "better", "worse"
	case result.Seconds:
		if lower && !m.Consumed {
			gain, cost = "faster", "slower"
		}
	case result.BytesPerSecond, result.BitsPerSecond, result.PerSecond, result.FlopPerSecond:
		if !lower {
			gain, cost = "faster", "slower"
		}
	case result.Bytes, result.Joules, result.Count, result.ByteSeconds:
	}
	switch v {
	case stats.Faster:
		return gain
	case stats.Slower:
		return cost
	case stats.TooFew:
		return "too few" // short, because it is in every cell of a short run
	case stats.NoDifference, stats.TooNoisy, stats.NotComparable, stats.TrialsLost, stats.Mixed, stats.Negligible, stats.Withheld:
	}
	return string(v)
}

// OneLine replaces newlines and tabs by spaces: text of a program must not change a layout.
func OneLine(s string) string { return strings.NewReplacer("\n", " ", "\t", " ").Replace(s) }
