package sides

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/counts"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/textfile"
)

// Gate is a margin for some metrics: side B must not be worse than side A by more.
type Gate struct {
	// Benchmark selects benchmarks by the first components of their names, Metric and Target by name. A * is any component of a benchmark, and any part
	// of the others. An empty pattern selects all.
	Benchmark, Metric, Target string
	// Word is the word of a report for a worse value: slower (times and rates), more or less (quantities), worse (scores and ratios). The gate
	// covers only metrics with this word. AnyWorse covers all metrics.
	Word string
	// Margin is a relative difference: 0.03 is 3 %.
	Margin float64
	// At is the place of the gate for messages: "--fail-on slower:3%", "gates.yaml:3:5".
	At string
}

// AnyWorse is the word of a gate for every metric.
const AnyWorse = "worse"

// words are the words of a gate.
var words = []string{"slower", "more", "less", AnyWorse}

// MostMargin is the largest margin of a gate: a factor of 11.
const MostMargin = 10

// GateError is an error in a gate, or a contradiction between gates.
type GateError = counts.GateError

// String spells a gate: "operations:CreateAndRun=slower:5%".
func (g Gate) String() string {
	selector := g.Benchmark
	if g.Metric != "" {
		selector += ":" + g.Metric
	}
	if g.Target != "" {
		selector += " on " + g.Target
	}
	condition := g.Word + ":" + strconv.FormatFloat(100*g.Margin, 'g', 6, 64) + "%"
	if selector == "" {
		return condition
	}
	return selector + "=" + condition
}

// ParseGate reads a gate of the command line: [BENCHMARK][:METRIC]=WORD:MARGIN, or WORD:MARGIN for all metrics.
func ParseGate(text string) (Gate, error) {
	place := "--fail-on " + text
	selector, condition := "", text
	if cut := strings.LastIndexByte(text, '='); cut >= 0 {
		selector, condition = text[:cut], text[cut+1:]
		if selector == "" {
			return Gate{}, &GateError{At: place, Problem: "nothing is before the =; write a benchmark, as in operations=slower:3%, or only slower:3%"}
		}
	}
	benchmark, metric, _ := strings.Cut(selector, ":")
	return newGate(place, benchmark, metric, "", condition)
}

func newGate(place, benchmark, metric, target, condition string) (Gate, error) {
	fail := func(format string, args ...any) (Gate, error) {
		return Gate{}, &GateError{At: place, Problem: fmt.Sprintf(format, args...)}
	}
	word, number, ok := strings.Cut(condition, ":")
	if !ok || !slices.Contains(words, word) {
		return fail("%q is no condition; write %s, a colon and a margin, as in slower:3%%, or a gate by counts, as in counts:mount>0", condition, strings.Join(words, ", "))
	}
	percent, isPercent := strings.CutSuffix(strings.TrimSpace(number), "%")
	margin, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
	switch {
	case err != nil || !isPercent || math.IsNaN(margin) || math.IsInf(margin, 0):
		return fail("the margin %q is no percentage; write a number and %%, as in slower:3%%", number)
	case margin <= 0:
		return fail("the margin %q is not above 0 %%; equal runs never show that they differ by less than that: write the smallest difference that matters, as in slower:3%%", number)
	case margin/100 > MostMargin:
		return fail("the margin %q is above %d %%; write a smaller one", number, 100*MostMargin)
	}
	for name, pattern := range map[string]string{"metric": metric, "target": target} {
		if _, err := path.Match(pattern, ""); err != nil {
			return fail("the %s %q is no pattern; write a name, or a name with *", name, pattern)
		}
	}
	if benchmark = strings.TrimSuffix(benchmark, ".*"); benchmark == "*" {
		benchmark = ""
	}
	if slices.Contains(strings.Split(benchmark, "."), "") && benchmark != "" {
		return fail("the benchmark %q has an empty component; write a benchmark or its first components, as in operations.container", benchmark)
	}
	if metric == "*" {
		metric = ""
	}
	if target == "*" {
		target = ""
	}
	return Gate{benchmark, metric, target, word, margin / 100, place}, nil
}

// MaxGateFile is the largest size of a file with gates, in bytes.
const MaxGateFile = 1 << 20

