package custom_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/custom"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// image is the path of the user's image.
const image bench.Image = "/srv/images/app.tar"

// app is a workload whose program the tests install.
func app() custom.Workload {
	return custom.Workload{
		Name: "app.start.cold", Image: image, Args: []string{"/usr/bin/app", "--bench", "5"}, Env: map[string]string{"B": "2", "A": "1"},
		Metrics: []custom.Metric{
			{Name: "Rate", Unit: "1/s", Better: "higher", Regex: `rate: ([0-9.]+) op/s`},
			{Name: "P99", Unit: "s", Better: "lower", Regex: `p99: ([0-9.]+) ms`, Scale: custom.Scale{Factor: 0.001}},
		},
	}
}

type quiet struct{}

func (quiet) Begin() func([]bench.Medium) result.Disturbance {
	return func([]bench.Medium) result.Disturbance { return result.Disturbance{} }
}
func (quiet) Started(result.Trial, runner.Progress) {}
func (quiet) Ended(result.Trial)                    {}

// run executes one trial of a workload on a fake target, with program as /usr/bin/app.
func run(t *testing.T, w custom.Workload, program fake.Program, targetName string) result.Trial {
	t.Helper()
	b, err := custom.Benchmark(w)
	must.Do(t, err)
	clock := fake.NewClock()
	driver := fake.NewDriver(clock)
	if program != nil {
		driver.Install("/usr/bin/app", program)
	}
	parsed, err := target.Parse(targetName)
	must.Do(t, err)
	const runID = "20260101-000000-test"
	e, err := driver.Open(t.Context(), parsed, engine.Session{RunID: runID})
	must.Do(t, err)
	var trials []result.Trial
	_, err = runner.Run(t.Context(), runner.Config{
		RunID: runID, Images: map[bench.Image]runner.Image{image: {Rootfs: "/app"}}, Data: t.TempDir(),
		Work: []plan.Work{{Benchmark: b}}, Targets: []runner.Target{{Name: targetName, Engine: e}},
		Stop: stats.StopRule{Min: 1}, TrialLimit: time.Hour, CallLimit: time.Minute, Clock: clock, Noise: quiet{}, Observer: quiet{},
		Record: func(trial result.Trial) error { trials = append(trials, trial); return nil },
	})
	if err != nil || len(trials) != 1 {
		t.Fatalf("Run() = %v with %d trials, want one", err, len(trials))
	}
	if left := driver.Leftovers(); len(left) > 0 {
		t.Errorf("the containers %q are left", left)
	}
	return trials[0]
}

func TestBenchmark(t *testing.T) {
	var got engine.Spec
	trial := run(t, app(), func(args []string, spec engine.Spec) fake.Behaviour {
		got = spec
		return fake.Behaviour{Took: time.Second, Stdout: "rate: 1250.5 op/s\np99: 12.5 ms\n", Stderr: "rate: 1 op/s\n"}
	}, "fake/a@cpu=20ms")
	if trial.Status != result.OK {
		t.Fatalf("the trial is %s: %s", trial.Status, trial.Reason)
	}
	samples := map[string]float64{}
	for _, s := range trial.Samples {
		samples[s.Metric] = s.Value
	}
	if samples["Rate"] != 1250.5 || samples["P99"] != 0.0125 || samples["HostCPU"] <= 0 {
		t.Errorf("samples are %v", samples)
	}
	want := engine.Spec{
		ID: got.ID, Rootfs: "/app", Process: engine.Process{
			Args: []string{"/usr/bin/app", "--bench", "5"}, Env: []string{"A=1", "B=2"}, Stdout: got.Process.Stdout, Stderr: got.Process.Stderr,
		},
	}
	if diff := cmp.Diff(want, got, cmp.FilterPath(func(p cmp.Path) bool { return strings.HasPrefix(p.Last().String(), ".Std") }, cmp.Ignore())); diff != "" {
		t.Errorf("the container (-want +got):\n%s", diff)
	}
}

func TestFailuresHaveNoSamples(t *testing.T) {
	says := func(b fake.Behaviour) fake.Program {
		return func([]string, engine.Spec) fake.Behaviour { return b }
	}
	const good = "rate: 1250.5 op/s\np99: 12.5 ms\n"
	for _, tt := range []struct {
		name    string
		program fake.Program
		want    string
	}{
		{"a program that is not in the image", nil, `execute "/usr/bin/app": no such file or directory`},
		{"a program that fails", says(fake.Behaviour{Stdout: good, Exit: engine.Exit{Code: 3}}), "exit code 3"},
		{"half of the output", says(fake.Behaviour{Stdout: "rate: 1250.5 op/s\n"}), `read the output of ["/usr/bin/app" "--bench" "5"]: P99: the expression "p99: ([0-9.]+) ms" matches nothing in the output, which begins with "rate: 1250.5 op/s\n"`},
		{"output on the other stream", says(fake.Behaviour{Stderr: good}), "matches nothing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			trial := run(t, app(), tt.program, "fake/a")
			if trial.Status != result.Failed || !strings.Contains(trial.Reason, tt.want) || len(trial.Samples) > 0 {
				t.Errorf("the trial is %s because %s, with the samples %v; want %s", trial.Status, trial.Reason, trial.Samples, tt.want)
			}
		})
	}
}

