package catalogue_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// The benchmarks pass their parameters to the programs and record the programs' values in base units.
func TestCPUPrograms(t *testing.T) {
	const event = 600e-6
	for _, tt := range []struct {
		name       string
		params     bench.Params
		want       map[string]float64
		conditions map[string]string
	}{
		{"performance.cpu.time", nil, map[string]float64{"TotalTime": 1000 * event, "EventsPerSecond": 1666.67}, nil},
		{"performance.cpu.time", bench.Params{"events": "4000", "threads": "4", "prime": "1000"}, map[string]float64{"TotalTime": 1000 * event, "EventsPerSecond": 6666.67}, nil},
		{"performance.cpu.sevenzip", bench.Params{"dictionary": "19"}, map[string]float64{
			"CompressRating": 5000, "CompressUsage": 1, "CompressPerUsage": 5000, "DecompressRating": 5000, "DecompressUsage": 1,
			"DecompressPerUsage": 5000, "TotalRating": 5000, "TotalUsage": 1, "TotalPerUsage": 5000,
		}, map[string]string{"threads": "1"}},
		{"performance.cpu.sevenzip", bench.Params{"threads": "all", "passes": "20"}, map[string]float64{
			"CompressRating": 10000, "CompressUsage": 2, "CompressPerUsage": 5000, "DecompressRating": 10000, "DecompressUsage": 2,
			"DecompressPerUsage": 5000, "TotalRating": 10000, "TotalUsage": 2, "TotalPerUsage": 5000,
		}, map[string]string{"threads": "2"}},
		{"performance.cpu.dav1d", nil, map[string]float64{"FramesPerSecond": 1 / dav1dFrame.Seconds()}, nil},
		{"performance.cpu.linpack", nil, map[string]float64{"FlopPerSecond": linpackRate, "SolutionRate": linpackRate}, map[string]string{"threads": "1"}},
		{"performance.cpu.linpack", bench.Params{"threads": "all", "n": "1000"}, map[string]float64{"FlopPerSecond": linpackRate, "SolutionRate": linpackRate}, map[string]string{"threads": "2"}},
		{"performance.memory.total", nil, map[string]float64{"TotalTime": 4096 * event}, nil},
		{"performance.memory.total", bench.Params{"kib": "2048", "threads": "2", "operation": "read"}, map[string]float64{"TotalTime": 1024 * event}, nil},
		{"performance.memory.total", bench.Params{"threads": "2", "scope": "local"}, map[string]float64{"TotalTime": 2048 * event}, nil},
		{"performance.memory.minavglatency", nil, map[string]float64{"MinLatency": 0.504e-3, "AvgLatency": event}, nil},
		{"performance.memory.maxlatency", nil, map[string]float64{"MaxLatency": 0.7e-3}, nil},
		{"limits.cpu.time", nil, map[string]float64{"TotalTime": 400 * event}, map[string]string{"CPU limit": "10 % of a CPU, in each 100 ms"}},
	} {
		trial := ok(t, tt.name, "fake/a", tt.params)
		got := map[string]float64{}
		for _, s := range trial.Samples {
			got[s.Metric] = s.Value
		}
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateApprox(1e-6, 0)); diff != "" {
			t.Errorf("%s %v (-want +got):\n%s", tt.name, tt.params, diff)
		}
		if diff := cmp.Diff(tt.conditions, trial.Conditions); diff != "" {
			t.Errorf("%s %v: conditions (-want +got):\n%s", tt.name, tt.params, diff)
		}
	}
}

// Each solution has its rate, in the order of the solutions.
func TestLinpackSeries(t *testing.T) {
	const output = `{"program":"linpack","version":1,"n":1000,"runs":3,"threads":1,"seconds":[0.100000000,0.050000000,0.200000000],"flops_per_second":13373333333,"residual":0.0018}` + "\n"
	trial := runOn(t, "performance.cpu.linpack", scripted{stdout: output}, still{}, bench.Params{"n": "1000", "runs": "3"})
	if trial.Status != result.OK {
		t.Fatalf("%s because %s", trial.Status, trial.Reason)
	}
	want := []float64{6686666666.667, 13373333333.333, 3343333333.333}
	if diff := cmp.Diff(want, trial.Values("SolutionRate"), cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("SolutionRate (-want +got):\n%s", diff)
	}
}

// The clip is verified before the measurement.
func TestClipIsVerified(t *testing.T) {
	trial := runOn(t, "performance.cpu.dav1d", scripted{stdout: strings.Repeat("4000000\n", 100)}, still{}, nil)
	if trial.Status != result.Failed || !strings.Contains(trial.Reason, "instead of \"\"") {
		t.Errorf("%s because %q", trial.Status, trial.Reason)
	}
	driver, e, clock := open(t, "fake/a")
	driver.Install("/usr/bin/dav1d", func(args []string, spec engine.Spec) fake.Behaviour {
		if strings.Contains(strings.Join(args, " "), "--verify") {
			return fake.Behaviour{Exit: engine.Exit{Code: 1}}
		}
		return dav1d(args, spec)
	})
	trial = runOn(t, "performance.cpu.dav1d", e, clock, nil)
	if trial.Status != result.Failed || !strings.Contains(trial.Reason, "exit code 1") {
		t.Errorf("with another checksum: %s because %q", trial.Status, trial.Reason)
	}
}

// The paper values are the commands of TouchStone: the latencies come from 1024 blocks, not from the 102400 of the total time. The raised
// limit has the load of performance.cpu.time (espe section 5.5), and goes from half to full in ten seconds.
func TestPaperParams(t *testing.T) {
	for name, want := range map[string]string{
		"performance.memory.total":         "access=seq kib=1024 mib=102400 operation=write scope=global threads=1",
		"performance.memory.minavglatency": "access=seq kib=1024 mib=1024 operation=write scope=global threads=1",
		"performance.memory.maxlatency":    "access=seq kib=1024 mib=1024 operation=write scope=global threads=1",
		"performance.cpu.time":             "events=10000 prime=20000 threads=1",
		"limits.cpu.scaling":               "events=10000 from=50 percent=100 prime=20000 steps=10",
	} {
		got, err := find(t, name).Resolve(nil, true)
		if err != nil || got.String() != want {
			t.Errorf("%s: the paper's parameters are %s, %v; want %s", name, got, err, want)
		}
	}
}