// ReadGates reads a file with gates: "version: 1", and a list "gates" of mappings with the keys fail-on, benchmark, metric and target. Gates by counts have
// only the first key. Errors have the line and the column.
func ReadGates(file string, data []byte) ([]Gate, []counts.Gate, error) {
	text, err := textfile.Read(bytes.NewReader(data), MaxGateFile, textfile.Gates)
	if err != nil {
		return nil, nil, &GateError{At: file, Problem: err.Error()}
	}
	gates, countGates, err := readGates(file, text)
	if found := textfile.Blemishes(string(text)); err != nil && len(found) > 0 { // the probable cause
		b := found[0]
		return nil, nil, &GateError{At: fmt.Sprintf("%s:%d:%d", file, b.Line, b.Column), Problem: b.Problem + "; " + b.Advice}
	}
	return gates, countGates, err
}

func readGates(file string, data []byte) (gates []Gate, countGates []counts.Gate, err error) {
	place := func(t *token.Token) string {
		if t == nil || t.Position == nil {
			return file
		}
		return fmt.Sprintf("%s:%d:%d", file, t.Position.Line, t.Position.Column)
	}
	fail := func(t *token.Token, format string, args ...any) error {
		return &GateError{At: place(t), Problem: fmt.Sprintf(format, args...)}
	}
	switch {
	case len(data) > MaxGateFile:
		return nil, nil, fail(nil, "the file is longer than %d bytes; write fewer gates", MaxGateFile)
	case !utf8.Valid(data):
		return nil, nil, fail(nil, "the file is not UTF-8; save it as UTF-8")
	}
	// The library expects trusted input. A panic is reported as an error of the file.
	defer func() {
		if v := recover(); v != nil {
			gates, countGates, err = nil, nil, fail(nil, "the file cannot be read as YAML: %v; write it more simply", v)
		}
	}()
	tree, err := parser.ParseBytes(data, 0)
	if err != nil {
		var detail yaml.Error
		if errors.As(err, &detail) {
			return nil, nil, fail(detail.GetToken(), "%s", detail.GetMessage())
		}
		return nil, nil, fail(nil, "%v", err)
	}
	if len(tree.Docs) != 1 || tree.Docs[0].Body == nil {
		return nil, nil, fail(nil, "the file needs one document with the keys version and gates")
	}
	root, err := entries(tree.Docs[0].Body, place, "version", "gates")
	if err != nil {
		return nil, nil, err
	}
	body := tree.Docs[0].Body.GetToken()
	if v, ok := root["version"].(*ast.IntegerNode); ok && v.Token.Value != "1" {
		return nil, nil, fail(v.Token, "version %s of the format of gates is unknown; write \"version: 1\", or use a newer Touchstone", v.Token.Value)
	}
	if v := root["version"]; v == nil || v.GetToken().Value != "1" {
		return nil, nil, fail(body, `the file needs "version: 1"`)
	}
	list, ok := root["gates"].(*ast.SequenceNode)
	if !ok || len(list.Values) == 0 {
		return nil, nil, fail(body, `the file needs a list "gates" with at least one gate`)
	}
	for _, item := range list.Values {
		keys, err := entries(item, place, "benchmark", "metric", "target", "fail-on")
		if err != nil {
			return nil, nil, err
		}
		texts := map[string]string{}
		for key, node := range keys {
			text, ok := node.(*ast.StringNode)
			if !ok {
				return nil, nil, fail(node.GetToken(), "the value of %s must be a text; put quotes around it", key)
			}
			texts[key] = text.Value
		}
		position := item.GetToken()
		if m, ok := item.(*ast.MappingNode); ok && len(m.Values) > 0 {
			position = m.Values[0].Key.GetToken() // the mapping's own token is its first colon
		}
		if keys["fail-on"] == nil {
			return nil, nil, fail(position, "the gate needs the key fail-on, as in fail-on: slower:3%%")
		}
		if strings.HasPrefix(texts["fail-on"], counts.Prefix) {
			if len(keys) > 1 {
				return nil, nil, fail(position, "a gate by counts is for all benchmarks and targets; leave out its other keys")
			}
			g, err := counts.ParseGate(place(position), texts["fail-on"])
			if err != nil {
				return nil, nil, err
			}
			countGates = append(countGates, g)
			continue
		}
		g, err := newGate(place(position), texts["benchmark"], texts["metric"], texts["target"], texts["fail-on"])
		if err != nil {
			return nil, nil, err
		}
		gates = append(gates, g)
	}
	return gates, countGates, nil
}

