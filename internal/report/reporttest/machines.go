package reporttest

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// Machines are runs of one plan on three machines, and a second run on the first: a server with hybrid cgroups, an emulated
// machine with cgroup v2, and a board. They differ in benchmarks, targets, parameters and baselines. One target is better than
// the baseline in one run and worse in another, and one limit does not hold on one machine.
func Machines() []result.Run {
	var descriptions []struct {
		Slower float64
		Run    json.RawMessage
	}
	load("machines.json", &descriptions)
	var samplers []*sampler
	for i, d := range descriptions {
		s := newSampler("", "standard", "sample.json")
		decode(d.Run, &s.run)
		s.rand = rand.New(rand.NewPCG(20261120, s.run.Seed))
		shift := time.Duration(i+1) * time.Hour
		s.run.Started, s.run.Ended = s.run.Started.Add(shift), s.run.Ended.Add(shift)
		samplers = append(samplers, s)
	}
	server, vm, board, duplicate := samplers[0], samplers[1], samplers[2], samplers[3]

	const noRunsc = "runsc does not know this CPU; build it for arm64"
	board.run.Targets[3].Unavailable = noRunsc
	board.run.Targets[1].Version = "runc version 1.1.5"
	const pause = "operations.container.pause"
	for block := -1; block < blocks; block++ {
		for _, m := range samplers {
			m.lifecycle(block)
			m.unixbench(block)
			m.measure("performance.memory.stream", block)
			if m == server || m == duplicate {
				m.pause(block)
			}
		}
		if block < 5 {
			board.measure("performance.disk.blog", block)
		}
	}
	vm.skip(pause, "repeats=5", runc, "pause: this kernel has no freezer", -1)
	vm.skip(pause, "repeats=5", crun, "pause: this kernel has no freezer", -1)
	var runs []result.Run
	for i, m := range samplers {
		describe(&m.run)
		slow(&m.run, descriptions[i].Slower)
		runs = append(runs, m.run)
	}
	// The board runs unixbench with other parameters, and the server lacks native in one benchmark.
	change(&runs[2], func(t *result.Trial) bool { return t.Benchmark == "performance.syscall.unixbench" }, func(t *result.Trial) { t.Params = "copies=4" })
	change(&runs[0], func(t *result.Trial) bool {
		return t.Benchmark == "performance.syscall.unixbench" && t.Target == native
	},
		func(t *result.Trial) { t.Status, t.Reason, t.Samples = result.Failed, "exit code 1", nil })
	// crun has more bandwidth than native on the server, and less on the emulated machine.
	stream := func(t *result.Trial) bool { return t.Benchmark == "performance.memory.stream" && t.Target == crun }
	scale := func(factor float64) func(*result.Trial) {
		return func(t *result.Trial) {
			for i := range t.Samples {
				t.Samples[i].Value *= factor
			}
			t.Conditions = map[string]string{"cpus": "0-1"}
		}
	}
	change(&runs[0], stream, scale(1.2))
	change(&runs[1], stream, scale(0.8))
	bound := result.Bound{Most: 0.05, Broken: "does not hold its time limit"}
	for i := range runs {
		runs[i].Bench[0].Metrics[0].Bound = bound
	}
	return runs
}

// slow makes a run slower by a factor, and drops the benchmarks without trials.
func slow(r *result.Run, factor float64) {
	r.Bench = slices.DeleteFunc(r.Bench, func(b result.Benchmark) bool {
		return !slices.ContainsFunc(r.Trials, func(t result.Trial) bool { return t.Benchmark == b.Name })
	})
	higher := map[string]bool{}
	for _, b := range r.Bench {
		for _, metric := range b.Metrics {
			higher[b.Name+" "+metric.Name] = metric.Better == result.Higher
		}
	}
	for i := range r.Trials {
		t := &r.Trials[i]
		for n := range t.Samples {
			scale := factor
			if higher[t.Benchmark+" "+t.Samples[n].Metric] {
				scale = 1 / scale
			}
			t.Samples[n].Value *= scale
		}
	}
}

func change(r *result.Run, match func(*result.Trial) bool, f func(*result.Trial)) {
	for i := range r.Trials {
		if t := &r.Trials[i]; match(t) {
			f(t)
		}
	}
}
