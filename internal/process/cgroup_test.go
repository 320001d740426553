package process_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// groups returns the host's cgroup hierarchy and the name of a cgroup for the test.
func groups(t *testing.T) (*cgroup.Hierarchy, string) {
	t.Helper()
	h, err := cgroup.Detect("/")
	must.Do(t, err)
	if h.Base() == "" {
		t.Skip("needs permission to create cgroups: run as root, or in a delegated cgroup")
	}
	name := "/" + cgroup.Prefix + "test-" + strings.ToLower(rand.Text()[:8])
	t.Cleanup(func() {
		g, err := h.Open(name)
		must.Do(t, err)
		must.Do(t, g.Destroy(context.WithoutCancel(t.Context())))
	})
	return h, name
}

// childCgroups returns the lines of /proc/self/cgroup of a child and of its own child.
func childCgroups(t *testing.T, l *process.Launcher) []string {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command("/bin/sh", "-c", "cat /proc/$$/cgroup; cat /proc/self/cgroup")
	cmd.Stdout = &out
	must.Do(t, l.Run(t.Context(), cmd))
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

// enter creates a cgroup and starts later children in it.
func enter(t *testing.T, l *process.Launcher, h *cgroup.Hierarchy, name string) {
	t.Helper()
	g, err := h.Create(name)
	must.Do(t, err)
	dir, err := g.OpenDir()
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		t.Fatal(err)
	}
	must.Do(t, l.SetCgroup(g.ThreadFiles(), dir))
}

// leave starts later children in the test's own cgroup.
func leave(t *testing.T, l *process.Launcher, h *cgroup.Hierarchy) {
	t.Helper()
	files, err := h.OwnThreadFiles()
	must.Do(t, err)
	must.Do(t, l.SetCgroup(files, nil))
}

func TestSetCgroup(t *testing.T) {
	h, top := groups(t)
	l := launcher(t, process.Options{})
	baseline := childCgroups(t, l)
	self, err := os.ReadFile("/proc/self/cgroup")
	must.Do(t, err)
	files := descriptors(t)
	for _, name := range []string{top + "/one", top + "/two"} { // directly from one to the other
		enter(t, l, h, name)
		members := 0
		for _, line := range childCgroups(t, l) {
			path := line[strings.LastIndex(line, ":")+1:]
			if strings.HasSuffix(path, name) {
				members++
			} else if strings.Contains(path, top) {
				t.Errorf("a process started in %s, want %s", path, name)
			}
		}
		want := 0
		for _, m := range h.Mounts {
			if m.V2 || filepath.Base(m.Dir) != "cpuset" && len(m.Controllers) > 0 {
				want++ // an upper limit: processes do not enter every hierarchy
			}
		}
		if members == 0 || members > 2*want {
			t.Errorf("processes started in %s in %d hierarchies, want 1 to %d", name, members, 2*want)
		}
	}
	if text, err := os.ReadFile("/proc/self/cgroup"); err != nil || !bytes.Equal(self, text) {
		t.Errorf("the program itself was moved: %s, %v", text, err)
	}
	leave(t, l, h)
	if state := childCgroups(t, l); strings.Join(state, "\n") != strings.Join(baseline, "\n") {
		t.Errorf("afterwards processes start in\n%s\nwant\n%s", state, baseline)
	}
	if openFiles := descriptors(t); openFiles > files {
		t.Errorf("%d file descriptors are open, before %d", openFiles, files)
	}
}

// Close must close the directory of the last cgroup.
func TestCloseClosesCgroup(t *testing.T) {
	baseline := descriptors(t)
	l, err := process.New(process.Options{})
	must.Do(t, err)
	dir, err := os.Open(t.TempDir())
	must.Do(t, err)
	must.Do(t, errors.Join(l.SetCgroup(nil, dir), l.Close()))
	if openFiles := descriptors(t); openFiles > baseline {
		t.Errorf("%d file descriptors are open, before %d", openFiles, baseline)
	}
}

// An error in one hierarchy must not stop SetCgroup in the others. Otherwise the launcher could not leave a cgroup.
func TestSetCgroupFailsInOneHierarchy(t *testing.T) {
	h, top := groups(t)
	if h.Mode == cgroup.V2 {
		t.Skip("needs a cgroup v1 hierarchy: on v2 nothing is moved")
	}
	l := launcher(t, process.Options{})
	g, err := h.Create(top + "/one")
	must.Do(t, err)
	files := append([]string{"/no/such/tasks"}, g.ThreadFiles()...)
	if err := l.SetCgroup(files, nil); err == nil {
		t.Error("SetCgroup succeeds with a missing file")
	}
	if !strings.Contains(strings.Join(childCgroups(t, l), "\n"), top+"/one") {
		t.Error("the children start in the new cgroup in no hierarchy")
	}
	leave(t, l, h)
}
