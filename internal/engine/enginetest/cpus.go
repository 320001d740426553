package enginetest

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// EngineCPUs checks that a CPU set for an engine's daemons does not apply to containers. It returns the engine.
func EngineCPUs(t *testing.T, d engine.Driver, name string, s engine.Session) engine.Engine {
	t.Helper()
	everywhere := allowedCPUs(t, os.Getpid())
	if s.Cgroups == nil || everywhere == "0" {
		t.Skip("needs the right to make cgroups, and two CPUs")
	}
	s.EngineCPUs = "0"
	e := Open(t, d, name, s)
	for _, pid := range e.(engine.DaemonBacked).Daemon().PIDs {
		if got := allowedCPUs(t, pid); got != s.EngineCPUs {
			t.Errorf("the daemon's process %d may run on the CPUs %s, want %s", pid, got, s.EngineCPUs)
		}
	}
	for given, want := range map[string]string{"0": "0", "1": "1", "": everywhere} {
		var out bytes.Buffer
		spec := Spec(s, "cpus"+given)
		spec.Process = engine.Process{Args: workload.CPUs(), Stdout: &out}
		spec.Resources.CPUSet = given
		c := Running(t, e, spec)
		_, err := c.Wait(t.Context())
		check(t, errors.Join(err, c.Delete(t.Context())))
		if got := strings.TrimSpace(out.String()); got != want {
			t.Errorf("a container with the CPUs %q may run on %s, want %s", given, got, want)
		}
	}
	return e
}

// allowedCPUs returns the CPU affinity of a process.
func allowedCPUs(t *testing.T, pid int) string {
	t.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	_, cpus, _ := strings.Cut(string(status), "Cpus_allowed_list:")
	cpus, _, _ = strings.Cut(cpus, "\n")
	return strings.TrimSpace(cpus)
}
