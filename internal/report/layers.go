package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Layer is one of the layers that the start of a container goes through.
type Layer int

// The layers, from the inside out.
const (
	// ProcessLayer is the program itself, as native starts it.
	ProcessLayer Layer = iota
	// RuntimeLayer is what a bare runtime adds to that: oci/R − native.
	RuntimeLayer
	// EngineLayer is what an engine and its shim or monitor add to the runtime.
	EngineLayer
	// SandboxLayer is the pod's sandbox with its network, a step of CRI of its own.
	SandboxLayer
)

// LayerNames are the names of the layers, by Layer.
func LayerNames() []string {
	return []string{ProcessLayer: "process", RuntimeLayer: "runtime", EngineLayer: "shim and engine", SandboxLayer: "sandbox and network"}
}

// The benchmark that is split into layers, and the metric of the step that is the sandbox's.
const (
	layeredBenchmark = "operations.container.lifecycle"
	sandboxStep      = "RunPodSandbox"
)

// roundingError is the share of a sum of which nothing but the arithmetic can be the reason.
const roundingError = 1e-9

// sandboxed is the metric of which sandboxStep is a part.
const sandboxed = "CreateAndRun"

// layeredMetrics are the metrics that are split.
func layeredMetrics() []string { return []string{sandboxed, "HostCPU"} }

// bareEngine is the engine that calls the runtime itself, without a daemon.
const bareEngine = "oci"

// Layers is what each layer adds to one metric of a benchmark.
type Layers struct {
	Metric result.Metric
	// Stacks stand runtime by runtime, the bare one first.
	Stacks []Stack
}

// Stack is a target as the sum of its layers, over the blocks in which all targets that tell them
// apart have a value. Within a block the parts add up to the whole exactly. Their medians need
// not: see Remainder.
type Stack struct {
	Target string
	// Runtime is the runtime with its options, which a bare target and one of an engine share.
	Runtime string
	// Total is the metric itself.
	Total stats.Difference
	Parts []Part
	// Remainder is what the medians of the parts lack to the median of the whole; negative if
	// they exceed it.
	Remainder float64
	// Note says which layers could not be told apart, and why.
	Note string
}

// Part is one layer of a stack, or several that cannot be told apart.
type Part struct {
	First, Last Layer
	stats.Difference
	// Subtracted tells that the part is a difference, which may be nothing or negative. The
	// others are times or costs themselves.
	Subtracted bool
}

// Name is the name of the part's layers: "runtime, shim and engine".
func (p Part) Name() string {
	return strings.Join(LayerNames()[p.First:p.Last+1], ", ")
}

// Unclear tells that the part was not shown to differ from nothing.
func (p Part) Unclear() bool { return p.Subtracted && p.CI != nil && !p.Shown() }

// depth is the outermost layer that a target goes through; of those of an engine, the first.
func depth(name, runtime string) Layer {
	switch name {
	case target.Native:
		return ProcessLayer
	case bareEngine + "/" + runtime:
		return RuntimeLayer
	}
	return EngineLayer
}

// Blocks counts the blocks behind the numbers; 0 if there is a value that is not finite.
func (s *Stack) Blocks() int {
	if !finite(s.Remainder) {
		return 0
	}
	return s.Total.N
}

// Merged tells whether some stack has layers that cannot be told apart.
func (l *Layers) Merged() bool {
	return slices.ContainsFunc(l.Stacks, func(s Stack) bool {
		return slices.ContainsFunc(s.Parts, func(p Part) bool { return p.First != p.Last })
	})
}

// Notes say what the numbers are, and what they cannot tell.
func (l *Layers) Notes() []string {
	notes := []string{
		"A layer is the difference to the layers below it in the same block. Within a block the layers add up to the whole; medians need not, " +
			"and the remainder is what they lack. Each interval is a 95 % interval by itself: of twenty layers that add nothing, one may seem to.",
	}
	if l.Metric.Name != sandboxed {
		notes = append(notes, "No step tells the sandbox's part of "+l.Metric.Name+" apart: where an engine makes one, it is with shim and engine.")
	}
	if slices.ContainsFunc(l.Stacks, sandboxFirst) {
		notes = append(notes, "Where shim and engine is negative beside a sandbox, the sandbox has done what the bare runtime does in create, "+
			"such as to start gVisor's kernel or a virtual machine: read the two together.")
	}
	var lacking []gap
	for _, s := range l.Stacks {
		if s.Note != "" {
			lacking = put(lacking, "", s.Note, s.Target)
		}
	}
	for _, g := range lacking {
		notes = append(notes, strings.Join(g.targets, ", ")+": "+g.reason+".")
	}
	return notes
}

// sandboxFirst tells whether the engine adds less than nothing and the sandbox something.
func sandboxFirst(s Stack) bool {
	return slices.ContainsFunc(s.Parts, func(p Part) bool { return p.Last == SandboxLayer }) &&
		slices.ContainsFunc(s.Parts, func(p Part) bool { return p.Last == EngineLayer && p.Shown() && p.Median < 0 })
}

// layers splits the metrics of a benchmark. There is nothing to split unless an engine drives
// a runtime, and another target goes through fewer layers.
func (b *builder) layers(bench *Benchmark) []Layers {
	if bench.Name != layeredBenchmark {
		return nil
	}
	var all []Layers
	sandbox := bench.samples(sandboxStep)
	for _, name := range layeredMetrics() {
		at := slices.IndexFunc(bench.Metrics, func(m Metric) bool { return m.Name == name })
		if at < 0 {
			continue
		}
		parts := splitter{builder: b, metric: name, whole: bench.samples(name), sandbox: sandbox}
		out := Layers{Metric: bench.Metrics[at].Metric, Stacks: parts.stacks(bench.Targets)}
		if slices.ContainsFunc(out.Stacks, func(s Stack) bool { return len(s.Parts) > 1 && depth(s.Target, s.Runtime) == EngineLayer }) {
			all = append(all, out)
		}
	}
	return all
}

