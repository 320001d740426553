package advice_test

import (
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/report/advice"
	"github.com/touchstone-bench/touchstone/internal/report/fleet"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

func fleetAdvice(t *testing.T, runs []result.Run, profile string) *advice.Advice {
	t.Helper()
	b := fleet.NewBuilder(analysis.Options{})
	for i := range runs {
		must.Do(t, b.Add(&runs[i]))
	}
	r, err := b.Report()
	must.Do(t, err)
	p, err := advice.Find(profile)
	must.Do(t, err)
	return advice.NewFleet(r, advice.Options{Profile: p})
}

// In a fleet the nodes are the observations: the orders hold over nodes, and a target that lost trials on nodes has no place.
func TestFleet(t *testing.T) {
	a := fleetAdvice(t, reporttest.Cluster(), "faas")
	if !a.Decided() || a.Ranked[0].Name != "k8s/crun" || len(a.Ranked) != 3 || a.Blocks[0] != 8 {
		t.Errorf("the ranking is %v over %v nodes", a.Ranked, a.Blocks)
	}
	if len(a.Unranked) != 1 || a.Unranked[0].Target != reporttest.FleetGvisor ||
		a.Unranked[0].Reason != "it lost trials of pods.start on 1 of 13 nodes, so the rest may look better than the target is" {
		t.Errorf("without a place are %v", a.Unranked)
	}
	for _, o := range a.Orders {
		if !o.Shown || o.Dependent {
			t.Errorf("the order %s before %s is %+v", o.Better, o.Worse, o)
		}
	}
	if c := a.Class; c == nil || c.Handler != "crun" || c.Nodes != 13 || c.Memory < 11<<20 || c.Memory > 12<<20 {
		t.Errorf("the class is %+v", c)
	}
	if want := "touchstone cluster run -t k8s/runc,k8s/crun,k8s/kata --filter pods.density,performance.cpu.time -n 14"; a.Commands[0] != want {
		t.Errorf("the command is %q, want %q", a.Commands[0], want)
	}
}

// A fleet of few nodes has neither a ranking nor a bound.
func TestSmallFleet(t *testing.T) {
	a := fleetAdvice(t, reporttest.Fleet{ID: "f", Nodes: 4, Blocks: 8, Healthy: true}.Runs(), "faas")
	if a.Reason == "" || len(a.Ranked) != 0 {
		t.Errorf("four nodes give the ranking %v, because %q", a.Ranked, a.Reason)
	}
	if !strings.Contains(a.Missing[0].Reason, "has 4 nodes, and needs 6") {
		t.Errorf("the gap is %q", a.Missing[0].Reason)
	}
}
