package oci

import (
	"bytes"
	"os/exec"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/process"
)

// Each call gets what it printed, and nothing of the one before, with whose file it may have
// been started.
func TestMonitorDeliversWhatACallPrints(t *testing.T) {
	l, err := process.New(process.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	m := &monitor{launcher: l}
	for _, tt := range []struct {
		script, want string
		status       int
	}{
		{":", "", 0},
		{"echo out; echo complaint >&2; exit 3", "out\ncomplaint\n", 3},
		{":", "", 0},
		{"echo o", "o\n", 0},
		{"kill -9 $$", "", 137},
	} {
		var printed bytes.Buffer
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", tt.script)
		cmd.Stdout, cmd.Stderr = &printed, &printed
		ended, err := m.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		status, err := m.Wait(cmd, ended)
		if err != nil || status != tt.status || printed.String() != tt.want {
			t.Errorf("%q: status %d, %v, printed %q; want %d and %q", tt.script, status, err, &printed, tt.status, tt.want)
		}
		if _, err := m.Wait(cmd, ended); err == nil {
			t.Errorf("%q was waited for twice", tt.script)
		}
	}
	if _, err := m.Start(exec.CommandContext(t.Context(), "/no/such/program")); err == nil {
		t.Error("a program that is not there was started")
	}
}
