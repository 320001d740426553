package engines_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/engines"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/target"
)

func names(sockets map[string]string) (names []string) {
	for _, d := range engines.All(fake.NewClock(), sockets) {
		names = append(names, d.Describe().Name)
	}
	return names
}

func TestMustRunNamesEngines(t *testing.T) {
	enginetest.CheckMustRunEngines(t, names(nil)...)
}

func TestAll(t *testing.T) {
	want := []string{"native", "oci", "containerd", "crio", "docker", "podman", "fake"}
	if got := names(nil); !slices.Equal(got, want) {
		t.Errorf("the engines are %q, want %q", got, want)
	}
	// A further name with a socket becomes an engine that speaks CRI.
	sockets := map[string]string{"containerd": "/run/c.sock", "mine": "/run/m.sock", "docker": "/run/d.sock", "another": "/run/a.sock"}
	if got := names(sockets); !slices.Equal(got, append(want, "another", "mine")) {
		t.Errorf("with sockets the engines are %q", got)
	}
}

// The kernel keeps 15 bytes of a name. A program of two components would make the split of the cost ambiguous.
func TestProgramsBelongToOneComponent(t *testing.T) {
	owner := map[string]monitor.Component{}
	for component, programs := range engines.All(fake.NewClock(), nil).Programs() {
		if !slices.Contains(monitor.Components(), component) {
			t.Errorf("there is no component %q", component)
		}
		for _, p := range programs {
			name := p[:min(len(p), 15)]
			if rival, ok := owner[name]; ok && rival != component {
				t.Errorf("%s is a program of %s and of %s", p, component, rival)
			}
			owner[name] = component
		}
	}
	for _, name := range []string{"containerd", "dockerd", "crio", "podman", "conmon", "containerd-shim", "runc", "crun", "youki", "runsc"} {
		if owner[name] == "" {
			t.Errorf("no engine or runtime declares %s", name)
		}
	}
}

func TestCandidates(t *testing.T) {
	s := enginetest.Session(t, oci.LauncherOptions)
	s.Runtimes = map[string]target.Runtime{"mine": {Path: "/no/such/runtime"}}
	found := map[string]engine.Candidate{}
	for _, c := range engines.All(fake.NewClock(), nil).Candidates(t.Context(), s) {
		name := c.Target.String()
		if _, duplicate := found[name]; duplicate {
			t.Errorf("%s is listed twice", name)
		}
		if echo, err := target.Parse(name); err != nil || echo.String() != name {
			t.Errorf("parse target %s: %v", name, err)
		}
		if c.Err != nil && !engine.Unsupported(c.Err) {
			t.Errorf("%s: error %v, want an UnsupportedError", name, c.Err)
		}
		if c.Err == nil && c.Version == "" {
			t.Errorf("%s has no version", name)
		}
		found[name] = c
	}
	for _, name := range []string{"native", "oci/runc", "oci/crun", "oci/youki", "oci/runsc", "oci/mine"} {
		if _, ok := found[name]; !ok {
			t.Errorf("%s is no candidate", name)
		}
	}
	if c := found["native"]; c.Err != nil || !c.Default || c.Isolation != engine.NoIsolation {
		t.Errorf("native: %+v", c)
	}
	if err := found["oci/mine"].Err; err == nil || !strings.Contains(err.Error(), "/no/such/runtime") {
		t.Errorf("a missing runtime: %v", err)
	}
	for name, c := range found {
		if strings.HasPrefix(name, fake.Name) {
			t.Errorf("%s is a candidate, but only a plan that names it has a fake target", name)
		}
		if len(c.Target.Options) > 0 && c.Default {
			t.Errorf("%s has options and is measured by default", name)
		}
	}
}

func TestOpenUnknownEngine(t *testing.T) {
	_, err := engines.All(fake.NewClock(), nil).Open(t.Context(), target.Target{Engine: "lxc", Runtime: "runc"}, engine.Session{})
	var u *engine.UnsupportedError
	if !errors.As(err, &u) || u.What != "lxc/runc" || u.Advice != "measure the runtime itself with oci/runc" {
		t.Errorf("Open() = %#v", err)
	}
	if !strings.Contains(err.Error(), `this version has no engine "lxc", only native, oci, containerd, crio, docker, podman, fake`) {
		t.Errorf("Open() = %v", err)
	}
}

func TestOpen(t *testing.T) {
	drivers := engines.All(fake.NewClock(), nil)
	e, err := drivers.Open(t.Context(), target.Target{Engine: fake.Name, Runtime: "x"}, engine.Session{RunID: "x"})
	if err != nil || e.Info().Target.String() != "fake/x" {
		t.Errorf("Open of a fake target: %v", err)
	}
	variant := target.Target{Engine: target.Native}.With("cpu", "1")
	if _, err := drivers.Open(t.Context(), variant, engine.Session{}); !engine.Unsupported(err) {
		t.Errorf("Open of %s: %v, want an UnsupportedError", variant, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := drivers.Open(ctx, target.Target{Engine: fake.Name, Runtime: "x"}, engine.Session{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Open with a cancelled context: %v", err)
	}
}
