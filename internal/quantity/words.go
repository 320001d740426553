package quantity

import (
	"strconv"
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

// Counted spells a number of things: "1 family", "2 families".
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, has := strings.CutSuffix(noun, "y"); has {
		noun = stem + "ie"
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Listed joins words as a sentence does: "a, b and c".
func Listed(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// mostNames is the number of names that [Shortlist] spells if there are many.
const mostNames = 3

// Shortlist lists the first names and the number of the other things.
func Shortlist(names []string, things string) string {
	if rest := len(names) - mostNames; rest > 1 {
		return strings.Join(names[:mostNames], ", ") + " and " + strconv.Itoa(rest) + " more " + things
	}
	return strings.Join(names, ", ")
}

// OneLine replaces newlines and tabs by spaces: text of a program must not change a layout.
func OneLine(s string) string { return strings.NewReplacer("\n", " ", "\t", " ").Replace(s) }
