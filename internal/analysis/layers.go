package analysis

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Layer is a layer that the start of a container passes through.
type Layer int

// The layers, from the inside out.
const (
	// ProcessLayer is the program itself, as native starts it.
	ProcessLayer Layer = iota
	// RuntimeLayer is the addition of a bare runtime: bare runtime − native.
	RuntimeLayer
	// EngineLayer is the addition of an engine and its shim or monitor.
	EngineLayer
	// SandboxLayer is the pod's sandbox with its network, a step of its own in some engines.
	SandboxLayer
)

// LayerNames are the names of the layers, by Layer.
func LayerNames() []string {
	return []string{ProcessLayer: "process", RuntimeLayer: "runtime", EngineLayer: "shim and engine", SandboxLayer: "sandbox and network"}
}

// roundingError is the largest share of a sum that is an error of the arithmetic.
const roundingError = 1e-9

// Layers is the split of one metric of a benchmark into layers.
type Layers struct {
	Metric result.Metric
	// Whole is set if the sandbox is not separable from shim and engine, because the step has no such metric.
	Whole bool
	// Stacks are sorted by runtime, with the bare runtime first.
	Stacks []Stack
}

// Stack is a target as the sum of its layers, over the blocks with a value of each target that separates the layers.
// Within a block the parts add up to the whole exactly. Their medians need not: see Remainder.
type Stack struct {
	Target string
	// Runtime is the runtime with its options. A bare runtime and the engines that drive it share it.
	Runtime string
	// Total is the metric itself.
	Total stats.Difference
	Parts []Part
	// Remainder is the median of the whole minus the medians of the parts.
	Remainder float64
	// Lacking names the targets without a value that would separate layers.
	Lacking []string
}

// Part is one layer of a stack, or several that are not separable.
type Part struct {
	First, Last Layer
	stats.Difference
	// Subtracted is set if the part is a difference, which may be zero or negative. Other parts are times or costs.
	Subtracted bool
}

// Name is the names of the part's layers: "runtime, shim and engine".
func (p Part) Name() string {
	return strings.Join(LayerNames()[p.First:p.Last+1], ", ")
}

// Unclear reports whether the interval of the part includes 0.
func (p Part) Unclear() bool { return p.Subtracted && p.CI != nil && !p.Shown() }

// depth is the outermost layer of a kind of target; for an engine, the first of its layers.
func depth(kind result.Kind) Layer {
	switch kind {
	case result.KindNative:
		return ProcessLayer
	case result.KindRuntime:
		return RuntimeLayer
	case result.KindEngine:
	}
	return EngineLayer
}

// Blocks counts the blocks behind the numbers. It is 0 if a value is not finite.
func (s *Stack) Blocks() int {
	if !finite(s.Remainder) {
		return 0
	}
	return s.Total.N
}

// Merged reports whether some stack has layers that are not separable.
func (l *Layers) Merged() bool {
	return slices.ContainsFunc(l.Stacks, func(s Stack) bool {
		return slices.ContainsFunc(s.Parts, func(p Part) bool { return p.First != p.Last })
	})
}

// layers splits the benchmark's metrics with [result.LayerTotal]. A split needs an engine, and another target with fewer
// layers.
func (b *builder) layers(targets []Outcome) []Layers {
	sandbox := map[string][]stats.Sample{}
	if index := slices.IndexFunc(b.described.Metrics, func(m result.Metric) bool { return m.Layer == result.LayerSandbox }); index >= 0 {
		sandbox = b.samples(targets, b.described.Metrics[index])
	}
	var splits []Layers
	first := true // the metric that the sandbox's step is part of
	for _, m := range b.described.Metrics {
		if m.Layer != result.LayerTotal {
			continue
		}
		s := splitter{builder: b, metric: m.Name, whole: b.samples(targets, m), sandbox: sandbox, separable: first}
		out := Layers{Metric: m, Whole: !first, Stacks: s.stacks(targets)}
		first = false
		if slices.ContainsFunc(out.Stacks, func(s Stack) bool { return len(s.Parts) > 1 && b.target(s.Target).Kind == result.KindEngine }) {
			splits = append(splits, out)
		}
	}
	return splits
}

