package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/test/cells"
)

const module = "github.com/touchstone-bench/touchstone"

// enginePackages are the packages whose tests need a resource of the machine, such as containers, cgroups, daemons or ports, and look only at
// objects of their own. They run one at a time, beside the clusters and the pure tests. TestMachinePackages checks that this list and
// hostPackages are complete.
func enginePackages() []string {
	return []string{
		"internal/engine/cri", "internal/engine/docker", "internal/engine/engines", "internal/engine/managed", "internal/engine/native", "internal/engine/oci",
		"internal/engine/podman", "internal/image/debian", "internal/runner", "internal/trace", "test/browser", "test/dist", "test/install",
	}
}

// hostPackages are the packages whose tests change the whole machine or compare its state, such as its interfaces and mounts. They run one at a
// time, beside the pure tests alone.
func hostPackages() []string {
	return []string{
		"internal/cgroup", "internal/cli", "internal/engine/network", "internal/host/tune", "internal/monitor", "internal/process", "internal/workdir", "test/chaos",
	}
}

// clusterPackages are the packages whose tests start Kubernetes clusters by package cluster. They wait more than they work, so they run one at a
// time beside the engines. On a new machine they wait for the build of Kubernetes. TestMachinePackages checks that the list is complete.
func clusterPackages() []string {
	return []string{measuringCluster, "internal/engine/k8s", "test/cluster", "test/fleet", "test/outage"}
}

// machinePackages are the packages whose tests need the machine, and no cluster.
func machinePackages() []string { return slices.Concat(enginePackages(), hostPackages()) }

// measuringCluster is the package among the measuring ones that starts clusters.
const measuringCluster = "internal/bench/pods"

// measuring has the tests that judge measured values, by package; without names all tests of the package. They run alone, after all other
// steps.
func measuring() map[string][]string {
	return map[string][]string{
		"internal/bench/catalogue": nil,
		measuringCluster:           {"TestDelayIsFoundInItsStages"},
		"internal/cli":             {"TestRealAB", "TestRealDensity"},
		"internal/monitor":         {"TestCPUOfADaemon", "TestCPUOfThreads", "TestSamplesOfRealProcesses"},
	}
}

// partsOfEngines are the parts of touchstone setup that the tests of real engines find on PATH.
var partsOfEngines = []string{"crun", "runsc", "youki", "containerd", "crio"}

// earlierContainerd is the version of containerd before the newest. Its installation makes it the version in use, so the newest comes after it.
const earlierContainerd = "containerd@1.7.35"

// run reports whether one of the cells runs in this change.
func (s *suite) runs(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(s.cells, name) })
}

// env returns the environment of tests.
func (s *suite) env() []string {
	list := strings.Join(s.cells, ",")
	if list == "" {
		list = "none"
	}
	env := []string{
		// Only PATH has the runtimes of tests: the machine may have parts of its own.
		"TOUCHSTONE_RUNTIMES=" + filepath.Join(s.out, "no-runtimes"),
		cells.Chosen + "=" + list, "TOUCHSTONE_TEST_RECORD=" + s.record, "TOUCHSTONE_CHAOS=" + filepath.Join(s.root, "bin/chaos"),
	}
	if s.all {
		env = append(env, "TOUCHSTONE_FULL=1", "CHAOS_FULL=1", "CHAOS_KILLS=120")
	}
	return env
}

// goTest returns the command of a test step. Without paths in the objects a fresh clone uses the objects of another clone.
func goTest(args ...string) []string {
	return append([]string{"go", "test", "-json", "-count=1", "-trimpath", "-vet=off", "-ldflags=-s -w"}, args...)
}

// limit ends a step that hangs. A step takes several times as long beside busy programs of the machine.
func (s *suite) limit() time.Duration {
	if s.all {
		return 150 * time.Minute
	}
	return 60 * time.Minute
}

// steps lists the steps of this change.
func (s *suite) steps() []step {
	parts := slices.DeleteFunc(slices.Clone(partsOfEngines), func(name string) bool { return slices.Contains(s.without, name) })
	if s.runs("containerd/versions") {
		parts = append([]string{"crun", earlierContainerd}, parts...)
	}
	tools := []string{"kube"}
	if s.runs("cluster/fake", "fleet/scale") {
		tools = append(tools, "kwok")
	}
	limit := s.limit()
	timeout := "40m"
	if s.all {
		timeout = "120m"
	}
	skips := pattern(slices.Concat(slices.Collect(maps.Values(measuring()))...))
	// machine returns the step of packages that run one at a time. The option of the machine's lock lets other steps run beside them, or not.
	machine := func(name, option string, dirs []string, flags ...string) step {
		queue, machineLock := filepath.Join(s.out, name+".lock"), filepath.Join(s.out, "machine.lock")
		lock := fmt.Sprintf("flock --close '%s' flock --close %s '%s'", queue, option, machineLock)
		return step{
			name: name, after: []string{"programs", "runtimes"}, parts: partsOfEngines, tests: true, limit: limit, env: s.env(),
			args: goTest(slices.Concat([]string{"-p", "2", "-timeout", timeout, "-exec", lock}, flags, below(dirs))...),
		}
	}
	engines := machine("engines", "--shared", enginePackages(), "-parallel", "4", "-skip", skips)
	engines.after, engines.late = append(engines.after, "image", "tools"), s.containerds
	clusters := machine("cluster", "--shared", clusterPackages(), "-skip", skips)
	clusters.after, clusters.tools = append(clusters.after, "kube"), tools
	host := machine("host", "--exclusive", hostPackages(), "-parallel", "4", "-skip", skips)
	host.after = append(host.after, "image")
	list := []step{
		{name: "tools", args: []string{"scripts/tools.sh", "golangci-lint", "nfpm"}, limit: 60 * time.Minute},
		{name: "runtimes", after: []string{"~tools"}, args: append([]string{"scripts/runtimes.sh"}, parts...), limit: 60 * time.Minute},
		{name: "programs", args: []string{"make", "--no-print-directory", "chaos-programs"}, limit: 10 * time.Minute},
		{name: "image", after: []string{"programs"}, args: []string{"scripts/image.sh"}, limit: 30 * time.Minute},
		{name: "pure", tests: true, limit: limit, gentle: true, env: s.env(), args: goTest(append([]string{"-p", "2", "-timeout", "30m"}, s.purePackages()...)...)},
		{name: "lint", after: []string{"~pure", "tools"}, args: []string{"make", "--no-print-directory", "lint"}, limit: limit, gentle: true},
		{name: "cross", after: []string{"~pure", "~lint"}, args: []string{"make", "--no-print-directory", "cross"}, limit: limit, gentle: true},
		engines, host,
	}
	if s.clusters {
		kube := step{name: "kube", args: append([]string{"scripts/tools.sh"}, tools...), limit: 60 * time.Minute}
		list = append(list, kube, clusters)
	}
	if s.lab {
		list = append(list, step{
			name: "lab", after: []string{"image", "runtimes", "~pure"}, tests: true, limit: max(limit, 80*time.Minute), gentle: true,
			// KVM works in the machine of the lab.
			args: []string{"scripts/test-lab.sh", "-json", "-skip", labAlone}, env: append(s.env(), "TOUCHSTONE_MUST_RUN=oci/runsc@platform=kvm"),
		})
	}
	if s.all {
		list = append(list, s.further()...)
	}
	return append(list, s.measure(list)...)
}

