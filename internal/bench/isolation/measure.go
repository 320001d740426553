package isolation

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// A phase is split into windows, whose speeds show the noise. fewest is the least number of reports in the phase before.
const (
	mostWindows = 10
	fewest      = 3
)

// confidence is the two-sided confidence of the interval of a loss. It is high because no correction for the number of trials
// follows.
const confidence = 0.99

// rates splits a window into n parts and returns the work per second in each. The work of a step is spread evenly over the
// time since the step before, so that a boundary between parts does not shift whole units.
func rates(steps []step, w window, n int) []float64 {
	speeds := make([]float64, n)
	part := w.seconds() / float64(n)
	for i := 1; i < len(steps); i++ {
		begin, end := (steps[i-1].at - w.start).Seconds(), (steps[i].at - w.start).Seconds()
		if end <= 0 || begin >= w.seconds() {
			continue
		}
		if end <= begin { // two reports that arrived at once
			speeds[min(int(end/part), n-1)] += steps[i].work
			continue
		}
		speed := steps[i].work / (end - begin)
		for k := max(0, int(begin/part)); k < n && float64(k)*part < end; k++ {
			speeds[k] += speed * max(0, min(end, float64(k+1)*part)-max(begin, float64(k)*part))
		}
	}
	for i := range speeds {
		speeds[i] /= part
	}
	return speeds
}

// within counts the steps in a window.
func within(steps []step, w window) int {
	n := 0
	for _, s := range steps {
		if s.at > w.start && s.at <= w.end {
			n++
		}
	}
	return n
}

// change is the relative loss of a quantity from one phase to another, (before − during) / before, with its standard error
// by the propagation of errors from the windows of the phases.
type change struct {
	loss, se float64
	windows  int
}

func changeOf(baseline, load []float64) change {
	b, sb := stat.MeanStdDev(baseline, nil)
	d, sd := stat.MeanStdDev(load, nil)
	n := min(len(baseline), len(load))
	root := math.Sqrt(float64(n))
	return change{loss: (b - d) / b, se: math.Hypot(sd/b, d*sb/(b*b)) / root, windows: n}
}

// corrected is the change relative to the control's: the ratio of the shares of speed that were kept in both.
type corrected struct {
	kept  float64 // 1 without an effect
	noise float64 // half the length of the interval of kept
}

func (c change) over(control change) corrected {
	share, controlShare := 1-c.loss, 1-control.loss
	se := math.Hypot(c.se/controlShare, share*control.se/(controlShare*controlShare))
	// The quantile has the fewest degrees of freedom that Welch's approximation can give.
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(min(c.windows, control.windows) - 1)}.Quantile(1 - (1-confidence)/2)
	return corrected{kept: share / controlShare, noise: t * se}
}

// loss is negative if the victim became faster than the control.
func (c corrected) loss() float64 { return 1 - c.kept }

// shown reports whether the loss is more than noise.
func (c corrected) shown() bool { return c.loss() > c.noise }

// tailOf is the 99th percentile of the times of the units that were completed in a window. It is false without any.
func tailOf(steps []step, w window) (seconds float64, ok bool) {
	var pool []times
	for i, s := range steps {
		switch {
		case s.at <= w.start || s.at > w.end:
		case s.times != nil:
			pool = append(pool, s.times...)
		case i > 0:
			pool = append(pool, times{seconds: (s.at - steps[i-1].at).Seconds(), count: 1})
		}
	}
	slices.SortFunc(pool, func(a, b times) int { return cmp.Compare(a.seconds, b.seconds) })
	var total, sum float64
	for _, u := range pool {
		total += u.count
	}
	for _, u := range pool {
		if sum += u.count; sum >= 0.99*total {
			return u.seconds, true
		}
	}
	return 0, false
}

// recordTail records the tail of a phase, unless the victim completed nothing in it.
func recordTail(t bench.Trial, name string, steps []step, w window) {
	if seconds, ok := tailOf(steps, w); ok {
		t.Record("Tail"+name, seconds)
	}
}

// recovery is the time from the end of the load until the speed of the victim is back within the range of the control, by
// windows of a length d that follow each other in quarters of it. Speeds are relative to the phase before. It is false if
// the phase after ends first.
func recovery(attack, control pass, start, d time.Duration) (time.Duration, bool) {
	level := stat.Mean(rates(attack.victim, attack.before, 1), nil)
	low := lowest(control, d)
	for moment := start; moment+d <= attack.after.end; moment += d / 4 {
		if rates(attack.victim, window{moment, moment + d}, 1)[0]/level >= low {
			return moment + d - start, true
		}
	}
	return 0, false
}

// lowest is the lowest relative speed of the control in a window of the length d.
func lowest(control pass, d time.Duration) float64 {
	level := rates(control.victim, control.before, 1)[0]
	low := math.Inf(1)
	for moment := control.before.start; moment+d <= control.after.end; moment += d / 4 {
		low = min(low, rates(control.victim, window{moment, moment + d}, 1)[0]/level)
	}
	return low
}

