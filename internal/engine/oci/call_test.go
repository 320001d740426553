package oci

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// A call returns its own output, and nothing from the call before, whose file it may reuse.
func TestCallReturnsItsOutput(t *testing.T) {
	l, err := process.New(process.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	script := filepath.Join(t.TempDir(), "runtime")
	// The command follows three global flags with their values.
	if err := os.WriteFile(script, []byte("#!/bin/sh\nshift 6\neval \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := &container{e: &Engine{Local: engine.Local{Session: engine.Session{Launcher: l}}, info: engine.Info{Binary: script}, root: "root"}, log: "log"}
	for _, tt := range []struct{ command, printed, err string }{
		{":", "", ""},
		{"echo out; echo complaint >&2; exit 3", "out\ncomplaint\n", " ended with exit code 3: out\ncomplaint"},
		{":", "", ""},
		{"echo o", "o\n", ""},
		{"kill -9 $$", "", " was killed by signal 9 (killed)"},
	} {
		text, err := c.call(t.Context(), tt.command)
		if string(text) != tt.printed {
			t.Errorf("%q printed %q, want %q", tt.command, text, tt.printed)
		}
		if tt.err == "" && err != nil || tt.err != "" && (err == nil || err.Error() != script+tt.err) {
			t.Errorf("%q: %v, want %q", tt.command, err, tt.err)
		}
	}
	c.e.info.Binary = "/no/such/program"
	if _, err := c.call(t.Context(), ":"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("call of a missing program: %v", err)
	}
}
