package catalogue_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// The fake engine's option score=0.5 halves the rates of its bare machine and doubles the times.
func TestPerformance(t *testing.T) {
	for _, tt := range []struct {
		name string
		want map[string]float64
	}{
		{"performance.syscall.unixbench", map[string]float64{"LoopsPerSecond": 0.75e6, "Index": 500}},
		{"performance.memory.stream", map[string]float64{"Copy": 13e9, "Scale": 12.5e9, "Add": 13.5e9, "Triad": 13.25e9}},
		{"performance.disk.blog", map[string]float64{"ReadScore": 12000, "WriteScore": 65, "BlogsRead": 6000, "BlogsWritten": 32.5}},
	} {
		checkSamples(t, tt.name, run(t, tt.name, "fake/a@score=0.5", nil), tt.want)
	}
}

func TestCopiesAreSummed(t *testing.T) {
	trial := ok(t, "performance.syscall.unixbench", "fake/a", bench.Params{"copies": "4"})
	if got := trial.Values("LoopsPerSecond"); !slices.Equal(got, []float64{6e6}) {
		t.Errorf("LoopsPerSecond of 4 copies = %v, want 6e6", got)
	}
	trial = ok(t, "performance.memory.stream", "fake/a", bench.Params{"copies": "4"})
	if got := trial.Values("Copy"); !slices.Equal(got, []float64{104e9}) {
		t.Errorf("Copy of 4 copies = %v, want 104e9", got)
	}
	params := resolved(t, "performance.memory.stream", bench.Params{"copies": "4", "mib": "8"})
	if needs := find(t, "performance.memory.stream").Needs(params); needs.Memory != 4*3*8<<20 {
		t.Errorf("the arrays of 4 copies take %d bytes", needs.Memory)
	}
}

// fd=stdin duplicates the standard input instead of a pipe.
func TestUnixbenchDescriptor(t *testing.T) {
	output := whole(good(t, "performance.syscall.unixbench"))
	for fd, want := range map[string]bool{"pipe": false, "stdin": true} {
		var args []string
		e := scripted{stdout: output, created: func(s engine.Spec) { args = s.Process.Args }}
		mustBeOK(t, runOn(t, "performance.syscall.unixbench", e, still{}, bench.Params{"fd": fd}))
		if slices.Contains(args, "--stdin") != want {
			t.Errorf("fd=%s calls %q", fd, args)
		}
	}
	if params, err := find(t, "performance.syscall.unixbench").Resolve(nil, true); err != nil || params["fd"] != "stdin" {
		t.Errorf("the paper's parameters are %v, %v", params, err)
	}
}

// Blogbench's own mixture takes the given space, and a trial records that old blogs were replaced.
func TestBlogbenchMixture(t *testing.T) {
	const name = "performance.disk.blog"
	for _, tt := range []struct {
		space    string
		replaced bool
	}{{"512", true}, {"1024", false}} { // 49 and 98 blogs, and 65 are written
		overrides := bench.Params{"mixture": "blogbench", "space": tt.space}
		trial := ok(t, name, "fake/a", overrides)
		if condition := trial.Conditions["blogs"]; (condition != "") != tt.replaced {
			t.Errorf("in %s MiB: the conditions are %v", tt.space, trial.Conditions)
		}
		if needs := find(t, name).Needs(resolved(t, name, overrides)); fmt.Sprint(needs.Space.Disk>>20) != tt.space {
			t.Errorf("in %s MiB: the space is %d bytes", tt.space, needs.Space.Disk)
		}
	}
	if trial := ok(t, name, "fake/a", nil); trial.Conditions["blogs"] != "" {
		t.Errorf("the bounded mixture has the conditions %v", trial.Conditions)
	}
	for mib, want := range map[int]int{0: 0, 128: 12, 512: 49, 1024: 98} {
		if got := probe.BlogbenchBlogs(mib); got != want {
			t.Errorf("%d blogs fit into %d MiB, want %d", got, mib, want)
		}
	}
}

func TestLatencyKeepsTheDistributions(t *testing.T) {
	trial := ok(t, "performance.syscall.latency", "fake/a@score=0.5", nil)
	if len(trial.Distributions) != len(probe.Calls()) {
		t.Fatalf("%d distributions, want %d", len(trial.Distributions), len(probe.Calls()))
	}
	close := cmpopts.EquateApprox(1e-12, 0)
	for i, name := range probe.Calls() {
		if d := trial.Distributions[i]; d.Metric != name || d.Unit != result.Seconds || d.Batch != 100 || !slices.Equal(d.Counts, []uint64{10}) {
			t.Errorf("distribution %d is %+v, want one of %s", i, d, name)
		}
	}
	expect.Equal(t, "buckets of getpid in s", []float64{128e-9}, trial.Distributions[0].Lows, close)
	expect.Equal(t, "getpid in s", []float64{200e-9}, trial.Values("getpid"), close)
}

// The program runs for the duration in the plan.
func TestDurationReachesTheProgram(t *testing.T) {
	for _, name := range []string{"performance.syscall.unixbench", "performance.syscall.latency", "performance.memory.stream", "performance.disk.blog"} {
		trial := ok(t, name, "fake/a@create=10ms,start=6ms,ready=2ms,exit=0s,delete=8ms", bench.Params{"duration": "12s"})
		// The other half of start passes while the program runs.
		if got := trial.Elapsed; got != 12_000*ms+10*ms+2*ms+8*ms {
			t.Errorf("%s took %v", name, got)
		}
	}
}

