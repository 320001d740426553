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
	"github.com/touchstone-bench/touchstone/internal/target"
)

func names(sockets map[string]string) (names []string) {
	for _, d := range engines.All(fake.NewClock(), sockets) {
		names = append(names, d.Name())
	}
	return names
}

func TestMustRunNamesEngines(t *testing.T) {
	enginetest.CheckMustRunEngines(t, names(nil)...)
}

func TestAll(t *testing.T) {
	want := []string{"native", "oci", "containerd", "crio", "docker", "podman", "fake"}
	if got := names(nil); !slices.Equal(got, want) {
		t.Errorf("there are the engines %q, want %q", got, want)
	}
	// A further name with a socket is an engine that speaks CRI.
	sockets := map[string]string{"containerd": "/run/c.sock", "mine": "/run/m.sock", "docker": "/run/d.sock", "another": "/run/a.sock"}
	if got := names(sockets); !slices.Equal(got, append(want, "another", "mine")) {
		t.Errorf("with sockets there are the engines %q", got)
	}
}

func TestCandidates(t *testing.T) {
	s := enginetest.Session(t, oci.Surroundings)
	s.Runtimes = map[string]target.Runtime{"mine": {Path: "/no/such/runtime"}}
	found := map[string]engine.Candidate{}
	for _, c := range engines.All(fake.NewClock(), nil).Candidates(t.Context(), s) {
		name := c.Target.String()
		if _, twice := found[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		if again, err := target.Parse(name); err != nil || again.String() != name {
			t.Errorf("%s is no target: %v", name, err)
		}
		if c.Err != nil && !engine.Unsupported(c.Err) {
			t.Errorf("%s: %v is no reason", name, c.Err)
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
		t.Errorf("a runtime that is not there: %v", err)
	}
	for name, c := range found {
		if strings.HasPrefix(name, fake.Name) {
			t.Errorf("%s is a candidate: a plan has fake targets only by name", name)
		}
		if len(c.Target.Options) > 0 && c.Default {
			t.Errorf("%s is measured without being asked for", name)
		}
	}
}

func TestOpenOfAnEngineThatThereIsNot(t *testing.T) {
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
	with := target.Target{Engine: target.Native}.With("cpu", "1")
	if _, err := drivers.Open(t.Context(), with, engine.Session{}); !engine.Unsupported(err) {
		t.Errorf("Open of %s: %v, want an UnsupportedError", with, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := drivers.Open(ctx, target.Target{Engine: fake.Name, Runtime: "x"}, engine.Session{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Open with a cancelled context: %v", err)
	}
}
