// Package reportjson writes a report for programs: the numbers and statements of the other reports. It is not the run: raw
// samples, phases of trials and the activity of the host are in the document of `touchstone export`, which is the source of this
// document.
//
// A report of one run and a report of several have different kinds of documents, because programs that read the first need no
// lists by run. Both consist of the same parts.
//
// Values are in base units (seconds, bytes, per second). An unknown value is null or absent, never zero.
package reportjson

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// SchemaVersion is the version of the document. It is raised when a field changes its
// meaning or goes away; a new field does not raise it.
const SchemaVersion = 2

// The kinds of documents, which distinguish them from the export of a run. docs/schema/joint-report.schema.json is the schema
// of JointKind.
const (
	Kind      = "touchstone-report"       // of one run
	JointKind = "touchstone-joint-report" // of several runs
)

// Write writes r to w as one JSON document, the same bytes for the same report.
func Write(w io.Writer, r report.Report) error {
	var document any
	if len(r.Runs) == 1 {
		document = newDocument(&r)
	} else {
		document = newJoint(&r)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(document); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

type document struct {
	Schema     int             `json:"schema_version"`
	Kind       string          `json:"kind"`
	Run        run             `json:"run"`
	Method     method          `json:"method"`
	Findings   findings        `json:"findings"`
	Targets    []result.Target `json:"targets"`
	Benchmarks []benchmark     `json:"benchmarks"`
	Missing    []missing       `json:"without_a_number"`
	// Unmeasured are the benchmarks that every target skipped; their trials are in Missing too.
	Unmeasured []unmeasured `json:"not_measured,omitempty"`
	Warnings   []warnings   `json:"warnings"`
}

type run struct {
	ID       string                `json:"id"`
	Name     string                `json:"name"`
	State    result.State          `json:"state"`
	Started  time.Time             `json:"started"`
	Ended    time.Time             `json:"ended,omitzero"`
	Tool     result.Tool           `json:"tool"`
	Seed     uint64                `json:"seed,string"`
	Baseline string                `json:"baseline"`
	Host     result.Host           `json:"host"`
	Overhead result.Overhead       `json:"overhead"`
	SelfCPU  float64               `json:"self_cpu_share"`
	Images   []result.Image        `json:"images,omitempty"`
	Caveats  []string              `json:"caveats,omitempty"`
	Trials   map[result.Status]int `json:"trials"`
	Warmup   int                   `json:"warmup_trials"`
}

// method describes the numbers.
type method struct {
	Seed       uint64  `json:"bootstrap_seed,string"`
	Resamples  int     `json:"bootstrap_resamples"`
	Interval   float64 `json:"interval"`
	Alpha      float64 `json:"family_alpha"`
	Power      float64 `json:"detectable_power"`
	MinSamples int     `json:"min_samples"`
	Family     string  `json:"family"`
	Families   int     `json:"families"`
	// Comparisons is the number of comparisons in the families.
	Comparisons int    `json:"comparisons"`
	Ratio       string `json:"ratio"`
}

type findings struct {
	// Breaches are medians beyond the bounds of their metrics.
	Breaches    []breach `json:"broken_bounds,omitempty"`
	Statements  []string `json:"statements"`
	Comparisons string   `json:"comparisons,omitempty"`
	NotMeasured string   `json:"not_measured,omitempty"`
}

type breach struct {
	Benchmark string      `json:"benchmark"`
	Params    string      `json:"params,omitempty"`
	Target    string      `json:"target"`
	Metric    string      `json:"metric"`
	Unit      result.Unit `json:"unit"`
	Median    *float64    `json:"median"`
	Most      float64     `json:"most"`
	Trials    int         `json:"trials"`
	Doubt     string      `json:"doubt,omitempty"`
	Text      string      `json:"text"`
}

type unmeasured struct {
	Benchmarks []string `json:"benchmarks"`
	Reasons    []reason `json:"reasons"`
}

// reason holds for the targets, or for all without a list of them.
type reason struct {
	Text    string   `json:"text"`
	Targets []string `json:"targets,omitempty"`
}

// condition is a condition of the measurements.
type condition struct {
	Name   string           `json:"name"`
	Values []conditionValue `json:"values"`
}

// conditionValue holds for the targets, or for all without a list of them.
type conditionValue struct {
	Value   string   `json:"value"`
	Targets []string `json:"targets,omitempty"`
}

type benchmark struct {
	Name         string    `json:"name"`
	Params       string    `json:"params,omitempty"`
	Source       string    `json:"source,omitempty"`
	Baseline     string    `json:"baseline,omitempty"`
	BaselineNote string    `json:"baseline_note,omitempty"`
	Blocks       int       `json:"blocks"`
	Outcomes     []outcome `json:"outcomes"`
	Metrics      []metric  `json:"metrics"`
	Unrecorded   []string  `json:"unrecorded,omitempty"`
	// Unbased are the metrics without a value on the baseline.
	Unbased    []string     `json:"without_baseline,omitempty"`
	Layers     []layers     `json:"layers,omitempty"`
	Components []components `json:"components,omitempty"`
	Conditions []condition  `json:"conditions,omitempty"`
}

// layers is the split of a metric into layers.
type layers struct {
	Metric string      `json:"metric"`
	Unit   result.Unit `json:"unit"`
	Stacks []stack     `json:"targets"`
}

type stack struct {
	Target  string `json:"target"`
	Runtime string `json:"runtime"`
	difference
	Parts     []part   `json:"parts"`
	Remainder *float64 `json:"remainder"`
	Note      string   `json:"note,omitempty"`
}

// part is one layer, or several that are not separable.
type part struct {
	Layers []string `json:"layers"`
	difference
	// Subtracted is set if the part is a difference between targets.
	Subtracted bool `json:"subtracted"`
}

type difference struct {
	Blocks   int       `json:"blocks"`
	Median   *float64  `json:"median"`
	Interval *interval `json:"interval"`
}

// components is a cost by the component that caused it.
type components struct {
	Title string         `json:"title"`
	Unit  result.Unit    `json:"unit"`
	Rows  []componentRow `json:"targets"`
}

type componentRow struct {
	Target     string      `json:"target"`
	Total      estimate    `json:"together"`
	Components []component `json:"components"`
}

type component struct {
	Name   string `json:"name"`
	Metric string `json:"metric"`
	estimate
}

type estimate struct {
	N        int       `json:"n"`
	Median   *float64  `json:"median"`
	Interval *interval `json:"interval"`
}

type outcome struct {
	Target    string  `json:"target"`
	OK        int     `json:"ok"`
	Failed    int     `json:"failed"`
	Timeout   int     `json:"timeout"`
	Skipped   int     `json:"skipped"`
	Warmup    int     `json:"warmup"`
	Disturbed int     `json:"disturbed"`
	Reason    string  `json:"reason,omitempty"`
	Phases    []phase `json:"phases,omitempty"`
}

type phase struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"median_s"`
	Times   int     `json:"times"`
	// Steps are parts of the phase.
	Steps []phase `json:"steps,omitempty"`
}

type metric struct {
	Name   string           `json:"name"`
	Unit   result.Unit      `json:"unit"`
	Better result.Direction `json:"better"`
	Series bool             `json:"series,omitempty"`
	// DerivedFrom is the metric that this one is computed from. A derived metric has no comparison.
	DerivedFrom string       `json:"derived_from,omitempty"`
	Bound       result.Bound `json:"bound,omitzero"`
	Cells       []cell       `json:"cells"`
}

type cell struct {
	Target   string    `json:"target"`
	Reason   string    `json:"reason,omitempty"`
	N        int       `json:"n"`
	Median   *float64  `json:"median"`
	Interval *interval `json:"interval"`
	Mean     *float64  `json:"mean"`
	SD       *float64  `json:"sd"`
	Min      *float64  `json:"min"`
	Max      *float64  `json:"max"`
	MAD      *float64  `json:"mad"`
	P90      *float64  `json:"p90,omitempty"`
	P95      *float64  `json:"p95,omitempty"`
	P99      *float64  `json:"p99,omitempty"`
	Baseline bool      `json:"baseline,omitempty"`
	// Breached is set if the median exceeds the bound of the metric.
	Breached   bool        `json:"bound_broken,omitempty"`
	Comparison *comparison `json:"comparison,omitempty"`
	// Overhead is |ratio − 1|, against a native baseline only.
	Overhead *float64 `json:"overhead,omitempty"`
	// Curve holds the medians of a series by place.
	Curve    []float64 `json:"median_by_place,omitempty"`
	Warnings []warning `json:"warnings,omitempty"`
}

type interval struct {
	Lo float64 `json:"lo"`
	Hi float64 `json:"hi"`
}

type comparison struct {
	Pairs int `json:"pairs"`
	// Ratio is the median over blocks of target / baseline within the block.
	Ratio    *float64  `json:"ratio"`
	Interval *interval `json:"interval"`
	P        *float64  `json:"p"`
	Adjusted *float64  `json:"adjusted_p"`
	// Verdict has the spelling of package stats. Word is for people and depends on the metric.
	Verdict    stats.Verdict `json:"verdict"`
	Word       string        `json:"word"`
	Detectable *float64      `json:"detectable"`
}

type warning struct {
	Kind    stats.WarningKind `json:"kind"`
	Message string            `json:"message"`
	Advice  string            `json:"advice"`
}

type warnings struct {
	Title  string   `json:"title"`
	Advice string   `json:"advice,omitempty"`
	Items  []string `json:"items"`
}

type missing struct {
	Benchmark string        `json:"benchmark"`
	Params    string        `json:"params,omitempty"`
	Target    string        `json:"target"`
	Status    result.Status `json:"status"`
	Count     int           `json:"count"`
	Total     int           `json:"of"`
	Reason    string        `json:"reason"`
}

// number is nil for NaN and infinities, which JSON does not have. It keeps twelve digits: more than any clock gives, and few
// enough for the same text from machines with and without fused multiplication and addition.
func number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	rounded := digits(v)
	return &rounded
}

func digits(v float64) float64 {
	if rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 11, 64), 64); err == nil {
		return rounded
	}
	return v
}

func bounds(ci *stats.Interval) *interval {
	if ci == nil || number(ci.Lo) == nil || number(ci.Hi) == nil {
		return nil
	}
	return &interval{digits(ci.Lo), digits(ci.Hi)}
}
