package catalogue_test

import (
	"fmt"
	"math"
	"regexp"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// values returns all samples of a trial by metric, in milliseconds.
func values(t *testing.T, trial result.Trial) map[string][]float64 {
	t.Helper()
	got := map[string][]float64{}
	for _, s := range trial.Samples {
		// Times are exact to the nanosecond, but their binary fractions are not.
		got[s.Metric] = append(got[s.Metric], math.Round(s.Value*1e9)/1e6)
	}
	return got
}

// repeat returns n copies of a value.
func repeat(n int, v float64) (values []float64) {
	for range n {
		values = append(values, v)
	}
	return values
}

const mib = 1 << 20 * 1e3 // a mebibyte in the unit of values

func TestOperations(t *testing.T) {
	for _, tt := range []struct {
		name, target string
		params       bench.Params
		want         map[string][]float64
	}{
		{
			"operations.container.lifecycle", "fake/a@create=10ms,start=6ms,ready=2ms,kill=1ms,exit=3ms,delete=8ms,cpu=17ms,mem=1048576", nil,
			map[string][]float64{
				"Create": {10}, "Run": {6}, "CreateAndRun": {16}, "FirstInstruction": {12}, "Destroy": {12},
				"HostCPU": {17}, "HostMemory": {mib},
			},
		},
		{
			"operations.container.exec", "fake/a@exec=4ms",
			bench.Params{"repeats": "7"},
			map[string][]float64{"Exec": repeat(7, 4)},
		},
		{
			"operations.container.pause", "fake/a@pause=2ms,resume=3ms",
			bench.Params{"repeats": "3"},
			map[string][]float64{"Pause": repeat(3, 2), "Resume": repeat(3, 3)},
		},
		{
			"operations.image.pull", "fake/a@pull=200ms,remove=30ms", nil,
			map[string][]float64{"Pull": {200}, "Remove": {30}},
		},
		{
			// The server is real and responds in no time on the fake clock.
			"operations.service.ready", "fake/a@create=10ms,start=6ms,ready=2ms", nil,
			map[string][]float64{"Listening": {12}, "Ready": {16}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			trial := ok(t, tt.name, tt.target, tt.params)
			expect.Equal(t, "values in ms", tt.want, values(t, trial))
		})
	}
}

// A call that returns success and does nothing fails the trial with the expected and the found effect, however often the call worked before.
//
// Invariant lying-calls: A call that returns success and does nothing is a failed trial, with the expected and the found effect; no check is in
// a timed region (ADR 32).
func TestOperationsFindLies(t *testing.T) {
	for _, tt := range []struct{ name, lie, reason string }{
		{"operations.container.lifecycle", "start", `no output within 1m0s; want the first line of the program after start returned success, got a container that the engine reports as created`},
		{"operations.container.exec", "start", `got a container that the engine reports as created`},
		{"operations.container.pause", "start", `got a container that the engine reports as created`},
		{"operations.service.ready", "start", `got a container that the engine reports as created`},
		{"scalability.runtime.3", "start#3", `got a container that the engine reports as created`},
		{"operations.container.exec", "exec", `^exec returned success without running its process: want the process's exit code [0-9]+, got exit code 0$`},
		{"operations.container.exec", "exec#5", `^exec returned success without running its process`},
		{"operations.container.pause", "pause", `^pause returned success without pausing the process: want no output, got [0-9]+ lines in 10s$`},
		{"operations.container.pause", "pause#2", `^pause returned success without pausing the process`},
		{"operations.container.pause", "resume", `^resume returned success without resuming the process: want a line of output each 20ms, got none in 10s$`},
		{"operations.container.pause", "resume#5", `^resume returned success without resuming the process`},
		{"operations.container.update", "update", `^update returned success without changing the limit: want 0.5 CPUs in the container's cgroup, got none$`},
		{"operations.container.update", "update#2", `want 1 CPUs in the container's cgroup, got 0.5 CPUs$`},
	} {
		trial := run(t, tt.name, "fake/a@lie="+tt.lie, nil)
		if trial.Status != result.Failed || len(trial.Samples) > 0 || !regexp.MustCompile(tt.reason).MatchString(trial.Reason) {
			t.Errorf("%s with a %s that lies: %s because %q with %d samples; want it failed because of %q", tt.name, tt.lie, trial.Status, trial.Reason, len(trial.Samples), tt.reason)
		}
	}
}

// Unexpected output of a container fails the trial.
func TestOperationsCheckTheOutput(t *testing.T) {
	for _, tt := range []struct{ name, output string }{
		{"operations.container.lifecycle", "redy\n"},
		{"operations.container.lifecycle", "ready"},
		{"operations.container.lifecycle", "ready 0.001\n"}, // a time by the clock of a guest
		{"operations.container.exec", ""},
		{"operations.service.ready", "ready\n"},
		{"operations.service.ready", "ready port=0\n"},
		{"operations.service.ready", "ready port=1\n"}, // no server listens there
		{"scalability.runtime.3", "redy\n"},
	} {
		checkEnd(t, tt.name+" with "+tt.output, runOn(t, tt.name, scripted{stdout: tt.output}, still{}, nil), result.Failed, "")
	}
}

func TestScalability(t *testing.T) {
	const target = "fake/a@create=10ms,start=6ms,ready=2ms,kill=1ms,exit=3ms,delete=8ms,cpu=1ms,mem=1048576"
	for _, n := range []int{1, 5, 12} {
		for _, mode := range []string{"sequential", "parallel"} {
			t.Run(fmt.Sprint(n, " ", mode), func(t *testing.T) {
				got := values(t, ok(t, fmt.Sprint("scalability.runtime.", n), target, bench.Params{"mode": mode}))
				want := map[string][]float64{
					"TotalTime": {float64(n) * 16}, "DestroyTime": {float64(n) * 12}, "HostCPU": {float64(n)}, "HostMemory": {float64(n) * mib},
					"StartLatency": repeat(n, 16), "FirstInstruction": repeat(n, 12), "RemovalLatency": repeat(n, 12),
				}
				if mode == "parallel" {
					checkParallel(t, got, want)
				}
				expect.Equal(t, "values in ms", want, got)
			})
		}
	}
}

// checkParallel checks the medians over containers that were created in parallel. On the fake clock the scheduler orders their
// calls: each takes at least its own time, and at most the time of all together.
func checkParallel(t *testing.T, got, want map[string][]float64) {
	t.Helper()
	for series, total := range map[string]string{"StartLatency": "TotalTime", "FirstInstruction": "TotalTime", "RemovalLatency": "DestroyTime"} {
		if len(got[series]) != 1 {
			t.Errorf("%s has %d values, want the median", series, len(got[series]))
		}
		minimum := want[series][0]
		if series == "RemovalLatency" {
			minimum -= 3 // the process may exit between the phases kill and exit, and no phase contains that time
		}
		for _, v := range got[series] {
			if v < minimum || v > want[total][0] {
				t.Errorf("%s is %v ms, want one from %v to %v", series, v, minimum, want[total][0])
			}
		}
		delete(got, series)
		delete(want, series)
	}
	// The exits of processes overlap: each comes 3 ms after its kill, whatever other calls run then.
	if d := got["DestroyTime"][0]; d > want["DestroyTime"][0] {
		t.Errorf("DestroyTime is %v ms, want at most %v", d, want["DestroyTime"][0])
	}
	delete(got, "DestroyTime")
	delete(want, "DestroyTime")
}

// The latencies are recorded by the number of running containers: the first start and the last removal come first. Each further call
// of the engine takes a tenth longer.
func TestScalabilityCountsRunningContainers(t *testing.T) {
	trial := ok(t, "scalability.runtime.5", "fake/a@create=10ms,start=10ms,kill=0s,exit=0s,delete=10ms,drift=0.1", nil)
	got := values(t, trial)
	for metric, want := range map[string][]float64{"StartLatency": {20, 22, 24, 26, 28}, "RemovalLatency": {14, 13, 12, 11, 10}} {
		expect.Equal(t, fmt.Sprintf("%s in ms", metric), want, got[metric])
	}
}

func TestScalabilityFailsAsAWhole(t *testing.T) {
	for _, mode := range []string{"sequential", "parallel"} {
		for _, fault := range []string{"fail=create#3", "fail=start#5", "fail=kill#2", "hang=create#4", "garbage=4", "die=start#1", "leak=delete#5", "fail=delete#1"} {
			trial := run(t, "scalability.runtime.5", "fake/a@"+fault, bench.Params{"mode": mode})
			if trial.Status == result.OK || len(trial.Samples) > 0 {
				t.Errorf("%s with %s: %s with %d samples", mode, fault, trial.Status, len(trial.Samples))
			}
		}
	}
}

func TestLatency(t *testing.T) {
	for name, want := range map[string]struct {
		metric string
		ms     float64
	}{"latency.exec": {"Exec", 4}, "latency.start": {"Start", 15}} {
		trial := ok(t, name, "fake/a@create=10ms,start=5ms,exec=4ms", bench.Params{"samples": "300"})
		for _, suffix := range []string{"", "P99", "Max"} {
			if got := values(t, trial)[want.metric+suffix]; len(got) != 1 || math.Abs(got[0]-want.ms) > 0.001*want.ms {
				t.Errorf("%s: %s%s is %v ms, want %v", name, want.metric, suffix, got, want.ms)
			}
		}
		if len(trial.Distributions) != 1 || len(trial.Distributions[0].Tail.At) != 300 {
			t.Fatalf("%s: the distributions are %+v", name, trial.Distributions)
		}
		var count uint64
		for _, n := range trial.Distributions[0].Counts {
			count += n
		}
		if count != 300 {
			t.Errorf("%s has %d samples, want 300", name, count)
		}
	}
}

// The probe reports the times of single calls itself.
func TestLatencyOfSystemCalls(t *testing.T) {
	trial := ok(t, "latency.syscall", "fake/a", bench.Params{"samples": "5000", "call": "stat"})
	if got := values(t, trial); len(got["Call"]) != 1 || got["CallMax"][0] != 2*got["Call"][0] {
		t.Errorf("the values are %v", got)
	}
	d := trial.Distributions
	if len(d) != 1 || len(d[0].Tail.At) != 4000 || d[0].Tail.At[3999] != 4999 || d[0].Tail.Values[3999] != trial.Values("CallMax")[0] {
		t.Errorf("the distributions are %+v", d)
	}
}

// A call that does nothing fails the trial at any of its many repetitions.
func TestLatencyFindsLies(t *testing.T) {
	trial := run(t, "latency.exec", "fake/a@lie=exec#150", bench.Params{"samples": "200"})
	if want := regexp.MustCompile(`^operation 150: exec returned success without running its process`); trial.Status != result.Failed || !want.MatchString(trial.Reason) {
		t.Errorf("%s because %q, want failed because %s", trial.Status, trial.Reason, want)
	}
}
