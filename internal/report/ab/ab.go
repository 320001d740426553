// Package ab compares two builds over several short runs with both as targets, and answers one question: is B worse than A by more than a
// margin?
//
// Runs are the observations. A run cannot show what differs from run to run: the placement in memory, the order of the targets,
// the state of a daemon (T. Kalibera & R. Jones, "Rigorous Benchmarking in Reasonable Time", ISMM 2013). So the
// interval comes from the differences between runs ([stats.Pool]), and the number of blocks within a run changes only how
// much its ratio varies.
//
// There are three answers. Each of the first two is wrong with a probability of at most 2.5 %, over all looks and all values
// together: several values share it (Bonferroni), and so do the looks at growing data ([stats.NewRunLooks]). The third is
// [stats.Inconclusive], and a gate must not take it for a pass.
//
// The package refuses a ratio without positive values, fewer than [LeastRuns] runs, and verdicts about speed on an emulated CPU. Lost
// trials make no side look better: see [stats.MostLost].
//
// A [Document] is the state of a series, and the source of all formats: see internal/answer/ab.
package ab

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// LeastRuns is the least number of runs, and the number of runs before the first look. With three runs the interval of a mean is
// four standard errors wide on each side.
const LeastRuns = 4

// MostRuns is the largest number of runs.
const MostRuns = 200

// Longest is the longest predicted time of a decision.
const Longest = 24 * time.Hour

// Design is fixed before the first run that counts.
type Design struct {
	// A and B are the names of the targets. A is the baseline.
	A, B string
	// Margin is the largest difference that does not matter: at 0.03, B is worse if its time exceeds 1.03 times A's, or its rate is below
	// A's divided by 1.03.
	Margin float64
	// Runs is the number of runs. A series may end before, but not go on.
	Runs int
	// Blocks is the number of blocks in each run, and MostBlocks the largest number that a run can have.
	Blocks, MostBlocks int
	// Values are compared together.
	Values []Value
}

// Value is a metric of a benchmark with its parameters.
type Value struct {
	analysis.Key
	Metric result.Metric
}

// Series is a comparison under way.
type Series struct {
	Design
	// Level is the error probability of the interval of each value over all looks.
	Level float64
	// Done are the runs in their order.
	Done []Run
	// Results are by value.
	Results []Result
	looks   stats.RunLooks
}

// Run is one run of a series.
type Run struct {
	ID string
	// Took is the time of the run with its set-up and clean-up.
	Took time.Duration
}

// Result is the state of one value.
type Result struct {
	Value
	Answer stats.Answer
	// Reason is the reason for an inconclusive answer. It is empty if more runs may decide.
	Reason string
	// After is the number of runs that decided the value; 0 if it is not decided.
	After int
	// Ratios are by run.
	Ratios []Ratio
	// Pooled is the result of the runs with a ratio. Its Log is the logarithm of B/A.
	Pooled stats.Pooled
	// Ratio is B/A over all runs, NaN without one.
	Ratio float64
	// Interval covers the ratio at all looks with a probability of 1 − Level. It is nil before the first look.
	Interval *stats.Interval
	// Lost are the shares of lost blocks over all runs.
	Lost stats.Losses
}

// Ratio is the result of one run. Ratio is NaN if the run has none, and Reason is then the cause.
type Ratio struct {
	Ratio float64
	// Interval is the run's own interval; nil with too few blocks. LogSE is the standard error of the logarithm, NaN if unknown.
	Interval *stats.Interval
	LogSE    float64
	Blocks   int
	Lost     stats.Losses
	Reason   string
}

// New returns a series without runs.
func New(d Design) *Series {
	s := &Series{Design: d, Level: stats.Alpha / float64(max(1, len(d.Values)))}
	s.looks = stats.NewRunLooks(LeastRuns, max(LeastRuns, d.Runs), s.Level)
	for _, v := range d.Values {
		s.Results = append(s.Results, Result{Value: v, Answer: stats.Inconclusive, Ratio: math.NaN(), Pooled: stats.Pool(nil)})
	}
	return s
}

// Add adds one run with both targets, and looks at the results. Runs beyond the design are refused.
func (s *Series) Add(run *analysis.Source, took time.Duration) error {
	id := run.Run.ID
	if len(s.Done) >= s.Runs {
		return fmt.Errorf("run %s is one more than the %d runs of the series", id, s.Runs)
	}
	s.Done = append(s.Done, Run{id, took})
	for i := range s.Results {
		s.Results[i].add(s, run)
	}
	return nil
}

// add adds the value's ratio in a run.
func (r *Result) add(s *Series, run *analysis.Source) {
	if run.Run.Unjudged && r.Metric.OfSpeed() {
		r.Reason = "the CPU of this machine is emulated, or may be, and the metric depends on its speed"
	}
	ratio := Find(run, r.Value, s.A, s.B)
	r.Ratios = append(r.Ratios, ratio)
	n := float64(len(r.Ratios))
	r.Lost.Baseline += (ratio.Lost.Baseline - r.Lost.Baseline) / n
	r.Lost.Other += (ratio.Lost.Other - r.Lost.Other) / n
	r.look(s)
}

