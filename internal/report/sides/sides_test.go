package sides_test

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/fact"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/report/sides"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

const lifecycle = "operations.container.lifecycle"

var epoch = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// machine is a host that SameMachine recognises.
func machine() result.Host {
	return result.Host{Hostname: "bench1", Kernel: "6.1.0", Arch: "amd64", CPU: "Example CPU", CPUs: 2, Memory: 8 << 30, Cgroup: "v2"}
}

// run is a run with 8 trials of two targets, whose level is a factor on all values.
func run(id string, level float64) result.Run {
	r := result.Run{
		ID: id, Name: "quick", State: result.Complete, Started: epoch, Ended: epoch.Add(time.Minute), Host: machine(), Seed: 1,
		Plan:    "version: 1\nname: quick\nblocks: 8\ntimeout:\n  trial: 2m\n  call: 30s\n",
		Targets: []result.Target{{Name: "native", Version: "1"}, {Name: "oci/runc", Version: "1.1.12"}},
		Bench: []result.Benchmark{{Name: lifecycle, Metrics: []result.Metric{
			{Name: "CreateAndRun", Unit: result.Seconds, Better: result.Lower},
			{Name: "Rate", Unit: result.PerSecond, Better: result.Higher},
			{Name: "HostMemory", Unit: result.Bytes, Better: result.Lower},
			{Name: "Leaked", Unit: result.Count, Better: result.Lower},
		}}},
	}
	for block := range 8 {
		for _, target := range []string{"native", "oci/runc"} {
			noise := 1 + 0.002*float64(block%4) // within a run
			r.Trials = append(r.Trials, result.Trial{
				Seq: len(r.Trials) + 1, Cell: result.Cell{Benchmark: lifecycle, Target: target}, Block: block, Status: result.OK,
				Started: epoch.Add(time.Duration(len(r.Trials)) * time.Second),
				Samples: []result.Sample{
					{Metric: "CreateAndRun", Value: 0.020 * level * noise},
					{Metric: "Rate", Value: 1000 / level * noise},
					{Metric: "HostMemory", Value: 1 << 20},
					{Metric: "Leaked"},
				},
			})
		}
	}
	return r
}

// group is runs of the levels.
func group(name string, levels ...float64) sides.Side {
	s := sides.Side{Name: name}
	for i, level := range levels {
		s.Runs = append(s.Runs, run(fmt.Sprint(name, i), level))
	}
	return s
}

// Groups of five runs that vary by about 1 %.
func before() sides.Side { return group("before", 1, 1.01, 0.99, 1.005, 0.995) }
func same() sides.Side   { return group("after", 1.002, 0.992, 1.008, 0.997, 1.004) }
func slow() sides.Side   { return group("after", 1.10, 1.11, 1.09, 1.105, 1.095) }

func compared(t *testing.T, a, b sides.Side, o sides.Options) *sides.Comparison {
	t.Helper()
	c, err := sides.New(a, b, o)
	must.Do(t, err)
	return c
}

// cell is a metric of oci/runc.
func cell(t *testing.T, c *sides.Comparison, metric string) sides.Cell {
	t.Helper()
	for _, entry := range c.Cells {
		if entry.Metric.Name == metric && entry.Target == "oci/runc" {
			return entry
		}
	}
	t.Fatalf("%s on oci/runc is not compared", metric)
	return sides.Cell{}
}

func TestVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		a, b sides.Side
		want map[string]stats.Verdict
		word string // of CreateAndRun
	}{
		"slower": {before(), slow(), map[string]stats.Verdict{
			"CreateAndRun": stats.Slower, "Rate": stats.Slower, "HostMemory": stats.NoDifference, "Leaked": stats.NoDifference,
		}, "slower"},
		"faster":       {slow(), group("other", 1, 1.01, 0.99, 1.005, 0.995), map[string]stats.Verdict{"CreateAndRun": stats.Faster, "Rate": stats.Faster}, "faster"},
		"equal":        {before(), same(), map[string]stats.Verdict{"CreateAndRun": stats.NoDifference}, "no difference shown"},
		"too noisy":    {group("a", 1, 2), group("b", 1.5, 0.7), map[string]stats.Verdict{"CreateAndRun": stats.TooNoisy}, "too noisy"},
		"one run each": {group("a", 1), group("b", 1.1), map[string]stats.Verdict{"CreateAndRun": sides.MaybeRun, "HostMemory": stats.NoDifference}, string(sides.MaybeRun)},
		"five and one": {before(), group("b", 1.1), map[string]stats.Verdict{"CreateAndRun": stats.Slower}, "slower"},
	} {
		got := compared(t, c.a, c.b, sides.Options{})
		for metric, want := range c.want {
			if entry := cell(t, got, metric); entry.Verdict != want {
				t.Errorf("%s: the verdict on %s is %q (%s), want %q", name, metric, entry.Verdict, entry.Why, want)
			}
		}
		if entry := cell(t, got, "CreateAndRun"); entry.Word() != c.word {
			t.Errorf("%s: the word is %q, want %q", name, entry.Word(), c.word)
		}
	}
}

