package ab_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/report/ab"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/stats/simulation"
)

// Targets and metrics of the tests.
const nameA, nameB = "oci/x-a", "oci/x-b"

var (
	latency = ab.Value{Key: analysis.Key{Name: "s.c.f"}, Metric: result.Metric{Name: "Time", Unit: result.Seconds, Better: result.Lower}}
	rate    = ab.Value{Key: analysis.Key{Name: "s.c.f"}, Metric: result.Metric{Name: "Rate", Unit: result.PerSecond, Better: result.Higher}}
)

// run makes a run in which B takes ratio times as long as A, with noise in each of its blocks.
func run(n, blocks int, ratio, noise float64, random *rand.Rand) result.Run {
	r := result.Run{
		ID: fmt.Sprintf("r%d", n), Seed: uint64(n), Baseline: nameA,
		Targets: []result.Target{{Name: nameA}, {Name: nameB}},
		Bench:   []result.Benchmark{{Name: "s.c.f", Metrics: []result.Metric{latency.Metric, rate.Metric}}},
	}
	for block := range blocks {
		for _, name := range []string{nameA, nameB} {
			v := math.Exp(noise * random.NormFloat64())
			if name == nameB {
				v *= ratio
			}
			r.Trials = append(r.Trials, result.Trial{
				Seq: len(r.Trials) + 1, Cell: result.Cell{Benchmark: "s.c.f", Target: name}, Block: block, Status: result.OK,
				Samples: []result.Sample{{Metric: "Time", Value: v}, {Metric: "Rate", Value: 1 / v}},
			})
		}
	}
	return r
}

func add(s *ab.Series, run result.Run, took time.Duration) error {
	return s.Add(analysis.NewSource(&run, analysis.Options{}), took)
}

func design(runs int, values ...ab.Value) ab.Design {
	return ab.Design{A: nameA, B: nameB, Margin: 0.03, Runs: runs, Blocks: 8, MostBlocks: 100_000, Values: values}
}

// lose makes all trials of a target fail in the blocks that are multiples of interval.
func lose(r *result.Run, target string, interval int) {
	for i := range r.Trials {
		if trial := &r.Trials[i]; trial.Target == target && trial.Block%interval == 0 {
			trial.Status, trial.Samples, trial.Reason = result.Failed, nil, "it rains"
		}
	}
}

// series executes a series in which B takes ratio times as long, with sd between runs.
func series(t *testing.T, d ab.Design, blocks int, ratio, sd float64, seed uint64) *ab.Series {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	s := ab.New(d)
	for n := 1; !s.Over(); n++ {
		must.Do(t, add(s, run(n, blocks, ratio*math.Exp(sd*random.NormFloat64()), 0.02, random), time.Minute))
	}
	return s
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name      string
		values    []ab.Value
		ratio, sd float64
		want      stats.Answer
	}{
		{"equal builds", []ab.Value{latency}, 1, 0.003, stats.NotWorse},
		{"a better build", []ab.Value{latency}, 0.8, 0.003, stats.NotWorse},
		{"a worse build", []ab.Value{latency}, 1.1, 0.003, stats.Worse},
		{"worse, less than the margin", []ab.Value{latency}, 1.01, 0.003, stats.NotWorse},
		{"much variation between runs", []ab.Value{latency}, 1.03, 0.1, stats.Inconclusive},
		{"a lower rate", []ab.Value{rate}, 1.1, 0.003, stats.Worse},
		{"a higher rate", []ab.Value{rate}, 0.9, 0.003, stats.NotWorse},
		{"two values", []ab.Value{latency, rate}, 1.1, 0.003, stats.Worse},
		{"two equal values", []ab.Value{latency, rate}, 1, 0.003, stats.NotWorse},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := series(t, design(10, c.values...), 8, c.ratio, c.sd, 3)
			if got := s.Answer(); got != c.want {
				t.Fatalf("the answer is %q after %d runs, want %q: %+v", got, len(s.Done), c.want, s.Results)
			}
			for _, r := range s.Results {
				if reason := r.Why(s); (r.Answer == stats.Inconclusive) != (reason != "") {
					t.Errorf("%s is %s, because %q", r.Metric.Name, r.Answer, reason)
				}
				if r.Interval == nil || r.Interval.Lo > r.Ratio || r.Ratio > r.Interval.Hi {
					t.Errorf("%s: ratio %g, interval %v", r.Metric.Name, r.Ratio, r.Interval)
				}
			}
			if c.want != stats.Inconclusive && len(s.Done) == 10 {
				t.Error("a clear answer needed all runs")
			}
			if d := s.Decision(); c.want != stats.Inconclusive && d != (ab.Decision{}) || d.Runs > 0 && d.Time < 10*time.Minute {
				t.Errorf("a decision is predicted by %+v, after 10 runs of a minute", d)
			}
		})
	}
}