// look updates the estimates, and the answer unless the value is decided.
func (r *Result) look(s *Series) {
	var effects []stats.Effect
	var blocks []int
	for _, ratio := range r.Ratios {
		if !math.IsNaN(ratio.Ratio) {
			effects, blocks = append(effects, stats.Effect{Log: math.Log(ratio.Ratio), SE: ratio.LogSE}), append(blocks, ratio.Blocks)
		}
	}
	r.Pooled = stats.Pool(stats.ShareNoise(effects, blocks))
	r.Ratio = math.Exp(r.Pooled.Log)
	if r.Pooled.N < LeastRuns {
		return
	}
	ci := r.Pooled.Interval(s.looks[r.Pooled.N-LeastRuns])
	r.Interval = &stats.Interval{Lo: math.Exp(ci.Lo), Hi: math.Exp(ci.Hi)}
	if r.Metric.Better == result.Higher {
		ci.Lo, ci.Hi = -ci.Hi, -ci.Lo
	}
	margin := math.Log1p(s.Margin)
	switch {
	case r.Reason != "" || r.After > 0:
	case ci.Lo > margin && r.Lost.Baseline <= stats.MostLost:
		r.Answer, r.After = stats.Worse, len(r.Ratios)
	case ci.Hi < margin && r.Lost.Other <= stats.MostLost:
		r.Answer, r.After = stats.NotWorse, len(r.Ratios)
	}
}

// Why is the reason for an inconclusive answer.
func (r *Result) Why(s *Series) string {
	index := slices.IndexFunc(r.Ratios, func(ratio Ratio) bool { return ratio.Reason != "" })
	target, loss := r.lost(s)
	switch {
	case r.Answer != stats.Inconclusive:
		return ""
	case r.Reason != "":
		return r.Reason
	case r.Pooled.N < LeastRuns && index >= 0:
		return fmt.Sprintf("%d of %d runs have a ratio, and at least %d are necessary: %s", r.Pooled.N, len(r.Ratios), LeastRuns, r.Ratios[index].Reason)
	case loss > 0:
		return fmt.Sprintf("%s has lost %s of its blocks, and lost trials make a target look better than it is", target, quantity.Percent(loss))
	case r.Pooled.N < LeastRuns:
		return fmt.Sprintf("%d runs are too few: at least %d are necessary", r.Pooled.N, LeastRuns)
	default:
		return "the interval includes the margin"
	}
}

// Remedy is the way to an answer if more runs do not lead to one. It is empty if they may.
func (r *Result) Remedy(s *Series) string {
	if r.Answer != stats.Inconclusive {
		return ""
	}
	target, loss := r.lost(s)
	switch isPartial := slices.ContainsFunc(r.Ratios, func(ratio Ratio) bool { return ratio.Reason != "" }); {
	case r.Reason != "":
		return "measure on a real machine, or give " + finding.EmulatedVerdictsFlag
	case loss > 0:
		return fmt.Sprintf("the pages of the runs have the reason of each lost trial of %s; remove the cause", target)
	case r.Pooled.N < LeastRuns && isPartial:
		return fmt.Sprintf("remove the cause of the missing ratios of %s, or leave this metric out with --metric", r.Metric.Name)
	}
	return ""
}

// Answer is the answer for all values: worse if one value is worse, not worse if no value is.
func (s *Series) Answer() stats.Answer {
	answers := []stats.Answer{stats.NotWorse} // without values
	for _, r := range s.Results {
		answers = append(answers, r.Answer)
	}
	return stats.Overall(answers)
}

// Over reports whether further runs cannot change the answer, or the design has no more.
func (s *Series) Over() bool {
	return s.Answer() != stats.Inconclusive || len(s.Done) >= s.Runs || s.hopeless()
}

// hopeless reports whether some value can never be decided, and no value can be worse any more.
func (s *Series) hopeless() bool {
	return !slices.ContainsFunc(s.Results, func(r Result) bool { return r.Reason == "" && r.Answer == stats.Inconclusive })
}

// Decision is the design of a series that is predicted to decide.
type Decision struct {
	Runs, Blocks int
	// Time is of all runs together.
	Time time.Duration
}

// Decision predicts the design of a new series that decides all open values with a probability of [stats.Power]. It is zero with an
// answer, if no series of at most [MostRuns] runs and [Longest] is enough, if more runs do not help, or without an estimate.
//
// More runs average all of the variation, and more blocks only the variation within runs. So the design has more blocks only if their present number needs
// too many runs. A run with twice the blocks is assumed to take twice the time, with its set-up, which is more than it takes.
func (s *Series) Decision() Decision {
	if len(s.Done) == 0 || s.Answer() != stats.Inconclusive {
		return Decision{}
	}
	var took time.Duration
	for _, r := range s.Done {
		took += r.Took
	}
	took /= time.Duration(len(s.Done))
	for factor := 1; took > 0 && (factor == 1 || factor*s.Blocks <= s.MostBlocks); factor *= 2 {
		length := time.Duration(factor) * took
		if n := s.runsNeeded(factor, min(MostRuns, int(Longest/length))); n > 0 {
			return Decision{Runs: n, Blocks: factor * s.Blocks, Time: time.Duration(n) * length}
		}
	}
	return Decision{}
}

