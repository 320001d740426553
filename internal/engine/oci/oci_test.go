package oci_test

import (
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/native"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// targets are the targets of the conformance suite; see enginetest.MustRun.
var targets = []string{"oci/runc", "oci/crun", "oci/youki", "oci/runsc@platform=ptrace", "oci/runsc@platform=systrap", "oci/runsc@platform=kvm"}

// cellOf has the cells of the targets that run the whole suite only in some changes.
var cellOf = map[string]string{"oci/crun": "oci/crun", "oci/youki": "oci/youki", "oci/runsc@platform=ptrace": "oci/runsc-ptrace"}

func TestConformance(t *testing.T) {
	enginetest.CheckMustRun(t, "oci", targets...)
	for _, name := range targets {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			s := enginetest.Session(t, oci.LauncherOptions)
			open := func(t *testing.T) engine.Engine {
				e, err := enginetest.Attempt(t, oci.Driver{}, name, s)
				enginetest.Require(t, name, err)
				return e
			}
			host, err := native.Driver{}.Open(t.Context(), target.Target{Engine: target.Native}, s)
			enginetest.Must(t, err)
			enginetest.Run(t, open, enginetest.Options{
				Started: s.Launcher.Started, OOMScore: s.Launcher.OOMScore(),
				RunID: s.RunID, Rootfs: s.Rootfs, Host: host, Limits: enginetest.LimitsBy(s),
				Leftovers: func() []string { return enginetest.Leftovers(s) }, Gaps: enginetest.PlatformGaps(t, name, enginetest.RootlessGaps()),
				Brief: !cells.Whole(t, cellOf[name]),
			})
		})
	}
}
