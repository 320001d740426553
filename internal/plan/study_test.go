package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/paper"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// TestStudies checks that each study has plans, that they resolve, and that the short ones keep their promise.
func TestStudies(t *testing.T) {
	limits := map[string]time.Duration{"espe": 20 * time.Minute, "nishimura": 40 * time.Minute, "wang": 40 * time.Minute, "sateri": 40 * time.Minute}
	for _, name := range paper.Names() {
		full, err := plan.Study(name, false)
		if err != nil || len(full) == 0 {
			t.Fatalf("%s has %d plans: %v", name, len(full), err)
		}
		shortPlans, err := plan.Study(name, true)
		must.Do(t, err)
		var total time.Duration
		for i, p := range shortPlans {
			total += p.Budget
			if p.Parameters != plan.QuickValues || p.Budget == 0 || p.Name == full[i].Name || full[i].Budget != 0 || full[i].Parameters != plan.PaperValues {
				t.Errorf("%s and %s have the parameters %s and %s", p.Name, full[i].Name, p.Parameters, full[i].Parameters)
			}
			if p.Blocks < stats.MinSamples || full[i].Blocks < stats.MinSamples {
				t.Errorf("%s has too few blocks for an interval", p.Name)
			}
			for _, variant := range []plan.Plan{p, full[i]} {
				if _, err := variant.Resolve(catalogue.Catalogue{}); err != nil {
					t.Error(err)
				}
				for _, pattern := range variant.Targets {
					if _, exact := pattern.Exact(); !exact {
						t.Errorf("%s has the pattern %s, so a missing target has no reason", variant.Name, pattern)
					}
				}
			}
		}
		if total >= limits[name] {
			t.Errorf("the short plans of %s take %v, want less than %v", name, total, limits[name])
		}
	}
	if plans, err := plan.Study("nobody", false); plans != nil || err != nil {
		t.Errorf("an unknown study has %d plans: %v", len(plans), err)
	}
}

// TestOnly checks that a restricted plan can be recorded and found again.
func TestOnly(t *testing.T) {
	plans, err := plan.Study("espe", true)
	must.Do(t, err)
	work, err := plans[0].Resolve(catalogue.Catalogue{})
	must.Do(t, err)
	index := slices.IndexFunc(work, func(w plan.Work) bool { return w.Benchmark.Name == "performance.cpu.time" })
	runc, runsc := target.Target{Engine: "crio", Runtime: "runc"}, target.Target{Engine: "crio", Runtime: "runsc"}
	part := plans[0].Only([]target.Target{runc, runsc}, work[index:index+1])
	if part.Baseline.Engine != "" {
		t.Errorf("the baseline is %s, which is no target", part.Baseline)
	}
	record, err := plan.Parse("run", part.Pin([]target.Target{runc, runsc}, work[index:index+1], 7).YAML())
	must.Do(t, err)
	if !part.Begins(record) {
		t.Errorf("the plan is not the one of its run:\n%s\n%s", part.YAML(), record.YAML())
	}
	if plans[0].Only([]target.Target{runc}, work[index:index+1]).Begins(record) {
		t.Error("a plan with other targets is taken for the same")
	}
}