// record computes and records the values of a trial.
func record(t bench.Trial, attack, control pass) error {
	// The end of the last unit of work is not known.
	for _, p := range []*pass{&attack, &control} {
		p.after.end = min(p.after.end, p.victim[len(p.victim)-1].at)
	}
	n := mostWindows
	for _, p := range []pass{attack, control} {
		got := within(p.victim, p.before)
		if got < fewest {
			return fewReports(got)
		}
		// Beside the aggressor the victim may stand still.
		n = min(n, got, max(within(p.victim, p.during), fewest))
	}
	if attack.after.end <= attack.after.start {
		return errors.New("the victim completed nothing after the aggressor's end: set a longer phase after")
	}
	raw, reference := lossIn(attack.victim, attack, n), lossIn(control.victim, control, n)
	if reference.loss >= 1 {
		return errors.New("the victim stood still in the control, without an aggressor: the machine is too busy for a result")
	}
	c := raw.over(reference)
	t.Record("Kept", c.kept)
	t.Record("Loss", c.loss())
	t.Record("LossNoise", c.noise)
	t.Record("RawLoss", raw.loss)
	t.Record("ControlLoss", reference.loss)
	verdict := "not shown: within the noise of its trial"
	if c.shown() {
		verdict = "shown: beyond the control and the noise of its trial"
	}
	t.Condition(lossCondition, verdict)
	for _, phase := range []struct {
		name string
		window
	}{{"Before", attack.before}, {"During", attack.during}, {"After", attack.after}} {
		t.Record("Speed"+phase.name, rates(attack.victim, phase.window, 1)[0])
		recordTail(t, phase.name, attack.victim, phase.window)
	}
	recordTail(t, "Control", control.victim, control.during)
	t.Record("VariationBefore", variation(rates(attack.victim, attack.before, n)))
	t.Record("VariationDuring", variation(rates(attack.victim, attack.during, n)))
	if c.shown() {
		d := min(attack.before.end-attack.before.start, attack.during.end-attack.during.start) / mostWindows
		took, back := recovery(attack, control, attack.during.end, d)
		if back {
			t.Record("Recovery", took.Seconds())
		} else {
			t.Condition("recovery", "not within the phase after")
		}
	}
	if attack.victimCPU != nil && control.victimCPU != nil {
		recordCPU(t, attack, control)
	}
	timelines(t, attack, control)
	return nil
}

// lossIn is the change of a quantity from the phase before to the phase during of a pass.
func lossIn(steps []step, p pass, n int) change {
	return changeOf(rates(steps, p.before, n), rates(steps, p.during, n))
}

// variation is the coefficient of variation.
func variation(speeds []float64) float64 {
	mean, deviation := stat.MeanStdDev(speeds, nil)
	if mean == 0 {
		return 0
	}
	return deviation / mean
}

// recordCPU records the CPU utilisation of the victim.
func recordCPU(t bench.Trial, attack, control pass) {
	baseline := rates(attack.victimCPU, attack.before, 1)[0]
	if baseline == 0 || rates(control.victimCPU, control.before, 1)[0] == 0 {
		return // the processes that were found do not do the work
	}
	reference := lossIn(control.victimCPU, control, mostWindows)
	if reference.loss >= 1 {
		return
	}
	t.Record("CPUShrinkage", lossIn(attack.victimCPU, attack, mostWindows).over(reference).loss())
	t.Record("ControlCPUShrinkage", reference.loss)
	t.Record("CPUsBefore", baseline)
	t.Record("CPUsDuring", rates(attack.victimCPU, attack.during, 1)[0])
}

// points is the number of points of a timeline.
const points = 200

// timelines keeps the speeds and the CPU times of the parties over the time of the trial. A speed is relative: the victim's
// to its own before the aggressor, the aggressor's to its own mean in the phase during.
func timelines(t bench.Trial, attack, control pass) {
	const group = "Speed, relative to the victim's before, and to the aggressor's mean"
	line(t, group, "victim", attack.victim, attack.whole(), rates(attack.victim, attack.before, 1)[0])
	for i, steps := range attack.aggressors {
		name := "aggressor"
		if len(attack.aggressors) > 1 { // a report has one line for a name
			name = fmt.Sprintf("aggressor %d", i+1)
		}
		line(t, group, name, steps, window{attack.during.start - attack.ramp, attack.during.end}, rates(steps, attack.during, 1)[0])
	}
	line(t, group, "victim, control", control.victim, control.whole(), rates(control.victim, control.before, 1)[0])
	const cpus = "CPU time per second"
	line(t, cpus, "victim", attack.victimCPU, attack.whole(), 1)
	line(t, cpus, "all aggressors", attack.aggressorCPU, attack.during, 1)
	line(t, cpus, "victim, control", control.victimCPU, control.whole(), 1)
}

// whole is the time of a pass from the start of the phase before to the end of the phase after.
func (p pass) whole() window { return window{p.before.start, p.after.end} }

// line keeps the rates of steps over a window, in units of scale.
func line(t bench.Trial, group, name string, steps []step, w window, scale float64) {
	// A part holds a step or more on average, because the time within a step has no shape of its own.
	n := min(points, within(steps, w))
	if n < 2 || !(scale > 0) {
		return
	}
	l := result.Timeline{Group: group, Name: name, Unit: result.Ratio, Values: rates(steps, w, n)}
	part := (w.end - w.start) / time.Duration(n)
	for i := range l.Values {
		l.Values[i] /= scale
		l.At = append(l.At, w.start+part*time.Duration(i)+part/2)
	}
	t.Details.Timeline(l)
}
