package finding_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats/simulation"
)

// world is the true costs of targets, by metric: the typical value against native's.
type world map[string]map[string]float64

// metrics of the simulated runs. The rate has higher values for a target that costs less.
func metrics() []result.Metric {
	return []result.Metric{
		{Name: "Start", Unit: result.Seconds, Better: result.Lower, Column: result.ColumnStart, Layer: result.LayerTotal, Phrase: "starts in"},
		{Name: "Exec", Unit: result.Seconds, Better: result.Lower, Column: result.ColumnExec},
		{Name: "Rate", Unit: result.PerSecond, Better: result.Higher, Column: result.ColumnSystemCalls},
	}
}

func targets() []result.Target {
	list := []result.Target{{Name: "native", Kind: result.KindNative, Isolation: "none"}}
	for _, runtime := range []string{"runc", "crun", "youki", "runsc"} {
		isolation := "shared kernel"
		if runtime == "runsc" {
			isolation = "user-space kernel"
		}
		list = append(list, result.Target{Name: "oci/" + runtime, Kind: result.KindRuntime, Runtime: runtime, Version: runtime + " release-20260905.0", Isolation: isolation})
	}
	for _, engine := range []string{"containerd", "crio", "podman"} {
		list = append(list, result.Target{Name: engine + "/runc", Kind: result.KindEngine, Runtime: "runc", Isolation: "shared kernel"})
	}
	return list
}

// run simulates a run in a world. Trials of a block share the state of the host, and have heavy tails of their own.
func (w world) run(seed uint64) result.Run {
	const blocks = 14
	random := rand.New(rand.NewPCG(seed, 1))
	start := time.Date(2026, time.November, 1, 12, 0, 0, 0, time.UTC)
	r := result.Run{
		ID: fmt.Sprintf("run%d", seed), State: result.Complete, Seed: seed, Baseline: "native", Started: start, Ended: start.Add(4 * time.Minute), Targets: targets(),
		Bench: []result.Benchmark{{Name: "operations.container.lifecycle", Metrics: metrics()}},
		Host:  result.Host{Hostname: "bench1", CPUs: 2},
	}
	for block := range blocks {
		host := math.Exp(0.1 * random.NormFloat64())
		for _, t := range r.Targets {
			trial := result.Trial{Cell: result.Cell{Benchmark: r.Bench[0].Name, Target: t.Name}, Block: block, Seq: len(r.Trials), Status: result.OK}
			for _, m := range metrics() {
				cost := 1.0
				if factor, found := w[m.Name][t.Name]; found {
					cost = factor
				}
				value := cost * host * math.Exp(0.03*random.NormFloat64())
				if random.IntN(20) == 0 {
					value *= 1.5
				}
				if m.Better == result.Higher {
					value = 1000 / value
				}
				trial.Samples = append(trial.Samples, result.Sample{Metric: m.Name, Value: value})
			}
			r.Trials = append(r.Trials, trial)
		}
	}
	return r
}

// worlds are orders that a run must not get wrong: no difference at all, ties at the top, small steps, and large ones.
func worlds() map[string]world {
	costs := func(factor func(i int) float64) map[string]float64 {
		list := map[string]float64{}
		for i, t := range targets()[1:] {
			list[t.Name] = factor(i)
		}
		return list
	}
	equal := func(int) float64 { return 1 }
	return map[string]world{
		"equal": {"Start": costs(equal), "Exec": costs(equal), "Rate": costs(equal)},
		"ties at the top": {
			"Start": costs(func(i int) float64 { return []float64{2, 2, 6, 6, 9, 9, 9}[i] }), "Exec": costs(func(i int) float64 { return []float64{5, 5, 5, 5, 5, 5, 7}[i] }),
			"Rate": costs(func(i int) float64 { return []float64{1, 1, 1, 20, 1, 1, 1}[i] }),
		},
		"small steps": {
			"Start": costs(func(i int) float64 { return 1 + 0.01*float64(i) }), "Exec": costs(func(i int) float64 { return 1.1 - 0.01*float64(i) }), "Rate": costs(equal),
		},
	}
}

// A sentence is false if one of its orders is not the true one, and equal targets have no order.
// Invariant true-answers: Each answer of a run is true in at least 95 % of simulated runs.
func TestAnswersAreTrue(t *testing.T) {
	trials := simulation.Trials(t, 40, 2000)
	for name, w := range worlds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			untrue := map[string]int{}
			for seed := range trials {
				a := analysis.New([]result.Run{w.run(uint64(seed + 1))}, analysis.Options{})
				for _, answer := range finding.Answers(a, 0) {
					for _, c := range answer.Claims {
						if !(w[c.Metric][c.Cheaper] < w[c.Metric][c.Dearer]) {
							untrue[answer.Name]++
							break
						}
					}
				}
			}
			for answer, count := range untrue {
				simulation.AtMost(t, 0.05, count, trials, "false sentences about %s", answer)
			}
		})
	}
}

