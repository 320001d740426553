package reportjson

import (
	"io"

	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// JointKind stands in every report of several runs. docs/schema/joint-report.schema.json is its schema.
const JointKind = "touchstone-joint-report"

// WriteJoint writes a report of several runs to w as one JSON document, the same bytes for the same model.
func WriteJoint(w io.Writer, j report.Joint) error { return encode(w, newJoint(&j)) }

// jointDocument has each run once; what is said of a run elsewhere refers to it by its place in Runs.
type jointDocument struct {
	Schema int    `json:"schema_version"`
	Kind   string `json:"kind"`
	// Absolute says what becomes of absolute values; AcrossMachines that they were to be compared.
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

// jointRun is what is known of one run by itself.
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

// fact has a value for each run, empty if it is not known.
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
	// Baseline is absent if the runs have none in common; each cell's run has its own then.
	Baseline   string        `json:"baseline,omitempty"`
	Note       string        `json:"note,omitempty"`
	Conditions []fact        `json:"conditions,omitempty"`
	Runs       []runOf       `json:"runs"`
	Metrics    []jointMetric `json:"metrics"`
}

// runOf is what a run has of a benchmark.
type runOf struct {
	Run      int    `json:"run"`
	Baseline string `json:"baseline,omitempty"`
	Blocks   int    `json:"blocks"`
}

type jointMetric struct {
	Name   string           `json:"name"`
	Unit   result.Unit      `json:"unit"`
	Better result.Direction `json:"better"`
	Rows   []jointRow       `json:"targets"`
}

type jointRow struct {
	Target string      `json:"target"`
	Cells  []jointCell `json:"runs"`
}

// jointCell is a metric on a target in a run; without a median, Reason says why.
type jointCell struct {
	Run    int    `json:"run"`
	Reason string `json:"reason,omitempty"`
	estimate
	Baseline   bool        `json:"baseline,omitempty"`
	Comparison *comparison `json:"comparison,omitempty"`
	Across     *across     `json:"to_first_run,omitempty"`
	Warnings   []warning   `json:"warnings,omitempty"`
}

// across is the ratio of the absolute median to that of the first run. It has no verdict.
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

func newJoint(j *report.Joint) jointDocument {
	doc := jointDocument{
		Schema: SchemaVersion, Kind: JointKind, Absolute: j.AbsoluteNote(), AcrossMachines: j.AcrossMachines,
		Machines: []machine{}, Runs: []jointRun{}, Facts: newFacts(j.Facts), Versions: newFacts(j.Versions), Benchmarks: []jointBenchmark{}, Coverage: []coverage{},
		Findings: jointFindings{
			Breaches: j.Findings.Breaches, Opposite: list(j.Findings.Opposite), Statements: list(j.Findings.Statements), Comparisons: j.Findings.Comparisons,
		},
	}
	for _, m := range j.Machines {
		doc.Machines = append(doc.Machines, machine(m))
	}
	for i := range j.Runs {
		doc.Runs = append(doc.Runs, newJointRun(&j.Runs[i]))
	}
	for _, s := range j.Suites {
		for i := range s.Benchmarks {
			doc.Benchmarks = append(doc.Benchmarks, newJointBenchmark(&s.Benchmarks[i]))
		}
	}
	for _, c := range j.Coverage {
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

func newJointRun(r *report.JointRun) jointRun {
	out := jointRun{
		Label: r.Label, Machine: r.Machine, Run: newRun(&r.Model), Method: newMethod(r.Seed, r.Families), Targets: []result.Target{},
		Breaches: newBreaches(&r.Model), Missing: list(newMissing(&r.Model)), Unmeasured: newUnmeasured(&r.Model), Warnings: []warnings{},
	}
	for _, t := range r.Targets {
		out.Targets = append(out.Targets, t.Target)
	}
	for _, g := range r.Warnings {
		out.Warnings = append(out.Warnings, warnings(g))
	}
	return out
}

func newJointBenchmark(b *report.JointBenchmark) jointBenchmark {
	out := jointBenchmark{Name: b.Name, Params: b.Params, Source: b.Source, Baseline: b.Baseline, Note: b.Note, Runs: []runOf{}, Metrics: []jointMetric{}}
	if len(b.Conditions) > 0 {
		out.Conditions = newFacts(b.Conditions)
	}
	for i, of := range b.Runs {
		if of != nil {
			out.Runs = append(out.Runs, runOf{Run: i, Baseline: of.Baseline, Blocks: of.Blocks})
		}
	}
	for _, m := range b.Metrics {
		converted := jointMetric{Name: m.Name, Unit: m.Unit, Better: m.Better, Rows: []jointRow{}}
		for _, r := range m.Rows {
			row := jointRow{Target: r.Target}
			for i := range r.Cells {
				row.Cells = append(row.Cells, newJointCell(i, &r.Cells[i], m.Unit))
			}
			converted.Rows = append(converted.Rows, row)
		}
		out.Metrics = append(out.Metrics, converted)
	}
	return out
}

func newJointCell(run int, c *report.JointCell, unit result.Unit) jointCell {
	out := jointCell{Run: run, Reason: c.Why}
	if !c.Has() {
		if c.Cell != nil && c.Absent {
			out.Reason = c.Reason
		}
		return out
	}
	out.estimate, out.Baseline, out.Comparison = newEstimate(c.Summary), c.Baseline, newComparison(c.Comparison, unit)
	for _, w := range c.Summary.Warnings {
		out.Warnings = append(out.Warnings, warning(w))
	}
	if c.Across != nil {
		out.Across = &across{number(c.Across.Ratio), bounds(c.Across.CI)}
	}
	return out
}