func TestNeedsOfAWorkload(t *testing.T) {
	for _, tt := range []struct {
		change func(*custom.Workload)
		lacks  string
		check  func(engine.Spec) bool
	}{
		{func(w *custom.Workload) { w.Writable = true }, "writable-root", func(s engine.Spec) bool { return s.Writable && s.Network == engine.NoNetwork }},
		{func(w *custom.Workload) { w.Network = "host" }, "host-network", func(s engine.Spec) bool { return !s.Writable && s.Network == engine.HostNet }},
	} {
		w := app()
		tt.change(&w)
		var got engine.Spec
		trial := run(t, w, func(_ []string, spec engine.Spec) fake.Behaviour {
			got = spec
			return fake.Behaviour{Stdout: "rate: 1 op/s p99: 1 ms"}
		}, "fake/a")
		if trial.Status != result.OK || !tt.check(got) {
			t.Errorf("the trial is %s (%s) and its container %+v", trial.Status, trial.Reason, got)
		}
		if trial := run(t, w, nil, "fake/a@no="+tt.lacks); trial.Status != result.Skipped {
			t.Errorf("without %s the trial is %s: %s", tt.lacks, trial.Status, trial.Reason)
		}
	}
	w := app()
	w.Network = "bridge"
	if trial := run(t, w, nil, "fake/a"); trial.Status != result.Skipped || !strings.Contains(trial.Reason, "network") {
		t.Errorf("without a bridged network the trial is %s: %s", trial.Status, trial.Reason)
	}
}

// The run records the benchmark's description, so it must be valid.
func TestBenchmarkDescribesItself(t *testing.T) {
	for _, unit := range custom.Units() {
		for _, direction := range custom.Directions() {
			w := app()
			w.Metrics = []custom.Metric{{Name: "A", Unit: unit, Better: direction, JSON: "a.b"}}
			b, err := custom.Benchmark(w)
			must.Do(t, err)
			r := result.Run{
				ID: "r", State: result.Complete, Started: time.Unix(0, 0), Ended: time.Unix(1, 0),
				Bench: []result.Benchmark{{Name: b.Name, Metrics: b.Metrics}},
			}
			if err := r.Validate(); err != nil {
				t.Error(err)
			}
			if b.Summary != "/usr/bin/app --bench 5" || b.Image != image || b.Metrics[0].Help != "read from the program's output at the JSON path a.b" {
				t.Errorf("the benchmark is %+v", b)
			}
		}
	}
	auto := app()
	auto.Metrics = []custom.Metric{{Name: "A", Unit: "s", Better: "lower", Regex: `mean: +([0-9.]+)`, Scale: custom.Scale{Auto: "auto"}}}
	if b, err := custom.Benchmark(auto); err != nil || b.Metrics[0].Help != "read from the program's output by the expression mean: +([0-9.]+), with its unit" {
		t.Errorf("the benchmark is %+v, %v", b, err)
	}
	for word, want := range map[string]string{"ms": "s 1e-3", "MiB/s": "B/s 1048576", "%": "ratio 0.01", "Mbits/sec": "bit/s 1e6", "op/s": "1/s ", "K": "", "furlong": "", "": ""} {
		unit, scale, ok := custom.Multiple(word)
		if got := strings.TrimPrefix(unit+" "+scale, " "); got != want || ok != (want != "") {
			t.Errorf("Multiple(%q) = %q, %v; want %q", word, got, ok, want)
		}
	}
	w := app()
	w.Metrics[1].Regex = "("
	if _, err := custom.Benchmark(w); err == nil || !strings.Contains(err.Error(), "P99 of app.start.cold: error parsing regexp") {
		t.Errorf("with an invalid expression: %v", err)
	}
	w.Summary, w.Metrics = "starts", nil
	if b, err := custom.Benchmark(w); err != nil || b.Summary != "starts" || b.Run == nil {
		t.Errorf("got %+v, %v", b, err)
	}
}

// The example's plan parses the captured output of its programs.
func TestExample(t *testing.T) {
	p, err := plan.Load("../../../examples/custom-workload.yaml")
	must.Do(t, err)
	captured := map[string]struct {
		file string
		want map[string]float64
	}{
		"app.threads.yield": {"sysbench-threads.txt", map[string]float64{"TotalTime": 0.3674, "LatencyP95": 4.41 * 1e-3}},
		"app.log.append":    {"fio-log.json", map[string]float64{"Rate": 128000, "LatencyP99": 115200e-9}},
	}
	if len(p.Workloads) != len(captured) {
		t.Errorf("the example has %d workloads, want %d", len(p.Workloads), len(captured))
	}
	for _, w := range p.Workloads {
		c, ok := captured[w.Name]
		if !ok {
			t.Errorf("%s has no captured output", w.Name)
			continue
		}
		text, err := os.ReadFile(filepath.Join("testdata", c.file))
		must.Do(t, err)
		w.Args, w.Image = []string{"/usr/bin/app"}, image
		trial := run(t, w.Workload, func([]string, engine.Spec) fake.Behaviour { return fake.Behaviour{Stdout: string(text)} }, "fake/a")
		if trial.Status != result.OK {
			t.Errorf("%s: the trial is %s: %s", w.Name, trial.Status, trial.Reason)
		}
		for _, s := range trial.Samples {
			if want, ok := c.want[s.Metric]; ok && math.Abs(s.Value-want) > 1e-12*want {
				t.Errorf("%s: %s is %v, want %v", w.Name, s.Metric, s.Value, want)
			}
			delete(c.want, s.Metric)
		}
		if len(c.want) > 0 {
			t.Errorf("%s: the samples lack %v", w.Name, c.want)
		}
	}
}
