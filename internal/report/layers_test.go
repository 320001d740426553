package report_test

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// engines is the model of the run of engines as it is.
var engines = sync.OnceValue(func() report.Report { return model(reporttest.Engines()) })

// fewEngines is the lifecycle of that run on some targets.
func fewEngines() result.Run {
	run := reporttest.Engines()
	run.Trials = slices.DeleteFunc(run.Trials, func(tr result.Trial) bool {
		return tr.Benchmark != lifecycle || !slices.Contains([]string{"native", "oci/runc", "containerd/runc", "docker/runc", "docker/crun", "oci/crun"}, tr.Target)
	})
	return run
}

func layersOf(t *testing.T, m report.Report, metric string) analysis.Layers {
	t.Helper()
	for _, l := range benchmark(t, m, lifecycle).Layers {
		if l.Metric.Name == metric {
			return l
		}
	}
	t.Fatalf("there are no layers of %s", metric)
	return analysis.Layers{}
}

func stackOf(t *testing.T, l analysis.Layers, target string) analysis.Stack {
	t.Helper()
	for _, s := range l.Stacks {
		if s.Target == target {
			return s
		}
	}
	t.Fatalf("there is no stack of %s", target)
	return analysis.Stack{}
}

func partNames(s analysis.Stack) []string {
	var names []string
	for _, p := range s.Parts {
		names = append(names, p.Name())
	}
	return names
}

// byBlock gives a metric of the lifecycle on a target by block.
func byBlock(run result.Run, target, metric string) map[int]float64 {
	values := map[int]float64{}
	for _, tr := range run.Trials {
		if tr.Benchmark == lifecycle && tr.Target == target && !tr.Warmup && tr.Status == result.OK {
			for _, v := range tr.Values(metric) {
				values[tr.Block] = v
			}
		}
	}
	return values
}

