package sides_test

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/report/sides"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

func gate(t *testing.T, text string) sides.Gate {
	t.Helper()
	g, err := sides.ParseGate(text)
	must.Do(t, err)
	return g
}

func gates(t *testing.T, texts ...string) (list []sides.Gate) {
	t.Helper()
	for _, text := range texts {
		list = append(list, gate(t, text))
	}
	return list
}

func TestParseGate(t *testing.T) {
	for text, want := range map[string]sides.Gate{
		"slower:3%":      {Word: "slower", Margin: 0.03},
		"worse: 2.5 %":   {Word: "worse", Margin: 0.025},
		"more:100%":      {Word: "more", Margin: 1},
		"*=slower:3%":    {Word: "slower", Margin: 0.03},
		"a.b=less:3%":    {Benchmark: "a.b", Word: "less", Margin: 0.03},
		"a.*:M=worse:3%": {Benchmark: "a", Metric: "M", Word: "worse", Margin: 0.03},
		":Host*=more:3%": {Metric: "Host*", Word: "more", Margin: 0.03},
	} {
		want.At = "--fail-on " + text
		if got, err := sides.ParseGate(text); err != nil || got != want {
			t.Errorf("%q gives %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                "is no condition",
		"slower":          "is no condition",
		"slow:3%":         `"slow:3%" is no condition; write slower, more, less, worse`,
		"slower:3":        `the margin "3" is no percentage`,
		"slower:x%":       "is no percentage",
		"slower:1e999%":   "is no percentage",
		"slower:0%":       "is not above 0 %",
		"slower:1001%":    "is above 1000 %",
		"=slower:3%":      "nothing is before the =",
		"a..b=slower:3%":  "has an empty component",
		":[=slower:3%":    "is no pattern",
		"a.b:M=slower:3%": "",
	} {
		_, err := sides.ParseGate(text)
		if is := (*sides.GateError)(nil); want != "" && (!errors.As(err, &is) || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "--fail-on "+text)) || want == "" && err != nil {
			t.Errorf("%q gives %v, want %q", text, err, want)
		}
	}
}

func TestReadGates(t *testing.T) {
	got, countGates, err := sides.ReadGates("gates.yaml", []byte(`# margins of the project
version: 1
gates:
  - fail-on: slower:3%
  - benchmark: operations
    metric: CreateAndRun
    target: oci/*
    fail-on: "slower:5%"
  - fail-on: counts:mount,execve>0
`))
	want := []sides.Gate{
		{Word: "slower", Margin: 0.03, At: "gates.yaml:4:5"},
		{Benchmark: "operations", Metric: "CreateAndRun", Target: "oci/*", Word: "slower", Margin: 0.05, At: "gates.yaml:5:5"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the gates are %+v, %v; want %+v", got, err, want)
	}
	if len(countGates) != 1 || countGates[0].String() != "counts:mount,execve>0" || countGates[0].At != "gates.yaml:9:5" {
		t.Errorf("the gates by counts are %+v", countGates)
	}
	for text, want := range map[string]string{
		"":                           "gates.yaml: the file needs one document",
		"version: 2\n":               `gates.yaml:1:10: version 2 of the format of gates is unknown; write "version: 1", or use a newer Touchstone`,
		"version: 1\n":               `the file needs a list "gates"`,
		"version: 1\ngates: []\n":    "with at least one gate",
		"version: 1\ngate: []\n":     `gates.yaml:2:1: the key "gate" is unknown; the keys are version, gates`,
		"[1]":                        "a mapping with the keys version, gates is needed here",
		"version: 1\nversion: 1\n":   "version",
		"version: 1\ngates:\n- 3%\n": "gates.yaml:3:3: a mapping with the keys benchmark, metric, target, fail-on",
		"version: 1\ngates:\n- fail-on: slower:0%\n":                   `gates.yaml:3:3: the margin "0%" is not above 0 %`,
		"version: 1\ngates:\n- metric: M\n":                            "gates.yaml:3:3: the gate needs the key fail-on",
		"version: 1\ngates:\n- metric: 3\n  fail-on: slower:3%\n":      "gates.yaml:3:11: the value of metric must be a text",
		"version: 1\ngates:\n- fail-on: slower:3%\n  runs: 3\n":        `gates.yaml:4:3: the key "runs" is unknown`,
		"version: 1\ngates:\n- fail-on: [slower:3%\n":                  "gates.yaml:3:",
		"version: 1\ngates:\n- fail-on: counts:mnt>0\n":                `gates.yaml:3:3: column 8: no system call has the name "mnt"`,
		"version: 1\ngates:\n- fail-on: counts:all>0\n  metric: M\n":   "gates.yaml:3:3: a gate by counts is for all benchmarks and targets",
		"version: 1\ngates:\n- fail-on: slower:3%\n---\nversion: 1\n":  "one document",
		"version: 1\ngates:\n- &a\n  fail-on: slower:3%\n- *a\n":       "gates.yaml:",
		"version: 1\ngates:\n- fail-on:\u00a0slower:3%\n":              `gates.yaml:3:11: an invisible character or a blank that is not a space is here (U+00A0, no-break space)`,
		"targets: [native]\n":                                          `gates.yaml: it is a plan; touchstone benchmark -f FILE executes it`,
		"version: 1\ngates:\n- fail-on: slower:3%\n\xff":               "the file is not UTF-8",
		"version: 1\ngates:\n- fail-on: " + strings.Repeat("x", 1<<20): "is longer than 1048576 bytes",
	} {
		_, _, err := sides.ReadGates("gates.yaml", []byte(text))
		if is := (*sides.GateError)(nil); !errors.As(err, &is) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q gives %v, want %q", text, err, want)
		}
	}
}

// TestDocumentedGates reads the gates of the page and of the examples.
func TestDocumentedGates(t *testing.T) {
	page, err := os.ReadFile("../../../docs/compare.md")
	must.Do(t, err)
	_, block, hasStart := strings.Cut(string(page), "```yaml\n")
	block, _, hasEnd := strings.Cut(block, "```")
	if list, _, err := sides.ReadGates("compare.md", []byte(block)); !hasStart || !hasEnd || err != nil || len(list) != 2 {
		t.Errorf("the page has the gates %v: %v", list, err)
	}
	example, err := os.ReadFile("../../../examples/ci/gates.yaml")
	must.Do(t, err)
	if list, _, err := sides.ReadGates("gates.yaml", example); err != nil || len(list) != 2 {
		t.Errorf("the example has the gates %v: %v", list, err)
	}
}

func FuzzReadGates(f *testing.F) {
	f.Add([]byte("version: 1\ngates:\n- fail-on: slower:3%\n  metric: M*\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, _, err := sides.ReadGates("gates.yaml", text)
		for _, g := range list {
			if err != nil || g.Margin <= 0 || g.Margin > sides.MostMargin || g.At == "" {
				t.Errorf("%q gives %+v, %v", text, g, err)
			}
		}
	})
}

func TestContradictingGates(t *testing.T) {
	for _, c := range []struct {
		texts []string
		want  string // empty for gates that agree
	}{
		{[]string{"slower:3%", "slower:5%"}, "--fail-on slower:5%: it contradicts --fail-on slower:3%: both select the same metrics, with the margins 3.0 % and 5.0 %"},
		{[]string{"slower:3%", "slower:3%"}, ""},
		{[]string{"slower:3%", "operations=slower:5%"}, ""},
		{[]string{"operations=slower:3%", "*.container=slower:5%"}, ""},
		// Both have a metric and no benchmark: neither is more exact.
		{[]string{":Create*=slower:3%", ":*Run=slower:5%"}, "it contradicts"},
		{[]string{":Create*=slower:3%", ":CreateAndRun=slower:5%"}, ""},
		{[]string{"worse:3%", "slower:5%"}, ""},
	} {
		_, err := sides.New(before(), same(), sides.Options{Gates: gates(t, c.texts...)})
		is := (*sides.GateError)(nil)
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &is) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q give %v, want %q", c.texts, err, c.want)
		}
	}
}