// samples gives the values of a metric by target.
func (b *Benchmark) samples(metric string) map[string][]stats.Sample {
	all := map[string][]stats.Sample{}
	for _, m := range b.Metrics {
		if m.Name != metric {
			continue
		}
		for _, c := range m.Cells {
			for _, p := range c.Points {
				all[c.Target] = append(all[c.Target], stats.Sample{Block: p.Block, Value: p.Value})
			}
		}
	}
	return all
}

// splitter splits one metric of one benchmark.
type splitter struct {
	*builder
	metric string
	// whole is the metric, sandbox that of the sandbox's step, by target.
	whole, sandbox map[string][]stats.Sample
}

// stacks splits the metric on all targets that have it and whose names tell an engine from a
// runtime.
func (s *splitter) stacks(targets []Outcome) []Stack {
	var all []Stack
	place := map[string]int{} // of a runtime, in the order of the run
	for _, o := range targets {
		if _, err := target.Parse(o.Target); err != nil || len(s.whole[o.Target]) == 0 {
			continue
		}
		_, runtime, _ := strings.Cut(o.Target, "/") // "" of native
		if _, known := place[runtime]; !known {
			place[runtime] = len(place)
		}
		if stack := s.stack(o.Target, runtime); stack.Blocks() > 0 {
			all = append(all, stack)
		}
	}
	slices.SortStableFunc(all, func(a, b Stack) int {
		return cmp.Or(
			cmp.Compare(place[a.Runtime], place[b.Runtime]),
			cmp.Compare(depth(a.Target, a.Runtime), depth(b.Target, b.Runtime)),
		)
	})
	return all
}

// stack splits one target. Where the target that would tell two layers apart has no values, they
// stay together.
func (s *splitter) stack(name, runtime string) Stack {
	var lacking []string
	known := func(lower string) []stats.Sample {
		if len(s.whole[lower]) == 0 {
			lacking = append(lacking, lower)
		}
		return s.whole[lower]
	}
	var parts split
	if native := known(target.Native); len(native) > 0 {
		parts.add(ProcessLayer, native)
	}
	depth := depth(name, runtime)
	if depth >= RuntimeLayer {
		if bare := known(bareEngine + "/" + runtime); len(bare) > 0 {
			parts.add(RuntimeLayer, bare)
		}
	}
	if depth >= EngineLayer {
		switch sandbox := s.sandbox[name]; {
		case len(sandbox) == 0: // the engine makes none
			parts.add(EngineLayer, s.whole[name])
		case s.metric == sandboxed:
			parts.add(EngineLayer, s.whole[name], sandbox)
			parts.series = append(parts.series, series{first: SandboxLayer, last: SandboxLayer, whole: sandbox})
		default:
			parts.add(SandboxLayer, s.whole[name])
		}
	}
	blocks := parts.blocks()
	out := Stack{Target: name, Runtime: runtime, Total: stats.Subtract(within(s.whole[name], blocks), nil, s.cellSeed(name, s.metric))}
	if len(lacking) > 0 {
		out.Note = fmt.Sprintf("no value of %s to tell layers apart", strings.Join(lacking, " and "))
	}
	out.Remainder = out.Total.Median
	for _, p := range parts.series {
		part := Part{First: p.first, Last: p.last, Subtracted: p.subtracted}
		part.Difference = stats.Subtract(within(p.whole, blocks), p.less, s.cellSeed(name, s.metric+" "+part.Name()))
		out.Remainder -= part.Median
		out.Parts = append(out.Parts, part)
	}
	if math.Abs(out.Remainder) < roundingError*math.Abs(out.Total.Median) {
		out.Remainder = 0
	}
	return out
}

// split is the parts of a stack as they are added from the inside out.
type split struct {
	series []series
	below  []stats.Sample
	next   Layer
}

// series is a part by the samples that it is the difference of.
type series struct {
	first, last Layer
	whole       []stats.Sample
	less        [][]stats.Sample
	subtracted  bool
}

// add adds the part that ends with a layer, of which whole is the metric up to there, and less
// what else is in it.
func (s *split) add(last Layer, whole []stats.Sample, less ...[]stats.Sample) {
	part := series{first: s.next, last: last, whole: whole, less: less}
	if len(s.below) > 0 {
		part.less = append(part.less, s.below)
		part.subtracted = true
	}
	s.series = append(s.series, part)
	s.below, s.next = whole, last+1
}

// blocks are those in which all parts have values.
func (s *split) blocks() map[int]bool {
	var all [][]stats.Sample
	for _, p := range s.series {
		all = append(append(all, p.whole), p.less...)
	}
	count := map[int]int{}
	for _, samples := range all {
		seen := map[int]bool{}
		for _, sample := range samples {
			if !seen[sample.Block] {
				seen[sample.Block] = true
				count[sample.Block]++
			}
		}
	}
	held := map[int]bool{}
	for block, n := range count {
		held[block] = n == len(all)
	}
	return held
}

// within gives the samples of some blocks.
func within(samples []stats.Sample, blocks map[int]bool) []stats.Sample {
	var in []stats.Sample
	for _, s := range samples {
		if blocks[s.Block] {
			in = append(in, s)
		}
	}
	return in
}