// TestOneRunEach: no difference between one run and one run is a regression, and the report asks for several runs.
//
// Invariant single-runs: One run a side gives no verdict "slower", and no gate passes or fails by it.
func TestOneRunEach(t *testing.T) {
	c := compared(t, group("a", 1), group("b", 3), sides.Options{Gates: []sides.Gate{gate(t, "worse:3%")}})
	for _, entry := range c.Cells {
		if entry.Verdict == stats.Slower || entry.Verdict == stats.Faster {
			t.Errorf("%s is %s", entry.Metric.Name, entry.Verdict)
		}
	}
	if !c.Single || len(c.Notes) == 0 || !strings.Contains(c.Notes[0], "several runs a side") || c.Outcome() != stats.Inconclusive {
		t.Errorf("single %v, outcome %q, notes %q", c.Single, c.Outcome(), c.Notes)
	}
}

// TestMeans: a slow path that becomes more frequent changes the mean, and not the median.
func TestMeans(t *testing.T) {
	slowPath := func(n int) func(*result.Run) {
		return func(r *result.Run) {
			for i := range r.Trials {
				if r.Trials[i].Block < n {
					r.Trials[i].Samples[0].Value *= 2
				}
			}
		}
	}
	entry := cell(t, compared(t, change(before(), slowPath(1)), change(same(), slowPath(3)), sides.Options{}), "CreateAndRun")
	// 3 of 8 trials take twice as long, and not 1 of 8: 11/9 of the mean.
	if entry.Verdict == stats.Slower || math.Abs(entry.MeanRatio-11.0/9) > 0.01 || entry.MeanCI == nil || entry.MeanCI.Lo < 1.2 || entry.MeanCI.Hi > 1.25 {
		t.Errorf("the verdict is %q, the means %v %v", entry.Verdict, entry.MeanRatio, entry.MeanCI)
	}
	single := cell(t, compared(t, change(group("a", 1), slowPath(1)), change(group("b", 1), slowPath(3)), sides.Options{}), "CreateAndRun")
	if math.Abs(single.MeanRatio-11.0/9) > 0.01 || single.MeanCI != nil {
		t.Errorf("the means of single runs are %v %v", single.MeanRatio, single.MeanCI)
	}
}

// TestTiers: a difference that only its own test shows does not hold over the whole comparison.
func TestTiers(t *testing.T) {
	c := compared(t, group("a", 1, 1.01, 0.99), group("b", 1.024, 1.031, 1.018), sides.Options{})
	entry := cell(t, c, "CreateAndRun")
	if entry.Verdict != stats.Slower || !entry.Alone || entry.P >= stats.Alpha || entry.Adjusted < stats.Alpha || entry.Word() != "slower, in this metric alone" {
		t.Errorf("the verdict is %q, alone %v, p %v, adjusted %v", entry.Verdict, entry.Alone, entry.P, entry.Adjusted)
	}
	if c.Shown != 0 || c.Alone != 4 || c.Compared != 6 || !strings.Contains(c.Summary(), "0 differ over the whole comparison, and 4 in their metric alone") {
		t.Errorf("%d of %d shown, %d alone: %s", c.Shown, c.Compared, c.Alone, c.Summary())
	}
}

// change returns a side with each run changed.
func change(s sides.Side, do func(r *result.Run)) sides.Side {
	for i := range s.Runs {
		do(&s.Runs[i])
	}
	return s
}

