package execution

import (
	"slices"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/workdir"
)

func TestPageCacheIsDroppedOnlyForColdReads(t *testing.T) {
	for cache, want := range map[string]bool{"": false, "warm": false, "cold": true} {
		var events recorder
		ok := true
		e := &Execution{
			Config:      Config{Plan: plan.Plan{DropCaches: &ok}, Observer: &events},
			environment: environment{session: &Session{dir: &workdir.Dir{}}},
			work:        []plan.Work{{}, {Params: bench.Params{"cache": cache}}},
		}
		var config runner.Config
		e.useHost(&config)
		if mention := events.mentions("page cache"); mention != want || config.DropCaches != nil && !want {
			t.Errorf("cache=%s: the events are %v", cache, events.events)
		}
	}
}

// daemonBacked is an engine with a daemon. Only a private daemon has a cgroup.
type daemonBacked struct {
	engine.Engine
	group *cgroup.Group
}

func (e daemonBacked) Daemon() engine.Daemon { return engine.Daemon{PIDs: []int{1}, Cgroup: e.group} }

// The record names CPUs of private daemons only: bare runtimes have no daemon, and a daemon of the user's is not moved.
func TestPinnedParts(t *testing.T) {
	const (
		containers = "containers, and programs on native, stayed on CPUs 2-3"
		daemons    = "private daemons stayed on CPUs 1"
		ourselves  = "Touchstone, with the peer programs on the host, stayed on CPUs 0"
		idle       = "pinning: engines has no effect: the run has no private daemon"
	)
	bare, users := runner.Target{Engine: struct{ engine.Engine }{}}, runner.Target{Engine: daemonBacked{}}
	private := runner.Target{Engine: daemonBacked{group: &cgroup.Group{}}}
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
			var events recorder
			e := &Execution{Config: Config{Plan: plan.Plan{Pinning: tt.pinning}, Observer: &events}, targets: tt.targets}
			expect.Equal(t, "the record", tt.want, e.pinned())
			if events.mentions(idle) != slices.Contains(tt.want, idle) {
				t.Errorf("the events are %v", events.events)
			}
		})
	}
}

func TestTuningIsOnRecord(t *testing.T) {
	if got := tuned(nil); got != nil {
		t.Errorf("without a variable the record is %q", got)
	}
	want := []string{"Touchstone itself ran with GOMAXPROCS=1 GOGC=off of its caller, which changes the time that it takes; no other program has it"}
	expect.Equal(t, "the record", want, tuned([]string{"GOMAXPROCS=1", "GOGC=off"}))
}

func TestPageCacheIsOnRecord(t *testing.T) {
	var c pageCache
	if got := c.caveats(); got != nil {
		t.Errorf("without a drop the record is %q", got)
	}
	c.drops.Store(7)
	c.refused = "it is read-only"
	want := []string{
		"the page cache of the whole machine was dropped 7 times, each right before a cold read",
		"the page cache was not dropped, although the plan allows it: it is read-only",
	}
	expect.Equal(t, "the record", want, c.caveats())
}
