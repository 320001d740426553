package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/target"
)

func TestSchedule(t *testing.T) {
	usual := pace{setUp: 2 * time.Second, block: 100 * time.Millisecond}
	for _, c := range []struct {
		name         string
		pace         pace
		left         time.Duration
		runs, blocks int // given
		wantRuns     int
		wantBlocks   int // 0 is an error
	}{
		{"a usual budget", usual, 10 * time.Minute, 0, 0, 19, 279},
		{"a short one has fewer runs", usual, 3 * time.Minute, 0, 0, 8, 192},
		{"a long one has longer runs", usual, time.Hour, 0, 0, 20, 1689},
		{"slow blocks", pace{time.Second, 10 * time.Second}, 3 * time.Minute, 0, 0, 8, 1},
		{"slower blocks have fewer runs", pace{time.Second, 18 * time.Second}, 3 * time.Minute, 0, 0, 4, 1},
		{"too slow", pace{time.Second, 60 * time.Second}, 3 * time.Minute, 0, 0, 0, 0},
		{"nothing left", usual, 0, 0, 0, 0, 0},
		{"over the budget", usual, -time.Second, 0, 0, 0, 0},
		{"given runs", usual, 3 * time.Minute, 5, 0, 5, 321},
		{"too many given runs", usual, 3 * time.Minute, 100, 0, 0, 0},
		{"given blocks", usual, 3 * time.Minute, 0, 50, 20, 50},
		{"many given blocks", usual, 3 * time.Minute, 0, 300, 5, 300},
		{"too many given blocks", usual, 3 * time.Minute, 0, 1000, 0, 0},
		{"both given", usual, time.Second, 6, 10, 6, 10},
		{"no time passes", pace{}, time.Minute, 0, 0, 8, plan.MaxBlocks},
	} {
		runs, blocks, err := c.pace.schedule(c.left, c.runs, c.blocks)
		if (err != nil) != (c.wantBlocks == 0) || err == nil && (runs != c.wantRuns || blocks != c.wantBlocks) {
			t.Errorf("%s: %d runs of %d blocks, %v; want %d of %d", c.name, runs, blocks, err, c.wantRuns, c.wantBlocks)
		}
		if err == nil && (c.runs == 0 || c.blocks == 0) && c.pace.of(runs, blocks) > c.left {
			t.Errorf("%s: the runs take %v of %v", c.name, c.pace.of(runs, blocks), c.left)
		}
	}
}

// A build with a path becomes a runtime of its own, with the options that the plan has for the runtime.
func TestBuildsAreRuntimes(t *testing.T) {
	options := []target.Option{{Name: "systemd-cgroup", Value: "true"}}
	given := map[string]target.Runtime{"runc": {Path: "/mine", Options: options}}
	p := plan.Plan{Runtimes: given}
	var builds [2]build
	for i, text := range []string{"oci/runc@log-level=debug=/old dir/runc", "oci/runc@log-level=debug"} {
		b, err := parseBuild("--a", text)
		must.Do(t, err)
		builds[i] = b
	}
	must.Do(t, setBuilds(&p, builds))
	a, b := target.Target(p.Targets[0]).String(), target.Target(p.Targets[1]).String()
	if a != "oci/runc-a@log-level=debug" || b != "oci/runc@log-level=debug" || p.Baseline.String() != a {
		t.Errorf("the targets are %s and %s, the baseline %s", a, b, p.Baseline)
	}
	want := map[string]target.Runtime{"runc": given["runc"], "runc-a": {Path: "/old dir/runc", Options: options}}
	if diff := cmp.Diff(want, p.Runtimes); diff != "" || len(given) != 1 {
		t.Errorf("the runtimes (-want +got):\n%s", diff)
	}

	taken := plan.Plan{Runtimes: map[string]target.Runtime{"runc-a": {Path: "/other"}}}
	if err := setBuilds(&taken, builds); err == nil || codeOf(err) != ExitUsage || !strings.Contains(err.Error(), "the plan has a runtime runc-a") {
		t.Errorf("a plan with a runtime of the same name: got error %v, want an error of usage", err)
	}

	// The value of an option may look like a path.
	if b, err := parseBuild("--a", "oci/runsc@config=/etc/x"); err != nil || b.path != "" {
		t.Errorf("a build with an option that is a path: %+v, %v", b, err)
	}
	if b, err := parseBuild("--a", "oci/runsc@config=/etc/x=/bin/y"); err != nil || b.path != "/bin/y" || b.target.String() != "oci/runsc@config=/etc/x" {
		t.Errorf("a build with such an option and a path: %+v, %v", b, err)
	}
	if _, err := parseBuild("--a", "native=/x"); err == nil {
		t.Error("native has a binary")
	}
}

// A comparison without a value would be "not worse" without a measurement.
//
// Invariant ab-silence.
func TestNoValueIsRefused(t *testing.T) {
	work := []plan.Work{{Benchmark: bench.Benchmark{Name: "s.c.f", Metrics: []result.Metric{
		{Name: "Part", Group: "parts"}, {Name: "Rate", DerivedFrom: "Time"},
	}}}}
	if values, err := abValues(work, nil); err == nil || codeOf(err) != ExitUsage {
		t.Errorf("the values are %+v, %v; want an error of usage", values, err)
	}
}