func medianOf(values []float64) float64 {
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

func TestLayersAreDifferencesWithinBlocks(t *testing.T) {
	run := reporttest.Engines()
	native, bare := byBlock(run, "native", "CreateAndRun"), byBlock(run, "oci/runc", "CreateAndRun")
	total, sandbox := byBlock(run, "containerd/runc", "CreateAndRun"), byBlock(run, "containerd/runc", "RunPodSandbox")
	var want [4][]float64
	for block := range total {
		for i, v := range []float64{native[block], bare[block] - native[block], total[block] - sandbox[block] - bare[block], sandbox[block]} {
			want[i] = append(want[i], v)
		}
	}
	got := stackOf(t, layersOf(t, engines(), "CreateAndRun"), "containerd/runc")
	if diff := cmp.Diff(analysis.LayerNames(), partNames(got)); diff != "" {
		t.Fatalf("the layers of containerd/runc are (-want +got):\n%s", diff)
	}
	rest := got.Total.Median
	for i, p := range got.Parts {
		if m := medianOf(want[i]); math.Abs(p.Median-m) > 1e-12 || p.N != 10 {
			t.Errorf("%s is %v in %d blocks, want %v in 10", p.Name(), p.Median, p.N, m)
		}
		if p.CI == nil || p.CI.Lo > p.Median || p.CI.Hi < p.Median {
			t.Errorf("%s is %v with the interval %v", p.Name(), p.Median, p.CI)
		}
		if subtracted := i == 1 || i == 2; p.Subtracted != subtracted {
			t.Errorf("%s is a difference: %v, want %v", p.Name(), p.Subtracted, subtracted)
		}
		rest -= p.Median
	}
	if math.Abs(got.Remainder-rest) > 1e-12 || got.Remainder == 0 {
		t.Errorf("the remainder is %v, want %v", got.Remainder, rest)
	}
}

func TestLayersDependOnEngineAndRuntime(t *testing.T) {
	l := layersOf(t, engines(), "CreateAndRun")
	for target, want := range map[string]string{
		"native":                       "process",
		"oci/crun":                     "process|runtime",
		"docker/crun":                  "process|runtime|shim and engine",
		"crio/crun":                    "process|runtime|shim and engine|sandbox and network",
		"crio/youki":                   "process|runtime, shim and engine|sandbox and network", // no oci/youki
		"docker/youki":                 "process|runtime, shim and engine",
		"docker/runsc@platform=ptrace": "process|runtime|shim and engine",
	} {
		if got := strings.Join(partNames(stackOf(t, l, target)), "|"); got != want {
			t.Errorf("the layers of %s are %s, want %s", target, got, want)
		}
	}
	// No metric has the CPU time of the sandbox alone.
	cpu := stackOf(t, layersOf(t, engines(), "HostCPU"), "containerd/crun")
	if got := strings.Join(partNames(cpu), "|"); got != "process|runtime|shim and engine, sandbox and network" {
		t.Errorf("the layers of the CPU time are %s", got)
	}
	// Runtime by runtime, the bare one first, though the run has it engine by engine.
	var order []string
	for _, s := range l.Stacks[:7] {
		order = append(order, s.Target)
	}
	if want := []string{"native", "oci/runc", "containerd/runc", "crio/runc", "docker/runc", "podman/runc", "oci/crun"}; !slices.Equal(order, want) {
		t.Errorf("the stacks begin with %q, want %q", order, want)
	}
	// The same runtime with other options is another one.
	ptrace, systrap := stackOf(t, l, "docker/runsc@platform=ptrace"), stackOf(t, l, "docker/runsc@platform=systrap")
	if ptrace.Parts[1].Median == systrap.Parts[1].Median {
		t.Error("runsc adds the same on two platforms")
	}
	if gaps := stackOf(t, l, "docker/youki").Lacking; !slices.Contains(gaps, "oci/youki") {
		t.Errorf("docker/youki lacks %q", gaps)
	}
	if notes := finding.LayerNotes(&l); !slices.ContainsFunc(notes, func(n string) bool {
		return strings.HasPrefix(n, "containerd/youki, crio/youki, docker/youki: no value of oci/youki to separate the layers")
	}) {
		t.Errorf("the notes are %q", notes)
	}
}

func TestLayersMarkUnclearParts(t *testing.T) {
	l := layersOf(t, engines(), "CreateAndRun")
	part := stackOf(t, l, "podman/crun").Parts[2]
	if part.Median >= 0 || !part.Shown() || part.Unclear() {
		t.Errorf("an engine that is faster than the bare runtime adds %+v", part)
	}
	const prefix = "If shim and engine is negative beside a sandbox"
	check := func(l analysis.Layers) bool {
		return slices.ContainsFunc(finding.LayerNotes(&l), func(n string) bool { return strings.HasPrefix(n, prefix) })
	}
	if p := stackOf(t, l, "containerd/runsc@platform=systrap").Parts[2]; p.Median >= 0 || !check(l) {
		t.Errorf("an engine whose sandbox does the runtime's work adds %+v, and the notes are %q", p, finding.LayerNotes(&l))
	}
	if cpu := layersOf(t, engines(), "HostCPU"); check(cpu) {
		t.Errorf("without such a layer the notes are %q", finding.LayerNotes(&cpu))
	}
	rest := stackOf(t, l, "podman/runc").Parts[2]
	if !rest.Unclear() || rest.CI.Lo > 0 || rest.CI.Hi < 0 {
		t.Errorf("an engine that adds nothing adds %+v", rest)
	}
	if process := stackOf(t, l, "native").Parts[0]; process.Unclear() {
		t.Errorf("a time is unclear: %+v", process)
	}
}

func TestLayersWithoutATarget(t *testing.T) {
	drop := func(names ...string) result.Run {
		run := fewEngines()
		run.Trials = slices.DeleteFunc(run.Trials, func(tr result.Trial) bool { return slices.Contains(names, tr.Target) })
		return run
	}
	for _, c := range []struct {
		gone []string
		want string
	}{
		{[]string{"native"}, "process, runtime|shim and engine|sandbox and network"},
		{[]string{"oci/runc"}, "process|runtime, shim and engine|sandbox and network"},
		{[]string{"native", "oci/runc"}, "process, runtime, shim and engine|sandbox and network"},
	} {
		l := layersOf(t, model(drop(c.gone...)), "CreateAndRun")
		s := stackOf(t, l, "containerd/runc")
		if got := strings.Join(partNames(s), "|"); got != c.want || !strings.Contains(finding.StackNote(&s), strings.Join(c.gone, " and ")) || !l.Merged() {
			t.Errorf("without %q the layers are %s (%s), want %s", c.gone, got, finding.StackNote(&s), c.want)
		}
	}
	for name, run := range map[string]result.Run{"no engine": reporttest.Sample(), "no trial": {ID: "01K9Z0TOUCHSTONE0EMPTY0000"}} {
		r := model(run)
		for _, b := range r.Benchmarks() {
			if l := b.Sections[0].Layers; len(l) > 0 {
				t.Errorf("%s: %s has the layers %+v", name, b.Name, l)
			}
		}
	}
}

// A block counts only if all targets that separate the layers have a value in it, so that the parts of every stack have the
// same blocks.
func TestLayersPairBlocks(t *testing.T) {
	run := fewEngines()
	for i := range run.Trials {
		tr := &run.Trials[i]
		if tr.Benchmark == lifecycle && !tr.Warmup && (tr.Target == "oci/runc" && tr.Block == 2 || tr.Target == "docker/runc" && tr.Block == 5) {
			tr.Status, tr.Reason, tr.Samples = result.Failed, "exit code 1", nil
		}
	}
	l := layersOf(t, model(run), "CreateAndRun")
	for target, want := range map[string]int{"native": 10, "oci/runc": 9, "containerd/runc": 9, "docker/runc": 8, "docker/crun": 10} {
		s := stackOf(t, l, target)
		if s.Blocks() != want {
			t.Errorf("%s has %d blocks, want %d", target, s.Blocks(), want)
		}
		for _, p := range s.Parts {
			if p.N != want {
				t.Errorf("%s of %s has %d blocks, want %d", p.Name(), target, p.N, want)
			}
		}
	}
}

// A component with values in some trials counts as 0 in the others. The median of its values alone would be too large.
func TestMissingComponentsCountAsZero(t *testing.T) {
	run := fewEngines()
	for i := range run.Trials {
		tr := &run.Trials[i]
		if tr.Target == "docker/runc" && tr.Block%4 != 0 {
			tr.Samples = slices.DeleteFunc(slices.Clone(tr.Samples), func(s result.Sample) bool { return s.Metric == "HostCPUNetwork" })
		}
	}
	cpu := benchmark(t, model(run), lifecycle).Components[0]
	index := slices.IndexFunc(cpu.Rows, func(r analysis.ComponentRow) bool { return r.Target == "docker/runc" })
	network := cpu.Rows[index].Cells[slices.Index(cpu.Names, "network")]
	if network == nil || network.N != 10 || network.Median != 0 || network.Max == 0 {
		t.Errorf("a component of three trials in ten is %+v, want a median of 0 over 10", network)
	}
}

// In a single block the medians are the values, which add up. Rounding errors are no remainder.
func TestNoRemainderOfASingleBlock(t *testing.T) {
	run := reporttest.Engines()
	run.Trials = slices.DeleteFunc(run.Trials, func(t result.Trial) bool { return t.Block > 0 || t.Warmup })
	stacks := 0
	for _, s := range layersOf(t, model(run), "CreateAndRun").Stacks {
		stacks++
		if s.Remainder != 0 {
			t.Errorf("%s has the remainder %v", s.Target, s.Remainder)
		}
	}
	if stacks == 0 {
		t.Error("there are no stacks")
	}
}
