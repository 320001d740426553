package catalogue_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/test/cells"
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
	cells.Need(t, "catalogue/isolation")
	for _, tt := range realTargets {
		t.Run(strings.ReplaceAll(tt.name, "/", "_"), func(t *testing.T) {
			l := newRealHarness(t, tt.name, tt.driver)
			l.needsCgroups(t)
			small := bench.Params{"n": "200", "noise": "400"}
			l.calm(t, find(t, isolationCPU), briefly(small), checkIsolation)
			if tt.name == "native" {
				l.host = l.engine
				small["aggressor"] = "native"
				l.calm(t, find(t, isolationCPU), briefly(small), func(trial result.Trial) error {
					if got := trial.Conditions["aggressor"]; !strings.Contains(got, "a process of the host") {
						return fmt.Errorf("the aggressor is %q", got)
					}
					return checkIsolation(trial)
				})
			}
			trial := l.run(t, isolationCPU, briefly(bench.Params{"n": "6000", "memory": "128"}))
			if trial.Status != result.Failed || !strings.Contains(trial.Reason, "set a higher limit") {
				t.Errorf("a victim that exceeds its memory: %s because %s", trial.Status, trial.Reason)
			}
			l.calm(t, find(t, isolationPIDs), briefly(bench.Params{"limit": "64", "before": "1s", "during": "1500ms"}), func(trial result.Trial) error {
				if tt.name != "native" && trial.Status == result.Skipped && strings.Contains(trial.Reason, "no fork bomb runs without one") {
					return nil
				}
				return checkIsolation(trial)
			})
		})
	}
}

// checkIsolation is the error of a trial that lacks a value.
func checkIsolation(trial result.Trial) error {
	if err := succeeded(trial); err != nil {
		return err
	}
	for _, metric := range []string{"Kept", "SpeedBefore", "SpeedDuring", "SpeedAfter", "TailBefore", "TailDuring", "TailAfter", "TailControl"} {
		if got := trial.Values(metric); len(got) != 1 || !(got[0] > 0) {
			return fmt.Errorf("%s is %v", metric, got)
		}
	}
	if len(trial.Timelines) < 3 {
		return fmt.Errorf("there are %d timelines", len(trial.Timelines))
	}
	return nil
}