// entries gives the values of a mapping by key. Other keys, and a repeated key, are errors.
func entries(node ast.Node, place func(*token.Token) string, keys ...string) (map[string]ast.Node, error) {
	mapping, ok := node.(*ast.MappingNode)
	if !ok {
		return nil, &GateError{At: place(node.GetToken()), Problem: "a mapping with the keys " + strings.Join(keys, ", ") + " is needed here"}
	}
	table := map[string]ast.Node{}
	for _, v := range mapping.Values {
		key := v.Key.GetToken()
		switch _, duplicate := table[key.Value]; {
		case !slices.Contains(keys, key.Value):
			return nil, &GateError{At: place(key), Problem: fmt.Sprintf("the key %q is unknown; the keys are %s", key.Value, strings.Join(keys, ", "))}
		case duplicate:
			return nil, &GateError{At: place(key), Problem: fmt.Sprintf("the key %q occurs twice", key.Value)}
		}
		table[key.Value] = v.Value
	}
	return table, nil
}

// Contradictions refuses gates with the same selection and different margins.
func Contradictions(gates []Gate) error {
	for i, g := range gates {
		for _, h := range gates[:i] {
			if g.selection() == h.selection() && g.Margin != h.Margin {
				return contradiction(h, g)
			}
		}
	}
	return nil
}

// contradiction is the error for two gates that cannot both hold.
func contradiction(one, second Gate) error {
	return &GateError{At: second.At, Problem: fmt.Sprintf("it contradicts %s: both select the same metrics, with the margins %s and %s; leave out one of them",
		one.At, quantity.Percent(one.Margin), quantity.Percent(second.Margin))}
}

// selection is the gate without its margin and its place.
func (g Gate) selection() Gate {
	g.Margin, g.At = 0, ""
	return g
}

// covers reports whether the gate is about a metric of a cell.
func (g Gate) covers(cell result.Cell, m result.Metric) bool {
	if g.Word != AnyWorse && g.Word != quantity.VerdictWord(stats.Slower, m) {
		return false
	}
	if g.Benchmark != "" {
		pattern, name := strings.Split(g.Benchmark, "."), strings.Split(cell.Benchmark, ".")
		if len(pattern) > len(name) {
			return false
		}
		for i, p := range pattern {
			if p != "*" && p != name[i] {
				return false
			}
		}
	}
	return fits(g.Metric, m.Name) && fits(g.Target, cell.Target)
}

func fits(pattern, name string) bool {
	ok, err := path.Match(pattern, name) // the pattern was checked
	return pattern == "" || err == nil && ok
}

// rank is the precedence of a gate. A gate that selects less has a higher rank: a metric counts more than a target, and a target more than a benchmark.
func (g Gate) rank() []int {
	weigh := func(pattern string) int {
		switch {
		case pattern == "":
			return 0
		case strings.Contains(pattern, "*"):
			return 1
		}
		return 2
	}
	components := 0
	if g.Benchmark != "" {
		components = 1 + strings.Count(g.Benchmark, ".")
	}
	word := 0
	if g.Word != AnyWorse {
		word = 1
	}
	return []int{weigh(g.Metric), weigh(g.Target), components, word}
}

// Check is a gate with one metric.
type Check struct {
	Gate Gate
	result.Cell
	// Metric is empty for a gate that covers nothing.
	Metric result.Metric
	// Index is an index into Comparison.Cells, -1 if the metric is not compared.
	Index  int
	Answer stats.Answer
	// Why is the reason of the answer.
	Why string
	// RunsNeeded is the number of runs a side that would decide; 0 if it is not known, or if no number would.
	RunsNeeded int

	p stats.Margin
	// runs are the runs of an open check that more runs can decide.
	runs *stats.RunsComparison
}

// Outcome is the answer of all gates: the worst of them. It is empty without a gate.
func (c *Comparison) Outcome() stats.Answer { return stats.Overall(c.answers()) }

// answers are the answers of all gates.
func (c *Comparison) answers() (answers []stats.Answer) {
	for _, k := range c.Gates {
		answers = append(answers, k.Answer)
	}
	for _, k := range c.CountChecks() {
		answers = append(answers, k.Answer)
	}
	return answers
}

// check answers the gates. The answer "worse" holds over all gates together, by Holm's correction. To pass all gates must be "not worse", each at
// the level itself: see [stats.Margin].
func (c *Comparison) check(gates []Gate) ([]Check, error) {
	if err := Contradictions(gates); err != nil {
		return nil, err
	}
	var checks []Check
	uses := make([]bool, len(gates))
	add := func(cell result.Cell, m result.Metric, index int, reason string) error {
		place, err := choose(gates, cell, m, uses)
		if err != nil || place < 0 {
			return err
		}
		k := Check{Gate: gates[place], Cell: cell, Metric: m, Index: index, Answer: stats.Inconclusive, Why: reason}
		if index >= 0 {
			k.examine(&c.Cells[index], c.Single)
		}
		checks = append(checks, k)
		return nil
	}
	for i := range c.Cells {
		if err := add(c.Cells[i].Cell, c.Cells[i].Metric, i, ""); err != nil {
			return nil, err
		}
	}
	for _, o := range c.OneSided {
		names := map[string]string{"A": "B", "B": "A"}[o.Has]
		for _, m := range o.Metrics {
			if err := add(o.Cell, m, -1, fmt.Sprintf("side %s has no value: %s", names, o.Why)); err != nil {
				return nil, err
			}
		}
	}
	decide(checks)
	for i, g := range gates {
		if !uses[i] {
			checks = append(checks, Check{Gate: g, Index: -1, Answer: stats.Inconclusive, Why: c.unused(g)})
		}
	}
	return checks, nil
}