// good is output of the probe with every metric of a benchmark, and with its calls.
func good(t *testing.T, name string) []string {
	t.Helper()
	var lines []string
	for _, m := range find(t, name).Metrics {
		if name == "performance.syscall.latency" {
			lines = append(lines, fmt.Sprintf(`{"call":%q,"unit":"ns","count":10,"k":1,"min":1,"p50":2,"p90":3,"p99":4,"max":5,"hist":[[1,10]]}`, m.Name))
			continue
		}
		lines = append(lines, fmt.Sprintf(`{"metric":%q,"value":%d,"unit":%q}`, m.Name, 5, m.Unit))
	}
	return lines
}

// whole completes output with the probe's last line.
func whole(lines []string) string {
	return strings.Join(slices.Concat(lines, []string{fmt.Sprintf(`{"done":true,"metrics":%d}`, len(lines))}), "\n") + "\n"
}

// Wrong output of the probe fails the trial with a reason and without samples.
func TestWrongProbeOutputFails(t *testing.T) {
	for _, name := range []string{"performance.syscall.unixbench", "performance.syscall.latency", "performance.memory.stream", "performance.disk.blog"} {
		lines := good(t, name)
		mustBeOK(t, runOn(t, name, scripted{stdout: whole(lines)}, still{}, nil))
		zero := slices.Clone(lines)
		zero[1] = strings.NewReplacer(`"value":5`, `"value":0`, `"min":1,"p50":2`, `"min":0,"p50":0`).Replace(zero[1])
		unit := slices.Clone(lines)
		unit[0] = strings.NewReplacer(`"unit":"1/s"`, `"unit":"B"`, `"unit":"B/s"`, `"unit":"B"`, `"unit":"score"`, `"unit":"B"`, `"ns"`, `"us"`).Replace(unit[0])
		for _, tt := range []struct {
			what   string
			engine scripted
			reason string
		}{
			{"no output", scripted{}, workload.ErrCutOff.Error()},
			{"garbage", scripted{stdout: "\x00\xff{\"metric\": gar\n"}, "line 1"},
			{"a metric is missing", scripted{stdout: whole(lines[:len(lines)-1])}, "the program's output has no "},
			{"the end is missing", scripted{stdout: strings.Join(lines, "\n") + "\n"}, workload.ErrCutOff.Error()},
			{"a line is missing", scripted{stdout: strings.Replace(whole(lines), lines[0]+"\n", "", 1)}, "some were lost"},
			{"too much output", scripted{stdout: strings.Repeat(lines[0]+"\n", 2*bench.MaxOutput/len(lines[0]))}, "line"},
			{"a zero", scripted{stdout: whole(zero)}, " 0 for "},
			{"another unit", scripted{stdout: whole(unit)}, ""},
			{"exit code", scripted{stdout: whole(lines), stderr: "disk full\n", exit: engine.Exit{Code: 1}}, "ended: exit code 1"},
			{"signal", scripted{stdout: whole(lines), exit: engine.Exit{Signal: 9}}, "ended: killed by signal 9"},
		} {
			trial := runOn(t, name, tt.engine, still{}, nil)
			checkEnd(t, name+", "+tt.what, trial, result.Failed, tt.reason)
			if !strings.Contains(trial.Output, tt.engine.stderr) {
				t.Errorf("%s, %s: the output %.100q lacks its standard error", name, tt.what, trial.Output)
			}
		}
	}
}

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
		checkSamples(t, tt.name, trial, tt.want, cmpopts.EquateApprox(1e-6, 0))
		expect.Equal(t, fmt.Sprintf("%s %v: conditions", tt.name, tt.params), tt.conditions, trial.Conditions)
	}
}

// Each solution has its rate, in the order of the solutions.
func TestLinpackSeries(t *testing.T) {
	const output = `{"program":"linpack","version":1,"n":1000,"runs":3,"threads":1,"seconds":[0.100000000,0.050000000,0.200000000],"flops_per_second":13373333333,"residual":0.0018}` + "\n"
	trial := mustBeOK(t, runOn(t, "performance.cpu.linpack", scripted{stdout: output}, still{}, bench.Params{"n": "1000", "runs": "3"}))
	want := []float64{6686666666.667, 13373333333.333, 3343333333.333}
	expect.Equal(t, "SolutionRate", want, trial.Values("SolutionRate"), cmpopts.EquateApprox(1e-9, 0))
}

// The clip is verified before the measurement.
func TestClipIsVerified(t *testing.T) {
	trial := runOn(t, "performance.cpu.dav1d", scripted{stdout: strings.Repeat("4000000\n", 100)}, still{}, nil)
	checkEnd(t, "output of the verification", trial, result.Failed, "instead of \"\"")
	driver, e, clock := open(t, "fake/a")
	driver.Install("/usr/bin/dav1d", func(args []string, spec engine.Spec) fake.Behaviour {
		if strings.Contains(strings.Join(args, " "), "--verify") {
			return fake.Behaviour{Exit: engine.Exit{Code: 1}}
		}
		return dav1d(args, spec)
	})
	checkEnd(t, "another checksum", runOn(t, "performance.cpu.dav1d", e, clock, nil), result.Failed, "exit code 1")
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