// Invariant gates.
func TestNotComparable(t *testing.T) {
	unit := func(r *result.Run) { r.Bench[0].Metrics[0].Unit = result.PerSecond }
	direction := func(r *result.Run) { r.Bench[0].Metrics[0].Better = result.Higher }
	value := func(v float64) func(*result.Run) {
		return func(r *result.Run) { r.Trials[3].Samples[0].Value = v }
	}
	zeros := func(r *result.Run) {
		for i := range r.Trials {
			r.Trials[i].Samples[0].Value = 0
		}
	}
	for name, c := range map[string]struct {
		change func(*result.Run)
		why    string
	}{
		"another unit":      {unit, "different units or directions: s with lower values better, and 1/s"},
		"another direction": {direction, "s with higher values better"},
		"a negative value":  {value(-1), "run after0 has -1 s"},
		"infinity":          {value(math.Inf(1)), "run after0 has +Inf s"},
		"not a number":      {value(math.NaN()), "run after0 has NaN s"},
		"only zeros":        {zeros, "the median of run after0 is 0"},
	} {
		got := compared(t, before(), change(same(), c.change), sides.Options{Gates: []sides.Gate{gate(t, ":CreateAndRun=worse:3%")}})
		entry := cell(t, got, "CreateAndRun")
		if entry.Verdict != stats.NotComparable || !strings.Contains(entry.Why, c.why) || !math.IsNaN(entry.Ratio) || entry.CI != nil {
			t.Errorf("%s: the verdict is %q because %q, want a reason with %q", name, entry.Verdict, entry.Why, c.why)
		}
		if got.Outcome() != stats.Inconclusive {
			t.Errorf("%s: the gates are %q", name, got.Outcome())
		}
	}
}

func TestFewAndEqualValues(t *testing.T) {
	oneTrial := func(r *result.Run) { r.Trials = r.Trials[:2] }
	// One trial a run is an observation of each run, and nothing within one run.
	if entry := cell(t, compared(t, change(before(), oneTrial), change(slow(), oneTrial), sides.Options{}), "CreateAndRun"); entry.Verdict != stats.Slower || entry.A.Trials != 5 {
		t.Errorf("one trial in each of five runs: %+v", entry)
	}
	if entry := cell(t, compared(t, change(group("a", 1), oneTrial), change(group("b", 2), oneTrial), sides.Options{}), "CreateAndRun"); entry.Verdict != stats.TooFew || entry.Word() != "too few samples" {
		t.Errorf("one trial in one run each: %q", entry.Verdict)
	}
	// All values equal.
	entry := cell(t, compared(t, before(), same(), sides.Options{}), "HostMemory")
	if entry.Verdict != stats.NoDifference || entry.Ratio != 1 || *entry.CI != (stats.Interval{Lo: 1, Hi: 1}) {
		t.Errorf("equal values: %+v", entry)
	}
}

func TestNothingInCommon(t *testing.T) {
	rename := func(r *result.Run) {
		r.Targets[1].Name, r.Targets[0].Name = "oci/crun", "oci/youki"
		for i := range r.Trials {
			r.Trials[i].Target = r.Targets[i%2].Name
		}
	}
	_, err := sides.New(before(), change(same(), rename), sides.Options{})
	if is := (*sides.NothingError)(nil); !errors.As(err, &is) || !strings.Contains(err.Error(), "before and after have no benchmark") ||
		!strings.Contains(err.Error(), lifecycle+" on oci/crun only in B") {
		t.Errorf("the error is %v", err)
	}
	empty := func(r *result.Run) { r.Trials = nil }
	if _, err := sides.New(change(before(), empty), change(same(), empty), sides.Options{}); err == nil || !strings.Contains(err.Error(), "they have no results") {
		t.Errorf("the error is %v", err)
	}
	if _, err := sides.New(before(), sides.Side{Name: "none"}, sides.Options{}); err == nil || !strings.Contains(err.Error(), "none has no run") {
		t.Errorf("the error is %v", err)
	}
	if _, err := sides.New(before(), before(), sides.Options{}); err == nil || !strings.Contains(err.Error(), "run before0 is given twice") {
		t.Errorf("the error is %v", err)
	}
}

