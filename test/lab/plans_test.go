package lab

import (
	"testing"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/test/record"
)

// The plans of benchmarks that the quick plan lacks. They read and set other files of cgroups on v2.
const (
	// limitPlan runs limits.cpu.time with a higher limit than usual, because a tenth of an emulated CPU is little. The work must
	// use more CPU time than the creation of the container. Otherwise the use under the limit cannot be computed.
	limitPlan = `version: 1
name: limits
targets: [oci/runc, oci/crun, oci/runsc]
benchmarks:
  - {name: limits.cpu.time, params: {prime: 5000, events: 1500, percent: 50}}
blocks: 1
warmup: 0
`

	// neighboursPlan runs the benchmarks with several containers at once, with parameters for an emulated machine.
	neighboursPlan = `version: 1
name: neighbours
targets: [native, oci/runc, oci/crun]
benchmarks:
  - {name: density.memory, params: {containers: 3}}
  - {name: isolation.cpu, params: {n: 100, noise: 150, cpus: 1, before: 2s, during: 3s, after: 2s, memory: 64}}
blocks: 1
warmup: 0
`
)

// checkNeighbours checks that all trials of neighboursPlan have values of the memory and of the speed.
func checkNeighbours(t *testing.T, run result.Run) {
	t.Helper()
	if len(run.Trials) != 6 {
		t.Errorf("density and isolation have %d trials on three targets, want 6", len(run.Trials))
	}
	for _, trial := range run.Trials {
		metric := "PSSPerContainer"
		if trial.Benchmark == "isolation.cpu" {
			metric = "CPUsDuring"
		} else if host := trial.Values("MemoryPerContainer"); len(host) != 1 {
			// Its sign is not checked: the kernel frees memory of earlier steps late, and that hides three containers.
			t.Errorf("%s on %s has the memory of the host %v, want one value", trial.Benchmark, trial.Target, host)
		}
		if values := trial.Values(metric); trial.Status != result.OK || len(values) != 1 || values[0] <= 0 {
			t.Errorf("%s on %s is %s (%s), with %s %v", trial.Benchmark, trial.Target, trial.Status, trial.Reason, metric, values)
		}
	}
}

// checkLimits checks that each target stayed within its limit of CPU time. On a host that is busy, the start of gVisor can take more CPU time than
// the program, and then the benchmark gives no value.
func checkLimits(t *testing.T, run result.Run) {
	t.Helper()
	var bound result.Bound
	for _, b := range run.Bench {
		for _, metric := range b.Metrics {
			if metric.Name == "CPULimitUse" {
				bound = metric.Bound
			}
		}
	}
	if bound.Broken == "" {
		t.Fatalf("the run has no metric with a bound for the limit: %+v", run.Bench)
	}
	for _, trial := range run.Trials {
		values := trial.Values("CPULimitUse")
		if trial.Status == result.OK && len(values) == 0 && trial.Target == "oci/runsc" {
			t.Run("limit of "+trial.Target, func(t *testing.T) {
				record.Skip(t, "the start of the container took more CPU time than its program, so its use of the limit is unknown")
			})
			continue
		}
		if trial.Status != result.OK || len(values) != 1 || values[0] <= 0 || values[0] > bound.Most {
			t.Errorf("%s on %s is %s (%s) and used %v of its limit, want at most %v",
				trial.Benchmark, trial.Target, trial.Status, trial.Reason, values, bound.Most)
		}
	}
	if len(run.Trials) != 3 {
		t.Errorf("limits ran on %d targets, want 3", len(run.Trials))
	}
}
