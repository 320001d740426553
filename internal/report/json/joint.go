package reportjson

import (
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// jointDocument has each run once. Other parts refer to a run by its place in Runs.
type jointDocument struct {
	Schema int    `json:"schema_version"`
	Kind   string `json:"kind"`
	// Absolute explains the absolute values. AcrossMachines is set if they are compared.
	Absolute       string           `json:"absolute_values"`
	AcrossMachines bool             `json:"across_machines"`
	Machines       []machine        `json:"machines"`
	Runs           []jointRun       `json:"runs"`
	Facts          []fact           `json:"facts"`
	Versions       []fact           `json:"versions"`
	Findings       jointFindings    `json:"findings"`
	Benchmarks     []jointBenchmark `json:"benchmarks"`
	Coverage       []coverage       `json:"coverage"`
}

type machine struct {
	Name   string `json:"name"`
	Nature string `json:"nature"`
	Runs   []int  `json:"runs"`
}

// jointRun is the content of the report about one run alone.
type jointRun struct {
	Label      string          `json:"label"`
	Machine    int             `json:"machine"`
	Run        run             `json:"run"`
	Method     method          `json:"method"`
	Targets    []result.Target `json:"targets"`
	Breaches   []breach        `json:"broken_bounds,omitempty"`
	Missing    []missing       `json:"without_a_number"`
	Unmeasured []unmeasured    `json:"not_measured,omitempty"`
	Warnings   []warnings      `json:"warnings"`
}

// fact has a value for each run. An unknown value is empty.
type fact struct {
	Name    string   `json:"name"`
	Values  []string `json:"values"`
	Differs bool     `json:"differs"`
}

type jointFindings struct {
	Breaches    []string `json:"broken_bounds,omitempty"`
	Opposite    []string `json:"opposite"`
	Statements  []string `json:"statements"`
	Comparisons string   `json:"comparisons,omitempty"`
}

type jointBenchmark struct {
	Name   string `json:"name"`
	Params string `json:"params,omitempty"`
	Source string `json:"source,omitempty"`
	// Baseline is absent if the runs have none in common. Runs then have their own.
	Baseline   string        `json:"baseline,omitempty"`
	Note       string        `json:"note,omitempty"`
	Conditions []fact        `json:"conditions,omitempty"`
	Runs       []runOf       `json:"runs"`
	Metrics    []jointMetric `json:"metrics"`
}

// runOf is a benchmark in one run.
type runOf struct {
	Run      int    `json:"run"`
	Baseline string `json:"baseline,omitempty"`
	Blocks   int    `json:"blocks"`
}

type jointMetric struct {
	Name   string           `json:"name"`
	Unit   result.Unit      `json:"unit"`
	Better result.Direction `json:"better"`
	// DerivedFrom is the metric that this one is computed from. A derived metric has no comparison.
	DerivedFrom string     `json:"derived_from,omitempty"`
	Rows        []jointRow `json:"targets"`
}

type jointRow struct {
	Target string      `json:"target"`
	Cells  []jointCell `json:"runs"`
}

// jointCell is a metric on a target in a run. Reason is the reason for a missing median.
type jointCell struct {
	Run    int    `json:"run"`
	Reason string `json:"reason,omitempty"`
	estimate
	Baseline   bool        `json:"baseline,omitempty"`
	Comparison *comparison `json:"comparison,omitempty"`
	Across     *across     `json:"to_first_run,omitempty"`
	Warnings   []warning   `json:"warnings,omitempty"`
}

// across is the ratio of the absolute median to the median of the first run. It has no verdict.
type across struct {
	Ratio    *float64  `json:"ratio"`
	Interval *interval `json:"interval"`
}

type coverage struct {
	Benchmark string    `json:"benchmark"`
	Params    string    `json:"params,omitempty"`
	Runs      []covered `json:"runs"`
	Differs   bool      `json:"differs"`
}

type covered struct {
	Run     int      `json:"run"`
	Targets []string `json:"targets"`
	Lacking []string `json:"lacking,omitempty"`
	Blocks  int      `json:"blocks"`
	Reason  string   `json:"reason,omitempty"`
}

func newJoint(r *report.Report) jointDocument {
	doc := jointDocument{
		Schema: SchemaVersion, Kind: JointKind, Absolute: r.AbsoluteNote(), AcrossMachines: r.AcrossMachines,
		Machines: []machine{}, Runs: []jointRun{}, Facts: newFacts(r.Facts), Versions: newFacts(r.Versions), Benchmarks: []jointBenchmark{}, Coverage: []coverage{},
		Findings: jointFindings{
			Breaches: r.Findings.Breaches, Opposite: list(r.Findings.Opposite), Statements: list(r.Findings.Statements), Comparisons: r.Findings.Comparisons,
		},
	}
	for _, m := range r.Machines {
		doc.Machines = append(doc.Machines, machine(m))
	}
	for i := range r.Runs {
		of := &r.Runs[i]
		doc.Runs = append(doc.Runs, jointRun{
			Label: of.Label, Machine: of.Machine, Run: newRun(of), Method: newMethod(of), Targets: newTargets(of),
			Breaches: newBreaches(r, i), Missing: newMissing(of), Unmeasured: newUnmeasured(of), Warnings: newWarnings(of),
		})
	}
	for _, b := range r.Benchmarks() {
		doc.Benchmarks = append(doc.Benchmarks, newJointBenchmark(b))
	}
	for _, c := range r.Coverage {
		converted := coverage{Benchmark: c.Benchmark, Params: c.Params, Differs: c.Differs}
		for i, of := range c.Cells {
			converted.Runs = append(converted.Runs, covered{Run: i, Targets: list(of.Targets), Lacking: of.Lacking, Blocks: of.Blocks, Reason: of.Reason})
		}
		doc.Coverage = append(doc.Coverage, converted)
	}
	return doc
}

func newFacts(facts []report.Fact) []fact {
	all := []fact{}
	for _, f := range facts {
		all = append(all, fact(f))
	}
	return all
}

func newJointBenchmark(b *report.Benchmark) jointBenchmark {
	out := jointBenchmark{Name: b.Name, Params: b.Params, Source: b.Source, Baseline: b.Baseline, Note: b.Note, Runs: []runOf{}, Metrics: []jointMetric{}}
	if len(b.Conditions) > 0 {
		out.Conditions = newFacts(b.Conditions)
	}
	for i, s := range b.Sections {
		if s != nil {
			out.Runs = append(out.Runs, runOf{Run: i, Baseline: s.Baseline, Blocks: s.Blocks})
		}
	}
	for _, m := range b.Metrics {
		converted := jointMetric{Name: m.Name, Unit: m.Unit, Better: m.Better, DerivedFrom: m.DerivedFrom, Rows: []jointRow{}}
		for _, r := range m.Rows {
			if !r.Has() {
				continue
			}
			row := jointRow{Target: r.Target}
			for i := range r.Cells {
				row.Cells = append(row.Cells, newJointCell(i, &r.Cells[i], m.Metric))
			}
			converted.Rows = append(converted.Rows, row)
		}
		out.Metrics = append(out.Metrics, converted)
	}
	return out
}

func newJointCell(run int, c *report.Cell, m result.Metric) jointCell {
	out := jointCell{Run: run, Reason: c.Reason}
	if c.Summary == nil {
		return out
	}
	out.estimate, out.Baseline, out.Comparison, out.Warnings = newEstimate(c.Summary), c.Baseline, newComparison(c.Comparison, m), newCellWarnings(c)
	if c.Across != nil {
		out.Across = &across{number(c.Across.Ratio), bounds(c.Across.CI)}
	}
	return out
}
