package runtimes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/process"
)

// The runtimes need their state directory, like crun without root, or fail to print a version.
func TestIdentify(t *testing.T) {
	l, err := process.New(process.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range []struct {
		name, script string
		want         string // family and version
		err          string
	}{
		{
			name:   "writes into its state directory",
			script: `[ "$1" = --root ] && mkdir "$2/crun" && echo "crun version 1.21" && echo "rundir: $2"`,
			want:   "crun: crun version 1.21",
		},
		{name: "fails with a reason", script: `echo "no state directory" >&2; exit 1`, err: "ended with exit code 1: no state directory"},
		{name: "fails without a reason", script: `exit 1`, err: "ended with exit code 1"},
		{name: "writes endless errors", script: `yes "it rains" | head -n 1000 >&2; exit 1`, err: "it rains"},
		{name: "prints nothing", script: `exit 0`, err: "it printed nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, binary := t.TempDir(), filepath.Join(t.TempDir(), "runtime")
			if err := os.WriteFile(binary, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			kind, version, err := identify(t.Context(), l, state, binary)
			switch {
			case c.err == "" && err != nil:
				t.Errorf("identify: %v", err)
			case c.err == "" && kind.Name+": "+version != c.want:
				t.Errorf("identify() = %s: %s, want %s", kind.Name, version, c.want)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || len(err.Error()) > 1000):
				t.Errorf("identify: %v, want one with %q", err, c.err)
			}
			if left, err := os.ReadDir(state); err != nil || len(left) > 0 {
				t.Errorf("files left in the state directory: %v, %v", left, err)
			}
		})
	}
}