// Invariant gates.
func TestOneSidedCells(t *testing.T) {
	fail := func(r *result.Run) {
		r.Trials = slices.DeleteFunc(r.Trials, func(t result.Trial) bool { return t.Target == "oci/runc" && t.Block > 0 })
		r.Trials[1].Status, r.Trials[1].Samples, r.Trials[1].Reason = result.Failed, nil, "no space left"
	}
	hide := func(r *result.Run) {
		r.Targets[1].Unavailable = "runc was not found"
		r.Trials = slices.DeleteFunc(r.Trials, func(t result.Trial) bool { return t.Target == "oci/runc" })
	}
	metric := func(r *result.Run) {
		for i := range r.Trials {
			r.Trials[i].Samples = r.Trials[i].Samples[1:]
		}
	}
	for name, c := range map[string]struct {
		change    func(*result.Run)
		title     string
		why       string
		gateWhy   string
		howManyOf int // metrics
	}{
		"all trials failed":    {fail, lifecycle, "failed 1 of 1: no space left", "side B has no value: failed 1 of 1: no space left", 4},
		"not available":        {hide, lifecycle, "the target was not available: runc was not found", "side B has no value", 4},
		"a metric is not here": {metric, lifecycle + ": CreateAndRun", "not measured", "side B has no value: not measured", 1},
	} {
		got := compared(t, before(), change(same(), c.change), sides.Options{Gates: []sides.Gate{gate(t, "slower:3%")}})
		index := slices.IndexFunc(got.OneSided, func(o sides.OneSided) bool { return o.Target == "oci/runc" })
		if index < 0 {
			t.Errorf("%s: no cell is listed", name)
			continue
		}
		if o := got.OneSided[index]; o.Has != "A" || o.Title() != c.title || o.Why != c.why || len(o.Metrics) != c.howManyOf {
			t.Errorf("%s: %s %q because %q, with %d metrics", name, o.Has, o.Title(), o.Why, len(o.Metrics))
		}
		// A gate never passes because a value is absent.
		if !slices.ContainsFunc(got.Gates, func(k sides.Check) bool {
			return k.Metric.Name == "CreateAndRun" && k.Target == "oci/runc" && k.Answer == stats.Inconclusive && strings.Contains(k.Why, c.gateWhy)
		}) || got.Outcome() != stats.Inconclusive {
			t.Errorf("%s: the gates are %+v", name, got.Gates)
		}
	}
}

// Invariant different-facts: Runs that differ in other facts are compared only on request.
func TestDifferencesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*result.Run)
		say    string
		allow  sides.Options
		flag   string
	}{
		"kernel":   {func(r *result.Run) { r.Host.Kernel = "6.2.0" }, "Kernel: 6.1.0 in A, 6.2.0 in B", allow(sides.ClassHost), "--allow-differences host"},
		"governor": {func(r *result.Run) { r.Host.Governor = "powersave" }, "Governor: unknown in A, powersave in B", allow(sides.ClassHost), "--allow-differences host"},
		"version":  {func(r *result.Run) { r.Targets[1].Version = "1.2.0" }, "Target oci/runc: 1.1.12 in A, 1.2.0 in B", allow(sides.ClassVersion), "--allow-differences version"},
		"tool":     {func(r *result.Run) { r.Tool.Version = "9" }, "Tool: Touchstone", allow(sides.ClassTool), "--allow-differences tool"},
		"image": {func(r *result.Run) {
			r.Images = []result.Image{{Name: "workload", Digest: "sha256:0123456789abcdef", Size: 1}}
		}, "Images: unknown in A, workload: sha256:0123456789ab", allow(sides.ClassImage), "--allow-differences image"},
		"plan": {func(r *result.Run) { r.Plan += "pinning:\n  workload: \"1\"\n" }, `Plan pinning: not set in A, workload: "1" in B`, allow(sides.ClassPlan), "--allow-differences plan"},
		"params": {func(r *result.Run) {
			for i := range r.Trials {
				r.Trials[i].Params = "n=2"
			}
		}, "Parameters of " + lifecycle + " on oci/runc: none in A, n=2 in B", allow(sides.ClassParams), "--allow-differences params"},
		"machine":         {func(r *result.Run) { r.Host.Hostname, r.Host.Kernel = "bench2", "6.3.0" }, "Name: bench1 in A, bench2 in B", sides.Options{AcrossMachines: true}, "--across-machines"},
		"unknown machine": {func(r *result.Run) { r.Host.Memory = 0 }, "Memory: 8.00 GiB in A, 0 B in B", sides.Options{AcrossMachines: true}, "--across-machines"},
	} {
		_, err := sides.New(before(), change(same(), c.change), sides.Options{})
		if is := (*sides.DifferError)(nil); !errors.As(err, &is) || !strings.Contains(err.Error(), c.say) || !strings.Contains(err.Error(), c.flag) {
			t.Errorf("%s: the error is %v, want %q and %q", name, err, c.say, c.flag)
			continue
		}
		got, err := sides.New(before(), change(same(), c.change), c.allow)
		if err != nil {
			t.Errorf("%s: allowed, but %v", name, err)
			continue
		}
		if len(got.Differences) == 0 || cell(t, got, "CreateAndRun").Verdict != stats.NoDifference {
			t.Errorf("%s: the differences are %v", name, got.Differences)
		}
	}
}

