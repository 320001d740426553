package engines_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/engines"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// described lists the candidates of an engine with their errors.
func described(t *testing.T, d engine.Driver, s engine.Session) (lines []string) {
	t.Helper()
	for _, c := range d.Candidates(t.Context(), s) {
		line := c.Target.String() + " " + c.Version
		if c.Err != nil {
			line += ": " + c.Err.Error()
		}
		lines = append(lines, line)
	}
	return lines
}

// TestNoSettingIsWithoutEffect walks all programs and addresses that a user may give to an engine. PATH has none of the programs.
//
// Invariant settings-count: No program and no address that a user gives is without effect, and the page of engines lists the programs.
func TestNoSettingIsWithoutEffect(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: without it no engine looks for its programs")
	}
	l := enginetest.Launcher(t)
	dir := t.TempDir()
	program := func(name string) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte("#!/bin/sh\necho runc version 1.2.3\n"), 0o700))
		return path
	}
	plugins := filepath.Join(dir, "plug-ins")
	must.Do(t, os.Mkdir(plugins, 0o700))
	for _, name := range []string{"bridge", "host-local", "loopback"} {
		program(filepath.Join("plug-ins", name))
	}
	t.Setenv("PATH", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	empty := t.TempDir()
	s := engine.Session{
		Launcher: l, State: t.TempDir(), Managed: true, Engines: map[string]string{}, Runtimes: map[string]target.Runtime{"mine": {Path: program("mine-1.2")}},
	}
	drivers := engines.All(fake.NewClock(), nil)
	for _, d := range drivers.Descriptions() {
		for _, name := range d.Binaries {
			s.Engines[name] = program("another-" + name)
		}
	}
	s.Engines[engine.CNI] = plugins
	for _, driver := range drivers {
		d := driver.Describe()
		listing := described(t, driver, s)
		if d.Binaries != nil && !slices.ContainsFunc(listing, func(line string) bool {
			return strings.HasPrefix(line, d.Name+"/mine ") && !strings.Contains(line, ": ")
		}) {
			t.Errorf("with all its programs %s does not offer %s/mine: %q", d.Name, d.Name, listing)
		}
		for _, name := range d.Binaries {
			bareSession := s
			bareSession.Engines = maps.Clone(s.Engines)
			bareSession.Engines[name] = empty
			if cmp.Equal(listing, described(t, driver, bareSession)) {
				t.Errorf("--engine-bin %s=PATH has no effect on %s", name, d.Name)
			}
		}
		if d.Socket && d.Name != "podman" { // a socket only selects the targets of Podman
			override := s
			override.Managed, override.Sockets = false, map[string]string{d.Name: "/no/such.sock"}
			if cmp.Equal(listing, described(t, driver, override)) {
				t.Errorf("an address has no effect on %s", d.Name)
			}
		}
	}
}

// TestEachProgramIsDocumented: the page of engines lists the programs that a user may give, and no others.
//
// Invariant settings-count.
func TestEachProgramIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/engines.md")
	must.Do(t, err)
	for _, d := range engines.All(fake.NewClock(), nil).Descriptions() {
		if d.Binaries == nil {
			continue
		}
		line := "| `" + d.Name + "` | `" + strings.Join(d.Binaries, "`, `") + "` |"
		if !strings.Contains(string(page), line) {
			t.Errorf("docs/engines.md lacks the line %s", line)
		}
	}
}
