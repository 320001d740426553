package native_test

import (
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/native"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/target"
)

func TestConformance(t *testing.T) {
	enginetest.CheckMustRun(t, target.Native, target.Native)
	s := enginetest.Session(t, oci.Surroundings) // a run has the same for all engines
	open := func(t *testing.T) engine.Engine {
		e, err := native.Driver{}.Open(t.Context(), target.Target{Engine: target.Native}, s)
		enginetest.Require(t, target.Native, err)
		return e
	}
	enginetest.Run(t, open, enginetest.Options{
		RunID: s.RunID, Rootfs: s.Rootfs, Leftovers: func() []string { return enginetest.Leftovers(s) },
	})
}
