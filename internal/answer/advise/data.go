package advise

import (
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/report/advice"
)

// Kind marks the JSON of an advice. docs/schema/advice.schema.json is its schema.
const Kind = "touchstone-advice"

// schemaVersion is the version of the JSON.
const schemaVersion = 1

// Data is the JSON of an advice.
type Data struct {
	Kind        string      `json:"kind" doc:"Kind of the document."`
	Version     int         `json:"schema_version" doc:"Version of the document. It rises if a field changes its meaning or goes away."`
	Profile     string      `json:"profile" doc:"Name of the profile."`
	Runs        []string    `json:"runs" schema:"minItems=1" doc:"Unique names of the runs."`
	Recommended string      `json:"recommended" doc:"The target that is shown to cost less than every other ranked one; empty without one."`
	Best        []string    `json:"not_beaten" doc:"The targets that no other one is shown to cost less than."`
	Reason      string      `json:"reason,omitempty" doc:"Reason of an empty ranking."`
	Reference   string      `json:"reference" doc:"The target with the cost 1; empty without a ranking."`
	Resamples   int         `json:"resamples" doc:"Number of resamples."`
	Seed        uint64      `json:"seed,string" doc:"Seed of the resamples."`
	Unit        string      `json:"unit" schema:"enum=block|node" doc:"The unit of observation: a block, or a node in a fleet. Blocks are such units."`
	Blocks      []int       `json:"blocks" doc:"Number of blocks of each group of sources with the same blocks."`
	Dimensions  []dimension `json:"dimensions" doc:"The counted dimensions."`
	Ranking     []place     `json:"ranking" doc:"The ranked targets, in the order of their cost."`
	Orders      []order     `json:"orders" doc:"All pairs of ranked targets."`
	Unranked    []unranked  `json:"unranked" doc:"The targets without a place."`
	Missing     []gap       `json:"missing" doc:"The dimensions of the profile without a value on some target."`
	Commands    []string    `json:"commands" doc:"Commands that measure the missing dimensions, and ask again."`
	Kubernetes  *kube       `json:"kubernetes" doc:"Settings of Kubernetes for the first target; null without a ranking or a runtime that it can call."`
}

type (
	dimension struct {
		Name    string           `json:"dimension" doc:"Name of the dimension."`
		Share   document.Decimal `json:"share" schema:"type=number" doc:"Share (0 to 1) of all weights."`
		Sources []source         `json:"sources" schema:"minItems=1" doc:"The metrics behind it, with equal weights."`
	}
	source struct {
		Run       string `json:"run" doc:"Unique name of the run."`
		Benchmark string `json:"benchmark" doc:"Name of the benchmark."`
		Params    string `json:"params" doc:"Parameters of the benchmark in canonical form."`
		Metric    string `json:"metric" doc:"Name of the metric."`
	}
	place struct {
		Target   string             `json:"target" doc:"Name of the target."`
		Place    int                `json:"place" schema:"minimum=1" doc:"1 and the number of targets that are shown to cost less."`
		Cost     document.Decimal   `json:"cost" doc:"The weighted geometric mean of the costs, as a factor of the reference."`
		Interval *document.Interval `json:"interval" doc:"Its 95 % interval; null for the reference."`
		First    document.Decimal   `json:"first_share" schema:"type=number" doc:"Share (0 to 1) of the resamples without a cheaper target."`
		Costs    []document.Decimal `json:"costs" doc:"The costs of the dimensions, in their order."`
	}
	order struct {
		Better    string             `json:"better" doc:"The target with the smaller cost, as an estimate."`
		Worse     string             `json:"worse" doc:"The other target."`
		Ratio     document.Decimal   `json:"ratio" doc:"The cost of worse by the cost of better."`
		Interval  *document.Interval `json:"interval" doc:"Its 95 % interval."`
		Share     document.Decimal   `json:"resample_share" schema:"type=number" doc:"Share (0 to 1) of the resamples with this order."`
		P         document.Decimal   `json:"p" doc:"The p-value over all pairs."`
		Shown     bool               `json:"shown" doc:"Set if the data shows the order."`
		Dependent bool               `json:"dependent" doc:"Set if the difference of a block depends on the blocks before. Such an order is not shown."`
		More      int                `json:"more_blocks,omitempty" doc:"About as many more blocks may show the order; absent if it is shown, or if no reasonable number may."`
	}
	unranked struct {
		Target string `json:"target" doc:"Name of the target."`
		Reason string `json:"reason" doc:"Reason of the missing place."`
	}
	gap struct {
		Dimension string `json:"dimension" doc:"Name of the dimension."`
		Required  bool   `json:"required" doc:"Set if a target without it has no place."`
		Counted   bool   `json:"counted" doc:"Set if it counts for the ranked targets, and only others lack it."`
		Reason    string `json:"reason" doc:"Reason, with the targets."`
	}
	kube struct {
		Target   string           `json:"target" doc:"Name of the target."`
		Measured string           `json:"measured" doc:"The target whose pods were measured; empty without one."`
		Handler  string           `json:"handler" doc:"Name of the class and of the handler."`
		Memory   document.Decimal `json:"memory_bytes,omitzero" doc:"Upper bound of the memory of one more pod; absent without one."`
		Share    document.Decimal `json:"pod_share" schema:"type=number" doc:"Share (0 to 1) of the pods that the bound holds for."`
		Trials   int              `json:"trials" doc:"Number of trials behind the bound."`
		Pods     int              `json:"pods" doc:"Number of pods in a trial."`
		Nodes    int              `json:"nodes,omitempty" doc:"Number of nodes behind the bound of a fleet; absent without a fleet."`
		Kernel   bool             `json:"kernel_memory" doc:"Set if the bound has the memory of the kernel too."`
		Parts    []part           `json:"components" doc:"The medians by component."`
		Reason   string           `json:"reason,omitempty" doc:"Reason of a missing bound."`
		Command  string           `json:"command,omitempty" doc:"Command that measures a missing bound."`
		Class    string           `json:"runtime_class" doc:"The RuntimeClass as YAML."`
		Settings []setting        `json:"settings" doc:"Settings of engines for the handler."`
	}
	part struct {
		Component string           `json:"component" doc:"Name of the component."`
		Bytes     document.Decimal `json:"bytes" doc:"Median of the memory of one more pod."`
	}
	setting struct {
		Title string `json:"title" doc:"Engine, version and file, or a remark."`
		Text  string `json:"text,omitempty" doc:"Content of the file."`
	}
)

