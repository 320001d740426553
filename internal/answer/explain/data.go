package explain

import (
	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/report/explain"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Kind marks the JSON of an explanation. docs/schema/explanation.schema.json is its schema.
const Kind = "touchstone-explanation"

// schemaVersion is the version of the JSON.
const schemaVersion = 1

// Data is the JSON of an explanation.
type Data struct {
	Kind       string      `json:"kind" doc:"Kind of the document."`
	Version    int         `json:"schema_version" doc:"Version of the document. It rises if a field changes its meaning or goes away."`
	Run        string      `json:"run" doc:"Unique name of the run."`
	A          string      `json:"a" doc:"The target that is compared with."`
	B          string      `json:"b" doc:"The target that is compared. Differences are B − A."`
	Benchmarks []benchmark `json:"benchmarks" schema:"minItems=1" doc:"The benchmarks with timed calls of both targets."`
}

type (
	benchmark struct {
		Name   string      `json:"benchmark" doc:"Name of the benchmark."`
		Params string      `json:"params" doc:"Parameters of the benchmark in canonical form."`
		Phases []phaseData `json:"phases" doc:"The timed calls, in the order of their first call."`
	}
	phaseData struct {
		Name        string             `json:"phase" doc:"Name of the call."`
		A           document.Decimal   `json:"a" doc:"Median of target A without a tracer, in seconds."`
		B           document.Decimal   `json:"b" doc:"Median of target B without a tracer, in seconds."`
		Difference  document.Decimal   `json:"difference" doc:"Median of the differences within blocks, in seconds."`
		Interval    *document.Interval `json:"interval" doc:"95 % interval of the difference; null without one."`
		Verdict     stats.Verdict      `json:"verdict" doc:"The verdict of B against A."`
		Reason      string             `json:"reason,omitempty" doc:"Reason of a call without causes."`
		TracesA     int                `json:"traces_a" schema:"minimum=0" doc:"Number of traces of target A."`
		TracesB     int                `json:"traces_b" schema:"minimum=0" doc:"Number of traces of target B."`
		Times       []timeData         `json:"times" doc:"The parts of the call's time in the traces, the causes first. Running time and the time outside are scaled to the trials without a tracer."`
		Unexplained document.Decimal   `json:"unexplained" doc:"The part of the difference without a cause, in seconds."`
		Counts      []countData        `json:"counts" doc:"The counts whose ranges do not overlap."`
	}
	timeData struct {
		Step       string           `json:"step" doc:"Name of the call, or call/step."`
		Component  string           `json:"component" doc:"Part of the target; outside for the time when no process of the target held the step up."`
		Cause      result.TimeCause `json:"cause,omitempty" doc:"Cause of the time; absent outside of the target."`
		Calls      []string         `json:"calls" doc:"System calls of a wait, the longest first."`
		A          secondsData      `json:"a" doc:"The values of target A."`
		B          secondsData      `json:"b" doc:"The values of target B."`
		Difference document.Decimal `json:"difference" doc:"Difference of the medians, in seconds."`
		IsCause    bool             `json:"is_cause" doc:"Set if the ranges do not overlap and the difference is 2 % of the call's or more."`
	}
	secondsData struct {
		Least  document.Decimal `json:"least" doc:"Smallest value of a trace, in seconds."`
		Median document.Decimal `json:"median" doc:"Median of the traces, in seconds."`
		Most   document.Decimal `json:"most" doc:"Largest value of a trace, in seconds."`
	}
	countData struct {
		Step       string           `json:"step" doc:"Name of the call, or call/step."`
		Component  string           `json:"component" doc:"Part of the target."`
		Kind       explain.Kind     `json:"count" doc:"Kind of the count."`
		Name       string           `json:"name,omitempty" doc:"Name of the program or of the system call."`
		A          analysis.Range   `json:"a" doc:"The counts of target A."`
		B          analysis.Range   `json:"b" doc:"The counts of target B."`
		Difference document.Decimal `json:"difference" doc:"The smallest difference between a trace of B and a trace of A."`
		Exact      bool             `json:"exact" doc:"Set if each target has the same count in all traces."`
	}
)

func newData(e *explain.Explanation) Data {
	return Data{Kind, schemaVersion, e.Run, e.A, e.B, lists.Convert(e.Benchmarks, func(b *explain.Benchmark) benchmark {
		return benchmark{b.Name, b.Params, lists.Convert(b.Phases, newPhaseData)}
	})}
}

func newPhaseData(p *explain.Phase) phaseData {
	return phaseData{
		Name: p.Name, A: document.Decimal(p.Base), B: document.Decimal(p.Value), Difference: document.Decimal(p.Difference.Median), Interval: document.IntervalOf(p.Difference.CI),
		Verdict: p.Comparison.Verdict, Reason: p.Reason, TracesA: p.TracesA, TracesB: p.TracesB, Unexplained: document.Decimal(p.Unexplained()),
		Times: lists.Convert(p.Times, func(t *explain.Time) timeData {
			return timeData{t.Step, t.Component, t.Cause, append([]string{}, t.Calls...), newSecondsData(t.A), newSecondsData(t.B), document.Decimal(t.Difference), t.IsCause}
		}),
		Counts: lists.Convert(p.Counts, func(c *explain.Count) countData {
			return countData{c.Step, c.Component, c.Kind, c.Name, c.A, c.B, document.Decimal(c.Difference()), c.Exact()}
		}),
	}
}

func newSecondsData(s explain.Seconds) secondsData {
	return secondsData{document.Decimal(s.Least), document.Decimal(s.Median), document.Decimal(s.Most)}
}

// records has a row for each part of the time, and for each count that differs.
func records(e *explain.Explanation) document.Records {
	out := document.Records{Columns: []string{
		"benchmark", "params", "phase", "step", "component", "kind", "name", "unit", "a_least", "a_most", "b_least", "b_most", "difference", "is_cause",
	}}
	for i := range e.Benchmarks {
		b := &e.Benchmarks[i]
		for n := range b.Phases {
			p := &b.Phases[n]
			for _, t := range p.Times {
				out.Rows = append(out.Rows, []any{
					b.Name, b.Params, p.Name, t.Step, t.Component, "time", string(t.Cause), string(result.Seconds), t.A.Least, t.A.Most, t.B.Least, t.B.Most, t.Difference, t.IsCause,
				})
			}
			for _, c := range p.Counts {
				out.Rows = append(out.Rows, []any{
					b.Name, b.Params, p.Name, c.Step, c.Component, string(c.Kind), c.Name, string(result.Count),
					float64(c.A.Least), float64(c.A.Most), float64(c.B.Least), float64(c.B.Most), float64(c.Difference()), true,
				})
			}
		}
	}
	return out
}
