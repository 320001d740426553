// Package fleet combines the runs of a cluster run, one for each node, to statements about the fleet: a target's ratio to the baseline over all nodes, its spread
// between nodes, odd nodes, differences between kinds of nodes, and facts that separate slow nodes from fast ones.
//
// The node is the unit of observation. Trials of one node share its hardware, kernel and neighbours, so a thousand trials on three nodes say little of a fourth node. A
// node gives one ratio for each target and metric, by the blocks of its own run, as in the report of that run. The statistics over nodes are in package stats
// ([stats.PoolNodes], [stats.OddNodes]).
//
// # Rules
//
//   - A fleet is the runs with one fleet ID, plan, baseline and version of Touchstone. Most runs decide. A run with another plan or version is left out with a note. So is all
//     but one run of a node.
//   - A node counts for a target if its ratio has an interval, and neither side has lost more than [stats.MostLost] of its blocks. All others are listed with their reasons.
//   - Below [stats.MinNodes] nodes no target has a verdict.
//   - Absolute values of different nodes have a verdict in one place only: a node whose baseline is odd within its kind. A sick disk slows all targets, so no ratio shows it.
//   - The targets of one metric are a family, as in a run. All odd nodes are one family, all differences between kinds another, and all spreads a third.
//   - A fact separates slow nodes from fast ones if all nodes that have the value are slower than all others, or faster, and chance hardly does that. The test is made
//     only where a spread is shown, and has the two tiers of a verdict. The report lists facts that come together in one line, because no run can tell them apart.
package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/fact"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Report is the content of a report of a fleet.
type Report struct {
	// ID is the ID of the fleet, and Plan the name of its plan.
	ID, Plan string
	// Started and Ended are the first start and the last end of the nodes' runs. Ended is zero while a run goes on.
	Started, Ended time.Time
	Tool           result.Tool
	Baseline       string
	// Targets are the targets of all nodes, the baseline first.
	Targets []string
	// Nodes are sorted by kind and name. Kinds are in this order too.
	Nodes []Node
	Kinds []Kind
	// LeftOut are runs of the fleet that do not count.
	LeftOut []LeftOut
	// Caveats are the caveats that the runs of all nodes have. The cluster run's own come first.
	Caveats []string
	Metrics []Metric
	Stages  []Stages
	// Shared are facts that all nodes share, and Different the facts that differ.
	Shared, Different []fact.Row
	// MinEffect is the margin of differences that do not matter.
	MinEffect float64

	host    result.Host
	targets []result.Target
}

// Node is a node with its run.
type Node struct {
	Name, Kind string
	Run        string
	State      result.State
	// OK, Lost and Skipped count the trials without warm-up. Lost failed or exceeded a limit.
	OK, Lost, Skipped int
	// Unavailable are the targets that the node lacks, with the reasons.
	Unavailable map[string]string
}

// Kind is a kind of nodes, with the places of its nodes.
type Kind struct {
	Name  string
	Nodes []int
}

// LeftOut is a run that does not count, with the reason and the remedy.
type LeftOut struct {
	Run    string `json:"run" doc:"ID of the run."`
	Node   string `json:"node,omitempty" doc:"Name of its node; absent in an anonymous run."`
	Reason string `json:"reason" doc:"The reason and the remedy."`
}

// Metric is a metric of a benchmark on all targets.
type Metric struct {
	analysis.Key
	result.Metric
	// Classes are by target, the baseline first. Targets without a value on any node are not among them.
	Classes []Class
}

// Class is a metric on one target of the fleet.
type Class struct {
	Target   string
	Baseline bool
	// Values are by node.
	Values []Value
	// Typical is the median of the nodes' medians.
	Typical float64
	// Fleet is the estimate over nodes. Comparison has its ratio, interval and verdict. Both are empty on the baseline, and if no node counts.
	Fleet      stats.Fleet
	Comparison *stats.Comparison
	// Rest is the estimate without the odd nodes. It is empty without odd nodes, and has no verdict.
	Rest stats.Fleet
	// Emulated is set if the CPU of some node may be emulated and the metric depends on it.
	Emulated bool
	// SpreadP is the p-value of a spread between nodes after the correction over the fleet.
	SpreadP     float64
	Kinds       []KindDifference
	Odd         []Odd
	Separations []Separation
}

// Value is a metric on one target of one node.
type Value struct {
	// Median is NaN without a value. Ratio and CI are the ratio to the baseline on the same node, NaN and nil without one.
	Median, Ratio float64
	CI            *stats.Interval
	// Counts is set if the value is in the estimate of the fleet. Reason explains a value that does not count.
	Counts bool
	Reason string

	// effect is the ratio, or on the baseline the value. level is the value on all targets.
	effect, level stats.NodeEffect
	lost          stats.Losses
}

