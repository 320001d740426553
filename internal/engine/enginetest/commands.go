package enginetest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// Commands checks the runtime's commands of each operation that the driver declares. A script records the commands, and executes runc.
func Commands(t *testing.T, d engine.Driver, s engine.Session) {
	t.Helper()
	about := d.Describe()
	recorded, original := about.Name+"/recorded", about.Name+"/runc"
	runc, err := exec.LookPath("runc")
	Require(t, original, err)
	dir := t.TempDir()
	script, record := filepath.Join(dir, "recorded"), filepath.Join(dir, "commands")
	text := "#!/bin/sh\nfor word; do\n\tcase $word in create|start|exec|delete) echo $word >>" + record + "; break;; esac\ndone\nexec " + runc + " \"$@\"\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil { //nolint:gosec // the daemon executes it
		t.Fatal(err)
	}
	s.Runtimes = map[string]target.Runtime{"recorded": {Path: script}}
	s.Targets = []target.Target{parse(t, recorded)}
	e, err := open(t, d, recorded, s)
	Require(t, original, err)
	operation := func(verb string, call func(context.Context) error) {
		t.Helper()
		if err := os.WriteFile(record, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := call(t.Context()); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(record)
		if err != nil {
			t.Fatal(err)
		}
		want, declared := about.Commands[verb]
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
	t.Cleanup(func() { check(t, c.Delete(context.WithoutCancel(t.Context()))) })
	operation("start", c.Start)
	operation("exec", func(ctx context.Context) error {
		_, err := c.(engine.Execer).Exec(ctx, engine.Process{Args: workload.Exit(0)})
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