// Builds that differ by exactly the margin are called worse in at most 2.5 % of all series, and not worse in as many, although the series looks
// after each run.
//
// Invariant ab-silence.
func TestErrorRateAtTheMargin(t *testing.T) {
	replicates := simulation.Trials(t, 100, 400)
	counts := map[stats.Answer]int{}
	for seed := range replicates {
		counts[series(t, design(8, latency), 5, 1.03, 0.01, uint64(seed)).Answer()]++
	}
	for _, answer := range []stats.Answer{stats.Worse, stats.NotWorse} {
		simulation.AtMost(t, 0.025, counts[answer], replicates, "%s at the margin", answer)
	}
}

func TestDecisionIsPredicted(t *testing.T) {
	s := ab.New(design(4, latency))
	if d := s.Decision(); d != (ab.Decision{}) {
		t.Errorf("a decision is predicted without a run: %+v", d)
	}
	random := rand.New(rand.NewPCG(1, 1))
	for i, ratio := range []float64{0.99, 1.03, 0.99, 1.03} {
		must.Do(t, add(s, run(i, 8, ratio, 0.0001, random), time.Minute))
	}
	// The mean is 1.01 with a standard deviation of 2.3 %, and the margin is 2 % above it: (1.96 + 0.84)² (2.3/2)² = 10 runs by
	// the normal approximation, and Student's t needs some more.
	if d := s.Decision(); s.Answer() != stats.Inconclusive || d.Runs < 11 || d.Runs > 15 || d.Blocks != 8 || d.Time != time.Duration(d.Runs)*time.Minute {
		t.Errorf("%s; a decision is predicted by %+v, want about 13 runs of 8 blocks", s.Answer(), d)
	}
	if err := add(s, run(5, 8, 1, 0.01, random), time.Minute); err == nil {
		t.Error("a run beyond the design is accepted")
	}
}

// The predicted design decides as often as predicted, whether the variation is between the runs or within them. A
// prediction from eight runs is uncertain, so the share of decisions is not exactly the power.
func TestDecisionDecides(t *testing.T) {
	for _, c := range []struct {
		name           string
		blocks         int
		between, noise float64
	}{{"between runs", 8, 0.05, 0.01}, {"within runs", 2, 0, 0.05}} {
		t.Run(c.name, func(t *testing.T) {
			predicted, decided := 0, 0
			trials := simulation.Trials(t, 16, 30)
			for seed := range uint64(trials) {
				random := rand.New(rand.NewPCG(seed, 7))
				execute := func(runs, blocks int) *ab.Series {
					d := design(runs, latency)
					d.Blocks = blocks
					s := ab.New(d)
					for n := 1; !s.Over(); n++ {
						must.Do(t, add(s, run(n, blocks, math.Exp(c.between*random.NormFloat64()), c.noise, random), time.Minute))
					}
					return s
				}
				d := execute(8, c.blocks).Decision()
				if d.Runs == 0 {
					continue
				}
				predicted++
				if execute(d.Runs, d.Blocks).Answer() == stats.NotWorse {
					decided++
				}
			}
			simulation.AtLeast(t, 1./3, predicted, trials, "predicted designs")
			simulation.AtLeast(t, 0.6, decided, predicted, "predicted designs that decided")
		})
	}
}

// More blocks help only against the variation within the runs. They are advised if their present number needs too many runs.
func TestDecisionWithMoreBlocks(t *testing.T) {
	for _, c := range []struct {
		name           string
		between, noise float64
		most           int
		want           bool
	}{
		{"within runs", 0, 0.6, 100_000, true},
		{"within runs, whose blocks are at their limit", 0, 0.6, 8, false},
		{"between runs", 0.3, 0.01, 100_000, false},
	} {
		random := rand.New(rand.NewPCG(4, 1))
		d := design(8, latency)
		d.MostBlocks = c.most
		s := ab.New(d)
		for n := range 8 {
			must.Do(t, add(s, run(n, 8, 1.06*math.Exp(c.between*random.NormFloat64()), c.noise, random), time.Second))
		}
		got := s.Decision()
		if (got.Runs > 0) != c.want || c.want && (got.Runs > ab.MostRuns || got.Blocks <= 8 || got.Time != time.Duration(got.Runs*got.Blocks/8)*time.Second) {
			t.Errorf("%s: a decision is predicted by %+v", c.name, got)
		}
	}
}