// KindDifference is a kind of nodes against the largest kind.
type KindDifference struct {
	Kind, Reference string
	Nodes           int
	// Ratio is the typical ratio to the baseline on nodes of the kind. Quotient is Ratio as a multiple of the ratio on the reference.
	Ratio, Quotient float64
	CI              stats.Interval // of Quotient
	P               float64        // after the correction over the fleet
}

// Differs reports whether the kinds are shown to differ.
func (k KindDifference) Differs() bool { return k.P < stats.Alpha }

// Odd is a node that differs from its kind.
type Odd struct {
	Node int
	// Quotient is its ratio, or its value on the baseline, as a multiple of the mean of the other nodes of its kind.
	Quotient float64
	P        float64 // after the correction over the fleet
	// Facts are the values that no other node of its kind has. They are no proof of a cause.
	Facts []fact.Fact
}

// Separation is facts that separate slow nodes from fast ones.
type Separation struct {
	// Kind is the kind of the compared nodes, empty for all nodes.
	Kind string
	// Facts have exactly these nodes in common. Nodes are all nodes with the facts, and Peers the compared nodes without them.
	Facts        []fact.Fact
	Nodes, Peers []int
	// Quotient is the median ratio of Nodes as a multiple of the median ratio of Peers.
	Quotient float64
	// P is corrected for the divisions of the nodes that facts make. Everywhere is set if the separation is shown over all comparisons of the fleet.
	P          float64
	Everywhere bool

	chance float64 // the p-value without a correction
}

// Builder takes the runs of a fleet one after the other. It keeps the numbers of a run and not its trials, so a thousand nodes fit into memory.
type Builder struct {
	options analysis.Options
	parts   []part
}

type part struct {
	run    result.Run // without trials
	node   Node
	values []analysis.Estimated
}

// NewBuilder returns a builder. EmulatedVerdicts and MinEffect of the options hold.
func NewBuilder(o analysis.Options) *Builder { return &Builder{options: o} }

// Add adds a run of a node. The run belongs to the fleet of the first run, or Add returns an error.
func (b *Builder) Add(run *result.Run) error {
	node := run.Host.Node
	switch {
	case node == nil:
		return fmt.Errorf("run %s is no run of a node: it has no fleet; name it alone", run.ID)
	case len(b.parts) > 0 && b.parts[0].run.Host.Node.Fleet != node.Fleet:
		return fmt.Errorf("run %s belongs to the fleet %s, and run %s to the fleet %s; name one fleet", run.ID, node.Fleet, b.parts[0].run.ID, b.parts[0].run.Host.Node.Fleet)
	}
	p := part{run: *run, values: analysis.Estimates(run, b.options)}
	p.run.Trials, p.run.Bench = nil, nil
	p.node = Node{Name: node.Name, Kind: cmp.Or(node.Kind, unknownKind), Run: run.ID, State: run.State, Unavailable: map[string]string{}}
	for i := range run.Trials {
		if t := &run.Trials[i]; !t.Warmup {
			switch t.Status {
			case result.OK:
				p.node.OK++
			case result.Failed, result.Timeout:
				p.node.Lost++
			case result.Skipped:
				p.node.Skipped++
			}
		}
	}
	for _, t := range run.Targets {
		if t.Unavailable != "" {
			p.node.Unavailable[t.Name] = t.Unavailable
		}
	}
	for i := range p.values {
		if c := p.values[i].Comparison; c != nil {
			c.LogRatios = nil // the ratios of blocks are most of the memory
		}
	}
	b.parts = append(b.parts, p)
	return nil
}

// unknownKind is the kind of nodes without one.
const unknownKind = "unknown kind"

// ErrEmpty is the error of a fleet without a run.
var ErrEmpty = errors.New("the fleet has no run")

