package fleet

import (
	"math"
	"time"

	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/fact"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/report/fleet"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Kind marks the JSON of a fleet. docs/schema/fleet.schema.json is its schema.
const Kind = "touchstone-fleet"

// schemaVersion is the version of the JSON.
const schemaVersion = 1

// Data is the JSON of a fleet.
type Data struct {
	Kind      string           `json:"kind" doc:"Kind of the document."`
	Version   int              `json:"schema_version" doc:"Version of the document. It rises if a field changes its meaning or goes away."`
	Fleet     string           `json:"fleet" doc:"ID of the cluster run."`
	Plan      string           `json:"plan" doc:"Name of the plan."`
	Started   time.Time        `json:"started" doc:"The first start of a node's run."`
	Ended     *time.Time       `json:"ended" doc:"The last end of a node's run; null while a run goes on."`
	Baseline  string           `json:"baseline" doc:"The target of all ratios."`
	MinEffect document.Decimal `json:"min_effect,omitzero" schema:"type=number" doc:"The margin of relative differences that do not matter; absent without one."`
	MinNodes  int              `json:"min_nodes" doc:"The least number of nodes for a verdict."`
	Withheld  string           `json:"withheld,omitempty" doc:"The reason why no target has a verdict about the fleet; absent if one has."`
	Nodes     []node           `json:"nodes" doc:"The nodes, by kind and name."`
	LeftOut   []fleet.LeftOut  `json:"left_out" doc:"Runs of the fleet that do not count."`
	Caveats   []string         `json:"caveats,omitempty" doc:"Sentences about things that were not measured or could not be held constant on any node."`
	Metrics   []metric         `json:"metrics" doc:"The metrics."`
	Stages    []stageGroup     `json:"stages" doc:"The parts of quantities, such as the stages of a start."`
	Different []factRow        `json:"different_facts" doc:"The facts that differ between nodes."`
}

type (
	node struct {
		Name    string       `json:"name" doc:"Name of the node."`
		Kind    string       `json:"kind" doc:"The group of equal nodes."`
		Run     string       `json:"run" doc:"Unique name of its run."`
		State   result.State `json:"state" doc:"The progress of the run."`
		OK      int          `json:"ok" doc:"Number of trials that were ok, without warm-up."`
		Lost    int          `json:"lost" doc:"Number of trials that failed or exceeded a limit."`
		Skipped int          `json:"skipped" doc:"Number of skipped trials."`
	}
	metric struct {
		Benchmark string           `json:"benchmark" doc:"Name of the benchmark."`
		Params    string           `json:"params,omitempty" doc:"Parameters of the benchmark in canonical form."`
		Metric    string           `json:"metric" doc:"Name of the metric."`
		Unit      result.Unit      `json:"unit" doc:"Unit of the values."`
		Better    result.Direction `json:"better" doc:"The direction of better values."`
		Targets   []class          `json:"targets" doc:"The targets with a value, the baseline first."`
	}
	class struct {
		Target      string           `json:"target" doc:"Name of the target."`
		Typical     document.Decimal `json:"typical" doc:"The median of the nodes' medians, in the unit of the metric."`
		Fleet       *estimate        `json:"fleet,omitempty" doc:"The estimate over nodes; absent on the baseline, and without a node that counts."`
		Values      []value          `json:"nodes" doc:"The values, in the order of nodes."`
		Kinds       []kind           `json:"kinds,omitempty" doc:"The kinds of nodes against the largest one."`
		Odd         []odd            `json:"odd,omitempty" doc:"The nodes that differ from their kind."`
		Separations []separation     `json:"separations,omitempty" doc:"The facts that separate slow nodes from fast ones."`
	}
	estimate struct {
		Nodes      int                `json:"nodes" doc:"Number of nodes that count."`
		Ratio      document.Decimal   `json:"ratio" doc:"The ratio to the baseline over all nodes."`
		CI         *document.Interval `json:"interval,omitempty" doc:"The 95 % interval of the ratio; absent with too few nodes."`
		Prediction *document.Interval `json:"next_node,omitempty" doc:"The 95 % interval for the ratio of one more node; absent with too few nodes."`
		Spread     document.Decimal   `json:"spread_log_sd" doc:"The standard deviation of the logarithm of the ratio between nodes; null if it does not exist."`
		SpreadP    document.Decimal   `json:"spread_p" doc:"The p-value of a spread after the correction over the fleet; null if it does not exist."`
		Share      document.Decimal   `json:"spread_share" doc:"The share (0 to 1) of the variation between ratios that is no noise within nodes; null if it does not exist."`
		P          document.Decimal   `json:"p" doc:"The p-value of the ratio after the correction over the targets of the metric; null without a test."`
		Verdict    stats.Verdict      `json:"verdict" doc:"The verdict about the fleet."`
		Everywhere bool               `json:"everywhere" doc:"Set if the difference is shown over all metrics of the fleet."`
		Rest       document.Decimal   `json:"ratio_without_odd,omitzero" schema:"type=number" doc:"The ratio without the odd nodes; absent without odd nodes."`
	}
	value struct {
		Median document.Decimal   `json:"median" doc:"The median on the node, in the unit of the metric; null without a value."`
		Ratio  document.Decimal   `json:"ratio" doc:"The ratio to the baseline on the node; null without one."`
		CI     *document.Interval `json:"interval,omitempty" doc:"The 95 % interval of the ratio; absent without one."`
		Counts bool               `json:"counts" doc:"Set if the node counts for the target."`
		Reason string             `json:"reason,omitempty" doc:"The reason why it does not count."`
	}
	kind struct {
		Kind      string             `json:"kind" doc:"The kind of nodes."`
		Reference string             `json:"reference" doc:"The kind that it is compared with."`
		Nodes     int                `json:"nodes" doc:"Number of its nodes that count."`
		Ratio     document.Decimal   `json:"ratio" doc:"The ratio to the baseline on its nodes."`
		Quotient  document.Decimal   `json:"quotient" doc:"The ratio as a multiple of the ratio on the reference."`
		CI        *document.Interval `json:"interval,omitempty" doc:"The 95 % interval of the quotient."`
		P         document.Decimal   `json:"p" doc:"The p-value after the correction over all differences between kinds."`
		Differs   bool               `json:"differs" doc:"Set if the kinds are shown to differ."`
	}
	odd struct {
		Node     string           `json:"node" doc:"Name of the node."`
		Quotient document.Decimal `json:"quotient" doc:"The node's ratio, or its value on the baseline, as a multiple of the mean of the other nodes of its kind."`
		P        document.Decimal `json:"p" doc:"The p-value after the correction over all nodes and targets."`
		Facts    []text           `json:"facts,omitempty" doc:"The facts that no other node of its kind has."`
	}
	separation struct {
		Kind       string           `json:"kind,omitempty" doc:"The kind of the compared nodes; absent for all nodes."`
		Facts      []text           `json:"facts" doc:"The facts. They come together on these nodes."`
		Nodes      []string         `json:"nodes" doc:"All compared nodes with the facts."`
		Peers      int              `json:"peers" doc:"Number of the compared nodes without them."`
		Quotient   document.Decimal `json:"quotient" doc:"The median ratio with the facts as a multiple of the one without."`
		P          document.Decimal `json:"p" doc:"The p-value after the correction over the divisions of the nodes."`
		Everywhere bool             `json:"everywhere" doc:"Set if the separation is shown over all comparisons of the fleet."`
	}
	text struct {
		Name string `json:"name" doc:"Name of the fact."`
		Text string `json:"text" doc:"The fact in words."`
	}
	stageGroup struct {
		Benchmark string      `json:"benchmark" doc:"Name of the benchmark."`
		Params    string      `json:"params,omitempty" doc:"Parameters of the benchmark in canonical form."`
		Title     string      `json:"title" doc:"Name of the quantity."`
		Unit      result.Unit `json:"unit" doc:"Unit of the values."`
		Parts     []string    `json:"parts" doc:"Names of the parts."`
		Targets   []stageRow  `json:"targets" doc:"The targets with a value."`
	}
	stageRow struct {
		Target string  `json:"target" doc:"Name of the target."`
		Stages []stage `json:"stages" doc:"The parts, in the order of parts."`
	}
	stage struct {
		Nodes int                `json:"nodes" doc:"Number of nodes with a value."`
		Mean  document.Decimal   `json:"mean" doc:"The mean over nodes of the nodes' medians; null without a value."`
		CI    *document.Interval `json:"interval,omitempty" doc:"The 95 % interval of the mean over nodes; absent with too few nodes."`
	}
	factRow struct {
		Name   string   `json:"name" doc:"Name of the fact."`
		Values []string `json:"values" doc:"The values, in the order of nodes; empty if it is not known."`
	}
)

func newData(r *fleet.Report) Data {
	d := Data{
		Kind: Kind, Version: schemaVersion, Fleet: r.ID, Plan: r.Plan, Started: r.Started.UTC(), Baseline: r.Baseline, MinEffect: document.Decimal(r.MinEffect), MinNodes: stats.MinNodes,
		Withheld: r.Withheld(), LeftOut: append([]fleet.LeftOut{}, r.LeftOut...), Caveats: r.Caveats,
		Nodes: lists.Convert(r.Nodes, func(n *fleet.Node) node {
			return node{n.Name, n.Kind, n.Run, n.State, n.OK, n.Lost, n.Skipped}
		}),
		Metrics: lists.Convert(r.Metrics, func(m *fleet.Metric) metric {
			return metric{m.Key.Name, m.Params, m.Metric.Name, m.Unit, m.Better, lists.Convert(m.Classes, func(c *fleet.Class) class { return newClass(r, c) })}
		}),
		Stages: lists.Convert(r.Stages, newStages),
		Different: lists.Convert(r.Different, func(row *fact.Row) factRow {
			return factRow{row.Name(), row.Values}
		}),
	}
	if !r.Ended.IsZero() {
		end := r.Ended.UTC()
		d.Ended = &end
	}
	return d
}

func newClass(r *fleet.Report, c *fleet.Class) class {
	out := class{Target: c.Target, Typical: document.Decimal(c.Typical)}
	if c.Comparison != nil {
		out.Fleet = newEstimate(c)
	}
	out.Values = lists.Convert(c.Values, func(v *fleet.Value) value {
		return value{document.Decimal(v.Median), document.Decimal(v.Ratio), document.IntervalOf(v.CI), v.Counts, v.Reason}
	})
	for _, k := range c.Kinds {
		out.Kinds = append(out.Kinds, kind{k.Kind, k.Reference, k.Nodes, document.Decimal(k.Ratio), document.Decimal(k.Quotient), document.IntervalOf(&k.CI), document.Decimal(k.P), k.Differs()})
	}
	for _, o := range c.Odd {
		out.Odd = append(out.Odd, odd{r.Nodes[o.Node].Name, document.Decimal(o.Quotient), document.Decimal(o.P), texts(o.Facts)})
	}
	for _, s := range c.Separations {
		names := lists.Convert(s.Nodes, func(node *int) string { return r.Nodes[*node].Name })
		out.Separations = append(out.Separations, separation{s.Kind, texts(s.Facts), names, len(s.Peers), document.Decimal(s.Quotient), document.Decimal(s.P), s.Everywhere})
	}
	return out
}

func newEstimate(c *fleet.Class) *estimate {
	e := &estimate{
		Nodes: c.Fleet.N, Ratio: document.Decimal(c.Comparison.Ratio), CI: document.IntervalOf(c.Comparison.CI), Spread: document.Decimal(c.Fleet.Spread()), SpreadP: document.Decimal(c.SpreadP),
		Share: document.Decimal(c.Fleet.Share), P: document.Decimal(c.Comparison.Adjusted), Verdict: c.Comparison.Verdict, Everywhere: c.Comparison.Everywhere,
	}
	if c.Fleet.N >= stats.MinNodes {
		e.Prediction = document.IntervalOf(ratios(c.Fleet.Prediction(1 - stats.Level)))
	}
	if c.Rest.N > 0 {
		e.Rest = document.Decimal(math.Exp(c.Rest.Log))
	}
	return e
}

func texts(facts []fact.Fact) []text {
	var list []text
	for _, f := range facts {
		list = append(list, text{f.Name(), f.Text})
	}
	return list
}

func newStages(s *fleet.Stages) stageGroup {
	return stageGroup{s.Name, s.Params, s.Title, s.Unit, s.Parts, lists.Convert(s.Rows, func(row *fleet.StageRow) stageRow {
		return stageRow{row.Target, lists.Convert(row.Stages, func(st *fleet.Stage) stage {
			return stage{st.Nodes, document.Decimal(st.Mean), document.IntervalOf(st.CI)}
		})}
	})}
}
