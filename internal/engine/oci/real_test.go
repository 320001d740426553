package oci_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// quick are the targets of the tests in this file, which test the engine and not the runtimes.
var quick = []string{"oci/runc", "oci/crun"}

// each runs a test on the quick targets.
func each(t *testing.T, test func(t *testing.T, s engine.Session, e engine.Engine)) {
	t.Helper()
	on(t, quick, test)
}

func on(t *testing.T, targets []string, test func(t *testing.T, s engine.Session, e engine.Engine)) {
	t.Helper()
	for _, name := range targets {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			s := enginetest.Session(t, oci.LauncherOptions)
			e := enginetest.Open(t, oci.Driver{}, name, s)
			test(t, s, e)
		})
	}
}

// A CPU set applies to all processes of a container, also to a sandbox, which shows other CPUs to its container. It needs no other controller.
func TestCPUSet(t *testing.T) {
	on(t, targets, func(t *testing.T, s engine.Session, e engine.Engine) {
		if s.Cgroups == nil {
			t.Skip("needs the right to make cgroups: run as root, or in a delegated cgroup")
		}
		if _, ok := s.Cgroups.Controller("cpuset"); !ok {
			t.Skip("the host has no cgroup controller cpuset")
		}
		spec := enginetest.Spec(s, "real")
		spec.Resources.CPUSet = "0"
		c := enginetest.Running(t, e, spec)
		group, err := s.Cgroups.Open("/" + engine.Prefix + s.RunID + "/" + c.ID())
		must.Do(t, err)
		pids, err := group.Procs()
		if err != nil || len(pids) == 0 {
			t.Errorf("the container's processes are %v, %v", pids, err)
		}
		for _, pid := range pids {
			var affinity unix.CPUSet
			err := unix.SchedGetaffinity(pid, &affinity)
			if errors.Is(err, unix.ESRCH) {
				continue // it has exited since
			}
			if err != nil || affinity.Count() != 1 || !affinity.IsSet(0) {
				t.Errorf("process %d of the container may run on %d CPUs, %v; want CPU 0 alone", pid, affinity.Count(), err)
			}
		}
	})
}

// Create refuses specs that the runtime would ignore.
func TestRefusedSpecs(t *testing.T) {
	on(t, []string{"oci/runsc@network=host", "oci/runsc@network=none"}, func(t *testing.T, s engine.Session, e engine.Engine) {
		if err := e.Supports(engine.NetworkBridge); !engine.Unsupported(err) || !strings.Contains(err.Error(), "network=") {
			t.Errorf("Supports: %v, want a refusal with the option", err)
		}
		if link, err := e.(engine.Networker).Link(t.Context()); !engine.Unsupported(err) {
			t.Errorf("Link = %+v, %v; want a refusal", link, err)
		}
		bridged, joining := enginetest.Spec(s, "bridged"), enginetest.Spec(s, "joining")
		bridged.Network, joining.Join = engine.Bridged, "/proc/self/ns/net"
		for _, spec := range []engine.Spec{bridged, joining} {
			if c, err := e.Create(t.Context(), spec); !engine.Unsupported(err) {
				t.Errorf("Create of %s = %v, %v; want a refusal", spec.ID, c, err)
			}
		}
	})
}

// Layers and networks are removed with their container, also after a failed creation and after many lives.
func TestNothingIsLeftOfWritableAndBridged(t *testing.T) {
	each(t, func(t *testing.T, s engine.Session, e engine.Engine) {
		link, err := e.(engine.Networker).Link(t.Context())
		if err != nil || link.Namespace == "" {
			t.Fatalf("Link = %+v, %v", link, err)
		}
		baseline := enginetest.Leftovers(s)
		enginetest.Steady(t, 10, func(n int) {
			spec := enginetest.Spec(s, fmt.Sprintf("full-%02d", n))
			spec.Writable, spec.Network, spec.Mounts = true, engine.Bridged, []engine.Mount{{Target: "/data"}}
			if n%2 == 0 {
				spec.Process.Args = []string{"/no-such-program"}
			}
			c, err := e.Create(t.Context(), spec)
			if err != nil {
				return
			}
			if err := c.Start(t.Context()); (err != nil) != (n%2 == 0) {
				t.Errorf("Start: %v", err)
			}
			enginetest.Check(t, c.Delete(t.Context()))
		})
		if leftovers := enginetest.Leftovers(s); !slices.Equal(leftovers, baseline) {
			t.Errorf("there are %q, and were %q", leftovers, baseline)
		}
		enginetest.Check(t, e.Close())
		for _, left := range enginetest.Leftovers(s) {
			t.Errorf("%s is left", left)
		}
	})
}