func allow(c sides.Class) sides.Options { return sides.Options{Allow: []sides.Class{c}} }

// TestDifferencesWithinASide: the runs of a side differ too.
func TestDifferencesWithinASide(t *testing.T) {
	b := same()
	b.Runs[2].Host.Kernel = "6.9.0"
	if _, err := sides.New(before(), b, sides.Options{}); err == nil || !strings.Contains(err.Error(), "Kernel: 6.1.0 in A, 6.1.0 and 6.9.0 in B") {
		t.Errorf("the error is %v", err)
	}
}

// TestNaturalDifferences: these do not matter.
func TestNaturalDifferences(t *testing.T) {
	free, merged := int64(1<<30), int64(7)
	flag := int64(1)
	b := change(same(), func(r *result.Run) {
		r.Host.Memory += 1 << 20
		r.Host.Reclaim = &result.Reclaim{Available: &free, SwapUsed: &free, KSM: &flag, KSMSharing: &merged}
		r.Host.Selfcheck = selfcheck()
		r.Plan = "version: 1\nname: other\nblocks: 80\nbudget: 9m\ntimeout:\n  trial: 2m\n  call: 30s\n"
	})
	second := free + 1
	a := change(before(), func(r *result.Run) {
		r.Host.Reclaim = &result.Reclaim{Available: &second, KSM: &flag, KSMSharing: &second}
	})
	if c := compared(t, a, b, sides.Options{}); len(c.Differences) != 0 {
		t.Errorf("the differences are %v", c.Differences)
	}
}

// A comparison without a shown difference says how large one could be.
func TestNoDifferenceNamesTheDetectable(t *testing.T) {
	for name, c := range map[string]struct {
		a, b sides.Side
		want string
	}{
		"varying":                   {before(), same(), `^\d+\.\d+ % would mostly have been shown$`},
		"constant":                  {group("a", 1, 1, 1, 1), group("b", 1, 1, 1, 1), "^any difference would have been shown$"},
		"too few of constant value": {group("a", 1, 1, 1), group("b", 1, 1, 1), "^so few runs cannot show any$"},
		"one run each":              {group("a", 1), group("b", 1), "^$"},
	} {
		for _, cell := range compared(t, c.a, c.b, sides.Options{}).Cells {
			if cell.Metric.Name == "CreateAndRun" && (cell.Verdict != stats.NoDifference || !regexp.MustCompile(c.want).MatchString(cell.Why)) {
				t.Errorf("%s: %q because %q, want %q because %q", name, cell.Verdict, cell.Why, stats.NoDifference, c.want)
			}
		}
	}
}

// A difference between single runs is not folded away, and does not count among the differences of several runs.
func TestDifferenceOfSingleRuns(t *testing.T) {
	c := compared(t, group("a", 1), group("b", 1.3), sides.Options{})
	if entry := cell(t, c, "CreateAndRun"); entry.Verdict != sides.MaybeRun || !entry.Notable() {
		t.Errorf("the verdict is %q, notable %v", entry.Verdict, entry.Notable())
	}

	const name = "Rate"
	drop := func(side sides.Side) sides.Side {
		first := true
		return change(side, func(r *result.Run) {
			for i := range r.Trials {
				if !first {
					r.Trials[i].Samples = slices.DeleteFunc(r.Trials[i].Samples, func(s result.Sample) bool { return s.Metric == name })
				}
			}
			first = false
		})
	}
	c = compared(t, drop(group("a", 1, 1, 1, 1)), drop(group("b", 1.3, 1, 1, 1)), sides.Options{})
	index := slices.IndexFunc(c.Cells, func(cell sides.Cell) bool { return cell.Metric.Name == name })
	if c.Cells[index].Verdict != sides.MaybeRun || c.Shown+c.Alone != 0 {
		t.Errorf("%s is %q, and %d and %d differences count; want %q and none", name, c.Cells[index].Verdict, c.Shown, c.Alone, sides.MaybeRun)
	}
}

