package enginetest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// poison is a variable of this program's environment that no program started by it may get. The environment is a closed list, so one
// variable stands for all.
const poison = "TOUCHSTONE_POISON"

// Commands checks the runtime's commands of each operation that the driver declares. A script records the commands, and executes runc. The
// script also checks that the environment of this program does not reach the runtime.
//
// Invariant clean-environment.
func Commands(t *testing.T, d engine.Driver, s engine.Session) {
	t.Helper()
	description := d.Describe()
	recorder, original := description.Name+"/recorded", description.Name+"/runc"
	runc, err := exec.LookPath("runc")
	Require(t, original, err)
	dir := t.TempDir()
	script, record := filepath.Join(dir, "recorded"), filepath.Join(dir, "commands")
	t.Setenv(poison, "set")
	text := "#!/bin/sh\n[ -z \"$" + poison + "\" ] || echo $" + poison + " >>" + record + "\nfor word; do\n\tcase $word in create|start|exec|delete) echo $word >>" + record + "; break;; esac\ndone\nexec " + runc + " \"$@\"\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil { //nolint:gosec // the daemon executes it
		t.Fatal(err)
	}
	s.Runtimes = map[string]target.Runtime{"recorded": {Path: script}}
	s.Targets = []target.Target{Parse(t, recorder)}
	e, err := open(t, d, recorder, s)
	Require(t, original, err)
	checkDaemon(t, e)
	operation := func(verb string, call func(context.Context) error) {
		t.Helper()
		must.Do(t, os.WriteFile(record, nil, 0o600))
		must.Do(t, call(t.Context()))
		text, err := os.ReadFile(record)
		must.Do(t, err)
		want, declared := description.Commands[verb]
		if !declared {
			want = []string{verb}
		}
		if got := strings.Fields(string(text)); !slices.Equal(got, want) {
			t.Errorf("%s executes the runtime's commands %q, and declares %q", verb, got, want)
		}
	}
	var c engine.Container
	operation("create", func(ctx context.Context) (err error) {
		c, err = e.Create(ctx, Spec(s, "commands"))
		return err
	})
	t.Cleanup(func() { Check(t, c.Delete(context.WithoutCancel(t.Context()))) })
	operation("start", c.Start)
	operation("exec", func(ctx context.Context) error {
		_, err := c.(engine.Execer).Exec(ctx, engine.Process{Args: probe.Exit(0)})
		return err
	})
	operation("delete", func(ctx context.Context) error {
		if err := c.Kill(ctx, syscall.SIGKILL); err != nil {
			return err
		}
		if _, err := c.Wait(ctx); err != nil {
			return err
		}
		return c.Delete(ctx)
	})
}

// checkDaemon checks that the environment of this program does not reach a private daemon.
func checkDaemon(t *testing.T, e engine.Engine) {
	t.Helper()
	backed, ok := e.(engine.DaemonBacked)
	if !ok || backed.Daemon().Cgroup == nil {
		return
	}
	for _, pid := range backed.Daemon().PIDs {
		variables, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			t.Error(err)
		}
		if strings.Contains("\x00"+string(variables), "\x00"+poison+"=") {
			t.Errorf("process %d of the daemon has the environment of its caller: %q", pid, variables)
		}
	}
}
