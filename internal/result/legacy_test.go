package result

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestUpgradeDescribesMetrics(t *testing.T) {
	run := Run{
		Targets: []Target{{Name: "native"}, {Name: "oci/runsc@platform=kvm"}, {Name: "containerd/runsc@platform=kvm"}, {Name: "odd"}},
		Bench: []Benchmark{
			{Name: "operations.container.lifecycle", Metrics: []Metric{{Name: "Create"}, {Name: "CreateAndRun"}, {Name: "RunPodSandbox"}, {Name: "HostCPU"}, {Name: "HostCPUShim"}, {Name: "PSSDaemon"}}},
			{Name: "scalability.runtime.10", Metrics: []Metric{{Name: "TotalTime"}, {Name: "HostCPU"}}},
			{Name: "performance.syscall.unixbench", Metrics: []Metric{{Name: "LoopsPerSecond"}, {Name: "Index"}}},
		},
	}
	run.Upgrade()
	want := Run{
		Targets: []Target{
			{Name: "native", Kind: KindNative},
			{Name: "oci/runsc@platform=kvm", Kind: KindRuntime, Runtime: "runsc@platform=kvm"},
			{Name: "containerd/runsc@platform=kvm", Kind: KindEngine, Runtime: "runsc@platform=kvm"},
			{Name: "odd"},
		},
		Bench: []Benchmark{
			{Name: "operations.container.lifecycle", Phases: true, Metrics: []Metric{
				{Name: "Create"},
				{Name: "CreateAndRun", Phrase: "creates and starts a container in", Layer: LayerTotal},
				{Name: "RunPodSandbox", Layer: LayerSandbox},
				{Name: "HostCPU", Layer: LayerTotal, Consumed: true},
				{Name: "HostCPUShim", Consumed: true, Group: "CPU time by component", Component: "shim"},
				{Name: "PSSDaemon", Group: "Memory by component", Component: "daemon"},
			}},
			{Name: "scalability.runtime.10", Place: "number of the container, in order of start", Metrics: []Metric{
				{Name: "TotalTime", Phrase: "starts 10 containers in"}, {Name: "HostCPU", Consumed: true},
			}},
			{Name: "performance.syscall.unixbench", Metrics: []Metric{{Name: "LoopsPerSecond"}, {Name: "Index", DerivedFrom: "LoopsPerSecond"}}},
		},
	}
	if diff := cmp.Diff(want, run); diff != "" {
		t.Error(diff)
	}
}

func TestUpgradeLeavesCurrentRuns(t *testing.T) {
	run := Run{
		Targets: []Target{{Name: "native", Kind: KindNative}},
		Bench:   []Benchmark{{Name: "operations.container.lifecycle", Metrics: []Metric{{Name: "CreateAndRun"}}}},
	}
	run.Upgrade()
	if run.Bench[0].Phases || run.Bench[0].Metrics[0].Phrase != "" {
		t.Errorf("got %+v", run.Bench[0])
	}
}

// TestDecodeVersion1 decodes an export that an earlier touchstone wrote.
func TestDecodeVersion1(t *testing.T) {
	data, err := os.ReadFile("testdata/v1/export.json")
	must(t, err)
	doc, err := Decode(bytes.NewReader(data))
	must(t, err)
	if len(doc.Runs) != 2 || len(doc.Runs[0].Trials) != 50 || len(doc.Runs[1].Trials) != 30 {
		t.Fatal("the document lost runs or trials")
	}
	samples := map[string]int{}
	for _, run := range doc.Runs {
		if len(run.Caveats) == 0 || !strings.HasPrefix(run.Caveats[0], "a") {
			t.Errorf("run %s has the caveats %q", run.ID, run.Caveats)
		}
		for _, target := range run.Targets {
			if target.Kind == "" && !strings.HasPrefix(target.Name, "fake/") {
				t.Errorf("target %s has no kind", target.Name)
			}
		}
		for _, trial := range run.Trials {
			for _, s := range trial.Samples {
				samples[trial.Benchmark+" "+s.Metric]++
			}
		}
	}
	for name, want := range map[string]int{
		"limits.cpu.time CPULimitUse": 14, "limits.cpu.time Used": 0,
		"limits.cpu.scaling CPULimitUse": 14, "limits.cpu.scaling Used": 0,
		"limits.cpu.scaling LimitResponse": 14, "limits.cpu.scaling Behind": 0,
		"app.say.number Used": bytes.Count(data, []byte(`"value": 1250.5`)), // a custom workload keeps its names
	} {
		if samples[name] != want {
			t.Errorf("there are %d samples of %s, want %d", samples[name], name, want)
		}
	}
	again, err := Decode(bytes.NewReader(encoded(t, doc)))
	must(t, err)
	if diff := cmp.Diff(doc, again, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the upgraded document changed on its way through JSON (-want +got):\n%s", diff)
	}
}