// wantPlanDifferences compares runs with these texts in their plans. The runs must have these differences, and be refused for them.
func wantPlanDifferences(t *testing.T, name, a, b string, want []string) {
	t.Helper()
	insert := func(side sides.Side, text string) sides.Side {
		return change(side, func(r *result.Run) { r.Plan += text })
	}
	got := compared(t, insert(before(), a), insert(same(), b), sides.Options{Allow: []sides.Class{sides.ClassPlan}})
	var texts []string
	for _, d := range got.Differences {
		texts = append(texts, d.String())
	}
	if !slices.Equal(texts, want) {
		t.Errorf("%s: the differences are %q, want %q", name, texts, want)
	}
	_, err := sides.New(insert(before(), a), insert(same(), b), sides.Options{})
	if (err != nil) != (want != nil) {
		t.Errorf("%s: without leave the error is %v", name, err)
	}
}

// Options of a runtime and programs of a workload decide about the values, and the names of target and benchmark do not show them.
func TestDefinitionsInThePlan(t *testing.T) {
	const ptrace = "runtimes:\n  other: /usr/bin/other\n  runc:\n    path: /usr/bin/runc\n    options:\n      platform: ptrace\n"
	workload := func(name, argv string) string {
		return "workloads:\n- name: " + name + "\n  image: workload\n  argv:\n  - " + argv + "\n- name: app.last\n  argv:\n  - /bin/true\n"
	}
	for name, c := range map[string]struct {
		a, b string
		want []string
	}{
		"other options":                 {ptrace, strings.Replace(ptrace, "ptrace", "systrap", 1), []string{"Runtime of oci/runc: options: platform: ptrace in A, options: platform: systrap in B"}},
		"options of one side":           {"", ptrace, []string{"Runtime of oci/runc: no options in A, options: platform: ptrace in B"}},
		"another path":                  {ptrace, strings.Replace(ptrace, "/usr/bin/runc", "/new/runc", 1), nil},
		"a path of one side":            {"", "runtimes:\n  runc: /new/runc\n", nil},
		"a runtime that no target has":  {ptrace, ptrace + "  spare:\n    options:\n      debug: \"true\"\n", nil},
		"another program of a workload": {workload("app.one", "/bin/a"), workload("app.one", "/bin/b"), []string{"Workload app.one: image: workload argv: - /bin/a in A, image: workload argv: - /bin/b in B"}},
		"other workloads":               {workload("app.one", "/bin/a"), workload("app.two", "/bin/b"), nil},
	} {
		wantPlanDifferences(t, name, c.a, c.b, c.want)
	}
}

// The monitor of a benchmark takes processor time beside its trials, whether the plan sets it for all benchmarks or for this one.
func TestMonitorsOfBenchmarks(t *testing.T) {
	const (
		base        = "benchmarks:\n- name: a.one\n  params:\n    n: \"1\"\n  blocks: 3\n- name: a.two\n"
		itemMonitor = "benchmarks:\n- name: a.one\n  params:\n    n: \"1\"\n  monitor:\n    memory: 50ms\n  blocks: 7\n- name: a.two\n"
		monitor     = "monitor:\n  memory: 100ms\n"
		items       = "benchmarks:\n- name: a.one\n  params:\n    n: \"1\"\n- name: a.one\n  params:\n    n: \"2\"\n  limits:\n    memory: 64MiB\n"
	)
	const last = "  monitor:\n    memory: 50ms\n"
	ofPlan := "Plan monitor: memory: 100ms in A, not set in B"
	for name, c := range map[string]struct {
		a, b string
		want []string
	}{
		"a monitor of one side":                  {base, itemMonitor, []string{"Monitor of a.one: none in A, memory: 50ms in B"}},
		"other intervals":                        {itemMonitor, strings.Replace(itemMonitor, "50ms", "1s", 1), []string{"Monitor of a.one: memory: 50ms in A, memory: 1s in B"}},
		"of one benchmark and of the plan":       {base + monitor, itemMonitor + monitor, []string{"Monitor of a.one: memory: 100ms in A, memory: 50ms in B"}},
		"equal, by the plan and by the item":     {base + monitor, strings.Replace(itemMonitor, "50ms", "100ms", 1), []string{ofPlan}},
		"of the plan alone":                      {base + monitor, base, []string{ofPlan}},
		"equal monitors, other parameters":       {itemMonitor, strings.Replace(itemMonitor, `"1"`, `"2"`, 1), nil},
		"other monitors and parameters":          {base, strings.Replace(itemMonitor, `"1"`, `"2"`, 1), []string{"Monitor of a.one: none in A, memory: 50ms in B"}},
		"other numbers of blocks":                {base, strings.Replace(base, "3", "7", 1), nil},
		"a benchmark of one side":                {"benchmarks:\n- name: a.two\n", itemMonitor, nil},
		"several items":                          {items, items + last, []string{"Monitor of a.one n=2 limits.memory=64MiB: none in A, memory: 50ms in B"}},
		"several items, one of them on one side": {base, items + last, nil},
	} {
		wantPlanDifferences(t, name, c.a, c.b, c.want)
	}
}