// answers spells the answers for oci/runc: "CreateAndRun worse than the margin".
func answers(c *sides.Comparison) (list []string) {
	for _, k := range c.Gates {
		if k.Target == "oci/runc" || k.Metric.Name == "" {
			list = append(list, strings.TrimSpace(k.Metric.Name+" "+string(k.Answer)))
		}
	}
	return list
}

// Invariant gates: A gate passes only if every metric that it selects is shown not to be worse by the margin.
func TestGates(t *testing.T) {
	for name, c := range map[string]struct {
		b       sides.Side
		gates   []string
		want    []string
		outcome stats.Answer
	}{
		"slower by 10 %, gate of 3 %":  {slow(), []string{"slower:3%"}, []string{"CreateAndRun worse than the margin", "Rate worse than the margin"}, stats.Worse},
		"slower by 10 %, gate of 20 %": {slow(), []string{"slower:20%"}, []string{"CreateAndRun not worse by the margin", "Rate not worse by the margin"}, stats.NotWorse},
		"slower by 10 %, gate of 10 %": {slow(), []string{"slower:10%"}, []string{"CreateAndRun inconclusive", "Rate inconclusive"}, stats.Inconclusive},
		"equal":                        {same(), []string{"slower:3%"}, []string{"CreateAndRun not worse by the margin", "Rate not worse by the margin"}, stats.NotWorse},
		"equal, too small a margin":    {same(), []string{"slower:0.1%"}, []string{"CreateAndRun inconclusive", "Rate inconclusive"}, stats.Inconclusive},
		"faster":                       {group("b", 0.8, 0.81), []string{"slower:3%"}, []string{"CreateAndRun not worse by the margin", "Rate not worse by the margin"}, stats.NotWorse},
		"memory only":                  {slow(), []string{"more:3%"}, []string{"HostMemory not worse by the margin", "Leaked not worse by the margin"}, stats.NotWorse},
		"the more exact gate counts":   {slow(), []string{"slower:3%", "operations:CreateAndRun=slower:20%", ":Rate=slower:30%"}, []string{"CreateAndRun not worse by the margin", "Rate not worse by the margin"}, stats.NotWorse},
		"no metric of that name":       {slow(), []string{"operations.container.lifecycle:Create=slower:3%"}, []string{"inconclusive"}, stats.Inconclusive},
		"no benchmark of that name":    {slow(), []string{"operations.pod=slower:3%"}, []string{"inconclusive"}, stats.Inconclusive},
		"a name inside a component":    {slow(), []string{"operation=slower:3%"}, []string{"inconclusive"}, stats.Inconclusive},
		"a component for any":          {slow(), []string{"*.container:Rate=slower:3%"}, []string{"Rate worse than the margin"}, stats.Worse},
		"no gate":                      {slow(), nil, nil, ""},
	} {
		got := compared(t, before(), c.b, sides.Options{Gates: gates(t, c.gates...)})
		if !slices.Equal(answers(got), c.want) || got.Outcome() != c.outcome {
			t.Errorf("%s: %q, %q; want %q, %q", name, answers(got), got.Outcome(), c.want, c.outcome)
		}
		if got.Outcome() == stats.Inconclusive && !strings.Contains(got.GateSummary(), "no pass") {
			t.Errorf("%s: %s", name, got.GateSummary())
		}
	}
}