// Report is the report of the runs so far.
func (b *Builder) Report() (*Report, error) {
	if len(b.parts) == 0 {
		return nil, ErrEmpty
	}
	parts, leftOut := b.belonging()
	main := &parts[0].run
	main.Baseline = cmp.Or(main.Baseline, baselineOf(parts))
	r := &Report{ID: main.Host.Node.Fleet, Plan: main.Name, Tool: main.Tool, Baseline: main.Baseline, LeftOut: leftOut, MinEffect: b.options.MinEffect}
	isOver := true
	for i := range parts {
		run := &parts[i].run
		r.Nodes = append(r.Nodes, parts[i].node)
		kind := lists.Place(&r.Kinds, func(k *Kind) bool { return k.Name == parts[i].node.Kind }, Kind{Name: parts[i].node.Kind})
		kind.Nodes = append(kind.Nodes, i)
		if r.Started.IsZero() || run.Started.Before(r.Started) {
			r.Started = run.Started
		}
		if run.Ended.After(r.Ended) {
			r.Ended = run.Ended
		}
		isOver = isOver && run.State != result.Running
		for _, t := range run.Targets {
			switch place := slices.IndexFunc(r.targets, func(twin result.Target) bool { return twin.Name == t.Name }); {
			case place < 0:
				r.Targets, r.targets = append(r.Targets, t.Name), append(r.targets, t)
			case r.targets[place].Unavailable != "":
				r.targets[place] = t
			}
		}
		if i == 0 || run.Host.MayBeEmulated() {
			r.host = run.Host
		}
	}
	if !isOver {
		r.Ended = time.Time{}
	}
	for _, caveat := range main.Caveats {
		if !slices.ContainsFunc(parts, func(p part) bool { return !slices.Contains(p.run.Caveats, caveat) }) {
			r.Caveats = append(r.Caveats, caveat)
		}
	}
	slices.SortStableFunc(r.Targets, func(x, y string) int { return isBaseline(y, r.Baseline) - isBaseline(x, r.Baseline) })
	r.Shared, r.Different = compareFacts(parts)
	r.measure(parts)
	r.judge()
	return r, nil
}

// baselineOf is the most frequent baseline of runs without one of their own.
func baselineOf(parts []part) string {
	count := map[string]int{}
	best := ""
	for i := range parts {
		for _, e := range parts[i].values {
			if count[e.Baseline]++; e.Baseline != "" && (best == "" || count[e.Baseline] > count[best]) {
				best = e.Baseline
			}
		}
	}
	return best
}

func isBaseline(target, baseline string) int {
	if target == baseline {
		return 1
	}
	return 0
}

// seedLine is the seed of a plan. Each node has a seed of its own.
var seedLine = regexp.MustCompile(`(?m)^seed:.*$`)

// belonging are the runs of the most frequent plan and version, one for each node, sorted by kind and name, and the other runs with the reasons.
func (b *Builder) belonging() (parts []part, leftOut []LeftOut) {
	signature := func(r *result.Run) [4]string {
		return [4]string{r.Name, seedLine.ReplaceAllString(r.Plan, ""), r.Baseline, r.Tool.Version + " " + r.Tool.Commit}
	}
	count := map[[4]string]int{}
	best := signature(&b.parts[0].run)
	for i := range b.parts {
		s := signature(&b.parts[i].run)
		if count[s]++; count[s] > count[best] {
			best = s
		}
	}
	leave := func(p *part, reason string, args ...any) {
		leftOut = append(leftOut, LeftOut{Run: p.node.Run, Node: p.node.Name, Reason: fmt.Sprintf(reason, args...)})
	}
	for i := range b.parts {
		p := &b.parts[i]
		switch s := signature(&p.run); {
		case s[3] != best[3]:
			leave(p, "Touchstone %s measured it, and Touchstone %s the other nodes; measure this node again with their version", strings.TrimSpace(s[3]), strings.TrimSpace(best[3]))
			continue
		case s != best:
			leave(p, "it has another plan or baseline than most nodes; measure this node again with their plan")
			continue
		}
		twin := slices.IndexFunc(parts, func(q part) bool { return p.node.Name != "" && q.node.Name == p.node.Name })
		if twin < 0 {
			parts = append(parts, *p)
			continue
		}
		first, second := &parts[twin], p
		if second.node.OK > first.node.OK {
			*first, *second = *second, *first
		}
		leave(second, "run %s of the same node has as many trials or more; a node counts once", first.node.Run)
	}
	slices.SortStableFunc(parts, func(p, q part) int {
		return cmp.Or(cmp.Compare(p.node.Kind, q.node.Kind), cmp.Compare(p.node.Name, q.node.Name), cmp.Compare(p.node.Run, q.node.Run))
	})
	for i := range parts {
		if parts[i].node.Name == "" {
			parts[i].node.Name = fmt.Sprintf("node %d", i+1)
		}
	}
	return parts, leftOut
}

