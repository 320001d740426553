package podman_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/engine/podman"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// TestVariables: programs get the values of their variables, and no command line has a value. A wrapper of Podman records the command
// lines.
//
// Invariant variable-values: Values of environment variables are on no command line, and in reports and exports only on request; values of
// from-env are never stored.
func TestVariables(t *testing.T) {
	original, err := exec.LookPath("podman")
	if err != nil {
		enginetest.Require(t, "podman/crun", err)
	}
	dir := t.TempDir()
	wrapper, record := filepath.Join(dir, "podman"), filepath.Join(dir, "lines")
	script := "#!/bin/sh\nprintf '%s\\n' \"$@\" >> " + record + "\nexec " + original + " \"$@\"\n"
	must.Do(t, os.WriteFile(wrapper, []byte(script), 0o700))
	s := enginetest.Session(t, oci.LauncherOptions)
	s.Engines = map[string]string{"podman": wrapper}
	e := enginetest.Open(t, podman.Driver{}, "podman/crun", s)
	first := []string{
		"HOME=/secret-home", "TMPDIR=/secret tmp", "A=secret \"quoted\" 'twice' #1 $HOME \\n `x`", "EMPTY=", "B= secret with spaces ", "C=#secret", "D=secret=value=",
		"LD_LIBRARY_PATH=/secret/lib", "CONTAINERS_CONF=/secret.conf",
	}
	sp := enginetest.Spec(s, "variables")
	sp.Process.Env = first
	ready := newFirstWrite()
	sp.Process.Stdout = ready
	c := enginetest.Running(t, e, sp)
	<-ready.written // until then the process may still be the runtime's
	checkVariables(t, first)

	second := []string{"HOME=/second-secret", "E='second secret'"}
	ctx, cancel := context.WithCancel(t.Context())
	output := newFirstWrite()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = c.(engine.Execer).Exec(ctx, engine.Process{Args: sp.Process.Args, Env: second, Stdout: output}) // it is cancelled
	}()
	<-output.written
	checkVariables(t, second)
	cancel()
	<-done
	enginetest.Check(t, c.Delete(t.Context()))

	lines, err := os.ReadFile(record)
	must.Do(t, err)
	if strings.Contains(string(lines), "secret") || !strings.Contains(string(lines), "--env-file\n") {
		t.Errorf("the command lines of Podman are\n%s", lines)
	}
	left, err := filepath.Glob(filepath.Join(s.State, "p", "*", "*.env"))
	if err != nil || left != nil {
		t.Errorf("files with variables are left: %q, %v", left, err)
	}
}

// checkVariables checks that some process has exactly these values.
func checkVariables(t *testing.T, want []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	must.Do(t, err)
	var closest []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil { // it has exited
			continue
		}
		environment := strings.Split(string(text), "\x00")
		if !slices.Contains(environment, want[0]) {
			continue
		}
		closest = environment
		if !slices.ContainsFunc(want, func(v string) bool { return !slices.Contains(environment, v) }) {
			return
		}
	}
	t.Errorf("no process has the variables %q; the closest has %q", want, closest)
}

type firstWrite struct{ written chan struct{} }

func newFirstWrite() *firstWrite { return &firstWrite{make(chan struct{}, 1)} }

func (f *firstWrite) Write(p []byte) (int, error) {
	select {
	case f.written <- struct{}{}:
	default:
	}
	return len(p), nil
}
