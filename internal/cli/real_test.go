package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/test/cells"
)

const lifecycle = "operations.container.lifecycle"

// realRun is a run of a wrapped runc. A test can stop it at any call.
func realRun(t *testing.T) (w *wrapper, dir string, args []string) {
	w = newWrapper(t, "runc")
	args = append(w.flags("held"), "benchmark", "--targets", "oci/held", "--filter", lifecycle, "--runs", "3")
	return w, t.TempDir(), append(args[2:], args[:2]...)
}

// TestRealInterrupt interrupts a run in each kind of call. The run is not recorded until all targets were tried.
//
// Invariant no-leftovers.
func TestRealInterrupt(t *testing.T) {
	needRoot(t, "runc")
	t.Parallel()
	// The first container only tests the runtime. It exits by itself and is not killed.
	for call, hasRun := range map[string]bool{
		"version-1": false, "create-1": false, "start-1": false, "create-3": true, "start-3": true, "kill-2": true, "delete-3": true,
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			w, dir, args := realRun(t)
			w.on(call, "hold")
			p := start(t, dir, args...)
			w.reached(p)
			p.signal(syscall.SIGINT)
			p.ends(130)
			for _, id := range w.runIDs() {
				nothingLeft(t, id)
			}
			if !hasRun {
				p.says(`^touchstone: .*interrupted`)
				start(t, dir, "benchmark", "--resume", "latest").ends(2)
				return
			}
			noProcessIn(t, w.dir)
			run := export(t, dir, "latest")
			if run.State != result.Interrupted || len(run.Trials) != 1 {
				t.Fatalf("the run is %s and has %d trials, want the trial before the interrupted one", run.State, len(run.Trials))
			}
			w.off(call)
			start(t, dir, "benchmark", "--resume", "latest").ends(0)
			w.nothingLeft()
			if run := export(t, dir, "latest"); run.State != result.Complete || len(run.Trials) != 4 {
				t.Errorf("the resumed run is %s and has %d trials", run.State, len(run.Trials))
			}
		})
	}
}

// TestRealInterruptTwice: a second interrupt ends the run during a clean-up that hangs. The clean-up starts no further program then: the next
// one would hang too, and stay.
//
// Invariant no-leftovers.
func TestRealInterruptTwice(t *testing.T) {
	needRoot(t, "runc")
	t.Parallel()
	w, dir, args := realRun(t)
	w.on("start-3", "hold")
	w.on("kill-2", "hold")
	w.on("delete-3", "hold")
	p := start(t, dir, args...)
	w.reached(p)
	p.signal(syscall.SIGINT)
	w.reached(p)
	p.signal(syscall.SIGINT)
	p.ends(130)
	w.nothingLeft()
}

// needEngine is needRoot for a private engine with runc. It takes the program of the daemon.
func needEngine(t *testing.T, name, program string) {
	t.Helper()
	var err error
	if _, lookErr := exec.LookPath(program); lookErr != nil {
		err = &engine.UnsupportedError{What: name + "/runc", Reason: lookErr.Error()}
	}
	enginetest.Require(t, name+"/runc", err)
}

// engineRun is a run of a wrapped runc behind a private engine.
type engineRun struct {
	target, dir, id string
	w               *wrapper
	p               *program
}

// holdEngine starts a run and stops its engine before the start of the first trial's container.
func holdEngine(t *testing.T, name string) *engineRun {
	t.Helper()
	r := &engineRun{target: name + "/held", dir: t.TempDir(), w: newWrapper(t, "runc")}
	// CRI engines have two containers, because of the pod. The first one, or the first pair, tests the runtime.
	r.w.on("start-4", "hold")
	// A call may wait until all the others do.
	plan := "version: 1\ntargets: [" + r.target + "]\nruntimes: {held: " + r.w.path + "}\nengines: {managed: true}\n" +
		"benchmarks: [" + lifecycle + "]\nblocks: 3\nwarmup: 1\ntimeout: {trial: 10m, call: 10m}\n"
	must.Do(t, os.WriteFile(filepath.Join(r.dir, "plan.yaml"), []byte(plan), 0o600))
	r.p = start(t, r.dir, "benchmark", "-f", "plan.yaml")
	return r
}

// TestRealKillOfEngines kills runs with a bare runtime and with private engines, each before the start of a container. The clean-up must remove
// the engines and all their objects. The runs are parallel to each other, but none starts between the first kill and the
// clean-up, because its start would remove leftovers. So the test itself is not parallel.
//
// Invariant daemon-namespaces.
// Invariant dead-runs.
func TestRealKillOfEngines(t *testing.T) {
	cells.Need(t, "cli/kills")
	needRoot(t, "runc")
	var runs []*engineRun
	links, opt := command(t, "ip", "-o", "link"), command(t, "find", "/opt", "-maxdepth", "2")
	for _, e := range []struct{ name, program string }{{"oci", "runc"}, {"containerd", "containerd"}, {"crio", "crio"}, {"docker", "dockerd"}, {"podman", "podman"}} {
		ok := false
		t.Run(e.name, func(t *testing.T) {
			needEngine(t, e.name, e.program)
			ok = true
		})
		if ok {
			runs = append(runs, holdEngine(t, e.name))
		}
	}
	for _, r := range runs {
		r.w.reached(r.p)
	}
	for _, r := range runs {
		r.p.signal(syscall.SIGKILL)
		r.p.ends(-1)
	}
	for _, r := range runs {
		r.id = export(t, r.dir, "latest").ID
		if left := leftovers(t, r.id); len(left) < 4 {
			t.Errorf("%s: a killed run has left only %q, which is too little for this test", r.target, left)
		}
	}
	p := start(t, t.TempDir(), "cleanup")
	p.ends(0)
	for _, r := range runs {
		p.says(`^removed run ` + r.id + `: [0-9]+ processes, 1 cgroup, .*its files$`)
		nothingLeft(t, r.id)
		noProcessIn(t, r.w.dir)
	}
	if state := command(t, "ip", "-o", "link"); state != links {
		t.Errorf("the host's interfaces were\n%s\nand are\n%s", links, state)
	}
	if state := command(t, "find", "/opt", "-maxdepth", "2"); state != opt {
		t.Errorf("the directories of additional programs were\n%s\nand are\n%s", opt, state)
	}

	for _, r := range runs {
		r.w.off("start-4")
		r.p = start(t, r.dir, "benchmark", "--resume", "latest")
	}
	for _, r := range runs {
		r.p.ends(0)
		nothingLeft(t, r.id)
		if run := export(t, r.dir, r.id); run.State != result.Complete || len(run.Trials) != 4 {
			t.Errorf("%s: the resumed run is %s and has %d trials", r.target, run.State, len(run.Trials))
		}
	}
}
