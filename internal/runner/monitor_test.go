package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner/meter"
)

// meminfo is a machine of 1000 MiB that the test fills.
func meminfo(t testing.TB, proc string, usedMiB int) {
	t.Helper()
	available := 1000 - usedMiB
	text := fmt.Sprintf("MemTotal: %d kB\nMemFree: %d kB\nMemAvailable: %d kB\nBuffers: 0 kB\nCached: 0 kB\n", 1000<<10, available<<10, available<<10)
	must.Do(t, os.WriteFile(filepath.Join(proc, "meminfo"), []byte(text), 0o600))
}

// newMonitored returns a harness with a monitored benchmark. Samples cost nothing.
func newMonitored(t *testing.T, run func(pass func(time.Duration), use func(mib int)) error) *harness {
	t.Helper()
	l := newHarness(t, "fake/a")
	l.config.Proc = t.TempDir()
	l.config.ThreadCPU = func() time.Duration { return 0 }
	meminfo(t, l.config.Proc, 100)
	pass := l.clock.Advance
	l.work("test.one.x", func(context.Context, bench.Trial) error {
		return run(pass, func(mib int) { meminfo(t, l.config.Proc, mib) })
	})
	l.config.Work[0].Monitor = 100 * ms
	l.config.Work[0].Benchmark = l.config.Work[0].Benchmark.Monitored()
	return l
}

func lineOf(t *testing.T, trial result.Trial, group, name string) result.Timeline {
	t.Helper()
	for _, l := range trial.Timelines {
		if l.Group == group && l.Name == name {
			return l
		}
	}
	t.Fatalf("the trial has no timeline %s of %s: %v", name, group, trial.Timelines)
	return result.Timeline{}
}

func TestMemoryOverTime(t *testing.T) {
	l := newMonitored(t, func(pass func(time.Duration), use func(int)) error {
		pass(150 * ms)
		use(300)
		pass(100 * ms)
		use(50)
		pass(150 * ms)
		return nil
	})
	l.ok()
	trial := l.only()
	want := result.Timeline{
		Group: "Memory of the host", Name: "used", Unit: result.Bytes,
		At:     []time.Duration{0, 100 * ms, 200 * ms, 300 * ms, 400 * ms, 400 * ms},
		Values: []float64{100 * mib, 100 * mib, 300 * mib, 50 * mib, 50 * mib, 50 * mib},
	}
	expect.Equal(t, "the memory in use", want, lineOf(t, trial, "Memory of the host", "used"))
	for _, want := range []struct {
		metric string
		value  float64
	}{
		{bench.HostMemoryPeak, 200 * mib},
		{bench.HostMemoryArea, 20 * mib}, // two triangles of 200 MiB × 0.1 s / 2; what is below the first value is none
		{bench.HostMemoryMean, 50 * mib},
	} {
		if got := trial.Values(want.metric); len(got) != 1 || got[0] < want.value*0.999 || got[0] > want.value*1.001 {
			t.Errorf("%s is %v, want %v", want.metric, got, want.value)
		}
	}
	if got := trial.Conditions["monitor"]; got != "memory every 100ms" {
		t.Errorf("the condition is %q", got)
	}
	if len(trial.Values(bench.CgroupMemoryPeak)) > 0 {
		t.Error("a trial without a cgroup has the memory of one")
	}
}

// Without a request nothing is sampled, and a benchmark that needs the samples has them without a request.
func TestMonitoredBenchmarks(t *testing.T) {
	for _, tt := range []struct {
		name     string
		interval time.Duration
		itself   bool
		proc     bool
		want     bool
		caveat   string
	}{
		{name: "no request", proc: true},
		{name: "the plan", interval: time.Second, proc: true, want: true},
		{name: "the benchmark", itself: true, proc: true, want: true},
		{name: "targets elsewhere", itself: true, caveat: "memory over time is missing from trials on fake/a: the target's processes are not on this host"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newMonitored(t, func(pass func(time.Duration), _ func(int)) error {
				pass(time.Second)
				return nil
			})
			l.config.Work[0].Monitor, l.config.Work[0].Benchmark.Monitor = tt.interval, tt.itself
			if !tt.proc {
				l.config.Proc = ""
			}
			out := l.ok()
			if got := len(l.only().Timelines) > 0; got != tt.want {
				t.Errorf("the trial has timelines: %t", got)
			}
			if tt.caveat != "" && (len(out.Caveats) != 1 || out.Caveats[0] != tt.caveat) {
				t.Errorf("caveats: %q, want %q", out.Caveats, tt.caveat)
			}
		})
	}
}

