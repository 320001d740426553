package result

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDescribeCompletesRunsOfEarlierVersions(t *testing.T) {
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
				{Name: "HostCPU", Layer: LayerTotal},
				{Name: "HostCPUShim", Group: "CPU time by component", Component: "shim"},
				{Name: "PSSDaemon", Group: "Memory by component", Component: "daemon"},
			}},
			{Name: "scalability.runtime.10", Place: "number of the container, in order of start", Metrics: []Metric{
				{Name: "TotalTime", Phrase: "starts 10 containers in"}, {Name: "HostCPU"},
			}},
			{Name: "performance.syscall.unixbench", Metrics: []Metric{{Name: "LoopsPerSecond"}, {Name: "Index", DerivedFrom: "LoopsPerSecond"}}},
		},
	}
	if diff := cmp.Diff(want, run); diff != "" {
		t.Error(diff)
	}
}

func TestDescribeLeavesDescribedRuns(t *testing.T) {
	run := Run{
		Targets: []Target{{Name: "native", Kind: KindNative}},
		Bench:   []Benchmark{{Name: "operations.container.lifecycle", Metrics: []Metric{{Name: "CreateAndRun"}}}},
	}
	run.Upgrade()
	if run.Bench[0].Phases || run.Bench[0].Metrics[0].Phrase != "" {
		t.Errorf("got %+v", run.Bench[0])
	}
}
