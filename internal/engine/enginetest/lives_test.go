package enginetest_test

import (
	"testing"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
)

func TestLimitsWithoutController(t *testing.T) {
	for mustRun, fatal := range map[string]bool{"": false, "oci/runc": true} {
		t.Setenv(enginetest.MustRun, mustRun)
		r := record(func(t testing.TB) {
			enginetest.Limits(t, engine.Session{Cgroups: &cgroup.Hierarchy{}}, "/touchstone-x")
		})
		if (r.fatal != "") != fatal || (r.skipped != "") == fatal {
			t.Errorf("%q: fatal %q, skipped %q", mustRun, r.fatal, r.skipped)
		}
	}
}
