// Package check finds the conditions of a machine that make results less stable, each with its effect and its remedy.
//
// [Inspect] returns all of them, and [Warnings] the poor ones that matter for every run. The list is in checks.go. Reading them changes nothing:
// package tune changes settings.
package check

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/host/facts"
	"github.com/touchstone-bench/touchstone/internal/host/machine"
	"github.com/touchstone-bench/touchstone/internal/host/tune"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Rating is the quality of a property for measurements.
type Rating string

// The ratings.
const (
	Good Rating = "good"
	Poor Rating = "poor"
	// Unknown is the rating of a property that the kernel of this machine does not show.
	Unknown Rating = "unknown"
	// Unreadable is the rating of a property whose file exists and cannot be read, for example for lack of permission.
	Unreadable Rating = "unreadable"
)

// Finding is a property of a machine that decides how well one can measure on it.
type Finding struct {
	Name   string `json:"name"`
	Rating Rating `json:"rating"`
	// Now is the present state. If the rating is Unknown or Unreadable, it is the reason.
	Now string `json:"now"`
	// Effect is the effect of a poor state on results.
	Effect string `json:"effect"`
	// Source is the place that describes the effect. It is empty for an experience of this project.
	Source string `json:"source,omitempty"`
	// Remedy improves a poor state. It is empty for other ratings, and for a state that has none.
	Remedy string `json:"remedy,omitempty"`
	// Tunable is set if [tune.Tuner.Apply] tries to improve the poor state.
	Tunable bool `json:"tunable"`
	// Before is the state before [tune.Tuner.Apply] changed the property. It is empty without such a change.
	Before string `json:"before_tuning,omitempty"`
}

// SampleTime is the length of the sample of CPU use that Inspect takes.
const SampleTime = 1500 * time.Millisecond

// Inspect returns the findings about a machine. root is the root of its file system: "/", or a copy in tests. Inspect calls pause between two
// readings of the counters that grow with time; SampleTime is long enough for it. Counters that did not change meanwhile are of a copy, and their
// values since boot count.
func Inspect(ctx context.Context, root string, pause func(ctx context.Context) error) ([]Finding, error) {
	m := newState(root, facts.Read(root))
	start, ok := m.CPUTimes()
	if err := pause(ctx); err != nil {
		return nil, err
	}
	if end, hasEnd := m.CPUTimes(); ok && hasEnd {
		m.sample = newUsage(start, end)
	}
	tuner, values := tune.New(root), map[string]string{}
	for _, t := range tune.InEffect(root) {
		values[t.Setting] = t.Before
	}
	var findings []Finding
	for _, c := range checks {
		r := c.read(m)
		f := Finding{Name: c.name, Rating: r.rating, Now: r.now, Effect: cmp.Or(r.effect, c.effect), Source: c.source, Before: values[c.name]}
		if r.rating == Poor {
			f.Remedy, f.Tunable = r.remedy, tuner.Improves(c.name)
		}
		findings = append(findings, f)
	}
	return findings, nil
}

// Pause waits for SampleTime.
func Pause(ctx context.Context) error {
	timer := time.NewTimer(SampleTime)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// state is the input of the checks.
type state struct {
	machine.Tree
	facts  result.Host
	memory map[string]int64
	groups *cgroup.Hierarchy // nil if they cannot be read
	sample *usage            // nil without a sample
}

func newState(root string, h result.Host) state {
	m := state{Tree: machine.At(root), facts: h}
	m.memory = m.Meminfo()
	if groups, err := cgroup.Detect(root); err == nil {
		m.groups = groups
	}
	return m
}

// check is one property. Every check of a machine without any file returns Good or Unknown.
type check struct {
	name, effect, source string
	// warns is set if a poor state is also a warning of each run.
	warns bool
	read  func(m state) reading
}

// reading is the state of a property now.
type reading struct {
	rating Rating
	now    string
	remedy string
	// about is the state as a part of a sentence, for the warning of each run. It is empty for a state that deserves none.
	about string
	// effect replaces the effect of the check. It is empty for the usual one.
	effect string
}

func good(state string) reading { return reading{rating: Good, now: state} }

func unknown(reason string) reading { return reading{rating: Unknown, now: reason} }

func poor(state, remedy string) reading { return reading{rating: Poor, now: state, remedy: remedy} }

// Warnings returns the poor states that make results of every run on this machine less stable or less complete. Each includes a remedy. h has
// the facts of the machine.
func Warnings(root string, h result.Host) []string {
	m := newState(root, h)
	var reasons []string
	for _, c := range checks {
		if !c.warns {
			continue
		}
		if r := c.read(m); r.rating == Poor && r.about != "" {
			reasons = append(reasons, r.about+": "+cmp.Or(r.effect, c.effect)+"; "+r.remedy)
		}
	}
	return reasons
}

// usage is the use of all CPUs between two readings, as shares of their time.
type usage struct{ busy, steal float64 }

// newUsage returns nil if no time has passed, or if the counters went back because a guest was moved to another machine.
func newUsage(start, end machine.CPUTimes) *usage {
	if end.Total <= start.Total || end.Idle < start.Idle || end.Steal < start.Steal {
		return nil
	}
	total := float64(end.Total - start.Total)
	steal := float64(end.Steal - start.Steal)
	return &usage{busy: max(0, total-float64(end.Idle-start.Idle)-steal) / total, steal: steal / total}
}

// missing is the reading of a value with an error.
func missing(err error) reading {
	if reason := machine.Unknown(""); errors.As(err, &reason) {
		return unknown(reason.Error())
	}
	return reading{rating: Unreadable, now: err.Error()}
}

// tunable is the reading of a setting of a Tuner. Its state is poor if it has a remedy.
func tunable(state, remedy string, err error) reading {
	switch {
	case err != nil:
		return missing(err)
	case remedy == "":
		return good(state)
	}
	return poor(state, remedy)
}

// read returns the content of a file as one line. Without a value it returns false and the reading: unknown with the given reason if the file does
// not exist.
func (m state) read(name, reason string) (string, reading, bool) {
	text, err := m.Value(name, reason)
	if err != nil {
		return "", missing(err), false
	}
	return text, reading{}, true
}

func (m state) irqbalanceReading() reading { return tunable(tune.Irqbalance(m.Tree)) }

func (m state) favorReading() reading { return tunable(tune.Favordynmods(m.Tree)) }
