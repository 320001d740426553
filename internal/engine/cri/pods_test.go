package cri_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/cri"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// graceOfTest is the grace period in checkPods.
const graceOfTest = 2 * time.Second

// checkPods checks the PID namespace and the grace period of pods. Its program has no handler for SIGTERM, so it ignores the signal as the first
// process of a PID namespace, and ends by it as another process. gVisor does not protect the first process.
func checkPods(t *testing.T, d *cri.Driver, name string, s engine.Session) {
	t.Helper()
	for n, c := range []struct {
		pods  engine.Pods
		exit  syscall.Signal
		least time.Duration // from the kill to the exit
	}{
		{engine.Pods{}, syscall.SIGKILL, 0},
		{engine.Pods{Grace: graceOfTest}, syscall.SIGKILL, graceOfTest},
		{engine.Pods{SharePIDs: true, Grace: graceOfTest}, syscall.SIGTERM, 0},
	} {
		s.Pods = c.pods
		e := enginetest.Open(t, d, name, s)
		spec := enginetest.Spec(s, fmt.Sprintf("pods-%d", n))
		spec.Process.Args = []string{probe.Path, "stream", "--mib", "1", "--ms", "600000", "--lines"}
		b := enginetest.Ready(t, e, spec)
		// The last number is the ID in the innermost namespace.
		if ids := strings.Fields(enginetest.HostStatus(t, spec.ID)["NSpid"]); len(ids) > 0 {
			if first := ids[len(ids)-1] == "1"; first == c.pods.SharePIDs {
				t.Errorf("%s with %+v: the process has the IDs %v", name, c.pods, ids)
			}
		} else if e.Info().Isolation == engine.SharedKernel {
			t.Errorf("%s: the process is not found on the host", name)
		}
		exits := []syscall.Signal{c.exit}
		if e.Info().Isolation == engine.UserKernel && c.pods.Grace > 0 {
			exits, c.least = []syscall.Signal{syscall.SIGTERM}, 0
		} else if e.Info().Isolation == engine.UserKernel && d.Describe().Name == "crio" {
			exits = append(exits, syscall.SIGTERM) // CRI-O always begins with SIGTERM, and sends SIGKILL at once
		}
		start := time.Now()
		must.Do(t, b.Kill(t.Context(), syscall.SIGKILL))
		exit, err := b.Wait(t.Context())
		must.Do(t, err)
		took := time.Since(start)
		if !slices.Contains(exits, exit.Signal) || took < c.least {
			t.Errorf("%s with %+v: the program ended with %v after %v, want one of the signals %v after at least %v", name, c.pods, exit, took, exits, c.least)
		}
		t.Logf("%s with %+v: %v after %v, conditions %v", name, c.pods, exit, took, e.Info().Conditions)
		if conditions := len(e.Info().Conditions); (conditions == 0) != (c.pods == engine.Pods{}) {
			t.Errorf("%s with %+v has %d conditions", name, c.pods, conditions)
		}
		enginetest.Check(t, b.Delete(t.Context()))
	}
}
