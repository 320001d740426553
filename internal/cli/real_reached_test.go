package cli_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// A container of CRI-O reaches the same system calls as one of its runtime alone, and its sandbox has no component of another kind: an adapter of the runtime
// is no program of the container.
func TestRealReachedCalls(t *testing.T) {
	needRoot(t, "crun", "runsc", "crio")
	needTracer(t)
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir, "benchmark", "--managed", "-t", "oci/crun,crio/crun,crio/runsc", "--filter", "surface.calls", "--runs", "1", "--warmup", "0")
	p.ends(0)
	run := export(t, dir, "latest")
	nothingLeft(t, run.ID)
	calls, components := map[string][]float64{}, map[string][]string{}
	for _, trial := range run.Trials {
		if trial.Status != result.OK {
			t.Fatalf("the trial on %s is %s because %s", trial.Target, trial.Status, trial.Reason)
		}
		calls[trial.Target] = trial.Values("HostCallsReached")
	}
	for _, trace := range run.Traces {
		for _, c := range trace.Counts {
			if len(c.Calls) > 0 && !slices.Contains(components[trace.Target], c.Component) {
				components[trace.Target] = append(components[trace.Target], c.Component)
			}
		}
	}
	container, sandbox := []string{string(monitor.Container)}, []string{string(monitor.Sentry), string(monitor.Gofer)}
	if diff := cmp.Diff(map[string][]string{"oci/crun": container, "crio/crun": container, "crio/runsc": sandbox}, components); diff != "" {
		t.Errorf("the components (-want +got):\n%s", diff)
	}
	if !slices.Equal(calls["oci/crun"], calls["crio/crun"]) || calls["crio/runsc"][0] <= calls["crio/crun"][0] {
		t.Errorf("the distinct system calls: %v", calls)
	}
}
