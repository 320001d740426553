package podman_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/native"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/engine/podman"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// targets go through the whole conformance suite; see enginetest.MustRun. The further ones go through the brief one.
var (
	targets = []string{"podman/runc", "podman/crun"}
	further = []string{"podman/youki", "podman/runsc@platform=systrap", "podman/runsc@platform=kvm"}
)

// cellOf has the cells of the targets that run the whole suite only in some changes.
var cellOf = map[string]string{"podman/crun": "podman/crun"}

// remains lists the traces of the session's containers on the host.
func remains(s engine.Session) []string {
	left := enginetest.Leftovers(s)
	if s.Cgroups != nil {
		for _, m := range s.Cgroups.Mounts {
			// Podman names a container's cgroup by its own ID.
			dirs, _ := filepath.Glob(filepath.Join(m.Dir, s.Cgroups.Base(), engine.Prefix+s.RunID, "libpod-*"))
			for _, d := range dirs {
				left = append(left, "cgroup "+d)
			}
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		// The storage binds its own directory to itself while it is in use.
		if strings.Contains(line, s.Data) && strings.Contains(line, "/merged ") {
			left = append(left, "mount "+line)
		}
	}
	for _, pattern := range []string{"p/*/t/exits/*", "podman/*/logs/*"} {
		for _, dir := range []string{s.State, s.Data} {
			files, _ := filepath.Glob(filepath.Join(dir, pattern))
			for _, f := range files {
				left = append(left, "file "+f)
			}
		}
	}
	return left
}

func TestConformance(t *testing.T) {
	names := slices.Concat(targets, further)
	enginetest.CheckMustRun(t, "podman", names...)
	for n, name := range names {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			s := enginetest.Session(t, oci.LauncherOptions)
			enginetest.Conform(t, podman.Driver{}, name, s, enginetest.Options{
				Host: enginetest.Open(t, native.Driver{}, target.Native, s),
				Limits: func(t *testing.T, parent, _ string) string { // of the only container
					return enginetest.Limits(t, s, parent+"/libpod-"+strings.Repeat("[0-9a-f]", 64))
				},
				Leftovers: func() []string { return remains(s) }, Brief: n >= len(targets) || !cells.Whole(t, cellOf[name]), Gaps: enginetest.MonitorGaps(name),
			})
		})
	}
}
