package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// badRuntime is a runtime with a fault that the first container shows.
type badRuntime struct {
	name   string
	make   func(*testing.T) *wrapper
	reason string // its recorded reason, a regular expression
}

func file(mode os.FileMode, content string) func(*testing.T) *wrapper {
	return func(t *testing.T) *wrapper {
		w := &wrapper{t: t, dir: t.TempDir()}
		w.path = w.write("runtime", content)
		must.Do(t, os.Chmod(w.path, mode))
		return w
	}
}

func script(lines string) func(*testing.T) *wrapper { return file(0o700, "#!/bin/sh\n"+lines+"\n") }

// hollow returns a runtime that implements only --version. Its create executes a hook.
func hollow(create string) func(*testing.T) *wrapper {
	return func(t *testing.T) *wrapper {
		w := newWrapper(t, "true")
		w.on("version", "echo bad 1.0; exit 0")
		w.on("create", create)
		return w
	}
}

// nearly returns a runtime with one faulty call.
func nearly(call, script string) func(*testing.T) *wrapper {
	return func(t *testing.T) *wrapper {
		needRoot(t, "runc")
		w := newWrapper(t, "runc")
		w.on(call, script)
		return w
	}
}

// startWith starts a run of a bad runtime and, as root, of bare metal.
func (b badRuntime) startWith(t *testing.T, w *wrapper, targets string) *program {
	t.Helper()
	args := []string{"benchmark", "--targets", targets, "--filter", lifecycle, "--runs", "1", "--warmup", "0"}
	return start(t, t.TempDir(), append(args, w.flags("bad")...)...)
}

// check checks the result of a run of a bad runtime and of bare metal.
func (b badRuntime) check(t *testing.T, w *wrapper, p *program) {
	t.Helper()
	p.ends(5)
	if text := p.said.String() + p.stdout.String(); strings.ContainsAny(text, "\x1b\x00") {
		t.Errorf("the output has control characters of a runtime: %q", text)
	}
	for _, id := range w.runIDs() {
		nothingLeft(t, id)
	}
	noProcessIn(t, w.dir, p.cmd.Dir)
	run := export(t, p.cmd.Dir, "latest")
	nothingLeft(t, run.ID)
	if reason := run.Targets[0].Unavailable; !regexp.MustCompile(b.reason).MatchString(reason) || len(reason) > 10_000 {
		t.Errorf("the reason recorded is %.10000q, want %q", reason, b.reason)
	}
	if len(run.Trials) != 2 || run.Trials[0].Status != result.Skipped || run.Trials[1].Status != result.OK {
		t.Errorf("the trials are not one skipped and one ok: %+v", run.Trials)
	}
}

// TestBadRuntime: a faulty runtime does not stop the other targets, the reason is recorded, and
// nothing is left behind.
func TestBadRuntime(t *testing.T) {
	t.Parallel()
	missing := func(t *testing.T) *wrapper { return &wrapper{t: t, path: filepath.Join(t.TempDir(), "none")} }
	directory := func(t *testing.T) *wrapper { return &wrapper{t: t, path: t.TempDir()} }
	for _, b := range []badRuntime{
		{"missing", missing, `^the file /.*/none does not exist; correct the path given for bad$`},
		{"directory", directory, `is not executable`},
		{"not executable", file(0o600, "#!/bin/sh\n"), `is not executable; make it executable`},
		{"empty", file(0o700, ""), `^query the version of /.*/runtime: .*exec format error.*; give a working OCI runtime with --runtime bad=PATH$`},
		{"version fails", script("exit 3"), `^query the version of /.*/runtime: .*ended with exit code 3`},
		{"version is garbage", script("head -c 1048576 /dev/urandom"), `.`},

		{"create fails", hollow("say 'this is no container'; exit 1"), `create container .* with oci/bad: this is no container`},
		{"create fails aloud", hollow(`printf 'cannot: \033[31mred' >&2; exit 1`), `create container .* with oci/bad: .* ended with exit code 1\ncannot: .*red`},
		{"no pid file", hollow("exit 0"), `oci/bad returned success: read a pid file: .*no such file`},
		{"pid 1", hollow(`echo 1 >"$pidfile"; exit 0`), `"1\\n" is not a process ID`},

		{"start fails", nearly("start", "say 'it does not start'; exit 1"), `start container .* with oci/bad: it does not start`},
		{"delete fails", nearly("delete", "say 'it stays'; exit 1"), `delete container .* with oci/bad: it stays`},
	} {
		t.Run(b.name, func(t *testing.T) {
			root := os.Geteuid() == 0
			if root {
				needRoot(t)
			}
			t.Parallel()
			w := b.make(t)
			p := b.startWith(t, w, "oci/bad")
			p.ends(5)
			p.says(`^skipped: oci/bad: `, `^no target is available`)
			if root {
				b.check(t, w, b.startWith(t, w, "oci/bad,native"))
			}
		})
	}
}

