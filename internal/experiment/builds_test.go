package experiment

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// A build with a path becomes a runtime of its own, with the options that the plan has for the runtime.
func TestBuildsAreRuntimes(t *testing.T) {
	options := []target.Option{{Name: "systemd-cgroup", Value: "true"}}
	runtimes := map[string]target.Runtime{"runc": {Path: "/mine", Options: options}}
	p := plan.Plan{Runtimes: runtimes}
	runc := target.Target{Engine: "oci", Runtime: "runc"}
	builds := [2]Build{{runc, "/old dir/runc"}, {Target: runc}}
	must.Do(t, setBuilds(&p, builds))
	a, b := target.Target(p.Targets[0]).String(), target.Target(p.Targets[1]).String()
	if a != "oci/runc-a" || b != "oci/runc" || p.Baseline.String() != a {
		t.Errorf("the targets are %s and %s, the baseline %s", a, b, p.Baseline)
	}
	want := map[string]target.Runtime{"runc": runtimes["runc"], "runc-a": {Path: "/old dir/runc", Options: options}}
	if diff := cmp.Diff(want, p.Runtimes); diff != "" || len(runtimes) != 1 {
		t.Errorf("the runtimes (-want +got):\n%s", diff)
	}

	conflict := plan.Plan{Runtimes: map[string]target.Runtime{"runc-a": {Path: "/other"}}}
	refused(t, setBuilds(&conflict, builds), "the plan has a runtime runc-a")
}

// A comparison without a value would be "not worse" without a measurement.
//
// Invariant ab-silence.
func TestNoValueIsRefused(t *testing.T) {
	work := []plan.Work{{Benchmark: bench.Benchmark{Name: "s.c.f", Metrics: []result.Metric{
		{Name: "Part", Group: "parts"}, {Name: "Rate", DerivedFrom: "Time"},
	}}}}
	_, err := selectValues(work, nil)
	refused(t, err, "no selected benchmark has a metric to compare")
}

// refused checks an error of usage.
func refused(t *testing.T, err error, text string) {
	t.Helper()
	if _, ok := errors.AsType[*execution.UsageError](err); !ok || !strings.Contains(err.Error(), text) {
		t.Errorf("got error %v, want an error of usage with %q", err, text)
	}
}
