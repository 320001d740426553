package isolation

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

const ms = time.Millisecond

// evenly returns steps of a unit of work each, one every d from start to end.
func evenly(start, end, d time.Duration) []step {
	var steps []step
	for moment := start; moment <= end; moment += d {
		steps = append(steps, step{at: moment, work: 1})
	}
	return steps
}

func TestRates(t *testing.T) {
	for _, tt := range []struct {
		name  string
		steps []step
		w     window
		n     int
		want  []float64
	}{
		{"even", evenly(0, 1000*ms, 10*ms), window{0, 1000 * ms}, 4, []float64{100, 100, 100, 100}},
		{"units that cross the boundaries", evenly(0, 1200*ms, 300*ms), window{100 * ms, 1100 * ms}, 4, []float64{10. / 3, 10. / 3, 10. / 3, 10. / 3}},
		{"a long unit is slow all the time", []step{{at: 0}, {at: 100 * ms, work: 1}, {at: 1100 * ms, work: 1}}, window{100 * ms, 1100 * ms}, 2, []float64{1, 1}},
		{"two reports at once", []step{{at: 0}, {at: 100 * ms, work: 1}, {at: 100 * ms, work: 1}}, window{0, 200 * ms}, 1, []float64{10}},
		{"no work", nil, window{0, 100 * ms}, 2, []float64{0, 0}},
		{"work outside", evenly(200*ms, 400*ms, 10*ms), window{0, 100 * ms}, 1, []float64{0}},
	} {
		got := rates(tt.steps, tt.w, tt.n)
		for i := range tt.want {
			if math.Abs(got[i]-tt.want[i]) > 1e-9 {
				t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
				break
			}
		}
	}
}

func TestChange(t *testing.T) {
	c := changeOf([]float64{10, 10, 10}, []float64{4, 4, 4})
	if math.Abs(c.loss-0.6) > 1e-12 || c.se != 0 {
		t.Errorf("changeOf = %+v", c)
	}
	stalled := changeOf([]float64{9, 10, 11}, []float64{0, 0, 0})
	if stalled.loss != 1 || stalled.se != 0 {
		t.Errorf("a victim that stands still: %+v", stalled)
	}
	for _, tt := range []struct {
		name            string
		loaded, control change
		want            float64
		shown           bool
	}{
		{"a loss", change{0.5, 0.02, 10}, change{0, 0.02, 10}, 0.5, true},
		{"a loss that the control has as well", change{0.3, 0.02, 10}, change{0.3, 0.02, 10}, 0, false},
		{"half of the loss is the control's", change{0.75, 0.01, 10}, change{0.5, 0.01, 10}, 0.5, true},
		{"noise", change{0.1, 0.04, 10}, change{0, 0.04, 10}, 0.1, false},
		{"a gain", change{-0.2, 0.01, 10}, change{0, 0.01, 10}, -0.2, false},
		{"few windows need more", change{0.5, 0.05, 3}, change{0, 0.05, 3}, 0.5, false},
	} {
		got := tt.loaded.over(tt.control)
		if math.Abs(got.loss()-tt.want) > 1e-12 || got.shown() != tt.shown {
			t.Errorf("%s: %v, %v", tt.name, got.loss(), got.shown())
		}
	}
}

// Without an effect a loss is shown in fewer than 2 of 100 trials, with independent noise and with noise that lasts
// for several windows. A drift of the machine, which both passes have, shows none either. A real loss is found.
//
// Invariant isolation-loss: A loss of isolation without an effect is not shown, also on a drifting machine, and no fork bomb runs without a
// proved limit.
func TestNothingIsClaimedWithoutEffect(t *testing.T) {
	const trials = 2000
	for _, tt := range []struct {
		name        string
		correlation float64
		drift       float64 // relative loss of speed from the phase before to the phase during, in both passes
		loss        float64
		least, most float64 // share of trials that show a loss
	}{
		{"independent noise", 0, 0, 0, 0, 0.02},
		{"noise that lasts", 0.3, 0, 0, 0, 0.04},
		{"a drift", 0, 0.1, 0, 0, 0.02},
		{"a loss of 30 %", 0, 0, 0.3, 0.99, 1},
		{"a loss of 30 % beside a drift", 0, 0.1, 0.3, 0.98, 1},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		findings, sum := 0, 0.0
		for range trials {
			pass := func(loss float64) change {
				noise := 0.0
				phase := func(level float64) []float64 {
					var levels []float64
					for range mostWindows {
						noise = tt.correlation*noise + 0.05*math.Sqrt(1-tt.correlation*tt.correlation)*r.NormFloat64()
						levels = append(levels, level*(1+noise))
					}
					return levels
				}
				return changeOf(phase(1), phase(1-loss))
			}
			c := pass(1 - (1-tt.drift)*(1-tt.loss)).over(pass(tt.drift))
			if c.shown() {
				findings++
			}
			sum += c.loss()
		}
		if mean := sum / trials; math.Abs(mean-tt.loss) > 0.01 {
			t.Errorf("%s: the mean loss is %v, want %v", tt.name, mean, tt.loss)
		}
		if share := float64(findings) / trials; share < tt.least || share > tt.most {
			t.Errorf("%s: %v of the trials show a loss, want %v to %v", tt.name, share, tt.least, tt.most)
		}
	}
}

func TestTail(t *testing.T) {
	steps := evenly(0, 2000*ms, 10*ms)
	for i := range steps[150:] {
		steps[150+i].at += 90 * ms // one unit takes 100 ms
	}
	for _, tt := range []struct {
		name string
		w    window
		want float64
	}{
		{"before the slow unit", window{0, 1000 * ms}, 0.01},
		{"fewer than 100 units", window{1450 * ms, 2000 * ms}, 0.1},
		{"one of 200", window{0, 2090 * ms}, 0.01},
	} {
		if got, ok := tailOf(steps, tt.w); !ok || math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: %v, %v, want %v", tt.name, got, ok, tt.want)
		}
	}
	series := []step{{at: ms, times: []times{{0.001, 989}, {0.5, 11}}}}
	if got, ok := tailOf(series, window{0, 2 * ms}); !ok || got != 0.5 {
		t.Errorf("of counted units: %v, %v", got, ok)
	}
	// A victim that stands still has no tail, and not a tail of 0.
	for _, series := range [][]step{evenly(0, 100*ms, 10*ms), {{at: 150 * ms, times: []times{}}}} {
		if got, ok := tailOf(series, window{100 * ms, 200 * ms}); ok {
			t.Errorf("the tail of no unit is %v", got)
		}
	}
}

func TestRecovery(t *testing.T) {
	control := pass{before: window{0, 1000 * ms}, during: window{1000 * ms, 2000 * ms}, after: window{2000 * ms, 3000 * ms}, victim: evenly(0, 3000*ms, 10*ms)}
	attack := control
	steps := evenly(1000*ms, 2300*ms, 20*ms)
	attack.victim = append(append(evenly(0, 990*ms, 10*ms), steps...), evenly(2310*ms, 3000*ms, 10*ms)...)
	took, back := recovery(attack, control, 2000*ms, 100*ms)
	if !back || took < 390*ms || took > 450*ms {
		t.Errorf("recovery = %v, %v; the victim is slow for 300 ms more", took, back)
	}
	attack.victim = append(evenly(0, 990*ms, 10*ms), evenly(1000*ms, 3000*ms, 20*ms)...)
	if took, back := recovery(attack, control, 2000*ms, 100*ms); back {
		t.Errorf("a victim that stays slow recovers after %v", took)
	}
}