func newData(a *advice.Advice) Data {
	d := Data{
		Kind: Kind, Version: schemaVersion, Profile: a.Profile.Name, Runs: a.Runs, Best: append([]string{}, a.Best()...), Reason: a.Reason, Reference: a.Reference,
		Resamples: advice.Resamples, Seed: a.Seed, Unit: a.Unit(), Blocks: append([]int{}, a.Blocks...), Dimensions: []dimension{}, Ranking: []place{}, Orders: []order{},
		Unranked: []unranked{}, Missing: []gap{}, Commands: append([]string{}, a.Commands...),
	}
	if a.Decided() {
		d.Recommended = a.Ranked[0].Name
	}
	for _, c := range a.Counted {
		one := dimension{Name: string(c.Dimension), Share: document.Decimal(c.Share)}
		for _, s := range c.Sources {
			one.Sources = append(one.Sources, source{s.Run, s.Name, s.Params, s.Metric.Name})
		}
		d.Dimensions = append(d.Dimensions, one)
	}
	for _, r := range a.Ranked {
		d.Ranking = append(d.Ranking, place{r.Name, r.Place, document.Decimal(r.Cost), document.IntervalOf(r.CI), document.Decimal(r.First), document.Decimals(r.Costs)})
	}
	for _, o := range a.Orders {
		d.Orders = append(d.Orders, order{
			Better: o.Better, Worse: o.Worse, Ratio: document.Decimal(o.Ratio), Interval: document.IntervalOf(o.CI), Share: document.Decimal(o.Share),
			P: document.Decimal(o.P), Shown: o.Shown, Dependent: o.Dependent, More: o.More,
		})
	}
	for _, u := range a.Unranked {
		d.Unranked = append(d.Unranked, unranked{u.Target, u.Reason})
	}
	for _, m := range a.Missing {
		d.Missing = append(d.Missing, gap{string(m.Dimension), m.Required, m.Counted, m.Reason})
	}
	if c := a.Class; c != nil {
		d.Kubernetes = &kube{
			Target: c.Target.Name, Measured: c.Measured, Handler: c.Handler, Memory: document.Decimal(c.Memory), Share: advice.PodShare, Trials: c.Trials, Pods: c.Pods, Nodes: c.Nodes,
			Kernel: c.IsWhole, Parts: []part{}, Reason: c.Reason, Command: c.Command, Class: class(c), Settings: settings(c),
		}
		for _, p := range c.Parts {
			d.Kubernetes.Parts = append(d.Kubernetes.Parts, part{p.Component, document.Decimal(p.Bytes)})
		}
	}
	return d
}
