package cells

import "slices"

// nightly are the cells that only make test-all runs: clusters under faults for many minutes, long measurements, many comparisons, and a cluster on an emulated
// machine. A short form of each runs with every change in test/fleet, internal/engine/k8s or test/cluster.
func nightly() []string {
	return []string{"cli/counts", "explain/injection", "fleet/copies", "fleet/faults", "fleet/kills", "fleet/scale", "lab/cluster", "pods/catalogue", "pods/delays"}
}

// Rotation lists the cells that take turns: each change runs some of them.
func Rotation() []Cell {
	return slices.DeleteFunc(All(), func(c Cell) bool { return slices.Contains(nightly(), c.Name) })
}

// All lists the cells. A cell's paths name the code that only this cell tests in full; code below many cells, such as the contract of the
// engines, is tested by the conformance suites of every change.
func All() []Cell {
	const (
		containerd = "internal/engine/cri"
		docker     = "internal/engine/docker"
		podman     = "internal/engine/podman"
		bare       = "internal/engine/oci"
		campaign   = "test/chaos"
		machines   = "test/lab"
		clusters   = "test/cluster"
	)
	return []Cell{
		{"oci/crun", []string{bare}},
		{"oci/youki", []string{bare}},
		{"oci/runsc-ptrace", []string{bare}},
		{"containerd/crun", []string{containerd}},
		{"containerd/versions", []string{containerd}},
		{"crio/crun", []string{containerd}},
		{"docker/crun", []string{docker}},
		{"podman/crun", []string{podman}},
		{"cri/silent-exec", []string{containerd, "internal/engine/runtimes"}},
		{"docker/silent-exec", []string{docker, "internal/engine/runtimes"}},
		{"podman/silent-exec", []string{podman, "internal/engine/runtimes"}},

		{"catalogue/cpu", []string{"internal/bench/performance"}},
		{"catalogue/limits", []string{"internal/bench/limits"}},
		{"catalogue/disk", []string{"internal/bench/performance"}},
		{"catalogue/isolation", []string{"internal/bench/isolation"}},
		{"catalogue/latency", []string{"internal/bench/latency", "internal/latency"}},
		{"catalogue/surface", []string{"internal/bench/surface", "internal/seccomp"}},
		{"catalogue/network", []string{"internal/bench/performance", "internal/engine/network"}},
		{"catalogue/monitor", []string{"internal/monitor", "internal/bench/operations"}},

		{"cli/ab", []string{"internal/experiment", "internal/report/ab"}},
		{"cli/counts", []string{"internal/report/counts"}},
		{"cli/density", []string{"internal/bench/density"}},
		{"cli/own", []string{"internal/bench/custom"}},
		{"cli/portability", []string{"internal/bench/portability", "internal/image/compare"}},
		{"cli/programs", []string{"internal/workload"}},
		{"cli/remote", []string{"internal/peer"}},
		{"cli/kills", []string{"internal/workdir", "internal/store"}},
		{"cli/turn", []string{"internal/turn"}},
		{"explain/injection", []string{"internal/trace", "internal/report/explain"}},
		{"dist/architectures", []string{"test/dist", "scripts/container", "scripts/manual", "scripts/sbom"}},
		{"dist/debian", []string{"test/dist", "scripts/package"}},
		{"image/build", []string{"internal/image/debian"}},

		{"chaos/attacks", []string{campaign, "internal/peer", "internal/store", "internal/turn", "probe"}},
		{"chaos/floods", []string{campaign, "internal/process"}},
		{"chaos/frozen", []string{campaign, "internal/cgroup"}},
		{"chaos/hangs", []string{campaign, bare}},
		{"chaos/deletes", []string{campaign, bare}},
		{"chaos/unkillable", []string{campaign, "internal/process"}},
		{"chaos/files", []string{campaign, "internal/trust", "internal/store"}},
		{"chaos/kills", []string{campaign, "internal/workdir", "internal/execution"}},
		{"chaos/lies", []string{campaign, "internal/bench/operations"}},
		{"chaos/neighbour", []string{campaign, "internal/workdir"}},
		{"chaos/scarce", []string{campaign, "internal/host"}},
		{"chaos/sessions", []string{campaign, "internal/turn"}},
		{"chaos/daemons", []string{campaign, docker}},
		{"chaos/stopped", []string{campaign, "internal/engine/managed"}},

		// The tests on clusters that every machine with Kubernetes runs. This cell has it built where it is missing.
		{"cluster/brief", []string{clusters, "internal/bench/pods", "internal/cluster", "internal/engine/k8s", "internal/kube", "test/fleet", "test/kube", "test/outage"}},
		{"cluster/crio", []string{clusters, "test/kube"}},
		{"cluster/fake", []string{clusters, "test/kube"}},
		{"cluster/faults", []string{clusters, "test/kube"}},
		{"cluster/leftovers", []string{clusters, "test/kube"}},
		{"cluster/more", []string{clusters, "test/kube"}},
		{"pods/catalogue", []string{"internal/bench/pods", "internal/engine/k8s"}},
		{"fleet/copies", []string{"internal/engine/k8s", "internal/bench/pods"}},
		{"fleet/faults", []string{"test/outage", "internal/cluster", "internal/kube"}},
		{"fleet/privileged", []string{"test/outage", "internal/cluster", "internal/execution", "internal/process"}},
		{"fleet/kills", []string{"test/outage", "internal/cluster", "internal/kube"}},
		{"fleet/scale", []string{"test/outage", "internal/cluster", "internal/kube"}},
		{"pods/delays", []string{"internal/bench/pods", "internal/engine/k8s"}},

		{"lab/v2", []string{machines, "internal/cgroup"}},
		{"lab/arm", []string{machines, "probe", "linpack"}},
		{"lab/kvm", []string{machines, "internal/engine/runtimes"}},
		{"lab/faults", []string{machines}},
		{"lab/cluster", []string{machines, clusters}},
		{"lab/controllers", []string{machines, "internal/cgroup"}},
	}
}

