package engine

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine/layouttest"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// names are the programs that lookups find by LookPath.
var names = []string{
	"containerd", "containerd-shim-runc-v2", "dockerd", "crio", "pinns", "podman", "conmon", "runc", "crun", "containerd-shim-kata-v2",
}

// LookPath finds the programs of each distribution with the PATH of a console, and also in the directories that it lacks.
//
// Invariant layouts: Each lookup finds the programs, plug-ins, sockets and configuration files of the distributions in internal/engine/layouttest.
func TestLookPathInLayouts(t *testing.T) {
	layouttest.Each(t, func(t *testing.T, m layouttest.Machine) {
		m.Redirect(t, &SystemDirs)
		for _, name := range names {
			path, err := LookPath(name)
			isElsewhere := slices.Contains(m.Bundled, name) || name == "containerd-shim-kata-v2" // Kata has directories of its own
			switch {
			case err == nil || m.Has(name) && !isElsewhere:
				m.Expect(t, name, path, err)
			case !errors.Is(err, exec.ErrNotFound):
				t.Errorf("%s: %v; want exec.ErrNotFound", name, err)
			}
		}
	})
}

// A program that only its engine finds is among the helpers of an engine.
func TestHelpersInLayouts(t *testing.T) {
	layouttest.Each(t, func(t *testing.T, m layouttest.Machine) {
		m.Redirect(t, &SystemDirs)
		var dirs []string
		for _, engine := range []string{"dockerd", "podman", "crio"} {
			if program, err := LookPath(engine); err == nil {
				dirs = append(dirs, Helpers(program)...)
			}
		}
		for _, name := range m.Bundled {
			path, _ := FindIn(name, dirs)
			m.Expect(t, name, path, nil)
			dirs = append(dirs, Helpers(path)...) // a shim is beside its containerd
		}
	})
}

func TestLookPath(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"usr/bin/both", "usr/sbin/both", "usr/sbin/admin", "opt/tools/sbin/other", "system/last", "system/admin"} {
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700), os.WriteFile(filepath.Join(dir, name), nil, 0o700))
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "usr/sbin/data"), nil, 0o600))
	defer func(dirs []string) { SystemDirs = dirs }(SystemDirs)
	SystemDirs = []string{filepath.Join(dir, "system")}
	t.Setenv("PATH", filepath.Join(dir, "usr/bin")+":bin::"+filepath.Join(dir, "opt/tools"))
	for name, want := range map[string]string{
		"both": "usr/bin/both", "admin": "usr/sbin/admin", "last": "system/last",
		"other": "", "data": "", "none": "", "../sbin/admin": "",
	} {
		path, err := LookPath(name)
		if want != "" && (path != filepath.Join(dir, want) || err != nil) || want == "" && err == nil {
			t.Errorf("LookPath(%s) = %q, %v; want %q", name, path, err, want)
		}
	}
	t.Setenv("PATH", "")
	if path, err := LookPath("last"); path != filepath.Join(dir, "system/last") || err != nil {
		t.Errorf("without PATH: %q, %v", path, err)
	}
}

// A large program, and a wrapper whose directories are gone, name no directories.
func TestWrapped(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "nix/store/x-tool-1.0+git/bin")
	must.Do(t, os.MkdirAll(bin, 0o700))
	wrapper := filepath.Join(dir, "wrapper")
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"a script", "#!/bin/sh\nPATH='" + bin + ":/nix/store/gone/bin'$PATH\nexec " + bin + "/none\n", []string{bin}},
		{"a small program", "\x7fELF\x00" + bin + "\x00" + bin + "\x00", []string{bin}},
		{"a large program", bin + strings.Repeat("\x00", maxWrapper), nil},
		{"another program", "\x7fELF\x00/usr/bin\x00", nil},
	} {
		must.Do(t, os.WriteFile(wrapper, []byte(c.text), 0o700))
		if got := wrapped(wrapper); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := wrapped(filepath.Join(dir, "none")); got != nil {
		t.Errorf("a missing program: %q", got)
	}
}

// Helpers are beside the program, in its installation, and in the installations of distributions.
func TestHelpers(t *testing.T) {
	dirs := Helpers("/opt/x/bin/crio")
	if dirs[0] != "/opt/x/bin" {
		t.Errorf("the first directory is %s", dirs[0])
	}
	for _, want := range []string{"/opt/x/libexec/crio", "/opt/x/lib/podman", "/usr/libexec/podman", "/usr/lib/podman", "/usr/libexec/crio", "/usr/local/lib/podman", "/usr/libexec/docker"} {
		if !slices.Contains(dirs, want) {
			t.Errorf("%s is not among %q", want, dirs)
		}
	}
}
