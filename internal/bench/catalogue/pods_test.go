package catalogue_test

import (
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/expect"
)

// A pod that the cluster does not start is a result of the benchmarks of many pods, with the reason in a condition.
func TestPodsThatDoNotStart(t *testing.T) {
	trial := ok(t, "pods.rate", "fake/a@fail=start#2", nil)
	expect.Equal(t, "the share", []float64{0.8}, trial.Values("Share"))
	if reason := trial.Conditions["a failed pod"]; !strings.Contains(reason, "call 2 of start fails") {
		t.Errorf("the condition is %q", reason)
	}
	trial = ok(t, "pods.density", "fake/a@fail=start#4", nil)
	expect.Equal(t, "the pods", []float64{3}, trial.Values("Pods"))
	if reason := trial.Conditions["stopped by"]; !strings.Contains(reason, "pod 4: ") {
		t.Errorf("the trial was stopped by %q", reason)
	}
}

// The number of pods ends at the parameter, and before the node has no memory left. The imagined node has 16 GiB, and its floor is 20 %.
func TestNumberOfPods(t *testing.T) {
	for target, want := range map[string]struct {
		end    string
		pods   float64
		memory float64
	}{
		"fake/a@mem=8000000,slab=0":    {"the parameter max", 30, 8e6},
		"fake/a@mem=2000000000,slab=0": {"memory", 7, 2e9},
	} {
		trial := ok(t, "pods.density", target, bench.Params{"max": "30"})
		expect.Equal(t, target, want.end, trial.Conditions["stopped by"])
		expect.Equal(t, target, []float64{want.pods}, trial.Values("Pods"))
		if memory := trial.Values("Memory"); len(memory) != 1 || memory[0] < 0.999*want.memory || memory[0] > 1.001*want.memory {
			t.Errorf("%s: the memory of a pod is %v, want %v", target, memory, want.memory)
		}
	}
}

// The states that lag behind the program, and the stages, have no verdicts.
func TestJudgedMetricsOfPods(t *testing.T) {
	for name, want := range map[string]string{"pods.start": "FirstInstruction Sandbox Container", "pods.delete": "Signal Terminate", "pods.rate": "Rate Share Slowest", "pods.density": "Pods Memory Slowest"} {
		var names []string
		for _, m := range find(t, name).Metrics {
			if m.IsJudged() {
				names = append(names, m.Name)
			}
		}
		expect.Equal(t, name, want, strings.Join(names, " "))
	}
}
