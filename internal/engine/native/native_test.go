package native_test

import (
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/native"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// targets are those that the conformance suite tries; see enginetest.MustRun.
var targets = []string{target.Native, "native@network=loopback"}

func TestConformance(t *testing.T) {
	enginetest.CheckMustRun(t, target.Native, targets...)
	for _, name := range targets {
		t.Run(name, func(t *testing.T) {
			s := enginetest.Session(t, oci.LauncherOptions) // a run has the same for all engines
			wanted, err := target.Parse(name)
			enginetest.Must(t, err)
			open := func(t *testing.T) engine.Engine {
				e, err := native.Driver{}.Open(t.Context(), wanted, s)
				enginetest.Require(t, name, err)
				return e
			}
			enginetest.Run(t, open, enginetest.Options{
				Started: s.Launcher.Started, OOMScore: s.Launcher.OOMScore(),
				RunID: s.RunID, Rootfs: s.Rootfs, Host: open(t), Limits: enginetest.LimitsBy(s),
				Leftovers: func() []string { return enginetest.Leftovers(s) }, Gaps: enginetest.RootlessGaps(),
			})
		})
	}
}
