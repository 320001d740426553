package oci

import (
	"testing"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
)

// In a delegated cgroup runc can freeze. crun runs without cgroups there, and must not claim it.
func TestRootlessWithCgroups(t *testing.T) {
	for _, c := range []struct {
		version  string
		rootless bool
		want     bool
	}{
		{"runc version 1.1.15", true, true},
		{"crun version 1.21", true, false},
		{"crun version 1.21", false, true},
	} {
		e := &Engine{
			runtime: runtimes.Runtime{Kind: runtimes.KindOf(c.version)}, info: engine.Info{Rootless: c.rootless},
			Local: engine.Local{Session: engine.Session{Cgroups: &cgroup.Hierarchy{Mode: cgroup.V2}}}, Missing: engine.Missing{},
		}
		e.adapt(t.Context())
		for _, capability := range []engine.Capability{engine.CanPause, engine.CanUpdate} {
			if err := e.Supports(capability); (err == nil) != c.want {
				t.Errorf("%s, rootless %v: Supports(%s) = %v, want it supported: %v", c.version, c.rootless, capability, err, c.want)
			}
		}
	}
}
