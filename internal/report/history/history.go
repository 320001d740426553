// Package history follows a metric over runs, and finds changes of its level. It is the model of `touchstone history`.
//
// A series has one value for each run, the median of its trials, of one cell on one machine. Runs of different machines, units or parameters are in
// different series: their values are not comparable. A change is named with the facts that differ between the runs beside it, such as the version of a
// target. Such a fact is no proof of a cause.
//
// A change has no direction if the runs of its better side have lost trials, or for a metric of speed on an emulated CPU: the verdict is then
// [stats.TrialsLost] or [stats.Withheld], as between sides.
//
// [stats.ChangePoints] assumes independent values. It has more false alarms if the machine drifts slowly.
package history

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/report/sides"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// History is the series of one metric, in the order of their first runs.
type History struct {
	Metric string
	Series []Series
	// Notes are statements about the order of the runs, and about runs without a value.
	Notes []string
}

// Series is a metric of a cell on one machine.
type Series struct {
	result.Cell
	Metric result.Metric
	// Machine is the name of the machine.
	Machine string
	Points  []Point
	Changes []Change

	// runs are the runs of the points, without trials.
	runs []result.Run
	// absent are the places of the runs that lost all trials: each is the index of the next point.
	absent []int
}

// Title names the series: "operations.container.lifecycle CreateAndRun on oci/runc".
func (s *Series) Title() string {
	title := analysis.Key{Name: s.Benchmark, Params: s.Params}.Title() + " " + s.Metric.Name + " on " + s.Target
	if s.Machine != "" {
		title += ", machine " + s.Machine
	}
	return title
}

// Point is the value of one run.
type Point struct {
	Run string
	// Started is zero if it is unknown.
	Started time.Time
	// Value is the median of the trials.
	Value  float64
	Trials int
	// Lost is the share (0–1) of the blocks that the cell has lost.
	Lost  float64
	State result.State

	values []float64
}

// Interval is the 95 % interval of the value, as the report of the run has it. It is nil with too few trials. It takes milliseconds.
func (p *Point) Interval() *stats.Interval { return stats.Summarize(p.values).CI }

// Remark states what a reader must know of the run: lost trials, and a plan that was not completed. It is empty for most runs.
func (p *Point) Remark() string {
	var parts []string
	if p.Lost > 0 {
		parts = append(parts, "lost "+quantity.Percent(p.Lost)+" of its trials")
	}
	if p.State != result.Complete {
		parts = append(parts, "the run is "+string(p.State))
	}
	return strings.Join(parts, "; ")
}

// Change is a change of the level, or of the variation alone.
type Change struct {
	// At is the index of the first point after the change.
	At int
	// Ratio is the level after the change by the level before, NaN without positive levels.
	Ratio, P float64
	// Before and After are the medians of the points between the neighbouring changes.
	Before, After float64
	// Verdict is the level after the change against the level before. It is empty if only the variation changed.
	Verdict stats.Verdict
	// Why is the reason of a verdict without a direction.
	Why string
	// Facts are the facts that differ between the last run before the change and the first run after it.
	Facts []string
}

// Select decides which cells are in the history.
type Select func(result.Cell) bool

// Builder collects runs.
type Builder struct {
	// EmulatedVerdicts gives verdicts about speed for machines with an emulated CPU too.
	EmulatedVerdicts bool

	metric string
	in     Select
	series []Series
	notes  []string
}

// NewBuilder begins the history of a metric.
func NewBuilder(metric string, in Select) *Builder { return &Builder{metric: metric, in: in} }

// Add adds a run. Runs are added in their order. The builder keeps the values of the metric, and no other part of the trials.
func (b *Builder) Add(run result.Run) {
	facts := run
	facts.Trials = nil
	for _, m := range analysis.MeasuredIn(&run) {
		if m.Metric.Name != b.metric || !b.in(m.Cell) {
			continue
		}
		index := b.find(m, &run.Host)
		switch {
		case len(m.Values) == 0 && (index < 0 || m.Lost == 0):
			continue
		case len(m.Values) == 0:
			s := &b.series[index]
			s.absent = append(s.absent, len(s.Points))
			b.notes = append(b.notes, fmt.Sprintf("Run %s has no value of %s: %s.", run.ID, s.Title(), m.Why))
			continue
		case index < 0:
			index = len(b.series)
			b.series = append(b.series, Series{Cell: m.Cell, Metric: m.Metric, Machine: run.Host.Hostname})
		}
		s := &b.series[index]
		s.runs = append(s.runs, facts)
		s.Points = append(s.Points, Point{
			Run: run.ID, Started: run.Started, Value: stats.Median(m.Values), Trials: len(m.Values), Lost: m.Lost, State: run.State,
			values: m.Values,
		})
	}
}

