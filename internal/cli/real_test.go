package cli_test

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/test/cells"
)

const lifecycle = "operations.container.lifecycle"

func TestRealRun(t *testing.T) {
	needRoot(t, "runc", "crun")
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir, "benchmark", "--targets", "native,oci/runc,oci/crun", "--filter", lifecycle, "--runs", "2")
	p.ends(0)
	p.says(`^Targets  native \(baseline\), oci/runc`, `^Trials   2 blocks, 6 ok, 3 warm-up`)
	run := export(t, dir, "latest")
	nothingLeft(t, run.ID)
	if run.State != result.Complete || len(run.Trials) != 9 || run.Overhead.Exec <= 0 {
		t.Fatalf("the run is %s, has %d trials and an overhead of %v", run.State, len(run.Trials), run.Overhead)
	}
	for _, trial := range run.Trials {
		values := map[string]float64{}
		for _, s := range trial.Samples {
			values[s.Metric] = s.Value
		}
		for _, metric := range []string{"Create", "Run", "CreateAndRun", "Destroy", "FirstInstruction"} {
			if v := values[metric]; v <= 0 || v >= 60 {
				t.Errorf("%s of %s is %v s", metric, trial.Target, v)
			}
		}
		if sum := values["Create"] + values["Run"]; math.Abs(values["CreateAndRun"]-sum) > 1e-3*sum {
			t.Errorf("%s: CreateAndRun is %v s, Create and Run are %v s", trial.Target, values["CreateAndRun"], sum)
		}
		if values["FirstInstruction"] < values["Create"] {
			t.Errorf("%s: the first instruction comes after %v s, before the end of create at %v s", trial.Target, values["FirstInstruction"], values["Create"])
		}
	}
}

// TestRealLimits runs a benchmark without limits of its own under limits of the plan. The conformance suite checks that engines
// apply them.
func TestRealLimits(t *testing.T) {
	cells.Need(t, "cli/limits")
	needRoot(t, "runc", "crun")
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir, "benchmark", "--targets", "native,oci/runc,oci/crun", "--filter", lifecycle, "--runs", "1", "--warmup", "0", "--limit", "cpus=1,cpuset=0,memory=256MiB,pids=128")
	p.ends(0)
	run := export(t, dir, "latest")
	nothingLeft(t, run.ID)
	for _, trial := range run.Trials {
		if trial.Status != result.OK || trial.Params != "limits.cpus=1 limits.cpuset=0 limits.memory=256MiB limits.pids=128" {
			t.Errorf("%s: %s %q, with the parameters %q", trial.Target, trial.Status, trial.Reason, trial.Params)
		}
		for name, want := range map[string]string{"CPU limit": "1 CPU", "cpus": "0", "memory limit": "256 MiB", "process limit": "128"} {
			if got := trial.Conditions[name]; got != want {
				t.Errorf("%s: the condition %q is %q, want %q", trial.Target, name, got, want)
			}
		}
	}
	if len(run.Trials) != 3 {
		t.Errorf("%d trials, want 3", len(run.Trials))
	}
}

// realRun is a run of a wrapped runc. A test can stop it at any call.
func realRun(t *testing.T) (w *wrapper, dir string, args []string) {
	w = newWrapper(t, "runc")
	args = append(w.flags("held"), "benchmark", "--targets", "oci/held", "--filter", lifecycle, "--runs", "3")
	return w, t.TempDir(), append(args[2:], args[:2]...)
}

