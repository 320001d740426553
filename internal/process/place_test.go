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
	"github.com/touchstone-bench/touchstone/internal/process"
)

// groups gives the host's cgroups and a name below which the test may make some.
func groups(t *testing.T) (*cgroup.Hierarchy, string) {
	t.Helper()
	h, err := cgroup.Detect("/")
	if err != nil {
		t.Fatal(err)
	}
	if h.Base() == "" {
		t.Skip("needs the right to make cgroups: run as root, or in a delegated cgroup")
	}
	name := "/" + cgroup.Prefix + "test-" + strings.ToLower(rand.Text()[:8])
	t.Cleanup(func() {
		g, err := h.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Destroy(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return h, name
}

// born gives the lines of /proc/self/cgroup of a process that the launcher starts, and of
// what that starts in turn.
func born(t *testing.T, l *process.Launcher) []string {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command("/bin/sh", "-c", "cat /proc/$$/cgroup; cat /proc/self/cgroup")
	cmd.Stdout = &out
	if err := l.Run(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

func place(t *testing.T, l *process.Launcher, h *cgroup.Hierarchy, name string) {
	t.Helper()
	g, err := h.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := g.OpenDir()
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		t.Fatal(err)
	}
	if err := l.Place(g.ThreadFiles(), dir); err != nil {
		t.Fatal(err)
	}
}

func home(t *testing.T, l *process.Launcher, h *cgroup.Hierarchy) {
	t.Helper()
	own, err := h.OwnThreadFiles()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Place(own, nil); err != nil {
		t.Fatal(err)
	}
}

func TestPlace(t *testing.T) {
	h, top := groups(t)
	l := launcher(t, process.Options{})
	before := born(t, l)
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	files := descriptors(t)
	for _, name := range []string{top + "/one", top + "/two"} { // straight from one to the other
		place(t, l, h, name)
		inside := 0
		for _, line := range born(t, l) {
			path := line[strings.LastIndex(line, ":")+1:]
			if strings.HasSuffix(path, name) {
				inside++
			} else if strings.Contains(path, top) {
				t.Errorf("a process was born in %s, want %s", path, name)
			}
		}
		want := 0
		for _, m := range h.Mounts {
			if m.V2 || filepath.Base(m.Dir) != "cpuset" && len(m.Controllers) > 0 {
				want++ // some of which no process joins
			}
		}
		if inside == 0 || inside > 2*want {
			t.Errorf("processes were born in %s in %d hierarchies", name, inside)
		}
	}
	if now, err := os.ReadFile("/proc/self/cgroup"); err != nil || !bytes.Equal(own, now) {
		t.Errorf("the program itself was moved: %s, %v", now, err)
	}
	home(t, l, h)
	if after := born(t, l); strings.Join(after, "\n") != strings.Join(before, "\n") {
		t.Errorf("back home processes are born in\n%s\nand not in\n%s", after, before)
	}
	if now := descriptors(t); now > files {
		t.Errorf("%d file descriptors are open, before %d", now, files)
	}
}

// The directory of the last place is the launcher's to close.
func TestCloseWhilePlaced(t *testing.T) {
	before := descriptors(t)
	l, err := process.New(process.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Place(nil, dir), l.Close()); err != nil {
		t.Fatal(err)
	}
	if now := descriptors(t); now > before {
		t.Errorf("%d file descriptors are open, before %d", now, before)
	}
}

// What fails in one hierarchy must not keep the launcher from being placed in the others: it
// could then not be brought home.
func TestPlaceFailsInOneHierarchy(t *testing.T) {
	h, top := groups(t)
	if h.Mode == cgroup.V2 {
		t.Skip("needs a cgroup v1 hierarchy: on v2 nothing is moved")
	}
	l := launcher(t, process.Options{})
	g, err := h.Create(top + "/one")
	if err != nil {
		t.Fatal(err)
	}
	files := append([]string{"/no/such/tasks"}, g.ThreadFiles()...)
	if err := l.Place(files, nil); err == nil {
		t.Error("Place succeeds with a file that is not there")
	}
	if !strings.Contains(strings.Join(born(t, l), "\n"), top+"/one") {
		t.Error("the launcher was placed in no hierarchy at all")
	}
	home(t, l, h)
}
