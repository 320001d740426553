package reporttest

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// Machines are runs of one plan on three machines, and a second run on the first: a server with hybrid cgroups, an emulated
// machine with cgroup v2, and a board. They differ in benchmarks, targets, parameters and baselines. One target is better than
// the baseline in one run and worse in another, and one limit does not hold on one machine.
func Machines() []result.Run {
	server := newMachine("20261120-093000-aaaa", 1, 1)
	server.run.Host.Hostname, server.run.Host.Cgroup, server.run.Host.Virtual = "server", "hybrid", ""

	vm := newMachine("20261120-120000-bbbb", 2, 6.4)
	vm.run.Host.Hostname, vm.run.Host.Virtual, vm.run.Host.CPU, vm.run.Host.CPUs = "lab-v2", "qemu (QEMU Standard PC)", "QEMU TCG CPU version 2.5+", 2
	vm.run.Host.Kernel, vm.run.Host.Memory, vm.run.Host.Turbo, vm.run.Host.SMT = "6.1.0-40-amd64 #1 SMP", 2<<30, "", ""

	board := newMachine("20261121-080000-cccc", 3, 9.1)
	board.run.Host = result.Host{
		Hostname: "raspberrypi", OS: "Debian GNU/Linux 12 (bookworm)", Kernel: "6.12.20-v8 #1 SMP PREEMPT", Arch: "arm64",
		CPU: "Raspberry Pi 4 Model B Rev 1.4 (implementer 0x41, part 0xd08)", CPUs: 4, Governor: "ondemand", Memory: 1 << 30, Swap: 100 << 20, PageSize: 16 << 10, Cgroup: "v2", Root: true,
		Warnings: []string{"the CPU frequency governor is ondemand: the clock follows the load; set performance (cpupower frequency-set -g performance)"},
	}
	again := newMachine("20261122-093000-dddd", 4, 1.02)
	again.run.Host.Hostname, again.run.Host.Cgroup, again.run.Host.Virtual, again.run.Host.Kernel = "server", "v2", "", "6.18.3-1-amd64 #1 SMP"

	const noRunsc = "runsc does not know this CPU; build it for arm64"
	board.run.Targets[3].Unavailable = noRunsc
	board.run.Targets[1].Version = "runc version 1.1.5"
	const pause = "operations.container.pause"
	for block := -1; block < blocks; block++ {
		for _, m := range []*machine{server, vm, board, again} {
			m.lifecycle(block)
			m.unixbench(block)
			m.stream(block)
			if m == server || m == again {
				m.pause(block)
			}
		}
		if block < 5 {
			board.blog(block)
		}
	}
	vm.skip(pause, "repeats=5", runc, "pause: this kernel has no freezer", -1)
	vm.skip(pause, "repeats=5", crun, "pause: this kernel has no freezer", -1)
	var runs []result.Run
	for _, m := range []*machine{server, vm, board, again} {
		m.finish()
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
	scale := func(by float64) func(*result.Trial) {
		return func(t *result.Trial) {
			for i := range t.Samples {
				t.Samples[i].Value *= by
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

// machine makes a run with the values of the sample, slower by a factor.
type machine struct {
	*sampler
	slower float64
}

func newMachine(id string, seed uint64, slower float64) *machine {
	s := newSampler(id, "standard")
	s.rand = rand.New(rand.NewPCG(20261120, seed))
	s.run.Seed = seed
	s.run.Started = s.run.Started.Add(time.Duration(seed) * time.Hour)
	s.run.Ended = s.run.Started.Add(171 * time.Second)
	return &machine{s, slower}
}

func (m *machine) finish() {
	m.describe()
	m.run.Upgrade()
	m.run.Bench = slices.DeleteFunc(m.run.Bench, func(b result.Benchmark) bool {
		return !slices.ContainsFunc(m.run.Trials, func(t result.Trial) bool { return t.Benchmark == b.Name })
	})
	higher := map[string]bool{}
	for _, b := range m.run.Bench {
		for _, metric := range b.Metrics {
			higher[b.Name+" "+metric.Name] = metric.Better == result.Higher
		}
	}
	for i := range m.run.Trials {
		t := &m.run.Trials[i]
		for n := range t.Samples {
			by := m.slower
			if higher[t.Benchmark+" "+t.Samples[n].Metric] {
				by = 1 / by
			}
			t.Samples[n].Value *= by
		}
	}
}

func change(r *result.Run, which func(*result.Trial) bool, f func(*result.Trial)) {
	for i := range r.Trials {
		if t := &r.Trials[i]; which(t) {
			f(t)
		}
	}
}