// Lost trials prevent an answer, however many runs there are. So no time is predicted, and the advice has the cause. They do not
// prevent the answer to the disadvantage of the side that lost them.
func TestNoDecisionWithLostTrials(t *testing.T) {
	for _, c := range []struct {
		name, target string
		ratio        float64
		prevents     bool
	}{
		{"B loses blocks and may be not worse", nameB, 1.01, true},
		{"A loses blocks and B may be worse", nameA, 1.05, true},
		{"B loses blocks and may be worse", nameB, 1.05, false},
		{"A loses blocks and B may be not worse", nameA, 1.01, false},
	} {
		s := ab.New(design(4, latency))
		random := rand.New(rand.NewPCG(6, 1))
		for n, factor := range []float64{0.98, 1.02, 0.98, 1.02} {
			r := run(n, 8, c.ratio*factor, 0.0001, random)
			lose(&r, c.target, 8)
			must.Do(t, add(s, r, time.Minute))
		}
		d := s.Document(func(id string) string { return id })
		reason, advice := "the interval includes the margin", "repeat with --repeat "
		if c.prevents {
			reason, advice = c.target+" has lost 12 % of its blocks", "more runs would not decide: the pages of the runs have the reason of each lost trial of "+c.target
		}
		if d.Answer != stats.Inconclusive || (d.Decision == 0) != c.prevents || !strings.HasPrefix(d.Values[0].Reason, reason) || !strings.HasPrefix(d.Advice(), advice) {
			t.Errorf("%s: the answer is %q because %q, the predicted time %g s, and the advice %q", c.name, d.Answer, d.Values[0].Reason, d.Decision, d.Advice())
		}
	}
}

// What cannot be compared is inconclusive, with the reason, and never a pass.
//
// Invariant ab-silence: `ab` never passes in silence: failures, lost trials and missing ratios are inconclusive, and its looks at growing data
// share the probability of an error; in JUnit only "not worse" passes.
func TestNothingPassesInSilence(t *testing.T) {
	for _, c := range []struct {
		name   string
		ratio  float64
		spoil  func(n int, r *result.Run)
		reason string // empty for a series with an answer: lost trials do not protect a build that is worse
	}{
		{"B is worse and loses trials", 1.2, func(_ int, r *result.Run) { lose(r, nameB, 4) }, ""},
		{"B is better and A loses trials", 0.9, func(_ int, r *result.Run) { lose(r, nameA, 4) }, ""},
		{"B loses trials", 0.9, func(_ int, r *result.Run) { lose(r, nameB, 4) }, "oci/x-b has lost 25 % of its blocks"},
		{"A loses trials", 1.2, func(_ int, r *result.Run) { lose(r, nameA, 4) }, "oci/x-a has lost 25 % of its blocks"},
		{"B fails always", 1, func(_ int, r *result.Run) { lose(r, nameB, 1) }, "0 of 6 runs have a ratio, and at least 4 are necessary: oci/x-b has no trial that is ok: failed 8 of 8: it rains"},
		{"B fails in some runs", 0.9, func(n int, r *result.Run) {
			if n < 2 {
				lose(r, nameB, 1)
			}
		}, "oci/x-b has lost"},
		{"B is not available", 1, func(_ int, r *result.Run) { r.Targets[1].Unavailable = "no such file" }, "oci/x-b is not available: no such file"},
		{"values of zero", 1, func(_ int, r *result.Run) { r.Trials[3].Samples[0].Value = 0 }, "not comparable: a value of Time is zero or negative"},
		{"all values of A are zero", 1, func(_ int, r *result.Run) {
			for i := 0; i < len(r.Trials); i += 2 {
				r.Trials[i].Samples[0].Value = 0
			}
		}, "not comparable: Time is 0 in all trials of oci/x-a"},
		{"another benchmark", 1, func(_ int, r *result.Run) { r.Trials = nil }, "s.c.f: not in this run"},
		{"an emulated CPU", 1, func(_ int, r *result.Run) { r.Host.CPU, r.Host.Virtual = "QEMU Virtual CPU", "qemu" }, "the CPU of this machine is emulated"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := ab.New(design(6, latency))
			random := rand.New(rand.NewPCG(5, 1))
			for n := range 6 {
				if s.Over() {
					break
				}
				r := run(n, 8, c.ratio, 0.01, random)
				c.spoil(n, &r)
				must.Do(t, add(s, r, time.Minute))
			}
			if got := s.Answer(); (got == stats.Inconclusive) != (c.reason != "") || c.reason == "" && (got == stats.Worse) != (c.ratio > 1) {
				t.Errorf("the answer is %q", got)
			}
			if reason := s.Results[0].Why(s); !strings.Contains(reason, c.reason) {
				t.Errorf("the reason is %q, want %q", reason, c.reason)
			}
		})
	}
}

// Equal values in all runs are an answer: there is no variation.
func TestEqualValues(t *testing.T) {
	s := series(t, design(8, latency), 8, 1, 0, 1)
	if s.Answer() != stats.NotWorse {
		t.Errorf("the answer is %s", s.Answer())
	}
	random := rand.New(rand.NewPCG(1, 1))
	comparison := ab.New(design(8, latency))
	for n := 0; !comparison.Over(); n++ {
		if err := add(comparison, run(n, 1, 1.25, 0, random), time.Second); err != nil { // one block each
			t.Fatal(err)
		}
	}
	if comparison.Answer() != stats.Worse || len(comparison.Done) != ab.LeastRuns {
		t.Errorf("equal ratios of 1.25: %s after %d runs", comparison.Answer(), len(comparison.Done))
	}
}