// A difference that is large must be said: a rule that says nothing would never be wrong.
func TestAnswersSayWhatIsShown(t *testing.T) {
	w := world{"Start": {}, "Exec": {}, "Rate": {}}
	for i, target := range targets()[1:] {
		w["Start"][target.Name] = float64(i + 2)
		w["Exec"][target.Name] = float64(20 - i)
		w["Rate"][target.Name] = 1
	}
	w["Rate"]["oci/runsc"] = 50
	a := analysis.New([]result.Run{w.run(1)}, analysis.Options{})
	var texts []string
	for _, answer := range finding.Answers(a, 0) {
		texts = append(texts, answer.Name+": "+answer.Text)
		if answer.Benchmarks == nil {
			t.Errorf("the answer about %s names no evidence", answer.Name)
		}
	}
	text := strings.Join(texts, "\n")
	for _, part := range []string{
		"Runtimes: oci/runc costs least in start (1.98 × native, ", "oci/runsc costs least in exec", "in syscalls one of oci/crun, oci/runc and oci/youki costs least",
		"Engines: containerd/runc costs least in start", "podman/runc costs least in exec", "in syscalls the cheapest is not shown",
		"Added: To the start of oci/runc add containerd/runc 3.87 s (", "Safer: oci/runsc (user-space kernel), against oci/runc: costs more in syscalls ", "costs less in exec ",
		"Undecided: No difference from the baseline is shown in syscalls on 6 of 7",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the answers lack %q:\n%s", part, text)
		}
	}
}

// An engine with a faster start than the bare runtime adds nothing, and one with few blocks is not decided.
// An answer about some targets of a group is not taken for one about all.
//
// Invariant true-answers.
func TestAnswersCountTargetsWithoutAValue(t *testing.T) {
	run := worlds()["ties at the top"].run(1)
	for i := range run.Trials {
		trial := &run.Trials[i]
		if trial.Target == "containerd/runc" || trial.Target == "crio/runc" {
			trial.Samples = slices.DeleteFunc(trial.Samples, func(s result.Sample) bool { return s.Metric == "Rate" })
		}
		if trial.Target == "containerd/runc" || trial.Target == "podman/runc" {
			trial.Samples = slices.DeleteFunc(trial.Samples, func(s result.Sample) bool { return s.Metric == "Exec" })
		}
	}
	for _, answer := range finding.Answers(analysis.New([]result.Run{run}, analysis.Options{}), 0) {
		for _, part := range []string{"exec (", "syscalls ("} {
			// A single target has no lead.
			if strings.Contains(answer.Text, part) {
				t.Errorf("an answer about one target or about all: %s", answer.Text)
			}
		}
	}
	for i := range run.Trials {
		trial := &run.Trials[i]
		if trial.Target == "podman/runc" {
			trial.Samples = append(trial.Samples, result.Sample{Metric: "Exec", Value: 100})
		}
	}
	var texts []string
	for _, answer := range finding.Answers(analysis.New([]result.Run{run}, analysis.Options{}), 0) {
		texts = append(texts, answer.Name+": "+answer.Text)
	}
	if text := strings.Join(texts, "\n"); !strings.Contains(text, "crio/runc costs least in exec (") || !strings.Contains(text, "; 2 of 3 measured)") {
		t.Errorf("without the number of engines with a value:\n%s", text)
	}
}

func TestAnswerAboutAdditions(t *testing.T) {
	run := world{"Start": {"oci/runc": 2, "containerd/runc": 4, "crio/runc": 4, "podman/runc": 1}}.run(1)
	run.Trials = slices.DeleteFunc(run.Trials, func(t result.Trial) bool { return t.Target == "crio/runc" && t.Block > 2 })
	answers := finding.Answers(analysis.New([]result.Run{run}, analysis.Options{}), 0)
	index := slices.IndexFunc(answers, func(a finding.Answer) bool { return a.Name == "Added" })
	if want := "; less is shown for podman/runc; not decided for crio/runc."; index < 0 || !strings.HasSuffix(answers[index].Text, want) {
		t.Fatalf("the answers %+v lack %q", answers, want)
	}
	if claims := answers[index].Claims; !slices.ContainsFunc(claims, func(c finding.Claim) bool { return c.Cheaper == "podman/runc" && c.Dearer == "oci/runc" }) {
		t.Errorf("the claims %+v lack the faster start", claims)
	}
}