// target is a target of the run.
func (b *builder) target(name string) result.Target {
	for _, t := range b.run.Targets {
		if t.Name == name {
			return t
		}
	}
	return result.Target{}
}

// splitter splits one metric of one benchmark.
type splitter struct {
	*builder
	metric string
	// whole is the metric, sandbox the metric of the sandbox's step, by target.
	whole, sandbox map[string][]stats.Sample
	// separable is set if the sandbox's step is part of the metric.
	separable bool
}

// stacks splits the metric on all targets that have it and take part in the split.
func (s *splitter) stacks(targets []Outcome) []Stack {
	var stacks []Stack
	place := map[string]int{} // of a runtime, in the order of the run
	for _, o := range targets {
		t := s.target(o.Target)
		if t.Kind == "" || len(s.whole[t.Name]) == 0 {
			continue
		}
		if _, ok := place[t.Runtime]; !ok {
			place[t.Runtime] = len(place)
		}
		if stack := s.stack(t); stack.Blocks() > 0 {
			stacks = append(stacks, stack)
		}
	}
	slices.SortStableFunc(stacks, func(a, b Stack) int {
		return cmp.Or(
			cmp.Compare(place[a.Runtime], place[b.Runtime]),
			cmp.Compare(depth(s.target(a.Target).Kind), depth(s.target(b.Target).Kind)),
		)
	})
	return stacks
}

// stack splits one target. Layers stay together if the target that separates them has no values.
func (s *splitter) stack(t result.Target) Stack {
	var gaps []string
	samples := func(kind result.Kind, runtime string) []stats.Sample {
		index := slices.IndexFunc(s.run.Targets, func(t result.Target) bool { return t.Kind == kind && t.Runtime == runtime })
		if index >= 0 && len(s.whole[s.run.Targets[index].Name]) > 0 {
			return s.whole[s.run.Targets[index].Name]
		}
		switch {
		case index >= 0:
			gaps = append(gaps, s.run.Targets[index].Name)
		case kind == result.KindNative:
			gaps = append(gaps, string(kind))
		default:
			gaps = append(gaps, "the bare runtime "+runtime)
		}
		return nil
	}
	var parts split
	if native := samples(result.KindNative, ""); len(native) > 0 {
		parts.add(ProcessLayer, native)
	}
	depth := depth(t.Kind)
	if depth >= RuntimeLayer {
		if bare := samples(result.KindRuntime, t.Runtime); len(bare) > 0 {
			parts.add(RuntimeLayer, bare)
		}
	}
	if depth >= EngineLayer {
		switch sandbox := s.sandbox[t.Name]; {
		case len(sandbox) == 0: // the engine makes none
			parts.add(EngineLayer, s.whole[t.Name])
		case s.separable:
			parts.add(EngineLayer, s.whole[t.Name], sandbox)
			parts.series = append(parts.series, series{first: SandboxLayer, last: SandboxLayer, whole: sandbox})
		default:
			parts.add(SandboxLayer, s.whole[t.Name])
		}
	}
	blocks := parts.blocks()
	out := Stack{Target: t.Name, Runtime: t.Runtime, Lacking: gaps, Total: stats.Subtract(within(s.whole[t.Name], blocks), nil)}
	out.Remainder = out.Total.Median
	for _, p := range parts.series {
		part := Part{First: p.first, Last: p.last, Subtracted: p.subtracted}
		part.Difference = stats.Subtract(within(p.whole, blocks), p.less)
		out.Remainder -= part.Median
		out.Parts = append(out.Parts, part)
	}
	if math.Abs(out.Remainder) < roundingError*math.Abs(out.Total.Median) {
		out.Remainder = 0
	}
	return out
}