// A fact about a benchmark or a target concerns no other one.
func TestDifferencesConcern(t *testing.T) {
	for id, want := range map[fact.ID][]string{
		{Kind: fact.Kernel}:                        {"a.one on oci/runc", "a.one on native", "a.two on oci/runc", "a.two on native"},
		{Kind: fact.Setting, Subject: "monitor"}:   {"a.one on oci/runc", "a.one on native", "a.two on oci/runc", "a.two on native"},
		{Kind: fact.Target, Subject: "oci/runc"}:   {"a.one on oci/runc", "a.two on oci/runc"},
		{Kind: fact.Runtime, Subject: "oci/runc"}:  {"a.one on oci/runc", "a.two on oci/runc"},
		{Kind: fact.Workload, Subject: "a.one"}:    {"a.one on oci/runc", "a.one on native"},
		{Kind: fact.Monitor, Subject: "a.one"}:     {"a.one on oci/runc", "a.one on native"},
		{Kind: fact.Monitor, Subject: "a.two n=1"}: {"a.two on oci/runc", "a.two on native"},
		{Kind: fact.Monitor, Subject: "a"}:         nil,
	} {
		var got []string
		for _, benchmark := range []string{"a.one", "a.two"} {
			for _, target := range []string{"oci/runc", "native"} {
				if (sides.Difference{Fact: id}).Concerns(benchmark, target) {
					got = append(got, benchmark+" on "+target)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s concerns %q, want %q", id.Name(), got, want)
		}
	}
}

// selfcheck is the result of a selfcheck.
func selfcheck() *result.Selfcheck {
	return &result.Selfcheck{Date: epoch, Target: "oci/runc", Metric: "CreateAndRun", Limits: []result.DetectionLimit{{Minutes: 5, Difference: 0.02}}}
}

func TestNotesAboutRuns(t *testing.T) {
	b := same()
	b.Runs[0].Ended = b.Runs[0].Started.Add(-time.Hour)
	b.Runs[1].Trials[3].Started = epoch.Add(-time.Hour)
	b.Runs[2].State, b.Runs[2].Trials = result.Killed, b.Runs[2].Trials[:2]
	b.Runs[3].Trials[1].Conditions = map[string]string{"file system": "tmpfs"}
	a := before()
	a.Runs[0].Trials[1].Conditions = map[string]string{"file system": "ext4"}
	text := strings.Join(compared(t, a, b, sides.Options{}).Notes, "\n")
	for _, want := range []string{
		"The clock of run after0 (side B) was set back", "The clock of run after1 (side B) was set back", "Run after2 (side B) is killed",
		"Run after2 (side B) has 2 ok trials, and another run has 16.",
		`the condition "file system" differs: ext4 in A, tmpfs in B`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no note says %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "one run") {
		t.Errorf("there is a note about one run:\n%s", text)
	}
	if notes := compared(t, before(), group("b", 1), sides.Options{}).Notes; len(notes) != 1 || !strings.Contains(notes[0], "Side B has one run") {
		t.Errorf("the notes are %q", notes)
	}
}

// TestRunThatFailed: a run in which all trials of a cell failed is named, and the side passes no gate.
func TestRunThatFailed(t *testing.T) {
	b := same()
	for i := range b.Runs[2].Trials {
		if trial := &b.Runs[2].Trials[i]; trial.Target == "oci/runc" {
			trial.Status, trial.Samples, trial.Reason = result.Failed, nil, "no space left"
		}
	}
	b.Runs[3].Trials = slices.DeleteFunc(b.Runs[3].Trials, func(t result.Trial) bool { return t.Target == "native" })
	c := compared(t, before(), b, sides.Options{Gates: gates(t, "slower:3%")})
	if entry := cell(t, c, "CreateAndRun"); len(entry.B.Runs) != 4 || entry.B.Lost != 1 || c.Outcome() != stats.Inconclusive {
		t.Errorf("%d runs, lost %v, gates %q", len(entry.B.Runs), entry.B.Lost, c.Outcome())
	}
	text := strings.Join(c.Notes, "\n")
	for _, want := range []string{
		"Run after2 (side B) has no value of " + lifecycle + " on oci/runc: failed 8 of 8: no space left.", "Run after3 (side B) has no value of " + lifecycle + " on native: not measured.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no note says %q:\n%s", want, text)
		}
	}
}

