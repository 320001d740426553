package cri

import (
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

func TestLimitsOfAPod(t *testing.T) {
	type limits = engine.Resources
	for _, c := range []struct{ old, update, during, then limits }{
		{limits{}, limits{CPU: 1, Memory: 64}, limits{}, limits{CPU: 1, Memory: 64}},
		{limits{CPU: 0.5}, limits{CPU: 1}, limits{CPU: 1}, limits{CPU: 1}},
		{limits{CPU: 1}, limits{CPU: 0.5}, limits{CPU: 1}, limits{CPU: 0.5}},
		{limits{CPU: 1, Memory: 64}, limits{Memory: 32}, limits{CPU: 1, Memory: 64}, limits{CPU: 1, Memory: 32}},
		{limits{CPU: 1, Memory: 64}, limits{CPU: 0.5, Memory: 128}, limits{CPU: 1, Memory: 128}, limits{CPU: 0.5, Memory: 128}},
		{limits{CPUSet: "0"}, limits{CPUSet: "1"}, limits{CPUSet: "0,1"}, limits{CPUSet: "0,1"}},
		{limits{CPUSet: "0"}, limits{CPUSet: "0"}, limits{CPUSet: "0"}, limits{CPUSet: "0"}},
		{limits{}, limits{CPUSet: "1"}, limits{}, limits{}},
	} {
		next := merged(c.old, c.update)
		if union := wider(c.old, next); next != c.then || union != c.during {
			t.Errorf("from %+v by %+v the pod has %+v and then %+v; want %+v and %+v", c.old, c.update, union, next, c.during, c.then)
		}
	}
}

// Pods and containers have no confined label on a host with SELinux, which would refuse them the directories of the run, and none elsewhere.
func TestLabels(t *testing.T) {
	if options := selinuxOptions(true); options.GetType() != "spc_t" {
		t.Errorf("with SELinux: %v", options)
	}
	if options := selinuxOptions(false); options != nil {
		t.Errorf("without SELinux: %v", options)
	}
}
