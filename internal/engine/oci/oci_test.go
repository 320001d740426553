package oci_test

import (
	"strings"
	"testing"

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
			enginetest.Conform(t, oci.Driver{}, name, s, enginetest.Options{
				Host: enginetest.Open(t, native.Driver{}, target.Native, s), Gaps: enginetest.RootlessGaps(), Brief: !cells.Whole(t, cellOf[name]),
			})
		})
	}
}