// find returns the index of the series of a metric on a machine, -1 without one. A machine that does not identify itself equals no other, and all such
// runs share a series by name.
func (b *Builder) find(m analysis.Measured, host *result.Host) int {
	return slices.IndexFunc(b.series, func(s Series) bool {
		first := &s.runs[0].Host
		return s.Cell == m.Cell && s.Metric.Unit == m.Metric.Unit && s.Metric.Better == m.Metric.Better &&
			(first.SameMachine(host) || !first.SameMachine(first) && !host.SameMachine(host) && first.Hostname == host.Hostname)
	})
}

// History finds the changes of all series.
func (b *Builder) History(notes ...string) History {
	h := History{Metric: b.metric, Series: b.series, Notes: slices.Concat(notes, b.notes)}
	for i := range h.Series {
		s := &h.Series[i]
		if index := slices.IndexFunc(s.Points, func(p Point) bool { return p.Started.IsZero() }); index >= 0 {
			h.Notes = append(h.Notes, fmt.Sprintf("The start of run %s is unknown, and with it the order of the runs of %s. No change is searched for.", s.Points[index].Run, s.Title()))
			continue
		}
		s.find(b.EmulatedVerdicts)
	}
	return h
}

// find finds the changes of a series. Positive values are compared by their logarithms, because changes are relative.
func (s *Series) find(emulatedVerdicts bool) {
	values := make([]float64, len(s.Points))
	for i, p := range s.Points {
		values[i] = p.Value
	}
	positive := !slices.ContainsFunc(values, func(v float64) bool { return v <= 0 })
	seed := fnv.New64a()
	_, _ = fmt.Fprint(seed, s.Cell, s.Metric.Name)
	levels := slices.Clone(values)
	if positive {
		for i := range levels {
			levels[i] = math.Log(values[i])
		}
	}
	emulated := !emulatedVerdicts && s.Metric.OfSpeed() && slices.ContainsFunc(s.runs, func(r result.Run) bool { return r.Host.MayBeEmulated() })
	points := stats.ChangePoints(levels, seed.Sum64())
	for i, found := range points {
		c := Change{At: found.At, P: found.P, Before: found.Before, After: found.After, Ratio: math.NaN()}
		if positive {
			c.Before, c.After = math.Exp(found.Before), math.Exp(found.After)
			c.Ratio = c.After / c.Before
		}
		start, end := 0, len(s.Points)
		if i > 0 {
			start = points[i-1].At
		}
		if i+1 < len(points) {
			end = points[i+1].At
		}
		s.judge(&c, stats.Losses{Baseline: s.lost(start, c.At), Other: s.lost(c.At, end)}, emulated)
		for _, d := range sides.Differences(s.runs[found.At-1:found.At], s.runs[found.At:found.At+1]) {
			if d.Concerns(s.Benchmark, s.Target) {
				c.Facts = append(c.Facts, fmt.Sprintf("%s: %s, then %s", d.Fact.Name(), cmp.Or(strings.Join(d.A, ""), "unknown"), cmp.Or(strings.Join(d.B, ""), "unknown")))
			}
		}
		s.Changes = append(s.Changes, c)
	}
}

// judge sets the verdict of a change between levels. losses are the shares of the trials that the runs before it and after it have lost.
func (s *Series) judge(c *Change, losses stats.Losses, emulated bool) {
	if c.After == c.Before { // a change of the variation alone has no direction
		return
	}
	isBetter := (c.After < c.Before) == (s.Metric.Better == result.Lower)
	side := "before"
	c.Verdict = stats.Slower
	if isBetter {
		side, c.Verdict = "after", stats.Faster
	}
	switch share := losses.OfBetter(isBetter); {
	case emulated:
		c.Verdict, c.Why = stats.Withheld, quantity.EmulatedCPU
	case share > 0:
		c.Verdict, c.Why = stats.TrialsLost, fmt.Sprintf("the runs %s the change have lost %s of their trials, and the others may be the faster ones", side, quantity.Percent(share))
	}
}

// lost is the mean share of the trials that the runs from a point to another have lost. A run without a value has lost all. At a change it counts for
// both levels.
func (s *Series) lost(start, end int) float64 {
	sum, runs := 0.0, end-start
	for _, p := range s.Points[start:end] {
		sum += p.Lost
	}
	for _, index := range s.absent {
		if start <= index && index <= end {
			sum, runs = sum+1, runs+1
		}
	}
	return sum / float64(runs)
}

// Short reports whether the series has too few runs for a change.
func (s *Series) Short() bool { return len(s.Points) < stats.MinHistory }