// Samples take at most 1 % of a CPU: if they cost more, there are fewer of them, and the trial says so.
//
// Invariant sampling-cost: Samples during a trial take at most 1 % of a CPU, and a part that cannot be sampled is absent, never zero.
func TestCostOfSamplesIsBounded(t *testing.T) {
	l := newMonitored(t, func(pass func(time.Duration), _ func(int)) error {
		pass(100 * time.Second)
		return nil
	})
	var spent time.Duration
	l.config.ThreadCPU = func() time.Duration {
		spent += 2 * ms // between two of the readings of a sample
		return spent
	}
	l.ok()
	trial := l.only()
	if got := trial.Conditions["monitor"]; !strings.Contains(got, "less often") {
		t.Errorf("the condition is %q", got)
	}
	line := lineOf(t, trial, "CPU use of the cgroups and of the monitor", "memory monitor")
	sum := 0.0
	for i, use := range line.Values {
		start := line.At[0]
		if i > 0 {
			start = line.At[i] - line.At[i-1]
		}
		sum += use * start.Seconds()
	}
	if sum < 0.5 || sum > 1 {
		t.Errorf("the samples of 100 s took %v s, want at most 1 %%, and not much less", sum)
	}
}

// A long trial has fewer samples and not more than are allowed. Its condition is the interval of the samples that are left.
func TestLongTrials(t *testing.T) {
	l := newMonitored(t, func(pass func(time.Duration), _ func(int)) error {
		pass(15 * time.Minute)
		return nil
	})
	l.config.Work[0].Monitor = 10 * ms
	l.ok()
	line := lineOf(t, l.only(), "Memory of the host", "used")
	if got := l.only().Conditions["monitor"]; got != "memory every 40ms" {
		t.Errorf("the condition is %q", got)
	}
	if n := len(line.At); n > result.MaxTimelinePoints || n < result.MaxTimelinePoints/2 {
		t.Errorf("90,000 intervals give %d values", n)
	}
	for i := 1; i < len(line.At)-1; i++ {
		if step := line.At[i] - line.At[i-1]; step != 40*ms {
			t.Fatalf("values %d and %d are %v apart, want a multiple of the interval that is the same for all", i, i+1, step)
		}
	}
}

// The samples before and after the trial's processes say nothing about them.
func TestPeakOfAShortTrial(t *testing.T) {
	l := newMonitored(t, func(pass func(time.Duration), _ func(int)) error {
		pass(150 * ms)
		return nil
	})
	out := l.ok()
	trial := l.only()
	if got := trial.Values(bench.HostMemoryPeak); len(got) > 0 {
		t.Errorf("the peak of a trial with one sample is %v", got)
	}
	if len(out.Caveats) != 1 || !strings.Contains(out.Caveats[0], "sample more often") {
		t.Errorf("the caveats are %q", out.Caveats)
	}
}

// A failed trial keeps no values.
func TestFailedTrialHasNoTimelines(t *testing.T) {
	l := newMonitored(t, func(func(time.Duration), func(int)) error { return errBroken })
	l.ok()
	if trial := l.only(); trial.Status != result.Failed || len(trial.Timelines)+len(trial.Samples) > 0 {
		t.Errorf("the trial is %s with %d timelines and %d samples", trial.Status, len(trial.Timelines), len(trial.Samples))
	}
}

// A broken source of samples does not fail the trial.
//
// Invariant sampling-cost.
func TestBrokenSource(t *testing.T) {
	var l *harness
	l = newMonitored(t, func(pass func(time.Duration), _ func(int)) error {
		if err := os.WriteFile(filepath.Join(l.config.Proc, "meminfo"), []byte("nothing\n"), 0o600); err != nil {
			return err
		}
		pass(time.Second)
		return nil
	})
	out := l.ok()
	trial := l.only()
	if trial.Status != result.OK || len(out.Caveats) != 1 || !strings.Contains(out.Caveats[0], "Memory of the host") {
		t.Errorf("the trial is %s, the caveats are %q", trial.Status, out.Caveats)
	}
	for _, line := range trial.Timelines {
		if line.Group == "Memory of the host" {
			t.Errorf("the broken part has the timeline %v", line)
		}
	}
	if len(trial.Values(bench.HostMemoryPeak)) > 0 {
		t.Error("the broken part has a peak")
	}
}

// The system's clock calls in time, and not after stop.
func TestTicksOfTheSystemClock(t *testing.T) {
	calls := make(chan int)
	n := 0
	stop := meter.System{}.Every(ms, func() {
		n++
		if n <= 3 {
			calls <- n
		}
	})
	for want := 1; want <= 3; want++ {
		if got := <-calls; got != want {
			t.Errorf("call %d comes as number %d", got, want)
		}
	}
	stop()
	stop()
}
