package lab

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/test/lab/job"
)

// suitesVariable selects targets for TestSuites: names with spaces between them, or "all".
const suitesVariable = "LAB_SUITES"

// suite is the brief version of the conformance suite of one target that needs KVM.
type suite struct {
	target string
	engine string            // the package of its tests
	tests  string            // the pattern of their names
	fails  map[string]string // see nestedWork
}

// suiteFiles are containerd's shim for gVisor, and CRI-O. scripts/test-lab.sh adds them for TestSuites.
var suiteFiles = []string{"containerd-shim-runsc-v1", "crio", "pinns"}

// suites lists the targets that need KVM and that the steps of TestLab do not run, or run in part. Together they take too long for
// each run of the tests.
var suites = []suite{
	{target: kataTarget, engine: "cri", tests: "^TestContainerd$/^on_PATH$/^containerd_kata$"},
	{target: "crio/kata", engine: "cri", tests: "^TestCRIO$/^crio_kata$"},
	{target: "docker/kata", engine: "docker", tests: "^TestConformance$/^docker_kata$"},
	{target: "containerd/runsc@platform=kvm", engine: "cri", tests: "^TestContainerd$/^on_PATH$/^containerd_runsc@platform=kvm$"},
	{
		target: "containerd/runsc@platform=kvm,shim=runc", engine: "cri", tests: "^TestContainerd$/^on_PATH$/^containerd_runsc@platform=kvm,shim=runc$",
		// The sandbox of the pause container is in the pod's limit too.
		fails: map[string]string{"limits.memory.oom": "less than a third of its limit"},
	},
	{target: "docker/runsc@platform=kvm", engine: "docker", tests: "^TestConformance$/^docker_runsc@platform=kvm$"},
}

// suiteLimit bounds a step. The suite boots thirty guests of Kata, and a guest takes half a minute.
const suiteLimit = 40 * time.Minute

// steps returns the steps of a suite: the conformance tests, and the quick plan.
func (s suite) steps() []job.Step {
	tests := nestedSuite(brief(conformance("suite", s.engine, s.tests, "", s.target)), suiteLimit)
	return append([]job.Step{tests}, exported("quick", suiteLimit, addBudget("--managed", "--targets", s.target, "--warmup", "0", "--runs", "1", "--timeout", "5m")...)...)
}

// TestSuites runs the conformance suite and the quick plan on the selected targets, each target in a boot of its own.
func TestSuites(t *testing.T) {
	filter := os.Getenv(suitesVariable)
	if filter == "" {
		t.Skipf("takes an hour or two for all targets, and %s is not set: see CONTRIBUTING.md", suitesVariable)
	}
	dir := built(t)
	l := open(t)
	for _, s := range suites {
		if filter != "all" && !slices.Contains(strings.Fields(filter), s.target) {
			continue
		}
		t.Run(strings.ReplaceAll(s.target, "/", "_"), func(t *testing.T) {
			install, add := installContainerd(), func(files map[string]string) { addContainerd(dir, files) }
			if strings.HasSuffix(s.target, "/kata") {
				kata := withKata(t, dir)
				install, add = kata.install(), func(files map[string]string) { kata.add(t, files) }
			}
			nested(t, l, dir, nestedWork{
				name: strings.ReplaceAll(s.target, "/", "-"), steps: append(install, s.steps()...), limit: 2*suiteLimit + usualLimit,
				runs: []nestedRun{{step: "quick", target: s.target, skips: true, fails: s.fails}},
				add: func(files map[string]string) {
					add(files)
					for _, file := range suiteFiles {
						files[file] = filepath.Join(dir, file)
					}
				},
			})
		})
	}
}
