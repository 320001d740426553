package runtimes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// launcher returns a launcher that ends with the test.
func launcher(t *testing.T) *process.Launcher {
	t.Helper()
	l, err := process.New(process.Options{})
	must.Do(t, err)
	t.Cleanup(func() { must.Do(t, l.Close()) })
	return l
}

// The runtimes need their state directory, like crun without root, or fail to print a version.
func TestIdentify(t *testing.T) {
	l := launcher(t)
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
		{name: "prints blanks first", script: `printf '\n\n  runc version 1.3.0 \n'`, want: "runc: runc version 1.3.0"},
		{name: "fails with a reason", script: `echo "no state directory" >&2; exit 1`, err: "ended with exit code 1: no state directory"},
		{name: "fails without a reason", script: `exit 1`, err: "ended with exit code 1"},
		{name: "writes endless errors", script: `yes "it rains" | head -n 1000 >&2; exit 1`, err: "it rains"},
		{name: "prints nothing", script: `exit 0`, err: "it printed nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, binary := t.TempDir(), filepath.Join(t.TempDir(), "runtime")
			must.Do(t, os.WriteFile(binary, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700))
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

// The programs print these outputs, and further lines that do not matter.
func TestReadVersion(t *testing.T) {
	for _, c := range []struct{ name, text, kind, version string }{
		{"runc", "runc version 1.3.0\ncommit: v1.3.0-0-g4ca628d1\nspec: 1.2.1\ngo: go1.23.8\nlibseccomp: 2.5.6\n", "runc", "runc version 1.3.0"},
		{"crun", "crun version 1.21\ncommit: 10269840\nrundir: /run/crun\nspec: 1.0.0\n+SYSTEMD +SELINUX +LIBKRUN\n", "crun", "crun version 1.21"},
		{"youki", "youki version: 0.7.0\ncommit: 0.7.0-0-0000000\n", "youki", "youki version: 0.7.0"},
		{"runsc without a version", "runsc version VERSION_MISSING\nspec: 1.1.0-rc.1\n", "runsc", "runsc version VERSION_MISSING"},
		{"Kata before version 2", "kata-runtime  : 1.12.0\n   commit   : 7d7a1c6\n   OCI specs: 1.0.1-dev\n", "kata-runtime", "kata-runtime : 1.12.0"},
		{
			"Sysbox", "sysbox-runc\n\tedition: \tCommunity Edition (CE)\n\tversion: \t0.6.4\n\tcommit: \t2d9b8d2\n\toci-specs: \t1.1.0+dev\n", "sysbox-runc",
			"sysbox-runc version 0.6.4",
		},
		{
			"NVIDIA", "NVIDIA Container Runtime version 1.17.8\ncommit: f202b80\nspec: 1.2.1\n\nrunc version 1.2.5\nspec: 1.2.0\ngo: go1.22.12\n", "runc",
			"NVIDIA Container Runtime version 1.17.8, runc version 1.2.5",
		},
		{"a wrapper of crun", "mywrapper\nVersion: v2\ncrun version 1.14\n", "crun", "mywrapper version v2, crun version 1.14"},
		{"an unknown runtime", "railcar 1.0.4\n", "", "railcar 1.0.4"},
		{"a name alone", "mine\ncommit: 12\n", "", "mine"},
		{"a library of another name", "mine 1.0\nlibcrun version 1.0\n", "", "mine 1.0"},
		{"nothing", " \n\t\n", "", ""},
	} {
		if kind, version := readVersion(c.text); kind.Name != c.kind || version != c.version {
			t.Errorf("%s: %q, %q; want %q, %q", c.name, kind.Name, version, c.kind, c.version)
		}
	}
}

// crun under the name krun makes virtual machines, and prints the version of crun.
func TestIdentifyByName(t *testing.T) {
	l := launcher(t)
	dir := t.TempDir()
	for name, want := range map[string]engine.Isolation{"crun": engine.SharedKernel, "krun": engine.VM, "crun-1.21": engine.SharedKernel} {
		binary := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(binary, []byte("#!/bin/sh\necho crun version 1.21\n"), 0o700))
		if kind, version, err := identify(t.Context(), l, t.TempDir(), binary); err != nil || kind.Isolation != want || version != "crun version 1.21" {
			t.Errorf("%s: %q, %q, %v; want %q", name, kind.Isolation, version, err, want)
		}
	}
}