// Runtimes see a layer and a bridge, and the host does not. So a killed program leaves neither: their namespaces have no name.
//
// Invariant runtime-namespaces.
func TestLayerIsNotOnTheHost(t *testing.T) {
	each(t, func(t *testing.T, s engine.Session, e engine.Engine) {
		if err := e.Supports(engine.CanWrite); err != nil {
			t.Skip(err)
		}
		spec := enginetest.Spec(s, "writable")
		spec.Writable = true
		if e.Supports(engine.NetworkBridge) == nil {
			spec.Network = engine.Bridged
		}
		interfaces, err := net.Interfaces()
		must.Do(t, err)
		enginetest.Running(t, e, spec)
		if state, err := net.Interfaces(); err != nil || len(state) != len(interfaces) {
			t.Errorf("the host has the interfaces %v, %v, and had %v", state, err, interfaces)
		}
		mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", os.Getpid()))
		if err != nil || strings.Contains(string(mounts), s.Data) {
			t.Errorf("the host's mounts are (%v):\n%s", err, mounts)
		}
		if left := enginetest.Leftovers(s); !slices.ContainsFunc(left, func(l string) bool { return strings.HasPrefix(l, "mount "+s.Data) }) {
			t.Errorf("the layer is mounted nowhere; there are %q", left)
		}
	})
}

// A container of the same runtime and the same name that Touchstone did not make stays as it is.
func TestOtherContainersStay(t *testing.T) {
	each(t, func(t *testing.T, s engine.Session, e engine.Engine) {
		secondSession := enginetest.OtherRun(t, s)
		enginetest.Namesakes(t, e, enginetest.Open(t, oci.Driver{}, e.Info().Target.String(), secondSession), enginetest.Spec(s, "same"))
	})
}

// Errors contain the runtime's own message.
func TestErrorsHaveTheRuntimesMessage(t *testing.T) {
	for _, name := range targets {
		if strings.Contains(name, "systrap") {
			continue // ptrace says the same
		}
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			s := enginetest.Session(t, oci.LauncherOptions)
			e := enginetest.Open(t, oci.Driver{}, name, s)
			c := enginetest.Running(t, e, enginetest.Spec(s, "real"))
			_, err := c.(engine.Execer).Exec(t.Context(), engine.Process{Args: []string{"/no-such-program"}})
			if err == nil || !strings.Contains(err.Error(), "no-such-program") || strings.Contains(err.Error(), "backtrace") {
				t.Errorf("Exec of a missing program: %v", err)
			}
			if err := c.Start(t.Context()); err == nil || !strings.Contains(err.Error(), c.ID()) || strings.Contains(err.Error(), "backtrace") {
				t.Errorf("Start of a running container: %v", err)
			}
			_, err = e.Create(t.Context(), engine.Spec{
				ID: engine.Prefix + s.RunID + "-real-2", Rootfs: filepath.Join(s.State, "no-such-directory"), Process: engine.Process{Args: probe.Ready()},
			})
			// Not every runtime names the missing file.
			prefix := fmt.Sprintf("create container %q with %s: ", engine.Prefix+s.RunID+"-real-2", name)
			if err == nil || !strings.HasPrefix(err.Error(), prefix) || len(err.Error()) < len(prefix)+20 || strings.Contains(err.Error(), "backtrace") {
				t.Errorf("Create without a root file system: %v", err)
			}
		})
	}
}

// A sandbox that runs on another platform than the target asks for is a failure, and never a result.
//
// Invariant kvm-platform.
func TestOtherPlatformIsAFailure(t *testing.T) {
	enginetest.OtherPlatform(t, oci.Driver{}, "oci/runsc@platform=kvm", enginetest.Session(t, oci.LauncherOptions))
}

func TestMain(m *testing.M) {
	os.Exit(enginetest.Main(m))
}

// The seccomp filter follows the plan.
func TestSeccomp(t *testing.T) {
	s := enginetest.Session(t, oci.LauncherOptions)
	for _, name := range []string{"oci/runc", "oci/crun", "oci/runsc"} {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) { enginetest.Seccomp(t, oci.Driver{}, name, s, false) })
	}
}