// labAlone is the pattern of the tests in virtual machines that run alone: Kubernetes has time limits of its own, which an emulated machine
// exceeds on a busy host.
const labAlone = "^TestCluster$"

// measure lists the steps of the tests that run alone, which come one after the other and after all others.
func (s *suite) measure(steps []step) []step {
	predecessors := []string{"programs", "image", "runtimes"}
	for _, st := range steps {
		predecessors = append(predecessors, orderOnly+st.name)
	}
	var list []step
	for _, dir := range slices.Sorted(maps.Keys(measuring())) {
		args := []string{"-parallel", "4", "-timeout", "30m", "./" + dir}
		if names := measuring()[dir]; names != nil {
			args = append([]string{"-run", pattern(names)}, args...)
		}
		st := step{
			name: "measure-" + filepath.Base(dir), after: slices.Clone(predecessors), parts: partsOfEngines, tests: true, limit: 40 * time.Minute,
			args: goTest(args...), env: s.env(),
		}
		if dir == measuringCluster {
			if !s.clusters {
				continue
			}
			st.after, st.tools = append(st.after, "kube"), []string{"kube"}
		}
		list, predecessors = append(list, st), append(predecessors, orderOnly+st.name)
	}
	if s.lab && s.runs("lab/cluster") {
		list = append(list, step{
			name: "lab-cluster", after: append(predecessors, "kube"), tests: true, limit: 60 * time.Minute,
			args: []string{"scripts/test-lab.sh", "-json", "-run", labAlone}, env: append(s.env(), cells.Chosen+"=lab/cluster"),
		})
	}
	return list
}

// further lists the steps that only `make test-all` has.
func (s *suite) further() []step {
	return []step{
		{
			name: "race", after: []string{"~cross"}, tests: true, limit: s.limit(), gentle: true,
			args: append(goTest("-race", "-short", "-p", "2", "-timeout", "30m"), "./..."), env: []string{"CGO_ENABLED=1"},
		},
		{name: "fuzz", after: []string{"~race"}, args: []string{"make", "--no-print-directory", "fuzz"}, limit: s.limit(), gentle: true},
		{
			name: "pages", after: []string{"~engines", "~host", "~cluster", "~lab", "~fuzz", "programs", "image", "tools", "runtimes"}, parts: partsOfEngines, tests: true, limit: 60 * time.Minute,
			args: goTest("-p", "1", "-timeout", "50m", "./test/pages"), env: append(s.env(), "TOUCHSTONE_PAGES=1"),
		},
	}
}

// purePackages are the patterns of all packages without a resource of the machine.
func (s *suite) purePackages() []string {
	var pure []string
	for _, dir := range packages(s.root) {
		if tests, measures := measuring()[dir]; !slices.Contains(slices.Concat(machinePackages(), clusterPackages()), dir) && (!measures || tests != nil) {
			pure = append(pure, "./"+dir)
		}
	}
	return pure
}

// packages lists the directories with tests, relative to the root.
func packages(root string) []string {
	var dirs []string
	for _, pattern := range []string{"*/*_test.go", "*/*/*_test.go", "*/*/*/*_test.go", "*/*/*/*/*_test.go"} {
		files, _ := filepath.Glob(filepath.Join(root, pattern))
		for _, file := range files {
			dir, err := filepath.Rel(root, filepath.Dir(file))
			if err == nil && !slices.Contains(dirs, dir) && !strings.Contains(dir, "testdata") && !strings.HasPrefix(dir, "scripts/tools/") {
				dirs = append(dirs, dir)
			}
		}
	}
	slices.Sort(dirs)
	return dirs
}

// pattern returns the pattern of exactly these tests.
func pattern(names []string) string { return "^(" + strings.Join(names, "|") + ")$" }

func below(dirs []string) []string {
	patterns := make([]string, len(dirs))
	for n, dir := range dirs {
		patterns[n] = "./" + dir
	}
	return patterns
}
