package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/target"
)

// quickBlocks is the number of blocks of a short study, enough for differences of some ten per cent. A budget ends it on a slow machine.
const quickBlocks = 12

// studies are the plans of each study, by its name. Only short plans have the budgets.
var studies = map[string][]struct {
	name   string
	budget time.Duration
}{
	"espe":      {{"reproduce-espe", 17 * time.Minute}},
	"nishimura": {{"reproduce-nishimura", 23 * time.Minute}, {"reproduce-nishimura-docker", 10 * time.Minute}},
	"wang":      {{"reproduce-wang", 34 * time.Minute}},
	"sateri":    {{"reproduce-sateri", 30 * time.Minute}, {"reproduce-sateri-size", 3 * time.Minute}},
}

// longest is the benchmark that short plans leave out: with gVisor it alone can take longer than all others together.
const longest = "scalability.runtime.50"

// Study returns the plans that repeat a study, and none for an unknown one. The quick plans have the benchmarks and targets of the study with
// quick parameters, twelve blocks and a budget, and lack the longest benchmark.
func Study(name string, quick bool) ([]Plan, error) {
	var plans []Plan
	for _, s := range studies[name] {
		p, err := builtin(s.name)
		if err != nil {
			return nil, err
		}
		if quick {
			p = p.short(s.budget)
		}
		plans = append(plans, p)
	}
	return plans, nil
}

// short returns the plan with quick parameters, quickBlocks blocks and a budget.
func (p Plan) short(budget time.Duration) Plan {
	p.Name += "-quick"
	p.Parameters, p.Budget, p.Timeout.Trial = QuickValues, budget, QuickValues.trialTimeout()
	p.Blocks = quickBlocks
	p.Benchmarks = slices.DeleteFunc(slices.Clone(p.Benchmarks), func(i Item) bool { return i.Name == longest })
	for i := range p.Benchmarks {
		p.Benchmarks[i].Blocks = 0 // as all others
	}
	return p
}

// Only returns p with some targets and some of the work from Resolve, with all parameters decided. Its baseline stays if it is one of the
// targets.
func (p Plan) Only(targets []target.Target, work []Work) Plan {
	p.Targets = nil
	for _, t := range targets {
		p.Targets = append(p.Targets, Pattern(t))
	}
	if !slices.ContainsFunc(targets, func(t target.Target) bool { return t.String() == p.Baseline.String() }) {
		p.Baseline = target.Target{}
	}
	p.Benchmarks, p.Limits = nil, Limits{}
	for _, w := range work {
		item := Item{Name: w.Benchmark.Name, Limits: w.pinned(), Blocks: w.Blocks}
		if len(w.Params) > 0 {
			item.Params = maps.Clone(w.Params)
		}
		if w.Monitor != p.Monitor.Memory {
			item.Monitor.Memory = w.Monitor
		}
		p.Benchmarks = append(p.Benchmarks, item)
	}
	return p
}

// Begins reports whether a run of p has the recorded plan. The plan of a run also has a seed and a decision about caches.
func (p Plan) Begins(record Plan) bool {
	p.Seed, record.Seed = nil, nil
	p.DropCaches, record.DropCaches = nil, nil
	return string(p.YAML()) == string(record.YAML())
}
