package cri_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/cri"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/native"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// The targets that the conformance suite tries with private engines; see enginetest.MustRun. The second list is for
// further versions of containerd.
var (
	containerdTargets = []string{
		"containerd/runc", "containerd/crun", "containerd/youki", "containerd/runsc", "containerd/runsc@platform=ptrace",
		"containerd/runsc@network=host", "containerd/runsc@shim=runc",
	}
	versionTargets = []string{"containerd/runc", "containerd/runsc"} // crun has the shim of runc
	crioTargets    = []string{"crio/runc", "crio/crun", "crio/youki", "crio/runsc"}
)

// moreContainerds names further versions of containerd that are tried beside the one on PATH: paths of
// their binaries, separated by colons.
const moreContainerds = "TOUCHSTONE_CONTAINERDS"

// session is one that has nothing but private engines, which are configured for these targets.
func session(t *testing.T, binary string, names ...string) engine.Session {
	t.Helper()
	s := enginetest.Session(t, oci.Surroundings)
	s.Managed = true
	if binary != "" {
		s.Engines = map[string]string{"containerd": binary}
	}
	for _, name := range names {
		s.Targets = append(s.Targets, parse(t, name))
	}
	return s
}

func parse(t *testing.T, name string) target.Target {
	t.Helper()
	parsed, err := target.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// conform puts a target through the conformance suite.
func conform(t *testing.T, d *cri.Driver, s engine.Session, name string) {
	open := func(t *testing.T) engine.Engine {
		e, err := d.Open(t.Context(), parse(t, name), s)
		enginetest.Require(t, name, err)
		t.Logf("%s, %s", e.Info().Version, strings.Join(e.Info().Notes, "; "))
		return e
	}
	enginetest.Run(t, open, enginetest.Options{
		RunID: s.RunID, Rootfs: s.Rootfs, Image: s.Registry.Probe(), Registry: s.Registry, Leftovers: func() []string { return leftovers(s) },
		TermFirst: d.Name() == "crio", Host: enginetest.Open(t, native.Driver{}, target.Native, s),
		Limits: func(t *testing.T, c engine.Container) string {
			return enginetest.Limits(t, s, "/"+engine.Prefix+s.RunID+"/"+c.ID())
		},
	})
}

// leftovers lists what there is of the session's containers.
func leftovers(s engine.Session) []string {
	left := enginetest.Leftovers(s)
	for _, pattern := range []string{"cri/*/*", "containerd", "crio"} {
		files, _ := filepath.Glob(filepath.Join(s.State, pattern))
		for _, f := range files {
			if filepath.Dir(f) != s.State {
				left = append(left, "file "+f)
			}
		}
	}
	return left
}

func TestContainerd(t *testing.T) {
	enginetest.CheckMustRun(t, "containerd", containerdTargets...)
	for _, binary := range append([]string{""}, filepath.SplitList(os.Getenv(moreContainerds))...) {
		name, targets := "on_PATH", containerdTargets
		if binary != "" {
			name, targets = filepath.Base(filepath.Dir(binary)), versionTargets
		}
		t.Run(name, func(t *testing.T) {
			for _, name := range targets {
				t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
					conform(t, cri.NewContainerd(), session(t, binary, name), name)
				})
			}
		})
	}
}

func TestCRIO(t *testing.T) {
	enginetest.CheckMustRun(t, "crio", crioTargets...)
	for _, name := range crioTargets {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			conform(t, cri.NewCRIO(), session(t, "", name), name)
		})
	}
}
