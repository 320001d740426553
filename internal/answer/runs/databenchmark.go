package runs

import (
	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/finding"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

type (
	// benchmarkData is a benchmark with its parameters in the only run.
	benchmarkData struct {
		Name            string               `json:"name" doc:"Name of the benchmark."`
		Params          string               `json:"params,omitempty" doc:"Parameters of the benchmark."`
		Source          string               `json:"source,omitempty" doc:"The definition of the benchmark, such as a paper."`
		Baseline        string               `json:"baseline,omitempty" doc:"Target of all ratios; absent if no trial was ok."`
		BaselineNote    string               `json:"baseline_note,omitempty" doc:"The reason if the baseline is not the run's."`
		Blocks          int                  `json:"blocks" doc:"Number of measured blocks."`
		Outcomes        []outcomeData        `json:"outcomes" doc:"The numbers of trials on each target."`
		Metrics         []metricData         `json:"metrics" doc:"The metrics."`
		Unrecorded      []string             `json:"unrecorded,omitempty" doc:"Metrics without a value on any target."`
		WithoutBaseline []string             `json:"without_baseline,omitempty" doc:"Metrics without a value on the baseline. They have no ratios."`
		Layers          []layersData         `json:"layers,omitempty" doc:"The split of metrics into layers; absent without targets that differ by one layer."`
		Components      []componentsData     `json:"components,omitempty" doc:"Costs by the component that caused them."`
		Timelines       []timelinesData      `json:"timelines,omitempty" doc:"Summaries of values over the time of a trial. The values are in the export, under the number of the trial."`
		Statements      []analysis.Condition `json:"statements,omitempty" doc:"Results in words."`
		Conditions      []analysis.Condition `json:"conditions,omitempty" doc:"The conditions of the trials."`
	}
	outcomeData struct {
		analysis.Outcome
		Phases []phaseData `json:"phases,omitempty" doc:"The timed regions in their order, for benchmarks that show them."`
	}
	phaseData struct {
		Name   string           `json:"name" doc:"Name of the phase, or of the step."`
		Median document.Decimal `json:"median_s" schema:"type=number" doc:"Median over trials, in seconds. For a phase that occurs several times in a trial, the median of the trials' medians."`
		Times  int              `json:"times" doc:"Number of occurrences in a trial."`
		Steps  []phaseData      `json:"steps,omitempty" doc:"The calls of a phase that consists of several. The time of the phase includes them."`
	}
	layersData struct {
		Metric  string      `json:"metric" doc:"Name of the metric that is split."`
		Unit    result.Unit `json:"unit" doc:"Unit of all values."`
		Targets []stackData `json:"targets" doc:"The targets, sorted by runtime, with the bare runtime first."`
	}
	stackData struct {
		Target  string `json:"target" doc:"Name of the target."`
		Runtime string `json:"runtime" doc:"The runtime with its options, which a bare runtime and the engines that drive it share."`
		differenceData
		Parts     []layerPartData  `json:"parts" doc:"The parts, from the inside out."`
		Remainder document.Decimal `json:"remainder" doc:"The median of the whole minus the medians of the parts, in the unit of the metric."`
		Note      string           `json:"note,omitempty" doc:"A remark on the split."`
	}
	layerPartData struct {
		Layers []string `json:"layers" schema:"minItems=1" doc:"The layers of the part, from the inside out."`
		differenceData
		Subtracted bool `json:"subtracted" doc:"Set if the part is a difference, which may be zero or negative."`
	}
	differenceData struct {
		Blocks   int                `json:"blocks" doc:"Number of blocks with all values."`
		Median   document.Decimal   `json:"median" doc:"Median over the blocks, in the unit of the metric; null without a block."`
		Interval *document.Interval `json:"interval" doc:"95 % interval of the median, in the unit of the metric; null without one."`
	}
	componentsData struct {
		Title   string             `json:"title" doc:"Heading of the components."`
		Unit    result.Unit        `json:"unit" doc:"Unit of all values."`
		Targets []componentRowData `json:"targets" doc:"The targets with a value of any component."`
	}
	componentRowData struct {
		Target     string          `json:"target" doc:"Name of the target."`
		Together   estimateData    `json:"together" doc:"The sum over the components in each trial."`
		Components []componentData `json:"components" doc:"The components that the target has."`
	}
	componentData struct {
		Name   string `json:"name" doc:"Name of the component."`
		Metric string `json:"metric" doc:"Name of its metric."`
		estimateData
	}
	timelinesData struct {
		Group   string      `json:"group" doc:"Heading of the timelines."`
		Unit    result.Unit `json:"unit" doc:"Unit of all values."`
		Targets []panelData `json:"targets" doc:"One trial of each target."`
	}
	panelData struct {
		Target string     `json:"target" doc:"Name of the target."`
		Trial  int        `json:"trial" doc:"Number of the trial in the run."`
		Block  int        `json:"block" doc:"Block of the trial."`
		Trials int        `json:"trials" doc:"Number of trials to choose from."`
		Lines  []lineData `json:"lines" doc:"The timelines of the trial."`
	}
	lineData struct {
		Name  string            `json:"name" doc:"Name of the timeline."`
		N     int               `json:"n" doc:"Number of values."`
		First document.Decimal  `json:"first" doc:"The first value, in the unit of the group."`
		Min   document.Decimal  `json:"min" doc:"The smallest value, in the unit of the group."`
		Mean  *document.Decimal `json:"mean" doc:"The mean over time, in the unit of the group; null if a gap between two values is much longer than the others."`
		Max   document.Decimal  `json:"max" doc:"The largest value, in the unit of the group."`
		Last  document.Decimal  `json:"last" doc:"The last value, in the unit of the group."`
	}
)

func newBenchmarkData(pointer **analysis.Benchmark) benchmarkData {
	b := *pointer
	s := b.Sections[0]
	return benchmarkData{
		b.Name, b.Params, b.Source, s.Baseline, s.BaselineNote, s.Blocks, lists.Convert(s.Targets, newOutcomeData), lists.Convert(b.Metrics, newMetricData), s.Unrecorded, s.Unbased,
		lists.Convert(s.Layers, newLayersData), lists.Convert(s.Components, newComponentsData), lists.Convert(s.Timelines, newTimelinesData),
		s.Stated, s.Conditions,
	}
}

func newOutcomeData(o *analysis.Outcome) outcomeData {
	return outcomeData{*o, lists.Convert(o.Phases, newPhaseData)}
}

func newPhaseData(p *analysis.Phase) phaseData {
	return phaseData{p.Name, document.Decimal(p.Seconds), p.Times, lists.Convert(p.Steps, newPhaseData)}
}

func newLayersData(l *analysis.Layers) layersData {
	return layersData{l.Metric.Name, l.Metric.Unit, lists.Convert(l.Stacks, func(s *analysis.Stack) stackData {
		parts := lists.Convert(s.Parts, func(p *analysis.Part) layerPartData {
			return layerPartData{analysis.LayerNames()[p.First : p.Last+1], newDifferenceData(p.Difference), p.Subtracted}
		})
		return stackData{s.Target, s.Runtime, newDifferenceData(s.Total), parts, document.Decimal(s.Remainder), finding.StackNote(s)}
	})}
}

func newDifferenceData(d stats.Difference) differenceData {
	return differenceData{d.N, document.Decimal(d.Median), document.IntervalOf(d.CI)}
}

func newComponentsData(c *analysis.Components) componentsData {
	return componentsData{c.Title, c.Unit, lists.Convert(c.Rows, func(r *analysis.ComponentRow) componentRowData {
		row := componentRowData{Target: r.Target, Together: newEstimateData(&r.Total)}
		for i, cell := range r.Cells {
			if cell != nil {
				row.Components = append(row.Components, componentData{c.Names[i], c.Metrics[i], newEstimateData(cell)})
			}
		}
		return row
	})}
}

func newTimelinesData(t *analysis.Timelines) timelinesData {
	return timelinesData{t.Title, t.Unit, lists.Convert(t.Panels, func(p *analysis.Panel) panelData {
		panel := panelData{Target: p.Target, Trial: p.Seq, Block: p.Block, Trials: p.Trials}
		for i, l := range p.Lines {
			if l != nil {
				panel.Lines = append(panel.Lines, lineData{
					t.Names[i], len(l.Values), document.Decimal(l.First), document.Decimal(l.Min), (*document.Decimal)(l.Mean), document.Decimal(l.Max), document.Decimal(l.Last),
				})
			}
		}
		return panel
	})}
}
