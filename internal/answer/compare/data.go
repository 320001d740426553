package compare

import (
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/report/counts"
	"github.com/touchstone-bench/touchstone/internal/report/sides"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Kind marks the JSON of a comparison. docs/schema/comparison.schema.json is its schema.
const Kind = "touchstone-comparison"

// schemaVersion is the version of the JSON.
const schemaVersion = 1

// Data is the JSON of a comparison. A number that does not exist is null.
type Data struct {
	Kind        string             `json:"kind" doc:"Kind of the document."`
	Version     int                `json:"schema_version" doc:"Version of the document. It rises if a field changes its meaning or goes away."`
	A           sideData           `json:"a" doc:"The side that is compared with."`
	B           sideData           `json:"b" doc:"The side that is compared."`
	Differences []differenceData   `json:"differences" doc:"The facts that differ between the runs."`
	Notes       []string           `json:"notes" doc:"Statements about the runs."`
	Method      methodData         `json:"method" doc:"The meaning of the verdicts."`
	Metrics     []metricData       `json:"metrics" doc:"The metrics that both sides have."`
	OneSided    []oneSidedData     `json:"one_sided" doc:"The metrics that one side lacks."`
	Gates       []gateData         `json:"gates" doc:"The gates, one for each metric that a gate selects."`
	Counts      *counts.Comparison `json:"counts,omitempty" doc:"The counts of the traces; absent if the sides have no traced benchmark in common."`
	Outcome     *stats.Answer      `json:"outcome" doc:"The answer of all gates; null without gates. The exit codes are 4, 0 and 6."`
}

type (
	sideData struct {
		Name string    `json:"name" doc:"The name that the command was given."`
		Runs []runData `json:"runs" schema:"minItems=1" doc:"The runs of the side."`
	}
	runData struct {
		ID      string       `json:"id" doc:"Unique name of the run."`
		Plan    string       `json:"plan" doc:"Name that the plan gives."`
		Host    string       `json:"host" doc:"Name of the machine; empty if it is unknown."`
		Started string       `json:"started" doc:"Wall-clock time of the start; empty if it is unknown."`
		State   result.State `json:"state" doc:"The progress of the run."`
		Trials  int          `json:"trials" doc:"Number of ok trials without warm-up."`
	}
	differenceData struct {
		Class sides.Class `json:"class" doc:"The class that --allow-differences names; machine is --across-machines."`
		Fact  string      `json:"fact" doc:"Name of the fact."`
		A     []string    `json:"a" doc:"The values of side A; empty if one is unknown."`
		B     []string    `json:"b" doc:"The values of side B; empty if one is unknown."`
	}
	methodData struct {
		OneRunEach    bool    `json:"one_run_each" doc:"Set if each side has one run, so that no metric has the verdict faster or slower."`
		Comparisons   int     `json:"comparisons" doc:"Number of metrics with a test."`
		Shown         int     `json:"shown" doc:"Number of metrics that differ over the whole comparison."`
		ShownAlone    int     `json:"shown_in_metric_alone" doc:"Number of metrics that differ in their own test only."`
		ExpectedFalse float64 `json:"expected_false_in_metric_alone" schema:"minimum=0" doc:"Expected number of metrics whose own test shows a difference by chance if no metric differs."`
	}
	metricData struct {
		Benchmark   string             `json:"benchmark" doc:"Name of the benchmark."`
		Params      string             `json:"params" doc:"Parameters of the benchmark in canonical form, on side A if params_b exists."`
		ParamsB     string             `json:"params_b,omitempty" doc:"Parameters of side B if they differ."`
		Target      string             `json:"target" doc:"Name of the target."`
		Metric      string             `json:"metric" doc:"Name of the metric."`
		Unit        result.Unit        `json:"unit" doc:"Unit of the values."`
		Better      result.Direction   `json:"better" doc:"The direction of better values."`
		A           valuesData         `json:"a" doc:"The values of side A."`
		B           valuesData         `json:"b" doc:"The values of side B."`
		Ratio       document.Decimal   `json:"ratio" doc:"B / A."`
		Interval    *document.Interval `json:"interval" doc:"95 % interval of the ratio; null without one."`
		MeanRatio   document.Decimal   `json:"ratio_of_means" doc:"B / A of the means of the trials. It has no verdict."`
		MeanCI      *document.Interval `json:"interval_of_means" doc:"95 % interval of ratio_of_means; null without several runs."`
		P           document.Decimal   `json:"p" doc:"The p-value of the metric's own test."`
		Adjusted    document.Decimal   `json:"p_adjusted" doc:"The p-value after Holm's correction over all metrics."`
		Verdict     stats.Verdict      `json:"verdict" doc:"The verdict."`
		Word        string             `json:"word" doc:"The verdict in the words of the metric."`
		MetricAlone bool               `json:"in_metric_alone" doc:"Set if the metric's own test shows the difference, and the correction over all metrics does not."`
		Reason      string             `json:"reason,omitempty" doc:"The reason of a verdict without a test; after \"no difference shown\" the smallest difference that would mostly have been shown."`
		Detectable  document.Decimal   `json:"detectable" doc:"The smallest relative difference that as many runs show with a power of 80 % in this metric alone: 0.03 is 3 %."`
	}
	valuesData struct {
		Runs   []document.Decimal `json:"runs" doc:"The median of the trials of each run, in the unit of the metric."`
		Median document.Decimal   `json:"median" doc:"The geometric mean of the runs, in the unit of the metric."`
		Trials int                `json:"trials" doc:"Number of trials."`
		Lost   float64            `json:"lost_share" schema:"minimum=0;maximum=1" doc:"The largest share (0 to 1) of blocks that a run has lost."`
	}
	oneSidedData struct {
		Side      string   `json:"side" schema:"enum=A|B" doc:"The side that has a value."`
		Benchmark string   `json:"benchmark" doc:"Name of the benchmark."`
		Params    string   `json:"params" doc:"Parameters of the benchmark in canonical form."`
		Target    string   `json:"target" doc:"Name of the target."`
		Metrics   []string `json:"metrics" schema:"minItems=1" doc:"Names of the metrics."`
		Reason    string   `json:"reason" doc:"The reason why the other side has none."`
	}
	gateData struct {
		Gate       string       `json:"gate" doc:"The gate as text."`
		At         string       `json:"at" doc:"The place of the gate: a flag, or file, line and column."`
		Margin     float64      `json:"margin" schema:"exclusiveMinimum=0" doc:"A relative difference: 0.03 is 3 %."`
		Benchmark  string       `json:"benchmark,omitempty" doc:"Name of the benchmark; absent for a gate that selects no metric."`
		Params     string       `json:"params,omitempty" doc:"Parameters of the benchmark in canonical form."`
		Target     string       `json:"target,omitempty" doc:"Name of the target."`
		Metric     string       `json:"metric,omitempty" doc:"Name of the metric; absent for a gate that selects no metric."`
		Answer     stats.Answer `json:"answer" doc:"The answer of the gate."`
		Reason     string       `json:"reason" doc:"The reason of the answer."`
		RunsNeeded int          `json:"runs_needed,omitempty" schema:"minimum=2" doc:"Number of runs a side that would decide, if the sides are equal."`
	}
)

func data(c *sides.Comparison) Data {
	d := Data{
		Kind: Kind, Version: schemaVersion, A: newSideData(c.NameA, c.A), B: newSideData(c.NameB, c.B),
		Differences: []differenceData{}, Notes: append([]string{}, c.Notes...),
		Method:  methodData{c.Single, c.Compared, c.Shown, c.Alone, stats.Alpha * float64(c.Compared)},
		Metrics: []metricData{}, OneSided: []oneSidedData{}, Gates: []gateData{}, Counts: c.Counts,
	}
	if o := c.Outcome(); o != "" {
		d.Outcome = &o
	}
	for _, f := range c.Differences {
		d.Differences = append(d.Differences, differenceData{f.Class, f.Fact.Name(), f.A, f.B})
	}
	for i := range c.Cells {
		cell := &c.Cells[i]
		m := metricData{
			Benchmark: cell.Benchmark, Params: cell.Params, ParamsB: cell.ParamsB, Target: cell.Target,
			Metric: cell.Metric.Name, Unit: cell.Metric.Unit, Better: cell.Metric.Better, A: newValuesData(cell.A), B: newValuesData(cell.B),
			Ratio: document.Decimal(cell.Ratio), Interval: document.IntervalOf(cell.CI), MeanRatio: document.Decimal(cell.MeanRatio), MeanCI: document.IntervalOf(cell.MeanCI), P: document.Decimal(cell.P), Adjusted: document.Decimal(cell.Adjusted),
			Verdict: cell.Verdict, Word: cell.Word(), MetricAlone: cell.Alone, Reason: cell.Why, Detectable: document.Decimal(cell.Detectable),
		}
		d.Metrics = append(d.Metrics, m)
	}
	for _, o := range c.OneSided {
		one := oneSidedData{o.Has, o.Benchmark, o.Params, o.Target, []string{}, o.Why}
		for _, m := range o.Metrics {
			one.Metrics = append(one.Metrics, m.Name)
		}
		d.OneSided = append(d.OneSided, one)
	}
	for _, k := range c.Gates {
		d.Gates = append(d.Gates, gateData{
			k.Gate.String(), k.Gate.At, k.Gate.Margin, k.Benchmark, k.Params, k.Target, k.Metric.Name, k.Answer, k.Why, k.RunsNeeded,
		})
	}
	return d
}

func newSideData(name string, runs []sides.Run) sideData {
	s := sideData{Name: name, Runs: []runData{}}
	for _, r := range runs {
		s.Runs = append(s.Runs, runData(r))
	}
	return s
}

func newValuesData(v sides.Values) valuesData {
	return valuesData{Runs: append([]document.Decimal{}, document.Decimals(v.Runs)...), Median: document.Decimal(v.Median), Trials: v.Trials, Lost: v.Lost}
}
