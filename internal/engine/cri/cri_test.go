package cri_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/cri"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/native"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// The targets of the conformance suite with private engines; see enginetest.MustRun. The first ones run the whole suite,
// which tests this package. The further ones, and further versions of containerd, run enginetest.Options.Brief, which tests
// that they work with the package.
var (
	containerdTargets = []string{"containerd/runc", "containerd/crun", "containerd/runsc"}
	containerdFurther = []string{
		"containerd/youki", "containerd/runsc@platform=ptrace", "containerd/runsc@network=host", "containerd/runsc@shim=runc",
		"containerd/runsc@platform=kvm", "containerd/runsc@platform=kvm,shim=runc",
	}
	// Kata starts a virtual machine for each container, so it runs only the subtests that do not depend on the engine.
	containerdGuests = []string{"containerd/kata"}
	crioTargets      = []string{"crio/runc", "crio/crun"}
	crioFurther      = []string{"crio/youki", "crio/runsc", "crio/runsc@platform=kvm"}
	crioGuests       = []string{"crio/kata"}
)

// cellOf has the cells of the targets that run the whole suite only in some changes.
var cellOf = map[string]string{"containerd/crun": "containerd/crun", "crio/crun": "crio/crun"}

// versionTargets are for further versions of containerd, one for each shim. The oldest and the newest version run gVisor's
// shim too, and the versions between them only runc.
var (
	oldestTargets  = []string{"containerd/runc", "containerd/runsc"}
	versionTargets = []string{"containerd/runc"}
)

// moreContainerds is the environment variable with further versions of containerd beside the one on PATH: paths of their
// binaries, the oldest first, separated by colons.
const moreContainerds = "TOUCHSTONE_CONTAINERDS"

// session has only private engines, which are configured for these targets.
func session(t *testing.T, binary string, names ...string) engine.Session {
	t.Helper()
	s := enginetest.Session(t, oci.LauncherOptions)
	s.Managed = true
	if binary != "" {
		s.Engines = map[string]string{"containerd": binary}
	}
	for _, name := range names {
		s.Targets = append(s.Targets, enginetest.Parse(t, name))
	}
	return s
}

// conformAll runs the conformance suite on targets that share a private engine, as in a run.
func conformAll(t *testing.T, d *cri.Driver, binary string, fullTargets, brief []string) {
	names := slices.Concat(fullTargets, brief)
	s := session(t, binary, names...)
	enginetest.Hold(t, d, names[0], s)
	for n, name := range names {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) { conform(t, d, s, name, n >= len(fullTargets) || !cells.Whole(t, cellOf[name])) })
	}
}

// conform runs the conformance suite on a target.
func conform(t *testing.T, d *cri.Driver, s engine.Session, name string, brief bool) {
	var gaps map[string]string
	if d.Describe().Name == "crio" {
		gaps = enginetest.MonitorGaps(name)
	} else {
		gaps = enginetest.ShimGaps(t, name)
	}
	var overhead engine.Resources
	if strings.Contains(name, "/kata") {
		gaps = enginetest.GuestGaps()
		r, err := runtimes.Get(t.Context(), s, enginetest.Parse(t, name))
		enginetest.Require(t, name, err)
		// The overhead of Kata's RuntimeClass beside the guest's memory.
		overhead = engine.Resources{CPU: 0.25, Memory: (160 + r.Guest.MemoryMiB) << 20}
	}
	enginetest.Conform(t, d, name, s, enginetest.Options{
		Gaps: gaps, Overhead: overhead, Leftovers: func() []string { return leftovers(s) },
		Brief: brief, TermFirst: d.Describe().Name == "crio", Host: enginetest.Open(t, native.Driver{}, target.Native, s),
	})
}

// leftovers lists the remains of the session's containers on the host.
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
	enginetest.CheckMustRun(t, "containerd", slices.Concat(containerdTargets, containerdFurther, containerdGuests)...)
	t.Run("on_PATH", func(t *testing.T) {
		conformAll(t, cri.NewContainerd(), "", containerdTargets, slices.Concat(containerdFurther, containerdGuests))
	})
	for n, binary := range filepath.SplitList(os.Getenv(moreContainerds)) {
		targets := oldestTargets
		if n > 0 {
			targets = versionTargets
		}
		t.Run(filepath.Base(filepath.Dir(binary)), func(t *testing.T) {
			cells.Need(t, "containerd/versions")
			conformAll(t, cri.NewContainerd(), binary, nil, targets)
		})
	}
}

func TestCRIO(t *testing.T) {
	extraTargets := slices.Concat(crioFurther, crioGuests)
	enginetest.CheckMustRun(t, "crio", slices.Concat(crioTargets, extraTargets)...)
	conformAll(t, cri.NewCRIO(), "", crioTargets, extraTargets)
}

// Targets of one daemon may remove an image at the same time. Each removal succeeds, and the image is gone.
func TestSimultaneousRemovals(t *testing.T) {
	for d, name := range map[*cri.Driver]string{cri.NewContainerd(): "containerd/runc", cri.NewCRIO(): "crio/runc"} {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			s := session(t, "", name)
			p := enginetest.Open(t, d, name, s).(engine.Puller)
			const rounds, removals = 20, 8
			for range rounds {
				ref, err := s.Registry.Fresh(t.Context(), 1<<20)
				must.Do(t, err)
				must.Do(t, p.Pull(t.Context(), ref))
				s.Registry.Forget(ref)
				var calls sync.WaitGroup
				for range removals {
					calls.Go(func() {
						if err := p.RemoveImage(t.Context(), ref); err != nil {
							t.Errorf("RemoveImage beside others: %v", err)
						}
					})
				}
				calls.Wait()
				if err := p.Pull(t.Context(), ref); err == nil {
					t.Error("the image is still there")
				}
			}
		})
	}
}