// TestUndecidedGateNamesTheRuns: the reason has the number of runs that would decide. 3 and 3 runs without any variation separate by chance in 1 of 20
// divisions, which is too often.
func TestUndecidedGateNamesTheRuns(t *testing.T) {
	for name, c := range map[string]struct {
		a, b        sides.Side
		least, most int
	}{
		"runs that vary":         {group("a", 1, 1.02, 0.98), group("b", 1.01, 0.985, 1.02), 4, 12},
		"runs without variation": {group("a", 1, 1, 1), group("b", 1.2, 1.2, 1.2), 4, 4},
	} {
		k := compared(t, c.a, c.b, sides.Options{Gates: gates(t, ":CreateAndRun=slower:3%")}).Gates[1]
		if k.Answer != stats.Inconclusive || k.RunsNeeded < c.least || k.RunsNeeded > c.most || !strings.Contains(k.Why, "runs a side would decide") {
			t.Errorf("%s: the check is %+v", name, k)
		}
	}
}

// TestGateWithAnotherWord: the reason has the word of the metric, and the gate that selects it.
func TestGateWithAnotherWord(t *testing.T) {
	for gate, want := range map[string]string{
		":HostMemory=slower:3%": "the word for a worse value of HostMemory is more, not slower; write :HostMemory=more:3%",
		":Create=slower:3%":     "the gate selects no metric of these runs; correct its names, or measure the benchmark",
	} {
		c := compared(t, group("a", 1, 1.02, 0.98), group("b", 1, 1.02, 0.98), sides.Options{Gates: gates(t, gate)})
		if k := c.Gates[0]; k.Answer != stats.Inconclusive || k.Why != want {
			t.Errorf("%s: %q, %q; want %q", gate, k.Answer, k.Why, want)
		}
	}
}