// TestHangingRuntime: a runtime that hangs costs only its time limits. All cases wait at the same time, in
// parallel to the other tests.
func TestHangingRuntime(t *testing.T) {
	needRoot(t, "runc")
	bystander := exec.Command("sleep", "infinity")
	must.Do(t, bystander.Start())
	end := make(chan error, 1)
	go func() { end <- bystander.Wait() }()

	mute := func(t *testing.T) *wrapper {
		w := newWrapper(t, "true")
		w.on("version", "reach; sleep 1000")
		return w
	}
	const noAnswer = `no answer within [0-9]+s`
	type attempt struct {
		badRuntime
		w *wrapper
		p *program
	}
	var attempts []attempt
	for _, b := range []badRuntime{
		{"version hangs", mute, noAnswer},
		{"create hangs", hollow("reach; sleep 1000"), noAnswer},
		{"start hangs", nearly("start", "reach; sleep 1000"), noAnswer},
		{"the container never ends", nearly("start", "reach; exit 0"), noAnswer},
		// The processes of other programs must not be killed.
		{"pid of a bystander", hollow("reach; echo " + strconv.Itoa(bystander.Process.Pid) + ` >"$pidfile"; exit 0`), `.`},
		{"pid of nobody", hollow(`reach; echo 2147483646 >"$pidfile"; exit 0`), `.`},
	} {
		w := b.make(t)
		attempts = append(attempts, attempt{b, w, b.startWith(t, w, "oci/bad,native")})
	}
	for _, b := range attempts {
		b.w.reached(b.p) // so that it has swept what killed runs left, before tests kill any
		go func() { _, _ = b.p.ended() }()
	}
	t.Parallel()
	for _, b := range attempts {
		t.Run(b.name, func(t *testing.T) { b.w.t, b.p.t = t, t; b.check(t, b.w, b.p) })
	}
	select {
	case err := <-end:
		t.Errorf("the unrelated process has exited: %v", err)
	default:
		must.Do(t, bystander.Process.Kill())
		<-end
	}
}

// TestTrialGoesWrong: a runtime passes the first container and fails during trials. These trials have
// failed, with the runtime's output; the others are not affected.
func TestTrialGoesWrong(t *testing.T) {
	needRoot(t, "runc")
	t.Parallel()
	// A short limit is one that the good trials keep on a busy machine, too.
	const patient = "{trial: 10m, call: 5m}"
	for _, c := range []struct {
		name, call, script string
		status             result.Status
		reason             string
		timeout            string // of the plan
	}{
		{"create fails", "create-3", "say 'no more containers'; exit 1", result.Failed, `^create container .*: no more containers`, patient},
		{"start fails", "start-3", "say 'no start'; exit 1", result.Failed, `^start container .*: no start`, patient},
		{"start lies", "start-3", "exit 0", result.Timeout, `the trial took longer than its limit of 30s; want the first line of the program after start returned success, got a container that the engine reports as created`, "{trial: 30s, call: 5m}"},
		{"start hangs", "start-3", "hold", result.Timeout, `start took longer than its limit of 20s`, "{trial: 10m, call: 20s}"},
		{"kill fails", "kill-2", "say 'it lives'; exit 1", result.Failed, `^kill container .*: it lives`, patient},
		{"delete fails", "delete-3", "say 'it stays'; exit 1", result.Failed, `^delete container .*: it stays`, patient},
		{"kill lies", "kill-2", "exit 0", result.Timeout, `exit took longer than its limit of 20s; want the exit of the program after kill returned success, got a container that the engine reports as running`, "{trial: 10m, call: 20s}"},
		{"delete lies", "delete-3", "exit 0", result.Failed, `^delete of container .* returned success without deleting it: want nothing of it, got .*the container in the runtime's state, as stopped; state directory /`, patient},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWrapper(t, "runc")
			w.on(c.call, c.script)
			dir := t.TempDir()
			plan := "version: 1\ntargets: [oci/wrapped, native]\nruntimes: {wrapped: " + w.path + "}\n" +
				"benchmarks: [" + lifecycle + "]\nblocks: 3\nwarmup: 0\ntimeout: " + c.timeout + "\nseed: 1\n"
			must.Do(t, os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte(plan), 0o600))
			p := start(t, dir, "benchmark", "-f", "plan.yaml")
			p.ends(3)
			w.nothingLeft()
			count := map[result.Status]int{}
			for _, trial := range export(t, dir, "latest").Trials {
				count[trial.Status]++
				if trial.Status != result.OK && !regexp.MustCompile(c.reason).MatchString(trial.Reason) {
					t.Errorf("the reason recorded is %q, want %q", trial.Reason, c.reason)
				}
			}
			if count[result.OK] != 5 || count[c.status] != 1 {
				t.Errorf("trials by status: %v, want one %s and the others ok", count, c.status)
			}
		})
	}
}