// TestRealInterrupt interrupts a run in each kind of call.
func TestRealInterrupt(t *testing.T) {
	needRoot(t, "runc")
	t.Parallel()
	// The first container only tests the runtime. It exits by itself and is not killed.
	for _, call := range []string{"create-3", "start-3", "kill-2", "delete-3"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			w, dir, args := realRun(t)
			w.on(call, "hold")
			p := start(t, dir, args...)
			w.reached(p)
			p.signal(syscall.SIGINT)
			p.ends(130)
			w.nothingLeft()
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

// TestRealUntilDecided interrupts a run whose cells end one by one, and resumes it. The rule then stops both cells at the same look.
func TestRealUntilDecided(t *testing.T) {
	cells.Need(t, "cli/decided")
	needRoot(t, "runc")
	t.Parallel()
	w, dir := newWrapper(t, "runc"), t.TempDir()
	w.on("create-14", "hold")
	args := []string{"benchmark", "--targets", "native,oci/held", "--filter", lifecycle, "--runs", "10", "--until", "decided", "--max-blocks", "200"}
	p := start(t, dir, append(args, w.flags("held")...)...)
	w.reached(p)
	p.signal(syscall.SIGINT)
	p.ends(130)
	w.nothingLeft()
	before := len(export(t, dir, "latest").Trials)
	w.off("create-14")
	start(t, dir, "benchmark", "--resume", "latest").ends(0)
	w.nothingLeft()
	run := export(t, dir, "latest")
	if run.State != result.Complete || before < 20 || len(run.Trials) <= before {
		t.Fatalf("the resumed run is %s and has %d trials, %d of them before", run.State, len(run.Trials), before)
	}
	stops := run.Stopping.Stopped
	if len(stops) != 2 || stops[0].Target != "oci/held" || stops[0].Reason != result.Decided || stops[1].Reason != result.AllStopped {
		t.Fatalf("the stops are %+v, want oci/held and then the baseline", stops)
	}
	blocks := stops[0].Blocks
	if stops[1].Blocks != blocks || !slices.Contains(run.Stopping.Looks, blocks) || blocks > 60 || len(run.Trials) != 2*(blocks+1) {
		t.Errorf("the cells end after %d and %d blocks, and the run has %d trials", blocks, stops[1].Blocks, len(run.Trials))
	}
}

// TestRealInterruptBeforeFirstTrial: the run is not recorded until all targets were tried.
func TestRealInterruptBeforeFirstTrial(t *testing.T) {
	needRoot(t, "runc")
	t.Parallel()
	for _, call := range []string{"version-1", "create-1", "start-1"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			w, dir, args := realRun(t)
			w.on(call, "hold")
			p := start(t, dir, args...)
			w.reached(p)
			p.signal(syscall.SIGINT)
			p.ends(130)
			p.says(`^touchstone: .*interrupted`)
			for _, id := range w.runIDs() {
				nothingLeft(t, id)
			}
			start(t, dir, "benchmark", "--resume", "latest").ends(2)
		})
	}
}

// TestRealInterruptTwice: a second interrupt ends the run during a clean-up that hangs.
func TestRealInterruptTwice(t *testing.T) {
	needRoot(t, "runc")
	t.Parallel()
	w, dir, args := realRun(t)
	w.on("start-3", "hold")
	w.on("kill-2", "hold")
	p := start(t, dir, args...)
	w.reached(p)
	p.signal(syscall.SIGINT)
	w.reached(p)
	p.signal(syscall.SIGINT)
	p.ends(130)
	w.nothingLeft()
}

// TestRealKill kills a run with a container, beside a container of another program. It is not parallel, because each
// benchmark removes the leftovers of killed runs.
func TestRealKill(t *testing.T) {
	needRoot(t, "runc")
	foreign := foreignContainer(t)
	w, dir, args := realRun(t)
	w.on("kill-2", "hold")
	p := start(t, dir, args...)
	w.reached(p)
	p.signal(syscall.SIGKILL)
	p.ends(-1)
	id := w.runIDs()[0]
	if left := leftovers(t, id); len(left) < 4 {
		t.Errorf("a killed run has left only %q, which is too little for this test", left)
	}

	p = start(t, dir, "cleanup")
	p.ends(0)
	p.says(`^removed run ` + id + `: [0-9]+ processes, 1 cgroup, its files$`)
	w.nothingLeft()
	if state := foreign(); !strings.Contains(state, `"status": "running"`) {
		t.Errorf("the container of the other program has stopped: %s", state)
	}

	w.off("kill-2")
	start(t, dir, "benchmark", "--resume", "latest").ends(0)
	w.nothingLeft()
	if run := export(t, dir, id); run.State != result.Complete || len(run.Trials) != 4 {
		t.Errorf("the resumed run is %s and has %d trials", run.State, len(run.Trials))
	}
	if state := foreign(); !strings.Contains(state, `"status": "running"`) {
		t.Errorf("the container of the other program has stopped: %s", state)
	}
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
	if err := os.WriteFile(filepath.Join(r.dir, "plan.yaml"), []byte(plan), 0o600); err != nil {
		t.Fatal(err)
	}
	r.p = start(t, r.dir, "benchmark", "-f", "plan.yaml")
	return r
}