// A spent budget is no caution, and another caveat about a budget is one.
func TestCautionsAboutBudgets(t *testing.T) {
	run := world{}.run(1)
	const caveat = "the budget of the battery is unknown"
	run.Caveats = []string{result.BudgetCaveat(time.Minute, "after 4 of 14 blocks"), caveat}
	got := finding.Cautions(analysis.New([]result.Run{run}, analysis.Options{}), 0)
	if want := []string{"The budget of the battery is unknown"}; !slices.Equal(got, want) {
		t.Errorf("the cautions are %q, want %q", got, want)
	}
}

// The baseline is a target like the others: it may cost less than all of them.
func TestAnswersRankTheBaseline(t *testing.T) {
	w := world{"Start": {}, "Exec": {}, "Rate": {}}
	for i, target := range targets()[1:] {
		for _, costs := range w {
			costs[target.Name] = float64(i + 2)
		}
	}
	run := w.run(1)
	run.Baseline = "oci/runc"
	answers := finding.Answers(analysis.New([]result.Run{run}, analysis.Options{}), 0)
	if want := "oci/runc costs least in start, exec and syscalls."; answers[0].Text != want {
		t.Errorf("the answer is %q, want %q", answers[0].Text, want)
	}
}

// A run of two targets has one answer about their costs, and no empty isolation.
func TestAnswerAboutTwoTargets(t *testing.T) {
	for _, isolation := range []string{"", "user-space kernel"} {
		run := world{"Start": {"oci/runsc": 3}}.run(1)
		run.Baseline = "oci/runc"
		run.Targets = slices.DeleteFunc(run.Targets, func(t result.Target) bool { return t.Name != "oci/runc" && t.Name != "oci/runsc" })
		run.Targets[1].Isolation = isolation
		run.Trials = slices.DeleteFunc(run.Trials, func(t result.Trial) bool { return t.Target != "oci/runc" && t.Target != "oci/runsc" })
		var names []string
		for _, answer := range finding.Answers(analysis.New([]result.Run{run}, analysis.Options{}), 0) {
			names = append(names, answer.Name)
			if strings.Contains(answer.Text, "()") {
				t.Errorf("the answer has an empty isolation: %s", answer.Text)
			}
		}
		if want := []string{"Cost", "Undecided"}; !slices.Equal(names, want) {
			t.Errorf("the answers are about %q, want %q", names, want)
		}
	}
}

// A run that lost trials of the cheapest target, or has too few blocks, must not name it.
func TestAnswersWithoutEvidence(t *testing.T) {
	w := worlds()["ties at the top"]
	for name, spoil := range map[string]func(r *result.Run){
		"too few blocks": func(r *result.Run) { r.Trials = r.Trials[:5*len(r.Targets)] },
		"lost trials": func(r *result.Run) {
			for i := range r.Trials {
				if trial := &r.Trials[i]; trial.Target != "native" && trial.Block%3 == 0 {
					trial.Status, trial.Samples, trial.Reason = result.Failed, nil, "it failed"
				}
			}
		},
		"emulated": func(r *result.Run) { r.Host.CPU = "QEMU TCG" },
	} {
		run := w.run(1)
		spoil(&run)
		a := analysis.New([]result.Run{run}, analysis.Options{})
		if name == "emulated" && !a.Runs[0].Unjudged {
			t.Fatal("the run has verdicts about speed")
		}
		for _, answer := range finding.Answers(a, 0) {
			if len(answer.Claims) > 0 && name != "lost trials" {
				t.Errorf("%s: %s states an order: %s", name, answer.Name, answer.Text)
			}
			if strings.Contains(answer.Text, "costs least") {
				t.Errorf("%s: a target costs least: %s", name, answer.Text)
			}
		}
	}
}

func TestDated(t *testing.T) {
	run := &analysis.Run{Run: result.Run{Started: time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)}}
	for _, c := range []struct{ version, runtime, want string }{
		{"runsc version release-20220905.0", "runsc", "of 2022-09, with ptrace"},
		{"runsc version 0.0~20221219.0", "runsc", "of 2022-12, with ptrace"},
		{"runsc version v0.0.0-20260905035102-160fafc42237", "runsc", ""},
		{"runsc version v0.0.0-20260905035102-160fafc42237", "runsc@platform=ptrace", "with ptrace"},
		{"containerd v2.4.2, runsc version release-20220905.0", "runsc@platform=systrap,x=y", "of 2022-09"},
		{"runsc version release-20250801.0", "runsc@x=y,platform=systrap", ""},
		{"runsc version VERSION_MISSING", "runsc", ""},
		{"crun version 1.8.1", "crun", ""},
	} {
		target := &analysis.Target{Target: result.Target{Version: c.version, Runtime: c.runtime}}
		if got := finding.Dated(run, target); got != c.want {
			t.Errorf("%s as %s is %q, want %q", c.version, c.runtime, got, c.want)
		}
	}
}
