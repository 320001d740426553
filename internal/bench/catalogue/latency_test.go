package catalogue_test

import (
	"math"
	"regexp"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
)

func TestLatency(t *testing.T) {
	for name, want := range map[string]struct {
		metric string
		ms     float64
	}{"latency.exec": {"Exec", 4}, "latency.start": {"Start", 15}} {
		trial := ok(t, name, "fake/a@create=10ms,start=5ms,exec=4ms", bench.Params{"samples": "300"})
		for _, suffix := range []string{"", "P99", "Max"} {
			if got := values(t, trial)[want.metric+suffix]; len(got) != 1 || math.Abs(got[0]-want.ms) > 0.001*want.ms {
				t.Errorf("%s: %s%s is %v ms, want %v", name, want.metric, suffix, got, want.ms)
			}
		}
		if len(trial.Distributions) != 1 || len(trial.Distributions[0].Tail.At) != 300 {
			t.Fatalf("%s: the distributions are %+v", name, trial.Distributions)
		}
		var count uint64
		for _, n := range trial.Distributions[0].Counts {
			count += n
		}
		if count != 300 {
			t.Errorf("%s has %d samples, want 300", name, count)
		}
	}
}

// The probe reports the times of single calls itself.
func TestLatencyOfSystemCalls(t *testing.T) {
	trial := ok(t, "latency.syscall", "fake/a", bench.Params{"samples": "5000", "call": "stat"})
	if got := values(t, trial); len(got["Call"]) != 1 || got["CallMax"][0] != 2*got["Call"][0] {
		t.Errorf("the values are %v", got)
	}
	d := trial.Distributions
	if len(d) != 1 || len(d[0].Tail.At) != 4000 || d[0].Tail.At[3999] != 4999 || d[0].Tail.Values[3999] != trial.Values("CallMax")[0] {
		t.Errorf("the distributions are %+v", d)
	}
	b := find(t, "latency.syscall")
	for _, bad := range []bench.Params{{"call": "futex wake"}, {"call": "nothing"}, {"samples": "1000001"}} {
		if _, err := b.Resolve(bad, false); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
}

// A call that does nothing fails the trial at any of its many repetitions.
func TestLatencyFindsLies(t *testing.T) {
	trial := run(t, "latency.exec", "fake/a@lie=exec#150", bench.Params{"samples": "200"})
	if want := regexp.MustCompile(`^operation 150: exec returned success without running its process`); trial.Status != result.Failed || !want.MatchString(trial.Reason) {
		t.Errorf("%s because %q, want failed because %s", trial.Status, trial.Reason, want)
	}
}