// measure fills in the values of all metrics.
func (r *Report) measure(parts []part) {
	index := map[placeKey]*classPlace{}
	for i := range parts {
		for n := range parts[i].values {
			r.place(index, i, &parts[i].values[n])
		}
	}
	for m := range r.Metrics {
		for c := range r.Metrics[m].Classes {
			class := &r.Metrics[m].Classes[c]
			var medians []float64
			for i := range class.Values {
				v := &class.Values[i]
				if !math.IsNaN(v.Median) {
					medians = append(medians, v.Median)
				} else if v.Reason == "" {
					v.Reason = r.without(class.Target, i)
				}
			}
			class.Typical = math.NaN()
			if medians != nil {
				class.Typical = stats.Median(medians)
			}
		}
		metric := &r.Metrics[m]
		metric.Classes = slices.DeleteFunc(metric.Classes, func(c Class) bool { return math.IsNaN(c.Typical) })
		slices.SortStableFunc(metric.Classes, func(x, y Class) int { return slices.Index(r.Targets, x.Target) - slices.Index(r.Targets, y.Target) })
	}
	r.Metrics = slices.DeleteFunc(r.Metrics, func(m Metric) bool { return len(m.Classes) == 0 })
}

// without is the reason why a node has no trial of a target.
func (r *Report) without(target string, node int) string {
	if reason, has := r.Nodes[node].Unavailable[target]; has {
		return reason
	}
	n := &r.Nodes[node]
	if n.OK+n.Lost+n.Skipped == 0 {
		return fmt.Sprintf("the node has no trial; its run is %s", n.State)
	}
	return "the node's run has no trial of it"
}

type placeKey struct {
	analysis.Key
	metric, target string
	unit           result.Unit
}

// classPlace is the place of a class: a metric, or a part of a quantity.
type classPlace struct{ metric, class int }

// place puts a value of a node into its class.
func (r *Report) place(index map[placeKey]*classPlace, node int, e *analysis.Estimated) {
	if e.Metric.Group != "" {
		r.stage(e)
		return
	}
	key := placeKey{e.Key, e.Metric.Name, e.Target, e.Metric.Unit}
	place := index[key]
	if place == nil {
		metric := slices.IndexFunc(r.Metrics, func(m Metric) bool {
			return m.Key == e.Key && m.Metric.Name == e.Metric.Name && m.Unit == e.Metric.Unit
		})
		if metric < 0 {
			metric = len(r.Metrics)
			r.Metrics = append(r.Metrics, Metric{Key: e.Key, Metric: e.Metric})
		}
		m := &r.Metrics[metric]
		place = &classPlace{metric, len(m.Classes)}
		index[key] = place
		values := slices.Repeat([]Value{{Median: math.NaN(), Ratio: math.NaN()}}, len(r.Nodes))
		m.Classes = append(m.Classes, Class{Target: e.Target, Baseline: e.Target == r.Baseline, Values: values})
	}
	class := &r.Metrics[place.metric].Classes[place.class]
	class.Emulated = class.Emulated || e.Emulated
	class.Values[node] = r.value(node, e)
}

func (r *Report) value(node int, e *analysis.Estimated) Value {
	v := Value{Median: e.Median, Ratio: math.NaN(), Reason: e.Reason}
	if !e.Metric.IsJudged() {
		return v
	}
	v.lost = e.Lost
	v.level = stats.NodeEffect{Effect: e.Level, Blocks: e.Blocks, Kind: r.Nodes[node].Kind}
	v.effect = v.level
	if e.Blocks == 0 || e.Target == r.Baseline {
		v.Counts = e.Blocks >= stats.MinSamples && !math.IsNaN(e.Level.SE)
		return v
	}
	c := e.Comparison
	switch {
	case e.Baseline != r.Baseline:
		v.Reason = fmt.Sprintf("the baseline %s has no value on this node", r.Baseline)
	case c == nil:
		v.Reason = "the baseline has no value of the metric other than 0 on this node"
	case c.Verdict == stats.NotComparable:
		v.Reason = "a value is not above 0"
	default:
		v.Ratio, v.CI = c.Ratio, c.CI
		v.effect.Effect, v.effect.Blocks = stats.Effect{Log: math.Log(c.Ratio), SE: c.LogSE}, c.N
		switch {
		case c.CI == nil:
			v.Reason = fmt.Sprintf("%s; an interval needs %d", wording.Counted(c.N, "common block"), stats.MinSamples)
		case c.Lost.Other > stats.MostLost:
			v.Reason = fmt.Sprintf("%s of its blocks are lost", quantity.Percent(c.Lost.Other))
		case c.Lost.Baseline > stats.MostLost:
			v.Reason = fmt.Sprintf("%s of the baseline's blocks are lost", quantity.Percent(c.Lost.Baseline))
		default:
			v.Counts = true
		}
	}
	return v
}
