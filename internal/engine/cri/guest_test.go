package cri_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/cri"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// The options of a target reach the hypervisor and the guest.
func TestGuestOptions(t *testing.T) {
	const plain = "containerd/kata"
	s := session(t, "")
	r, err := runtimes.Get(t.Context(), s, parse(t, plain))
	enginetest.Require(t, plain, err)
	text, err := os.ReadFile(r.Guest.Kernel)
	if err != nil {
		t.Fatal(err)
	}
	kernel := filepath.Join(s.Data, "vmlinux")
	if err := os.WriteFile(kernel, text, 0o600); err != nil {
		t.Fatal(err)
	}
	name := plain + "@kernel=" + kernel + ",memory=320,vcpus=2"
	s.Targets = append(s.Targets, parse(t, name))
	e := enginetest.Open(t, cri.NewContainerd(), name, s)
	if notes := strings.Join(e.Info().Notes, "; "); !strings.Contains(notes, "guest memory 320 MiB, vCPUs 2") || !strings.Contains(notes, kernel) {
		t.Errorf("notes %q lack the effective values", notes)
	}
	var out bytes.Buffer
	spec := enginetest.Spec(s, "options")
	spec.Process = engine.Process{Args: workload.CPUs(), Stdout: &out}
	c := enginetest.Running(t, e, spec)
	guest := hypervisor(t, s)
	for _, want := range [][]string{{"-m", "320M"}, {"-kernel", kernel}} {
		if at := slices.Index(guest, want[0]); at < 0 || !strings.HasPrefix(guest[at+1], want[1]) {
			t.Errorf("the hypervisor has no %q: %q", want, guest)
		}
	}
	if _, err := c.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(out.String()); got != "0-1" {
		t.Errorf("the container may run on the CPUs %q of the guest, want 0-1", got)
	}
}

// hypervisor returns the arguments of the one hypervisor of a session.
func hypervisor(t *testing.T, s engine.Session) []string {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found [][]string
	for _, dir := range dirs {
		groups, _ := os.ReadFile(filepath.Join(dir, "cgroup")) // the process may have exited
		comm, _ := os.ReadFile(filepath.Join(dir, "comm"))
		if args, err := os.ReadFile(filepath.Join(dir, "cmdline")); err == nil && strings.Contains(string(groups), s.RunID) && strings.HasPrefix(string(comm), "qemu-system") {
			found = append(found, strings.Split(string(args), "\x00"))
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d hypervisors in the run's cgroups, want one: %q", len(found), found)
	}
	return found[0]
}
