package catalogue_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
)

const (
	isolationCPU    = "isolation.cpu"
	isolationMemory = "isolation.memory"
	isolationPIDs   = "isolation.pids"

	isolationNetwork = "isolation.network"
)

// Fake containers share one CPU, so an aggressor takes half of the victim's speed, two take two thirds.
func TestLossOfTheVictim(t *testing.T) {
	for _, name := range []string{isolationCPU, isolationMemory} {
		for aggressors, want := range map[string]float64{"1": 1.0 / 2, "2": 2.0 / 3} {
			trial := ok(t, name, "fake/a", bench.Params{"aggressors": aggressors})
			for metric, value := range map[string]float64{"Loss": want, "Kept": 1 - want, "RawLoss": want} {
				if got := sample(t, trial, metric); math.Abs(got-value) > 0.02 {
					t.Errorf("%s beside %s: %s = %v, want %v", name, aggressors, metric, got, value)
				}
			}
			if got := sample(t, trial, "ControlLoss"); math.Abs(got) > 1e-6 {
				t.Errorf("%s: ControlLoss = %v", name, got)
			}
			before, during := sample(t, trial, "TailBefore"), sample(t, trial, "TailDuring")
			if got := during / before; math.Abs(got*(1-want)-1) > 0.1 {
				t.Errorf("%s: the tail grows by %v", name, got)
			}
			if got := sample(t, trial, "Recovery"); got < 0.05 || got > 0.5 {
				t.Errorf("%s: Recovery = %v", name, got)
			}
			if got := trial.Conditions["loss"]; !strings.HasPrefix(got, "shown") {
				t.Errorf("%s: the loss is %s", name, got)
			}
			checkTimelines(t, trial, aggressors)
		}
	}
}

// checkTimelines checks the timelines of the parties: the victim's falls while the aggressors' exist. Each party has a name, because
// a report has one line for a name.
func checkTimelines(t *testing.T, trial result.Trial, aggressors string) {
	t.Helper()
	byName := map[string]result.Timeline{}
	for _, l := range trial.Timelines {
		if _, again := byName[l.Name]; again {
			t.Errorf("two timelines have the name %q", l.Name)
		}
		byName[l.Name] = l
		if len(l.At) != len(l.Values) || len(l.At) < 2 || len(l.At) > 1000 || l.Group != trial.Timelines[0].Group {
			t.Errorf("the timeline %q has %d times, %d values and the group %q", l.Name, len(l.At), len(l.Values), l.Group)
		}
	}
	name := "aggressor"
	if aggressors != "1" {
		name += " " + aggressors
	}
	victim, aggressor := byName["victim"], byName[name]
	if len(victim.At) == 0 || len(aggressor.At) == 0 || len(byName["victim, control"].At) == 0 {
		t.Fatalf("there are timelines of %d parties", len(byName))
	}
	from, to := aggressor.At[0], aggressor.At[len(aggressor.At)-1]
	for i, at := range victim.At {
		if v := victim.Values[i]; at < from-time.Second && math.Abs(v-1) > 0.2 || at > from+200*ms && at < to-100*ms && v > 0.7 {
			t.Errorf("the victim's speed at %v is %v; the aggressor runs from %v to %v", at, v, from, to)
		}
	}
}

func TestIsolationOutsideTheTarget(t *testing.T) {
	trial := run(t, isolationCPU, "fake/a", bench.Params{"aggressor": "native"})
	if trial.Status != result.Skipped || !strings.Contains(trial.Reason, "no engine for programs on the host") {
		t.Errorf("without an engine for the host: %s because %s", trial.Status, trial.Reason)
	}
}

// Without an engine for the host's programs.
func TestIsolationFails(t *testing.T) {
	for _, tt := range []struct {
		what   string
		target string
		params bench.Params
		reason string
	}{
		{"an aggressor that makes no progress", "fake/a", bench.Params{"noise": "9000", "during": "200ms"}, "made no progress"},
		{"too few reports", "fake/a", bench.Params{"before": "100ms", "n": "2000"}, "set longer phases"},
	} {
		trial := run(t, isolationCPU, tt.target, tt.params)
		if trial.Status != result.Failed || !strings.Contains(trial.Reason, tt.reason) || len(trial.Samples) > 0 {
			t.Errorf("%s: %s because %q; want %q", tt.what, trial.Status, trial.Reason, tt.reason)
		}
	}
}

// A victim that reports often, or for long beside aggressors that start slowly, writes more than a program may otherwise.
func TestVictimReportsWithoutLimit(t *testing.T) {
	trial := ok(t, isolationCPU, "fake/a", bench.Params{"aggressors": "1", "n": "100", "noise": "400", "before": "8s", "during": "8s"})
	if got := sample(t, trial, "Loss"); math.Abs(got-0.5) > 0.02 {
		t.Errorf("Loss = %v, want a half", got)
	}
}
