package analysis

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/lists"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Timelines are the quantities of one group over the time of a trial, on each target. A mean over trials would blur the events, so
// each target has one trial: the trial of median length among those that count, and the shorter one of the two middle ones. It is the same
// trial for all groups.
type Timelines struct {
	// Title is the group's heading.
	Title string
	Unit  result.Unit
	// Names are the lines of any target, in the order of the trials.
	Names []string
	// Panels are the targets with the group, in the order of the run.
	Panels []Panel
	// Change is set for amounts of bytes if a plot of the values would be flat: the lines are far apart, and each changes little. A plot
	// then shows the change of each line since its first value.
	Change bool
}

// flat is a share of the range of all lines. If no line changes by more, a plot of the values is flat.
const flat = 0.2

// Panel is a group of timelines in the shown trial of one target.
type Panel struct {
	Target string
	// Seq and Block identify the shown trial, Trials counts the trials to choose from.
	Seq, Block, Trials int
	// End is the length of the trial in seconds.
	End float64
	// Regions are the timed regions in order of time, without their steps.
	Regions []Region
	// Lines are in the order of Timelines.Names; a line without values is nil.
	Lines []*Line
}

// Region is a timed region of a trial, in seconds from its start.
type Region struct {
	Name       string
	Start, End float64
}

// Line is a quantity over time. It has at least one value.
type Line struct {
	// At are the times in seconds from the start of the trial.
	At, Values []float64
	// First and Last are values at the ends.
	First, Last, Min, Max float64
	// Mean is over time, by trapezoids. It is nil if a gap between two values is much longer than the others, because the value in the gap is
	// not known.
	Mean *float64
}

// longGap is a multiple of the median distance of two values. Longer distances are gaps.
const longGap = 4

// timelines collects the timelines of the shown trials, in the order of their first appearance.
func (b *builder) timelines(targets []Outcome) []Timelines {
	var groups []Timelines
	for _, o := range targets {
		trials := b.valid(o.Target)
		trial := medianTrial(trials)
		if trial == nil {
			continue
		}
		for i := range trial.Timelines {
			l := &trial.Timelines[i]
			if len(l.Values) == 0 {
				continue
			}
			t := lists.Place(&groups, func(t *Timelines) bool { return t.Title == l.Group && t.Unit == l.Unit }, Timelines{Title: l.Group, Unit: l.Unit})
			index := slices.Index(t.Names, l.Name)
			if index < 0 {
				index = len(t.Names)
				t.Names = append(t.Names, l.Name)
			}
			p := lists.Place(&t.Panels, func(p *Panel) bool { return p.Target == o.Target }, newPanel(trial, len(trials)))
			if missing := index + 1 - len(p.Lines); missing > 0 {
				p.Lines = append(p.Lines, make([]*Line, missing)...)
			}
			p.Lines[index] = newLine(l)
		}
	}
	for i := range groups {
		groups[i].finish()
	}
	return groups
}

// medianTrial is the trial of median length, nil without trials.
func medianTrial(trials []*result.Trial) *result.Trial {
	if len(trials) == 0 {
		return nil
	}
	sorted := slices.SortedFunc(slices.Values(trials), func(a, b *result.Trial) int {
		return cmp.Or(cmp.Compare(a.Elapsed, b.Elapsed), cmp.Compare(a.Seq, b.Seq))
	})
	return sorted[(len(sorted)-1)/2]
}

func newPanel(t *result.Trial, trials int) Panel {
	p := Panel{Target: t.Target, Seq: t.Seq, Block: t.Block, Trials: trials, End: t.Elapsed.Seconds()}
	for _, phase := range t.Phases {
		if parent, _, isStep := strings.Cut(phase.Name, "/"); isStep && slices.ContainsFunc(t.Phases, func(o result.Phase) bool { return o.Name == parent }) {
			continue
		}
		p.Regions = append(p.Regions, Region{phase.Name, phase.Start.Seconds(), (phase.Start + phase.Duration).Seconds()})
	}
	slices.SortStableFunc(p.Regions, func(a, b Region) int { return cmp.Compare(a.Start, b.Start) })
	return p
}

func newLine(l *result.Timeline) *Line {
	out := &Line{
		Values: l.Values, First: l.Values[0], Last: l.Values[len(l.Values)-1],
		Min: slices.Min(l.Values), Max: slices.Max(l.Values),
	}
	var gaps []float64
	area, mean := 0.0, l.Values[0]
	for i, moment := range l.At {
		out.At = append(out.At, moment.Seconds())
		if i > 0 {
			gap := (moment - l.At[i-1]).Seconds()
			gaps = append(gaps, gap)
			area += (l.Values[i-1]/2 + l.Values[i]/2) * gap
		}
	}
	if length := (l.At[len(l.At)-1] - l.At[0]).Seconds(); length > 0 {
		mean = area / length
	}
	if len(gaps) == 0 || slices.Max(gaps) <= longGap*stats.Median(gaps) {
		out.Mean = &mean
	}
	return out
}

// finish gives all panels the same lines, and decides whether a plot shows values or changes.
func (t *Timelines) finish() {
	lo, hi, span := math.Inf(1), math.Inf(-1), 0.0
	for i := range t.Panels {
		p := &t.Panels[i]
		p.Lines = append(p.Lines, make([]*Line, len(t.Names)-len(p.Lines))...)
		for _, l := range p.Lines {
			if l != nil {
				lo, hi, span = min(lo, l.Min), max(hi, l.Max), max(span, l.Max-l.Min)
				p.End = max(p.End, l.At[len(l.At)-1])
			}
		}
	}
	t.Change = t.Unit == result.Bytes && span > 0 && span < flat*(hi-lo)
}
