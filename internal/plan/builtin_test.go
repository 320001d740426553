package plan_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
)

// leastFirstBlocks is the least number of blocks of the plans for a first look: with fewer, no difference holds over all comparisons of a report.
const leastFirstBlocks = 12

// TestBuiltin checks that each built-in plan is the example of its name, and selects only benchmarks of the catalogue.
func TestBuiltin(t *testing.T) {
	work := map[string][]plan.Work{}
	for _, b := range plan.Builtins() {
		p, err := plan.Builtin(b.Name)
		must.Do(t, err)
		example, err := plan.Load("../../examples/" + b.Name + ".yaml")
		must.Do(t, err)
		if diff := cmp.Diff(example, p, cmpopts.IgnoreUnexported(plan.Plan{}, plan.Item{}, plan.Workload{})); diff != "" {
			t.Errorf("%s is not its example (-example +builtin):\n%s", b.Name, diff)
		}
		if p.Name != b.Name || b.Summary == "" {
			t.Errorf("the plan %s is named %q and said to be %q", b.Name, p.Name, b.Summary)
		}
		if work[b.Name], err = p.Resolve(catalogue.Catalogue{}); err != nil {
			t.Errorf("%s: %v", b.Name, err)
		}
		if b.Name == plan.Quick().Name && p.Blocks < leastFirstBlocks {
			t.Errorf("%s has %d blocks, want at least %d", b.Name, p.Blocks, leastFirstBlocks)
		}
		echo, err := plan.Parse("p", p.YAML())
		must.Do(t, err)
		if _, err := echo.Resolve(catalogue.Catalogue{}); err != nil {
			t.Errorf("%s as it is stored: %v", b.Name, err)
		}
	}
	demo, err := plan.Load("../../examples/demo.yaml")
	must.Do(t, err)
	if demo.Blocks < leastFirstBlocks {
		t.Errorf("demo has %d blocks, want at least %d", demo.Blocks, leastFirstBlocks)
	}
	count := 0
	for _, b := range (catalogue.Catalogue{}).All() {
		if b.Suite() != "pods" { // a machine has none
			count++
		}
	}
	for _, name := range []string{"standard", "paper"} {
		names := map[string]bool{}
		for _, w := range work[name] {
			names[w.Benchmark.Name] = true
		}
		if len(names) != count {
			t.Errorf("%s has %d benchmarks, want all %d", name, len(names), count)
		}
	}
	repeats := map[string][]string{"performance.cpu.time": {"1", "4"}, "performance.syscall.unixbench": {"1", "4"}, "performance.network.bandwidth": {"host", "containers"}, "performance.network.netperf": {"host", "containers"}}
	for name, want := range repeats {
		var got []string
		for _, w := range work["paper"] {
			if w.Benchmark.Name == name {
				got = append(got, w.Params["threads"]+w.Params["copies"]+w.Params["peer"])
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("the plan of the paper has %s with %q, want %q", name, got, want)
		}
	}
	if quick := len(work["quick"]); quick == 0 || quick >= count {
		t.Errorf("quick has %d benchmarks of %d", quick, count)
	}
	for _, w := range work["quick"] {
		if w.Benchmark.Image != bench.ProbeImage {
			t.Errorf("the quick plan has %s, which needs the image %s: it must work at once, and without a network", w.Benchmark.Name, w.Benchmark.Image)
		}
	}
	suites := []string{"operations", "performance", "limits"} // more would wear out the disk of a small board
	for _, b := range (catalogue.Catalogue{}).All() {
		hasBenchmark := slices.ContainsFunc(work["quick"], func(w plan.Work) bool { return w.Benchmark.Name == b.Name })
		if isWanted := b.Image == bench.ProbeImage && slices.Contains(suites, b.Suite()); isWanted && !hasBenchmark {
			t.Errorf("the quick plan leaves out %s", b.Name)
		}
	}
}

func TestUnknownBuiltin(t *testing.T) {
	for name, want := range map[string]string{
		"standart": `--plan: no plan is named "standart"; did you mean standard?`,
		"all":      `--plan: no plan is named "all"; there are quick, explain, standard, latency, paper; a plan of your own is given with -f`,
		"my.yaml":  `--plan: no plan is named "my.yaml"; there are quick, explain, standard, latency, paper; a plan of your own is given with -f`,
	} {
		if _, err := plan.Builtin(name); err == nil || err.Error() != want {
			t.Errorf("Builtin(%q) gives %v, want %s", name, err, want)
		}
	}
}