// TestRealKillOfEngines kills runs with private engines, each before the start of a container. The clean-up must remove the
// engines and all their objects. The runs are parallel to each other, but none starts between the first kill and the
// clean-up, because its start would remove leftovers. The test itself is not parallel: see TestRealKill.
func TestRealKillOfEngines(t *testing.T) {
	cells.Need(t, "cli/kills")
	needRoot(t, "runc")
	var runs []*engineRun
	links, opt := command(t, "ip", "-o", "link"), command(t, "find", "/opt", "-maxdepth", "2")
	for _, e := range []struct{ name, program string }{{"containerd", "containerd"}, {"crio", "crio"}, {"docker", "dockerd"}, {"podman", "podman"}} {
		there := false
		t.Run(e.name, func(t *testing.T) {
			needEngine(t, e.name, e.program)
			there = true
		})
		if there {
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
		if left := leftovers(t, r.id); len(left) < 5 {
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
	if now := command(t, "ip", "-o", "link"); now != links {
		t.Errorf("the host's interfaces were\n%s\nand are\n%s", links, now)
	}
	if now := command(t, "find", "/opt", "-maxdepth", "2"); now != opt {
		t.Errorf("the directories of additional programs were\n%s\nand are\n%s", opt, now)
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

// TestRealDaemonDies: if a private daemon exits, the trial under way fails, the daemon is restarted, and the run continues.
func TestRealDaemonDies(t *testing.T) {
	cells.Need(t, "cli/kills")
	needRoot(t, "runc")
	needEngine(t, "containerd", "containerd")
	t.Parallel()
	w := newWrapper(t, "runc")
	dir := t.TempDir()
	w.on("start-4", "hold") // of the first trial, after the pair that tried the runtime
	args := []string{"benchmark", "--managed", "--targets", "containerd/held", "--filter", lifecycle, "--runs", "3"}
	p := start(t, dir, append(args, w.flags("held")...)...)
	w.reached(p)
	id := export(t, dir, "latest").ID
	killed := 0
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, proc := range processes {
		cmdline, _ := os.ReadFile(filepath.Join(proc, "cmdline")) // it may have ended
		program, rest, _ := strings.Cut(string(cmdline), "\x00")
		if filepath.Base(program) != "containerd" || !strings.Contains(rest, id) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(proc))
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			t.Fatal(err)
		}
		killed++
	}
	if killed != 1 {
		t.Fatalf("there were %d daemons of the run, want one", killed)
	}
	p.ends(3)
	nothingLeft(t, id)
	count := map[result.Status]int{}
	for _, trial := range export(t, dir, id).Trials {
		count[trial.Status]++
		if trial.Status == result.Failed && !strings.Contains(trial.Reason, "killed by signal 9") {
			t.Errorf("the reason recorded is %q, want the kill of the daemon", trial.Reason)
		}
	}
	if count[result.Failed] != 1 || count[result.OK] != 3 {
		t.Errorf("the trials by status are %v, want 1 failed and 3 ok", count)
	}
}

// foreignContainer starts a container by hand, with a name similar to Touchstone's names. It returns a function that
// queries the container's state.
func foreignContainer(t *testing.T) (state func() string) {
	t.Helper()
	bundle, root := t.TempDir(), t.TempDir()
	if err := image.WriteRootfs(t.Context(), filepath.Join(bundle, "rootfs")); err != nil {
		t.Fatal(err)
	}
	const name = "touchstone-by-hand"
	config, err := json.Marshal(specs.Spec{
		Version: "1.0.2",
		Root:    &specs.Root{Path: "rootfs", Readonly: true},
		Process: &specs.Process{Args: workload.Ready(), Cwd: "/"},
		Mounts:  []specs.Mount{{Destination: "/proc", Type: "proc", Source: "proc"}},
		Linux: &specs.Linux{
			CgroupsPath: "/" + name,
			Namespaces:  []specs.LinuxNamespace{{Type: specs.PIDNamespace}, {Type: specs.MountNamespace}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	// The output must not be a pipe to this test, because the test would wait for it.
	create := exec.Command("runc", "--root", root, "run", "--detach", "--bundle", bundle, name)
	if err := create.Run(); err != nil {
		t.Fatalf("start a container by hand: %v; %s", err, slices.Concat(create.Args))
	}
	t.Cleanup(func() { command(t, "runc", "--root", root, "delete", "--force", name) })
	return func() string { return command(t, "runc", "--root", root, "state", name) }
}
