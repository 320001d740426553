// Package isolation is the suite of noisy neighbours: the loss of speed of a victim while an aggressor loads the same machine
// (wang section 5.8). Victim and aggressor are containers of the same target, each with its limits. The aggressor can also be
// a bare process of the host, so that all runtimes are compared under the same load.
//
// A trial has two passes of equal length. In the first one the aggressor runs in the middle phase only. In the second one,
// the control, the victim is alone. The loss of the first pass is corrected by the change in the control, and a trial shows a
// loss only beyond the noise of both passes. docs/adr/0024-isolation.md gives the reasons.
//
// The victim is a loop that reports its work line by line. The host stamps the arrival of each line by its own clock, and
// never compares the clocks of containers. The CPU time of the victim is the host's count of its processes.
package isolation

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Benchmarks lists the suite.
func Benchmarks() []bench.Benchmark {
	benchmarks := []bench.Benchmark{cpu(), memory(), reclaim(), disk(), network(), pids()}
	for i := range benchmarks {
		benchmarks[i].Judged = []string{lossCondition}
	}
	return benchmarks
}

// lossCondition is the condition with the verdict on the loss of a single trial.
const lossCondition = "loss"

// Values of the parameter aggressor.
const (
	sameTarget = "same"
	nativeHost = "native"
)

// Names of parameters.
const (
	beforeParam, duringParam, afterParam = "before", "during", "after"

	aggressorParam  = "aggressor"
	aggressorsParam = "aggressors"
	cpusParam       = "cpus"
	memoryParam     = "memory"
)

// phaseParams are the lengths of the phases.
func phaseParams() []bench.Param { return phases("600ms", "1s", "400ms") }

// phases are the lengths of the phases with quick values.
func phases(lead, attack, tail string) []bench.Param {
	length := bench.TimeRange(100*time.Millisecond, time.Hour/4)
	return []bench.Param{
		{Name: beforeParam, Help: "time of the victim alone, before the aggressor starts", Quick: lead, Paper: "30s", Check: length},
		{Name: duringParam, Help: "time of the victim beside the aggressor", Quick: attack, Paper: "60s", Check: length},
		{Name: afterParam, Help: "time of the victim after the end of the aggressor", Quick: tail, Paper: "30s", Check: length},
	}
}

// limitParams are the limits of each container, and of an aggressor on the host.
func limitParams() []bench.Param {
	return []bench.Param{
		{Name: cpusParam, Help: "CPU limit of the victim and of each aggressor, unless the plan sets one", Quick: "2", Paper: "2", Check: bench.IntRange(1, 1024)},
		{Name: memoryParam, Help: "memory limit of the victim and of each aggressor in MiB, unless the plan sets one", Quick: "512", Paper: "4096", Check: bench.IntRange(64, 1<<20)},
	}
}

// aggressorParams select the place and the number of aggressors.
func aggressorParams(quick string) []bench.Param {
	return []bench.Param{
		{
			Name: aggressorParam, Quick: sameTarget, Paper: sameTarget, Check: bench.OneOf(sameTarget, nativeHost),
			Help: "the place of the aggressor: a container of the same target, or a bare process of the host, which loads all targets alike",
		},
		{Name: aggressorsParam, Help: "number of aggressors", Quick: quick, Paper: "1", Check: bench.IntRange(1, 16)},
	}
}

// joined joins lists of parameters.
func joined(lists ...[]bench.Param) []bench.Param { return slices.Concat(lists...) }

// needs completes the requirements of a benchmark.
func needs(p bench.Params, n bench.Needs) bench.Needs {
	n.Containers = max(n.Containers, 1+p.Int(aggressorsParam))
	n.Host = p.Param(aggressorParam) == nativeHost
	return n
}

// limited sets the limits of the benchmark where the plan sets none.
func limited(t bench.Trial, spec engine.Spec) engine.Spec {
	if spec.Resources.CPU == 0 {
		spec.Resources.CPU = float64(t.Int(cpusParam))
	}
	if spec.Resources.Memory == 0 {
		spec.Resources.Memory = int64(t.Int(memoryParam)) << 20
	}
	return spec
}

// recordParties records the limits and the places of the parties.
func recordParties(t bench.Trial) {
	r := limited(t, t.Spec()).Resources
	t.Condition("limits of each party", fmt.Sprintf("%v CPUs, %d MiB", r.CPU, r.Memory>>20))
	place := "a container of the target"
	if t.Param(aggressorParam) == nativeHost {
		place = "a process of the host, in a cgroup of its own"
	}
	if n := t.Int(aggressorsParam); n > 1 {
		place = strconv.Itoa(n) + " times " + place
	}
	t.Condition("aggressor", place)
}

