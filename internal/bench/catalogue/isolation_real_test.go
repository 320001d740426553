package catalogue_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// briefly returns parameters with short phases, and with one CPU for each party: on a busy host, threads that wait for each other make
// little progress.
func briefly(more bench.Params) bench.Params {
	params := bench.Params{"before": "300ms", "during": "1s", "after": "200ms", "cpus": "1"}
	maps.Copy(params, more)
	return params
}

// Victims and aggressors work on bare metal and in containers. A limit that kills the victim fails the trial, and a fork bomb
// runs only where its limit is proved.
func TestRealIsolation(t *testing.T) {
	for _, tt := range realTargets {
		t.Run(strings.ReplaceAll(tt.name, "/", "_"), func(t *testing.T) {
			l := newRealHarness(t, tt.name, tt.driver)
			l.needsCgroups(t)
			small := bench.Params{"n": "200", "noise": "400"}
			checkIsolation(t, l.run(t, isolationCPU, briefly(small)))
			if tt.name == "native" {
				l.host = l.engine
				small["aggressor"] = "native"
				trial := l.run(t, isolationCPU, briefly(small))
				checkIsolation(t, trial)
				if got := trial.Conditions["aggressor"]; !strings.Contains(got, "a process of the host") {
					t.Errorf("the aggressor is %s", got)
				}
			}
			trial := l.run(t, isolationCPU, briefly(bench.Params{"n": "6000", "memory": "128"}))
			if trial.Status != result.Failed || !strings.Contains(trial.Reason, "set a higher limit") {
				t.Errorf("a victim that exceeds its memory: %s because %s", trial.Status, trial.Reason)
			}
			trial = l.run(t, isolationPIDs, briefly(bench.Params{"limit": "64", "before": "1s", "during": "1500ms"}))
			if trial.Status != result.Skipped || !strings.Contains(trial.Reason, "no fork bomb runs without one") {
				checkIsolation(t, trial)
			} else if tt.name == "native" {
				t.Errorf("skipped because %s", trial.Reason)
			}
		})
	}
}

func checkIsolation(t *testing.T, trial result.Trial) {
	t.Helper()
	if trial.Status != result.OK {
		t.Errorf("%s: %s because %s: %s", trial.Benchmark, trial.Status, trial.Reason, trial.Output)
		return
	}
	for _, metric := range []string{"Kept", "SpeedBefore", "SpeedDuring", "SpeedAfter", "TailBefore", "TailDuring", "TailAfter", "TailControl"} {
		if got := sample(t, trial, metric); !(got > 0) {
			t.Errorf("%s: %s is %v", trial.Benchmark, metric, got)
		}
	}
	if len(trial.Timelines) < 3 {
		t.Errorf("%s has %d timelines", trial.Benchmark, len(trial.Timelines))
	}
}
