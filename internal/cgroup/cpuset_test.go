package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSetCPUs(t *testing.T) {
	machines(t, func(t *testing.T, h *Hierarchy) {
		outer := top(t, h)
		g := sub(t, outer, "pinned")
		join, err := g.SetCPUs("0")
		m, ok := h.Controller("cpuset")
		if !ok {
			if !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("without the controller: %v", err)
			}
			return
		}
		if err != nil || m.V2 != (join == "") {
			t.Fatalf("SetCPUs = %q, %v", join, err)
		}
		cmd := start(t, g, "wait")
		if join != "" {
			if err := os.WriteFile(join, []byte(fmt.Sprint(cmd.Process.Pid)), 0); err != nil {
				t.Fatal(err)
			}
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		if err != nil || !strings.Contains(string(status), "\nCpus_allowed_list:\t0\n") {
			t.Errorf("a process in the group: %v\n%s", err, status)
		}
		if _, err := g.SetCPUs("8191"); err == nil || !strings.Contains(err.Error(), "8191") {
			t.Errorf("CPUs that do not exist: %v", err)
		}
		// The parent keeps all CPUs for its other children.
		if got, want := cpusOf(t, m, outer.Path()), cpusOf(t, m, "/"); got != want {
			t.Errorf("the parent has the CPUs %q, want %q", got, want)
		}
	})
}

// cpusOf returns the effective CPUs of a group.
func cpusOf(t *testing.T, m Mount, group string) string {
	t.Helper()
	got, err := words(filepath.Join(m.Dir, group), "cpuset.effective_cpus")
	if m.V2 {
		got, err = words(filepath.Join(m.Dir, group), "cpuset.cpus.effective")
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(got, "")
}

// On v2 SetCPUs enables the controller in all parents, and fails only without the controller.
func TestSetCPUsUnified(t *testing.T) {
	root := t.TempDir()
	h := &Hierarchy{Mode: V2, Mounts: []Mount{{Dir: root, V2: true, Controllers: []string{"cpuset"}}}, base: "/"}
	g, err := h.Open("/touchstone-x/daemon")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", "touchstone-x", "touchstone-x/daemon"} {
		dir = filepath.Join(root, dir)
		writeFixture(t, filepath.Join(dir, "cgroup.subtree_control"), "")
		writeFixture(t, filepath.Join(dir, "cgroup.controllers"), "cpuset\n")
	}
	if _, err := g.SetCPUs("0-1"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("without the controller's file: %v", err)
	}
	writeFixture(t, filepath.Join(root, "touchstone-x/daemon/cpuset.cpus"), "")
	if join, err := g.SetCPUs("0-1"); join != "" || err != nil {
		t.Errorf("SetCPUs = %q, %v", join, err)
	}
	wantFiles(t, root, map[string]string{
		"cgroup.subtree_control": "+cpuset", "touchstone-x/cgroup.subtree_control": "+cpuset",
		"touchstone-x/daemon/cgroup.subtree_control": "", "touchstone-x/daemon/cpuset.cpus": "0-1",
	})
}
