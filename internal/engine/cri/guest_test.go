package cri_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/cri"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// guestTarget is the target with virtual machines.
const guestTarget = "containerd/kata"

func guests(t *testing.T, change func(text string) string) *enginetest.Guests {
	t.Helper()
	return enginetest.OpenGuests(t, cri.NewContainerd(), guestTarget, session(t, "", guestTarget), change)
}

// soaked returns guests for a test that takes several minutes.
func soaked(t *testing.T, change func(text string) string) *enginetest.Guests {
	t.Helper()
	enginetest.Soak(t)
	return guests(t, change)
}

// Invariant lost-machine.
func TestGuestFaults(t *testing.T) { guests(t, nil).Faults(t) }

// Invariant hanging-machine.
func TestGuestThatDoesNotBoot(t *testing.T) { soaked(t, nil).NoBoot(t) }
func TestGuestOutOfMemory(t *testing.T)     { soaked(t, nil).OutOfMemory(t) }
func TestGuestPanic(t *testing.T)           { soaked(t, enginetest.PanicOnOOM).Panic(t) }

// Invariant hanging-machine.
func TestGuestThatHangs(t *testing.T) { soaked(t, nil).Hangs(t) }
func TestGuestSoak(t *testing.T)      { soaked(t, enginetest.PatientBoot).Many(t) }

func TestVsockUnloaded(t *testing.T) {
	enginetest.Soak(t)
	attempt := func(t *testing.T) error {
		_, err := cri.NewContainerd().Open(t.Context(), enginetest.Parse(t, guestTarget), session(t, "", guestTarget))
		return err
	}
	enginetest.NoVsock(t, attempt, func(t *testing.T) *enginetest.Guests { return guests(t, nil) })
}

// The options of a target reach the hypervisor and the guest.
func TestGuestOptions(t *testing.T) {
	s := session(t, "")
	r, err := runtimes.Get(t.Context(), s, enginetest.Parse(t, guestTarget))
	enginetest.Require(t, guestTarget, err)
	text, err := os.ReadFile(r.Guest.Kernel)
	must.Do(t, err)
	kernel := filepath.Join(s.Data, "vmlinux")
	must.Do(t, os.WriteFile(kernel, text, 0o600))
	name := guestTarget + "@kernel=" + kernel + ",memory=320,vcpus=2"
	s.Targets = append(s.Targets, enginetest.Parse(t, name))
	e := enginetest.Open(t, cri.NewContainerd(), name, s)
	if notes := strings.Join(e.Info().Notes, "; "); !strings.Contains(notes, "guest memory 320 MiB, vCPUs 2") || !strings.Contains(notes, kernel) {
		t.Errorf("notes %q lack the effective values", notes)
	}
	var out bytes.Buffer
	spec := enginetest.Spec(s, "options")
	spec.Process = engine.Process{Args: probe.CPUs(), Stdout: &out}
	c := enginetest.Running(t, e, spec)
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", only(t, s, "qemu-system")))
	must.Do(t, err)
	guest := strings.Split(string(args), "\x00")
	for _, want := range [][]string{{"-m", "320M"}, {"-kernel", kernel}} {
		if index := slices.Index(guest, want[0]); index < 0 || !strings.HasPrefix(guest[index+1], want[1]) {
			t.Errorf("the hypervisor has no %q: %q", want, guest)
		}
	}
	if _, err := c.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	must.Do(t, c.Delete(t.Context()))
	if got := strings.TrimSpace(out.String()); got != "0-1" {
		t.Errorf("the container may run on the CPUs %q of the guest, want 0-1", got)
	}
}

// only returns the one process in the containers' cgroups of a session whose name begins like this.
func only(t *testing.T, s engine.Session, name string) int {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	must.Do(t, err)
	var found []int
	for _, dir := range dirs {
		groups, _ := os.ReadFile(filepath.Join(dir, "cgroup")) // the process may have exited
		comm, _ := os.ReadFile(filepath.Join(dir, "comm"))
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && strings.Contains(string(groups), s.RunID) && strings.HasPrefix(string(comm), name) {
			found = append(found, pid)
		}
	}
	if len(found) != 1 {
		t.Fatalf("processes %d in the run's cgroups are %s…, want one", found, name)
	}
	return found[0]
}

// A virtual machine of CRI-O that is lost fails the trial, and is removed. CRI-O reports no exit if the shim is killed.
func TestLostGuestOfCRIO(t *testing.T) {
	const name = "crio/kata"
	s := session(t, "", name)
	e := enginetest.Open(t, cri.NewCRIO(), name, s)
	baseline := leftovers(s)
	for _, victim := range []string{"qemu-system", "containerd-shim"} {
		t.Run(victim, func(t *testing.T) {
			c, err := e.Create(t.Context(), enginetest.Spec(s, victim))
			must.Do(t, err)
			enginetest.Check(t, errors.Join(c.Start(t.Context()), unix.Kill(only(t, s, victim), unix.SIGKILL)))
			ctx, cancel := context.WithTimeout(t.Context(), enginetest.CallLimit)
			defer cancel()
			if exit, err := c.Wait(ctx); err == nil || !strings.Contains(err.Error(), "its virtual machine ended before the program") {
				t.Errorf("Wait = %v, %v", exit, err)
			}
			if err := c.Delete(ctx); err != nil {
				t.Logf("Delete: %v", err) // CRI-O cannot reach a shim that was killed
			}
			if err := c.Delete(ctx); err != nil {
				t.Errorf("Delete again: %v", err)
			}
			for _, left := range enginetest.Surplus(baseline, leftovers(s)) {
				t.Errorf("%s is left", left)
			}
		})
	}
}

// A container in a virtual machine of CRI-O that was never started does not run, and disappears.
func TestNeverStartedGuestOfCRIO(t *testing.T) {
	const name = "crio/kata"
	s := session(t, "", name)
	e := enginetest.Open(t, cri.NewCRIO(), name, s)
	baseline := leftovers(s)
	var out bytes.Buffer
	spec := enginetest.Spec(s, "created")
	spec.Process.Stdout = &out
	c, err := e.Create(t.Context(), spec)
	must.Do(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // CRI-O would wait longer
	defer cancel()
	for range 2 {
		if err := c.Delete(ctx); err != nil {
			t.Errorf("Delete: %v", err)
		}
	}
	for _, left := range enginetest.Surplus(baseline, leftovers(s)) {
		t.Errorf("%s is left", left)
	}
	if out.Len() > 0 {
		t.Errorf("the program wrote %q", &out)
	}
}
