package oci

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// A call returns its own output, and nothing from the call before, whose file it may reuse.
//
// Invariant bounded-logs.
func TestCallReturnsItsOutput(t *testing.T) {
	l := enginetest.Launcher(t)
	script := filepath.Join(t.TempDir(), "runtime")
	// The command follows three global flags with their values.
	must.Do(t, os.WriteFile(script, []byte("#!/bin/sh\nshift 6\neval \"$1\"\n"), 0o700))
	scratch, err := l.NewScratch(filepath.Join(t.TempDir(), "logs"))
	must.Do(t, err)
	defer func() { enginetest.Check(t, scratch.Close()) }()
	c := &container{e: &Engine{Local: engine.Local{Session: engine.Session{Launcher: l}}, info: engine.Info{Binary: script}, root: "root", scratch: scratch}, logName: "log"}
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
	// A runtime that floods its output and its log takes little memory, and its error is short.
	_, err = c.call(t.Context(), "yes 'a flood' | head -c 33554432 >&2; exit 3")
	if err == nil || len(err.Error()) > 2*longestMessage || !strings.HasSuffix(err.Error(), "a flood") {
		t.Errorf("a flood: an error of %d bytes that ends %q", len(fmt.Sprint(err)), fmt.Sprint(err)[max(0, len(fmt.Sprint(err))-20):])
	}
	c.e.info.Binary = "/no/such/program"
	if _, err := c.call(t.Context(), ":"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("call of a missing program: %v", err)
	}
}
