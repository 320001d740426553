package fake_test

import (
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/must"
)

func TestConformance(t *testing.T) {
	targets := []string{
		"fake/plain",
		"fake/noisy@bimodal=0.3:2,drift=0.01,jitter=0.2",
		"fake/late@ready=50ms",
		"fake/instant@create=0s,delete=0s,exec=0s,exit=0s,kill=0s,start=0s",
		"fake/bare@no=exec+pause+update+host-network+pull+stats",
	}
	enginetest.CheckMustRun(t, fake.Name, targets...)
	for _, name := range targets {
		t.Run(name, func(t *testing.T) {
			driver := fake.NewDriver(fake.NewClock())
			registry, err := image.NewRegistry(t.Context(), "run1")
			must.Do(t, err)
			t.Cleanup(func() { enginetest.Check(t, registry.Close()) })
			open := func(t *testing.T) engine.Engine {
				e, err := driver.Open(t.Context(), enginetest.Parse(t, name), engine.Session{RunID: "run1", Registry: registry})
				enginetest.Require(t, name, err)
				return e
			}
			const reason = "fake containers have neither cgroups nor a network"
			enginetest.Run(t, open, enginetest.Options{
				RunID: "run1", Rootfs: "/rootfs", Registry: registry, Leftovers: driver.Leftovers,
				Gaps: map[string]string{"Limits": reason, "Bridge": reason, "HostEnd": reason},
			})
		})
	}
}
