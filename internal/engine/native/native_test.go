package native_test

import (
	"testing"

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
			enginetest.Conform(t, native.Driver{}, name, s, enginetest.Options{Host: enginetest.Open(t, native.Driver{}, name, s), Gaps: enginetest.RootlessGaps()})
		})
	}
}