// split collects the parts of a stack from the inside out.
type split struct {
	series []series
	below  []stats.Sample
	next   Layer
}

// series is a part as a difference of samples: whole minus all of less.
type series struct {
	first, last Layer
	whole       []stats.Sample
	less        [][]stats.Sample
	subtracted  bool
}

// add adds the part that ends with a layer. The metric up to that layer is the total, and the parts are in it besides
// those below.
func (s *split) add(last Layer, total []stats.Sample, parts ...[]stats.Sample) {
	part := series{first: s.next, last: last, whole: total, less: parts}
	if len(s.below) > 0 {
		part.less = append(part.less, s.below)
		part.subtracted = true
	}
	s.series = append(s.series, part)
	s.below, s.next = total, last+1
}

// blocks are the blocks with values of all parts.
func (s *split) blocks() map[int]bool {
	var lists [][]stats.Sample
	for _, p := range s.series {
		lists = append(append(lists, p.whole), p.less...)
	}
	blocks := map[int]bool{}
	for i, samples := range lists {
		in := map[int]bool{}
		for _, sample := range samples {
			in[sample.Block] = i == 0 || blocks[sample.Block]
		}
		blocks = in
	}
	return blocks
}

// within gives the samples of some blocks.
func within(samples []stats.Sample, blocks map[int]bool) []stats.Sample {
	return lists.Filter(samples, func(s stats.Sample) bool { return blocks[s.Block] })
}

// Components is a cost by component: daemon, shim, runtime and so on. It is the metrics of one group.
type Components struct {
	// Title is the group's heading.
	Title string
	Unit  result.Unit
	// Names are the components with a value on some target, Metrics their metrics.
	Names, Metrics []string
	// Rows are the targets with a value of any component.
	Rows []ComponentRow
}

// ComponentRow is the cost on one target.
type ComponentRow struct {
	Target string
	// Total is the median over trials of the sum over components.
	Total stats.Summary
	// Cells are in the order of Components.Names, nil for components that the target does not have.
	Cells []*stats.Summary
}

// components collects the groups of the benchmark's metrics, in the order of their first metrics.
func (b *builder) components(targets []Outcome) []Components {
	var groups []Components
	for _, m := range b.described.Metrics {
		if m.Group == "" || len(b.samples(targets, m)) == 0 {
			continue
		}
		c := lists.Place(&groups, func(c *Components) bool { return c.Title == m.Group }, Components{Title: m.Group, Unit: m.Unit})
		c.Names, c.Metrics = append(c.Names, m.Component), append(c.Metrics, m.Name)
	}
	for i := range groups {
		for _, o := range targets {
			if row, has := b.componentRow(o.Target, &groups[i]); has {
				groups[i].Rows = append(groups[i].Rows, row)
			}
		}
	}
	return groups
}

// componentRow returns false for a target without a value. A trial with values of other components counts as 0 for a
// component without one, both here and in the sum.
func (b *builder) componentRow(target string, c *Components) (ComponentRow, bool) {
	row := ComponentRow{Target: target, Cells: make([]*stats.Summary, len(c.Metrics))}
	var sums []float64
	values := make([][]float64, len(c.Metrics))
	presence := make([]bool, len(c.Metrics))
	for _, t := range b.valid(target) {
		var sum float64
		has := false
		costs := make([]float64, len(c.Metrics))
		for i, metric := range c.Metrics {
			if series := t.Values(metric); len(series) > 0 {
				costs[i] = stats.Median(series)
				sum += costs[i]
				presence[i], has = true, true
			}
		}
		if !has {
			continue
		}
		sums = append(sums, sum)
		for i, cost := range costs {
			values[i] = append(values[i], cost)
		}
	}
	for i := range c.Metrics {
		if presence[i] {
			summary := stats.Summarize(values[i])
			row.Cells[i] = &summary
		}
	}
	row.Total = stats.Summarize(sums)
	return row, len(sums) > 0
}
