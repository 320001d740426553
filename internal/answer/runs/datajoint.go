package runs

import (
	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/fact"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

type (
	// jointRunData has the content of the report about one run alone.
	jointRunData struct {
		Label     string          `json:"label" doc:"Name of the run in this report."`
		Machine   int             `json:"machine" doc:"Place of its machine in machines, from 0."`
		Run       runData         `json:"run" doc:"The facts of the run. Its trials are in the export."`
		Method    methodData      `json:"method" doc:"The meaning of the numbers."`
		Targets   []result.Target `json:"targets" doc:"The targets of the run as they were found."`
		Scorecard []dimensionData `json:"scorecard,omitempty" doc:"The cost of each target by dimension; absent if the run measured fewer than two dimensions."`
		Breaches  []breachData    `json:"broken_bounds,omitempty" doc:"Medians that exceed the bound of their metric; absent without one."`
		gapsData
	}
	// factData is a fact of each run.
	factData struct {
		Name string `json:"name" doc:"Name of the fact."`
		fact.Row
	}
	// jointBenchmarkData is a benchmark with its parameters, in all runs.
	jointBenchmarkData struct {
		Name       string            `json:"name" doc:"Name of the benchmark."`
		Params     string            `json:"params,omitempty" doc:"Parameters of the benchmark."`
		Source     string            `json:"source,omitempty" doc:"The definition of the benchmark, such as a paper."`
		Baseline   string            `json:"baseline,omitempty" doc:"Target of the ratios of all runs; absent if the runs have none in common."`
		Note       string            `json:"note,omitempty" doc:"A remark on an unusual baseline."`
		Conditions []factData        `json:"conditions,omitempty" doc:"The conditions of the measurements, by run."`
		Runs       []sectionData     `json:"runs" doc:"The runs that have it."`
		Metrics    []jointMetricData `json:"metrics" doc:"The metrics."`
	}
	sectionData struct {
		Run      int    `json:"run" doc:"Place of the run in runs, from 0."`
		Baseline string `json:"baseline,omitempty" doc:"Target of the ratios of this run; absent if no trial was ok."`
		Blocks   int    `json:"blocks" doc:"Number of measured blocks."`
	}
	jointMetricData struct {
		Name        string           `json:"name" doc:"Name of the metric."`
		Unit        result.Unit      `json:"unit" doc:"Unit of all values."`
		Better      result.Direction `json:"better" doc:"The direction of better values."`
		DerivedFrom string           `json:"derived_from,omitempty" doc:"Metric that this one is computed from. A derived metric has no comparison."`
		Targets     []jointRowData   `json:"targets" doc:"The targets with a value in some run."`
	}
	jointRowData struct {
		Target string          `json:"target" doc:"Name of the target."`
		Runs   []jointCellData `json:"runs" doc:"The cell of each run, in the order of runs."`
	}
	// jointCellData is a metric on a target in a run.
	jointCellData struct {
		Run    int    `json:"run" doc:"Place of the run in runs, from 0."`
		Reason string `json:"reason,omitempty" doc:"The reason of a missing number; absent with a number."`
		estimateData
		Baseline   bool            `json:"baseline,omitempty" doc:"Set on the cell that the others of the run are compared with."`
		Comparison *comparisonData `json:"comparison,omitempty" doc:"The ratio to the baseline of the same run; absent without one."`
		Across     *acrossData     `json:"to_first_run,omitempty" doc:"The ratio of the absolute values to the first run, without a verdict; only with across_machines."`
		Warnings   []stats.Warning `json:"warnings,omitempty" doc:"Reasons to trust the numbers less."`
	}
	// acrossData compares the absolute values of two runs. It has no verdict.
	acrossData struct {
		Ratio    document.Decimal   `json:"ratio" doc:"Typical quotient this run / first run, the estimate of Hodges and Lehmann."`
		Interval *document.Interval `json:"interval" doc:"95 % interval of two independent samples; it does not cover other differences between the runs."`
	}
	coverageData struct {
		analysis.Key
		Runs    []coveredData `json:"runs" doc:"Each run, in the order of runs."`
		Differs bool          `json:"differs" doc:"Set if the runs differ in it."`
	}
	// coveredData is the extent of a benchmark in a run.
	coveredData struct {
		Run int `json:"run" doc:"Place of the run in runs, from 0."`
		analysis.Covered
	}
)

func newJointData(r *report.Report, head headData) JointData {
	f := &r.Findings
	d := JointData{
		headData: head, Absolute: finding.AbsoluteNote(r.Analysis), AcrossMachines: r.AcrossMachines,
		Machines: r.Machines,
		Facts:    lists.Convert(r.Facts, newFactData), Versions: lists.Convert(r.Versions, newFactData),
		Findings:   jointFindingsData{f.Breaches, list(f.Opposite), newStatementsData(f)},
		Benchmarks: lists.Convert(r.Benchmarks(), newJointBenchmarkData), Coverage: lists.Convert(r.Coverage, newCoverageData),
	}
	for i := range r.Runs {
		run := &r.Runs[i]
		d.Runs = append(d.Runs, jointRunData{
			run.Label, run.Machine, newRunData(run), newMethodData(r, run), recordedTargets(run), newScorecardData(&run.Scorecard), breaches(r, i), newGapsData(run, r.Warnings[i]),
		})
	}
	return d
}

// newJointBenchmarkData has no baseline if the runs have none in common. They have their own then.
func newJointBenchmarkData(pointer **analysis.Benchmark) jointBenchmarkData {
	b := *pointer
	d := jointBenchmarkData{
		b.Name, b.Params, b.Source, b.Baseline, b.Note, lists.Convert(b.Conditions, newFactData), []sectionData{}, lists.Convert(b.Metrics, newJointMetricData),
	}
	for i, s := range b.Sections {
		if s != nil {
			d.Runs = append(d.Runs, sectionData{i, s.Baseline, s.Blocks})
		}
	}
	return d
}

func newJointMetricData(m *analysis.Metric) jointMetricData {
	rows := lists.Filter(m.Rows, func(r analysis.Row) bool { return r.Has() })
	return jointMetricData{m.Name, m.Unit, m.Better, m.DerivedFrom, lists.Convert(rows, func(r *analysis.Row) jointRowData {
		row := jointRowData{Target: r.Target}
		for i := range r.Cells {
			row.Runs = append(row.Runs, newJointCellData(i, &r.Cells[i], m.Metric))
		}
		return row
	})}
}

func newJointCellData(run int, c *analysis.Cell, m result.Metric) jointCellData {
	s := summarized(c)
	d := jointCellData{run, c.Reason, newEstimateData(s), c.Baseline, newComparisonData(c.Comparison, m), nil, s.Warnings}
	if k := c.Across; k != nil {
		d.Across = &acrossData{document.Decimal(k.Ratio), document.IntervalOf(k.CI)}
	}
	return d
}

func newCoverageData(c *analysis.Coverage) coverageData {
	d := coverageData{Key: c.Key, Differs: c.Differs}
	for i, item := range c.Cells {
		d.Runs = append(d.Runs, coveredData{i, item})
	}
	return d
}