// TestGateWithTarget: a gate of a file can select targets.
func TestGateWithTarget(t *testing.T) {
	list, _, err := sides.ReadGates("g", []byte("version: 1\ngates:\n- {target: 'oci/*', metric: Rate, fail-on: slower:3%}\n"))
	must.Do(t, err)
	c := compared(t, before(), slow(), sides.Options{Gates: list})
	if len(c.Gates) != 1 || (c.Gates[0].Cell != result.Cell{Benchmark: lifecycle, Target: "oci/runc"}) {
		t.Errorf("the checks are %+v", c.Gates)
	}
}

// randomly gives a run metrics with random levels that depend only on its ID, with a deviation of 2 %.
func randomly(metrics int) func(r *result.Run) {
	return func(r *result.Run) {
		r.Bench[0].Metrics, r.Trials = nil, r.Trials[:1]
		seed := fnv.New64a()
		_, _ = seed.Write([]byte(r.ID))
		random := rand.New(rand.NewPCG(seed.Sum64(), 1))
		r.Trials[0].Samples = nil
		for m := range metrics {
			name := fmt.Sprint("Metric", m)
			r.Bench[0].Metrics = append(r.Bench[0].Metrics, result.Metric{Name: name, Unit: result.Seconds, Better: result.Lower})
			r.Trials[0].Samples = append(r.Trials[0].Samples, result.Sample{Metric: name, Value: math.Exp(0.02 * random.NormFloat64())})
		}
	}
}

// TestFalseAlarmsOfComparisons: equal sides with 20 metrics differ over the whole comparison, and fail a gate, in at most 5 % of all cases. In a metric
// alone they differ far more often. TestRunsErrorRates of package stats has the rates of one metric.
func TestFalseAlarmsOfComparisons(t *testing.T) {
	const comparisons = 400
	var count, extras, failed int
	for n := range comparisons {
		name := fmt.Sprint(n, "-")
		a, b := change(group("a"+name, 1, 1, 1, 1), randomly(20)), change(group("b"+name, 1, 1, 1, 1), randomly(20))
		c := compared(t, a, b, sides.Options{Gates: gates(t, "slower:0.01%")})
		if c.Shown > 0 {
			count++
		}
		if c.Shown+c.Alone > 0 {
			extras++
		}
		if c.Outcome() == stats.Worse {
			failed++
		}
	}
	// 5 % and three standard errors of 1.1 %.
	if limit := 0.083 * comparisons; float64(count) > limit || float64(failed) > limit || extras < comparisons/3 {
		t.Errorf("of %d comparisons %d have a difference, %d fail, and %d have a difference in a metric alone", comparisons, count, failed, extras)
	}
}
