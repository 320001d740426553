package reporttest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// Odd gives valid runs that lack something that most runs have, by the oddity.
func Odd() map[string]result.Run {
	odd := map[string]result.Run{}
	derive := func(run result.Run, name string, f func(r *result.Run)) {
		run.Trials = slices.Clone(run.Trials)
		f(&run)
		for i := range run.Trials {
			run.Trials[i].Seq = i + 1
		}
		odd[name] = run
	}
	change := func(name string, f func(r *result.Run)) { derive(Small(), name, f) }
	odd["nothing but an id"] = result.Run{ID: "01K9Z0TOUCHSTONE0EMPTY0000", State: result.Running}
	change("no trials", func(r *result.Run) { r.Trials = nil })
	change("a single target", func(r *result.Run) { keep(r, func(t result.Trial) bool { return t.Target == native }) })
	change("no baseline", func(r *result.Run) { keep(r, func(t result.Trial) bool { return t.Target != native }) })
	change("one block", func(r *result.Run) { keep(r, func(t result.Trial) bool { return t.Block == 0 }) })
	change("warm-up only", func(r *result.Run) { keep(r, func(t result.Trial) bool { return t.Warmup }) })
	change("all failed", func(r *result.Run) { fail(r, func(*result.Trial) bool { return true }) })
	sample := Sample()
	keep(&sample, func(t result.Trial) bool { return t.Benchmark == lifecycle })
	for _, target := range sample.Targets {
		derive(sample, "failed: "+target.Name, func(r *result.Run) {
			fail(r, func(t *result.Trial) bool { return t.Target == target.Name })
		})
	}
	for _, share := range []float64{0.1, 0.5, 0.9} {
		derive(sample, fmt.Sprintf("failed: %.0f %% of the trials", 100*share), func(r *result.Run) {
			random := rand.New(rand.NewPCG(1, uint64(100*share)))
			fail(r, func(*result.Trial) bool { return random.Float64() < share })
		})
	}
	change("all values equal", func(r *result.Run) { set(r, func(int) float64 { return 0.5 }) })
	change("all values zero", func(r *result.Run) { set(r, func(int) float64 { return 0 }) })
	change("values of both signs", func(r *result.Run) { set(r, func(i int) float64 { return float64(i%7) - 3 }) })
	change("huge and tiny values", func(r *result.Run) {
		set(r, func(i int) float64 { return []float64{1e-300, 1e300, 1}[i%3] })
	})
	layers := Engines()
	keep(&layers, func(t result.Trial) bool {
		return t.Benchmark == lifecycle && slices.Contains([]string{native, runc, "containerd/runc", "docker/runc", "docker/youki"}, t.Target)
	})
	derive(layers, "layers of both signs", func(r *result.Run) { set(r, func(i int) float64 { return float64(i%7) - 3 }) })
	derive(layers, "huge and tiny layers", func(r *result.Run) {
		set(r, func(i int) float64 { return []float64{1e-300, 1e300, 1e308}[i%3] })
	})
	derive(layers, "layers of nothing", func(r *result.Run) { set(r, func(int) float64 { return 0 }) })
	change("the baseline is unknown", func(r *result.Run) { r.Baseline = "" })
	return odd
}

// fail lets the trials fail that f selects.
func fail(r *result.Run, f func(*result.Trial) bool) {
	for i := range r.Trials {
		if t := &r.Trials[i]; f(t) {
			t.Status, t.Reason, t.Samples = result.Failed, "runc create: exit code 1", nil
		}
	}
}

func keep(r *result.Run, f func(result.Trial) bool) {
	r.Trials = slices.DeleteFunc(r.Trials, func(t result.Trial) bool { return !f(t) })
}

func set(r *result.Run, value func(i int) float64) {
	n := 0
	for i := range r.Trials {
		r.Trials[i].Samples = slices.Clone(r.Trials[i].Samples)
		for j := range r.Trials[i].Samples {
			r.Trials[i].Samples[j].Value = value(n)
			n++
		}
	}
}