// TestLostTrialsNeverHelp: a side that loses trials is not called better, and passes no gate.
//
// Invariant lost-trials.
func TestLostTrialsNeverHelp(t *testing.T) {
	lose := func(r *result.Run) {
		last := &r.Trials[len(r.Trials)-1]
		last.Status, last.Samples, last.Reason = result.Timeout, nil, "the call exceeded its limit"
	}
	side := change(group("b", 0.9, 0.91, 0.89, 0.905, 0.895), lose)
	c := compared(t, before(), side, sides.Options{Gates: []sides.Gate{gate(t, ":CreateAndRun=slower:3%")}})
	if entry := cell(t, c, "CreateAndRun"); entry.Verdict != stats.TrialsLost || c.Outcome() != stats.Inconclusive {
		t.Errorf("faster with lost trials: %q, gates %q", entry.Verdict, c.Outcome())
	}
	c = compared(t, change(before(), lose), slow(), sides.Options{Gates: []sides.Gate{gate(t, ":CreateAndRun=slower:3%")}})
	if entry := cell(t, c, "CreateAndRun"); entry.Verdict != stats.TrialsLost {
		t.Errorf("slower than a side with lost trials: %q", entry.Verdict)
	}
}

func TestEmulatedSides(t *testing.T) {
	emulated := func(r *result.Run) { r.Host.CPU = "QEMU TCG CPU" }
	a, b := change(before(), emulated), change(slow(), emulated)
	c := compared(t, a, b, sides.Options{Gates: []sides.Gate{gate(t, "slower:3%")}})
	if entry := cell(t, c, "CreateAndRun"); entry.Verdict != stats.Withheld || !math.IsNaN(entry.P) || c.Outcome() != stats.Inconclusive {
		t.Errorf("the verdict is %q, the gates are %q", entry.Verdict, c.Outcome())
	}
	c = compared(t, a, b, sides.Options{EmulatedVerdicts: true, Gates: []sides.Gate{gate(t, "slower:3%")}})
	if entry := cell(t, c, "CreateAndRun"); entry.Verdict != stats.Slower || c.Outcome() != stats.Worse {
		t.Errorf("the verdict is %q, the gates are %q", entry.Verdict, c.Outcome())
	}
}

// A run that lacks a part of the others has no values of it, so the facts of the part are those of the other runs.
func TestRunWithoutAPart(t *testing.T) {
	const plan = "workloads:\n- name: app.one\n  argv:\n  - /bin/true\nbenchmarks:\n- name: app.one\n  monitor:\n    memory: 50ms\n"
	insert := func(r *result.Run) { r.Plan += plan }
	b := change(same(), insert)
	b.Runs[1].Targets = b.Runs[1].Targets[:1]
	b.Runs[1].Trials = slices.DeleteFunc(b.Runs[1].Trials, func(t result.Trial) bool { return t.Target != "native" })
	b.Runs[1].Plan = strings.TrimSuffix(b.Runs[1].Plan, plan)
	if c := compared(t, change(before(), insert), b, sides.Options{}); len(c.Differences) != 0 {
		t.Errorf("the differences are %v", c.Differences)
	}
}