// unused is the reason why a gate selects no metric.
func (c *Comparison) unused(g Gate) string {
	variant := g
	variant.Word = AnyWorse
	for i := range c.Cells {
		if cell := &c.Cells[i]; variant.covers(cell.Cell, cell.Metric) {
			variant.Word = quantity.VerdictWord(stats.Slower, cell.Metric)
			return fmt.Sprintf("the word for a worse value of %s is %s, not %s; write %s", cell.Metric.Name, variant.Word, g.Word, variant)
		}
	}
	return "the gate selects no metric of these runs; correct its names, or measure the benchmark"
}

// choose gives the index of the gate for a metric, -1 for none: the gate with the highest rank. It marks every gate that covers the metric as used.
func choose(gates []Gate, cell result.Cell, m result.Metric, uses []bool) (int, error) {
	best := -1
	for i, g := range gates {
		if !g.covers(cell, m) {
			continue
		}
		uses[i] = true
		if best < 0 {
			best = i
			continue
		}
		switch order := slices.Compare(g.rank(), gates[best].rank()); {
		case order > 0:
			best = i
		case order == 0 && g.Margin != gates[best].Margin:
			return -1, contradiction(gates[best], g)
		}
	}
	return best, nil
}

// examine computes the p-values of a metric with a margin, or gives the reason why it has none.
func (k *Check) examine(c *Cell, single bool) {
	k.p = stats.Margin{Worse: math.NaN(), NotWorse: math.NaN()}
	switch {
	case single || len(c.A.Runs) == 1 && len(c.B.Runs) == 1:
		k.Why = "one run each shows nothing of the variation between runs; give several runs a side"
	case c.zero:
		k.Answer, k.Why = stats.NotWorse, c.Why
	case c.runs.CI == nil:
		k.Why = cmp.Or(c.Why, string(c.Verdict))
	default:
		k.p = c.runs.AgainstMargin(k.Gate.Margin, stats.Direction(c.Metric.Better))
		explain := func(side string, share float64) string {
			return fmt.Sprintf("side %s has lost %s of its trials, and the others may be the faster ones", side, quantity.Percent(share))
		}
		if c.A.Lost > stats.MostLost {
			k.p.Worse, k.Why = math.NaN(), explain("A", c.A.Lost)
		}
		if c.B.Lost > stats.MostLost {
			k.p.NotWorse, k.Why = math.NaN(), explain("B", c.B.Lost)
		}
		if k.Why == "" {
			k.runs = &c.runs
			k.Why = fmt.Sprintf("the 95 %% interval is %s", quantity.ChangeInterval(c.CI))
		}
	}
}

// decide sets the answers of checks with p-values.
func decide(checks []Check) {
	values, count := make([]float64, len(checks)), 0
	for i, k := range checks {
		values[i] = math.NaN()
		if k.Index >= 0 && k.p != (stats.Margin{}) {
			values[i] = k.p.Worse
		}
		if !math.IsNaN(values[i]) {
			count++
		}
	}
	for i, adjusted := range stats.Holm(values) {
		k := &checks[i]
		switch {
		case k.Index < 0 || k.Answer == stats.NotWorse:
		case adjusted < stats.Alpha:
			k.Answer = stats.Worse
		case k.p.NotWorse < stats.Alpha:
			k.Answer = stats.NotWorse
		case k.runs != nil:
			k.RunsNeeded = k.runs.RunsNeeded(k.Gate.Margin, stats.Direction(k.Metric.Better), count)
			if k.RunsNeeded == 0 {
				k.Why += "; 1000 runs a side would not decide, because the difference is too close to the margin for the variation between runs: choose another margin"
				continue
			}
			k.RunsNeeded = max(k.RunsNeeded, 1+min(k.runs.A, k.runs.B))
			k.Why += fmt.Sprintf("; about %d runs a side would decide, if the difference stays", k.RunsNeeded)
		}
	}
}
