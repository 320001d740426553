package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/workdir"
)

// Nothing is said of the page cache, and nobody may drop it, unless something reads cold files.
func TestCachesAreDroppedForColdFilesOnly(t *testing.T) {
	for cache, want := range map[string]bool{"": false, "warm": false, "cold": true} {
		var stderr bytes.Buffer
		allowed := true
		r := &execution{app: &App{env: Environment{Stderr: &stderr}}, plan: plan.Plan{DropCaches: &allowed}, work: []plan.Work{{}, {Params: bench.Params{"cache": cache}}}}
		r.session = &session{dir: &workdir.Dir{}}
		var config runner.Config
		r.allow(&config)
		if said := strings.Contains(stderr.String(), "page cache"); said != want || config.DropCaches != nil && !want {
			t.Errorf("cache=%s: it says %q", cache, stderr.String())
		}
	}
}

// served is an engine with a daemon, which has a cgroup if it is one of the run's own.
type served struct {
	engine.Engine
	group *cgroup.Group
}

func (s served) Daemon() engine.Daemon { return engine.Daemon{PIDs: []int{1}, Cgroup: s.group} }

// The CPUs of daemons are told of those of the run alone: bare runtimes have none, and the user's stay where they are.
func TestPinnedParts(t *testing.T) {
	const (
		containers = "containers, and programs on native, stayed on CPUs 2-3"
		daemons    = "daemons of the run stayed on CPUs 1"
		ourselves  = "Touchstone, with programs at the host's end of a network, stayed on CPUs 0"
		idle       = "pinning: engines has no effect: the run has no daemon of its own"
	)
	bare, users := runner.Target{Engine: struct{ engine.Engine }{}}, runner.Target{Engine: served{}}
	private := runner.Target{Engine: served{group: &cgroup.Group{}}}
	for _, tt := range []struct {
		name    string
		pinning plan.Pinning
		targets []runner.Target
		want    []string
	}{
		{"nothing is pinned", plan.Pinning{}, []runner.Target{private}, nil},
		{"no engines are pinned", plan.Pinning{Workload: "2-3", Touchstone: "0"}, []runner.Target{bare}, []string{containers, ourselves}},
		{"a private daemon", plan.Pinning{Workload: "2-3", Engines: "1", Touchstone: "0"}, []runner.Target{{}, bare, users, private}, []string{containers, daemons, ourselves}},
		{"no private daemon", plan.Pinning{Workload: "2-3", Engines: "1"}, []runner.Target{{}, bare, users}, []string{idle, containers}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stderr bytes.Buffer
			r := &execution{app: &App{env: Environment{Stderr: &stderr}}, plan: plan.Plan{Pinning: tt.pinning}, targets: tt.targets}
			if diff := cmp.Diff(tt.want, r.pinned()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if said := stderr.String() == "note: "+idle+"\n"; said != slices.Contains(tt.want, idle) {
				t.Errorf("it says %q", stderr.String())
			}
		})
	}
}