// runsNeeded is the number of runs that decides all open values, with a multiple of the blocks in each run. It is 0 if no number up to limit is
// enough.
func (s *Series) runsNeeded(factor, limit int) int {
	need := 0
	for i := range s.Results {
		r := &s.Results[i]
		if r.Answer != stats.Inconclusive {
			continue
		}
		if _, loss := r.lost(s); loss > 0 || r.Reason != "" {
			return 0
		}
		pool := r.Pooled
		if variance := pool.Tau * pool.Tau; variance >= 0 { // NaN: all of the variation may be between the runs
			total := pool.SE * pool.SE * float64(pool.N)
			pool.SE = math.Sqrt((min(total, variance) + max(0, total-variance)/float64(factor)) / float64(pool.N))
		}
		n := pool.RunsNeeded(math.Log1p(s.Margin)-r.slower(r.Pooled.Log), s.Level, LeastRuns, limit)
		if n == 0 {
			return 0
		}
		need = max(need, n)
	}
	return need
}

// slower turns the logarithm of a ratio so that a positive one is to the disadvantage of B.
func (r *Result) slower(log float64) float64 {
	if r.Metric.Better == result.Higher {
		return -log
	}
	return log
}

// lost returns the side whose lost blocks prevent the answer that the runs point to, and their share. The share is 0 if nothing is prevented.
func (r *Result) lost(s *Series) (target string, share float64) {
	log, margin := r.slower(r.Pooled.Log), math.Log1p(s.Margin)
	switch {
	case !(log > margin) && r.Lost.Other > stats.MostLost: // also without a ratio
		return s.B, r.Lost.Other
	case !(log < margin) && r.Lost.Baseline > stats.MostLost:
		return s.A, r.Lost.Baseline
	}
	return "", 0
}

// Find returns the ratio of two targets in one run, as a report with a as its baseline shows it. A side without any trial that is ok has lost all
// its blocks.
func Find(run *analysis.Source, v Value, a, b string) Ratio {
	refuse := func(losses stats.Losses, format string, args ...any) Ratio {
		return Ratio{Ratio: math.NaN(), LogSE: math.NaN(), Lost: losses, Reason: fmt.Sprintf(format, args...)}
	}
	for _, t := range run.Run.Targets {
		if t.Unavailable != "" && (t.Name == a || t.Name == b) {
			return refuse(stats.Losses{Baseline: share(t.Name == a), Other: share(t.Name == b)}, "%s is not available: %s", t.Name, t.Unavailable)
		}
	}
	bench, reason := run.Compare(v.Key, a, nil)
	if bench == nil {
		return refuse(stats.Losses{}, "%s: %s", v.Title(), reason)
	}
	section := bench.Sections[0]
	for _, t := range []string{a, b} {
		if reason, isLost := lostAll(section, t); isLost {
			return refuse(stats.Losses{Baseline: share(t == a), Other: share(t == b)}, "%s has no trial that is ok%s", t, reason)
		}
	}
	if slices.Contains(section.Zero, v.Metric.Name) {
		return refuse(stats.Losses{}, "not comparable: %s is 0 in all trials of %s", v.Metric.Name, a)
	}
	switch c := bench.Comparison(v.Metric.Name, b); {
	case c == nil:
	case c.Verdict == stats.NotComparable:
		return refuse(c.Lost, "not comparable: a value of %s is zero or negative", v.Metric.Name)
	case c.Ratio == 0 || math.IsInf(c.Ratio, 0):
		return refuse(c.Lost, "not comparable: the values of %s differ by a factor that no number can hold", v.Metric.Name)
	case c.N > 0:
		return Ratio{Ratio: c.Ratio, Interval: c.CI, LogSE: c.LogSE, Blocks: c.N, Lost: c.Lost}
	}
	return refuse(stats.Losses{}, "%s has no value on both targets in the same block", v.Metric.Name)
}

func share(isLost bool) float64 {
	if isLost {
		return 1
	}
	return 0
}

// lostAll reports whether a target has no trial that is ok, with the reason after a colon.
func lostAll(s *analysis.Section, target string) (reason string, isLost bool) {
	index := slices.IndexFunc(s.Targets, func(o analysis.Outcome) bool { return o.Target == target })
	if index < 0 {
		return "", true
	}
	o := &s.Targets[index]
	if o.Reason != "" {
		reason = ": " + o.Why()
	}
	return reason, o.OK == 0
}
