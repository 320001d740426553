package docker_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/docker"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// allowed gives the CPUs on which a process may run.
func allowed(t *testing.T, process string) string {
	t.Helper()
	status, err := os.ReadFile("/proc/" + process + "/status")
	if err != nil {
		t.Fatal(err)
	}
	_, cpus, _ := strings.Cut(string(status), "Cpus_allowed_list:")
	cpus, _, _ = strings.Cut(cpus, "\n")
	return strings.TrimSpace(cpus)
}

// A daemon that is kept on CPUs, with its own containerd, keeps no container there.
func TestEngineCPUs(t *testing.T) {
	s, _ := private(t)
	everywhere := allowed(t, "self")
	if s.Cgroups == nil || everywhere == "0" {
		t.Skip("needs the right to make cgroups, and two CPUs")
	}
	s.EngineCPUs = "0"
	e := open(t, docker.NewDriver(), "docker/runc", s)
	for _, pid := range e.(engine.Served).Service().Daemons {
		if got := allowed(t, fmt.Sprint(pid)); got != s.EngineCPUs {
			t.Errorf("the daemon's process %d may run on the CPUs %s, want %s", pid, got, s.EngineCPUs)
		}
	}
	if notes := strings.Join(e.Info().Notes, "; "); !strings.Contains(notes, "stay on CPUs 0") {
		t.Errorf("the notes say nothing of it: %s", notes)
	}
	for given, want := range map[string]string{"0": "0", "1": "1", "": everywhere} {
		var out bytes.Buffer
		spec := enginetest.Spec(s, "cpus"+given)
		spec.Process = engine.Process{Args: workload.CPUs(), Stdout: &out}
		spec.Resources.CPUSet = given
		c := enginetest.Running(t, e, spec)
		if _, err := c.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if err := c.Delete(t.Context()); err != nil {
			t.Error(err)
		}
		if got := strings.TrimSpace(out.String()); got != want {
			t.Errorf("a container with the CPUs %q may run on %s, want %s", given, got, want)
		}
	}
}