// recordScale records parameters that differ from the paper's.
func recordScale(t bench.Trial, hasScale bool, text string) {
	if hasScale {
		t.Condition("scale", text)
	}
}

// longest is the time limit of the programs of a trial. They are killed long before, unless
// Touchstone itself is killed.
func longest(t bench.Trial) time.Duration {
	return 2*(t.Duration(beforeParam)+t.Duration(duringParam)+t.Duration(afterParam)) + 10*time.Minute
}

// speed describes a victim's work.
type speed struct {
	unit result.Unit
	work string // "solutions, with LINPACK's number of operations"
	// unitOf is one unit of work, whose time is the latency: "solution".
	unitOf string
}

const (
	beside = " while the aggressor runs"
	alone  = " before the aggressor starts"
)

// metrics are the metrics of a victim. The loss of the benchmark with the dimension is the scorecard's.
func metrics(s speed, dimension result.Dimension) []result.Metric {
	rate := func(name, phase string) result.Metric {
		return bench.Higher(name, s.unit, s.work+phase)
	}
	tail := func(name, phase string) result.Metric {
		return bench.Seconds(name, "99th percentile of the time of a "+s.unitOf+phase+"; the longest time if there are fewer than 100")
	}
	ratio := func(name, origin, help string) result.Metric {
		return result.Metric{Name: name, Unit: result.Ratio, Better: result.Lower, DerivedFrom: origin, Help: help}
	}
	optional := func(m result.Metric) result.Metric {
		m.Optional = true
		return m
	}
	share := bench.Higher("Kept", result.Ratio, "share of its speed that the victim keeps beside the aggressor, during / before, over the same share of the control: 1 without an effect")
	share.Dimension, share.Phrase = dimension, "keeps this share of its speed beside a noisy neighbour:"
	recovery := bench.Seconds("Recovery", "from the call that ends the aggressor until the victim is back within the range of the control, by windows of a tenth of the shorter of the phases before and during, so it is no shorter than one; left out without a loss, and if it takes longer than the phase after")
	return []result.Metric{
		share,
		ratio("Loss", "Kept", "1 − Kept, the loss of the victim's speed (wang, equation 2) without the part that the control shows as well; negative after a gain"),
		ratio("LossNoise", "Kept", "noise of Loss within the trial, half of its 99 % interval from up to ten windows of each phase: a single trial shows a loss only beyond it"),
		rate("SpeedBefore", alone),
		rate("SpeedDuring", beside),
		rate("SpeedAfter", " after the aggressor's end"),
		tail("TailBefore", alone),
		optional(tail("TailDuring", beside)), // without a value if the victim stands still
		tail("TailAfter", " after the aggressor's end"),
		optional(tail("TailControl", " in the control, at the same time as TailDuring")),
		optional(recovery),
		ratio("RawLoss", "SpeedDuring", "(before − during) / before as measured, without a correction; negative if the victim became faster"),
		ratio("ControlLoss", "SpeedBefore", "RawLoss of the control, that is, without an aggressor: the noise of the method on this machine"),
		ratio("VariationBefore", "SpeedBefore", "standard deviation of the speed in the windows before, over its mean"),
		ratio("VariationDuring", "SpeedDuring", "standard deviation of the speed in the windows during, over its mean"),
		optional(ratio("CPUShrinkage", "SpeedDuring", "loss of the victim's CPU utilisation, corrected like Loss: how much of the loss is CPU time that it no longer gets (wang section 5.8.4)")),
		optional(ratio("ControlCPUShrinkage", "SpeedBefore", "(before − during) / before of the CPU utilisation in the control")),
		optional(ratio("CPUsBefore", "SpeedBefore", "CPU time per second of the victim with its sandbox and shims"+alone+", by the host's count")),
		optional(ratio("CPUsDuring", "SpeedDuring", "CPU time per second of the victim with its sandbox and shims"+beside)),
	}
}

// fewReports is the error of a victim whose reports are too rare for an interval.
func fewReports(n int) error {
	return fmt.Errorf("the victim reported its work %d times in the phase before, and a result needs %d reports: set longer phases or a smaller unit of work", n, fewest)
}