// light lists the directories without a cell: all their tests run with each change.
func light() []string {
	return []string{
		"cmd/touchstone", "examples", "internal/analysis", "internal/answer/ab", "internal/answer/advise", "internal/answer/compare", "internal/answer/counts", "internal/answer/explain",
		"internal/answer/figure", "internal/answer/fleet", "internal/answer/history", "internal/answer/paper", "internal/answer/runs", "internal/answer/selfcheck",
		"internal/answer/study", "internal/answer/summary", "internal/archive", "internal/bench", "internal/bench/catalogue", "internal/bench/footprint",
		"internal/bench/scalability", "internal/benchfile", "internal/cli", "internal/cpuset", "internal/docgen", "internal/doctor", "internal/document", "internal/engine",
		"internal/engine/crilog", "internal/engine/diagnosis", "internal/engine/engines", "internal/engine/enginetest", "internal/engine/fake",
		"internal/engine/layouttest", "internal/engine/locality", "internal/engine/native", "internal/expect", "internal/export", "internal/fact", "internal/filelock", "internal/finding",
		"internal/footprint", "internal/forge", "internal/forge/forgetest",
		"internal/image", "internal/linker", "internal/linker/linkertest", "internal/lists", "internal/must", "internal/paper", "internal/parts",
		"internal/plan", "internal/ports", "internal/quantity", "internal/refusal", "internal/render", "internal/render/chart", "internal/render/html", "internal/render/rows",
		"internal/render/text", "internal/render/web", "internal/report", "internal/report/advice", "internal/report/fleet", "internal/report/history", "internal/report/reporttest",
		"internal/report/reproduce", "internal/report/selfcheck", "internal/report/sides", "internal/result", "internal/runner", "internal/runner/decision",
		"internal/runner/guard", "internal/runner/meter", "internal/setup", "internal/stats", "internal/stats/simulation", "internal/stats/tail", "internal/target",
		"internal/syscalls", "internal/textfile", "internal/thread", "internal/touchstone", "internal/web", "internal/wording", "scripts/cross", "scripts/figures", "scripts/million", "scripts/tools/runsc-shim",
		"test/browser", "test/cells", "test/ci", "test/install", "test/inventory", "test/pages", "test/record", "test/suite",
	}
}
