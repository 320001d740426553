package lab

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/test/lab/job"
)

const (
	// soakVariable selects steps of TestSoak: names with spaces between them, or "all". In the machine it selects the long tests of
	// package cri.
	soakVariable = "LAB_SOAK"
	// vsockVariable names the file of the module vhost_vsock in the machine, for a test that unloads it.
	vsockVariable = "LAB_VSOCK"
	vsockFile     = "vhost_vsock.ko"
	// soakMemory is in MiB. Five guests run at once.
	soakMemory = 6144
	soakLimit  = 90 * time.Minute
)

// soakSteps returns the selected steps, which test faults of virtual machines, and many virtual machines. The step that unloads a module
// comes last.
func soakSteps(filter string) []job.Step {
	step := func(name, tests string, limit time.Duration) job.Step {
		return job.Step{
			Name: name, Limit: limit,
			Args: []string{"cri.test", "-test.v", "-test.timeout=" + limit.String(), "-test.run=" + tests},
			Env:  []string{enginetest.MustRun + "=" + kataTarget, soakVariable + "=1", vsockVariable + "=" + job.Dir + "/" + vsockFile},
		}
	}
	list := []job.Step{
		step("faults", "^TestGuest(Faults|ThatDoesNotBoot|OutOfMemory|Panic|ThatHangs)$", soakLimit/2),
		step("soak", "^TestGuestSoak$", soakLimit/2),
		step("vsock", "^TestVsockUnloaded$", soakLimit/6),
	}
	return slices.DeleteFunc(list, func(s job.Step) bool { return filter != "all" && !slices.Contains(strings.Fields(filter), s.Name) })
}

// TestSoak causes every fault of a virtual machine, and starts many of them, in a machine with emulated virtualization. It takes about an
// hour, so that it runs only by hand.
//
// Invariant hanging-machine.
func TestSoak(t *testing.T) {
	filter := os.Getenv(soakVariable)
	if filter == "" {
		t.Skipf("starts dozens of virtual machines, but %s is not set: run %[1]s=all scripts/test-lab.sh -run '^TestSoak$' -timeout 2h", soakVariable)
	}
	steps := soakSteps(filter)
	if len(steps) == 0 {
		t.Fatalf("%s=%q selects no step: name some of faults, soak and vsock, or all", soakVariable, filter)
	}
	dir := built(t)
	kata := withKata(t, dir)
	l, m := open(t), nestedMachine()
	m.Memory = soakMemory
	image, err := l.Build(t.Context(), m)
	must.Do(t, err)
	work := append(kata.install(), steps...)
	files := inputs(t, dir, m, work)
	kata.add(t, files)
	found, err := filepath.Glob(filepath.Join(image.Modules, "*-"+vsockFile))
	if err != nil || len(found) != 1 {
		t.Fatalf("the machine's module %s: %q, %v; want one file", vsockFile, found, err)
	}
	files[vsockFile] = found[0]
	report, err := l.Boot(t.Context(), m, image, nestedJob("soak", work), files, Options{Out: outOf(t, "soak"), Emulated: true, Limit: soakLimit + usualLimit})
	must.Do(t, err)
	checkSteps(t, report)
	for _, step := range report.Steps {
		if step.OK() {
			t.Logf("%s:\n%s", step.Name, step.Output)
		}
	}
}
