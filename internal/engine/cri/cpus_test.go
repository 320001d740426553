package cri_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/cri"
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

// An engine that is kept on CPUs keeps no container there.
func TestEngineCPUs(t *testing.T) {
	everywhere := allowed(t, "self")
	for _, engineName := range []string{"containerd", "crio"} {
		t.Run(engineName, func(t *testing.T) {
			s := session(t, "", engineName+"/runc")
			if s.Cgroups == nil || everywhere == "0" {
				t.Skip("needs the right to make cgroups, and two CPUs")
			}
			s.EngineCPUs = "0"
			d := cri.NewContainerd()
			if engineName == "crio" {
				d = cri.NewCRIO()
			}
			e, err := d.Open(t.Context(), parse(t, engineName+"/runc"), s)
			enginetest.Require(t, engineName+"/runc", err)
			t.Cleanup(func() {
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			})
			daemon := fmt.Sprint(e.(engine.Served).Service().Daemons[0])
			if got := allowed(t, daemon); got != s.EngineCPUs {
				t.Errorf("the daemon may run on the CPUs %s, want %s", got, s.EngineCPUs)
			}
			for name, want := range map[string]string{"0": "0", "1": "1", "": everywhere} {
				var out bytes.Buffer
				spec := enginetest.Spec(s, "cpus"+name)
				spec.Process = engine.Process{Args: workload.CPUs(), Stdout: &out}
				spec.Resources.CPUSet = name
				c := enginetest.Running(t, e, spec)
				if _, err := c.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				if err := c.Delete(t.Context()); err != nil {
					t.Error(err)
				}
				if got := strings.TrimSpace(out.String()); got != want {
					t.Errorf("a container with the CPUs %q may run on %s, want %s", name, got, want)
				}
			}
		})
	}
}
