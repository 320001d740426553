package docker_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/docker"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// A daemon that maps the users of containers lacks bind mounts and the host's network, with the reason, and nothing else.
//
// Invariant shared-parts.
func TestRealUsernsRemap(t *testing.T) {
	s := enginetest.Session(t, oci.LauncherOptions)
	s.Memory = t.TempDir()
	for _, file := range []string{"/etc/subuid", "/etc/subgid"} { // only the daemon sees this content
		ranges := filepath.Join(t.TempDir(), "ranges")
		must.Do(t, os.WriteFile(ranges, []byte("nobody:200000:65536\nnogroup:200000:65536\n"), 0o644))
		err := s.Launcher.InNamespace(func() error { return unix.Mount(ranges, file, "", unix.MS_BIND, "") })
		if err != nil {
			t.Skipf("needs %s, to cover it for the daemon: %v", file, err)
		}
	}
	s, _ = userOf(t, s, map[string]any{"userns-remap": "65534:65534"})
	e := enginetest.Open(t, docker.NewDriver(), "docker/runc", s)
	for _, c := range []engine.Capability{engine.CanBind, engine.CanBindMemory, engine.NetworkHost} {
		if err := e.Supports(c); !engine.Unsupported(err) || !strings.Contains(err.Error(), "userns-remap") || !strings.Contains(err.Error(), "--managed") {
			t.Errorf("Supports(%s) = %v; want a refusal because of userns-remap with a remedy", c, err)
		}
	}
	for _, c := range []engine.Capability{engine.CanExec, engine.CanWrite, engine.CanTmpfs, engine.CanPull, engine.OnMachine, engine.OnHost} {
		if err := e.Supports(c); err != nil {
			t.Errorf("Supports(%s) = %v", c, err)
		}
	}
	if _, ok := e.(engine.CgroupPlacer); !ok && s.Cgroups != nil {
		t.Error("its containers are not in cgroups of the run, and the daemon has the same cgroups")
	}
}

// A daemon that sees other files is refused bind mounts, and the directories that it shares remain.
//
// Invariant shared-parts.
func TestRealOtherFiles(t *testing.T) {
	s, _ := user(t)
	open := func(s engine.Session) engine.Engine { return enginetest.Open(t, docker.NewDriver(), "docker/runc", s) }
	s.Memory = t.TempDir()
	fullEngine := open(s)
	for _, c := range []engine.Capability{engine.CanBind, engine.CanBindMemory, engine.OnMachine, engine.OnHost, engine.NetworkHost} {
		if err := fullEngine.Supports(c); err != nil {
			t.Errorf("Supports(%s) = %v on a daemon of this machine", c, err)
		}
	}
	// The launcher's namespace is the daemon's, and this program's has another directory.
	memoryDir := t.TempDir()
	s.Memory = memoryDir
	must.Do(t, s.Launcher.InNamespace(func() error { return unix.Mount("tmpfs", memoryDir, "tmpfs", 0, "") }))
	e := open(s)
	if err := e.Supports(engine.CanBindMemory); !engine.Unsupported(err) || !strings.Contains(err.Error(), "another file system") && !strings.Contains(err.Error(), "cannot mount") {
		t.Errorf("Supports(%s) = %v; want a refusal because of other files", engine.CanBindMemory, err)
	}
	if err := e.Supports(engine.CanBind); err != nil {
		t.Errorf("Supports(%s) = %v", engine.CanBind, err)
	}
	if left, err := os.ReadDir(memoryDir); err != nil || len(left) > 0 {
		t.Errorf("the check leaves %v, %v", left, err)
	}
}
