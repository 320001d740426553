package stats

import (
	"math"
	"slices"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/stats/simulation"
)

// ordered is a run of three targets in random order. Target 0 takes effect times as long after target 2.
func ordered(seed uint64, blocks int, effect float64) []Turn {
	r := random(seed)
	var turns []Turn
	for block := range blocks {
		level := 1 + 0.3*r.Float64()
		predecessor := -1
		for _, target := range r.Perm(3) {
			v := level * float64(1+target) * (1 + 0.03*r.NormFloat64())
			if target == 0 && predecessor == 2 {
				v *= effect
			}
			turns = append(turns, Turn{Block: block, Target: target, Before: predecessor, Value: v})
			predecessor = target
		}
	}
	return turns
}

func TestCarryOverIsFoundAndNotInvented(t *testing.T) {
	trials := simulation.Trials(t, 50, 200)
	var found, invented int
	for seed := range uint64(trials) {
		if c := FindCarryOver(ordered(seed, 20, 1.15), seed); c.P < 0.01 {
			found += count(c.Target == 0 && c.Before == 2 && math.Abs(c.Ratio-1.15) < 0.08)
		}
		invented += count(FindCarryOver(ordered(seed, 20, 1), seed).P < 0.05)
	}
	simulation.AtLeast(t, 0.8, found, trials, "carry-over is found")
	simulation.AtMost(t, 0.05, invented, trials, "runs without carry-over that have one")
}

func TestCarryOverNeedsValues(t *testing.T) {
	for name, turns := range map[string][]Turn{
		"none":       nil,
		"few":        ordered(1, 3, 1),
		"one target": {{Value: 1}, {Block: 1, Value: 1}},
		"zeros":      append(ordered(1, 20, 2), Turn{Block: 20}, Turn{Block: 20, Target: 2, Before: 0}),
	} {
		if c := FindCarryOver(turns, 1); c.P != 1 {
			t.Errorf("%s: p = %g, want 1", name, c.P)
		}
	}
}

// A target with a value that has no logarithm is not tested. The others are tested, also for an effect of this target.
func TestCarryOverWithoutLogarithms(t *testing.T) {
	for _, value := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		for target, found := range []bool{false, true, true} {
			turns := ordered(1, 40, 1.3)
			turns[slices.IndexFunc(turns, func(t Turn) bool { return t.Target == target })].Value = value
			c := FindCarryOver(turns, 1)
			if got := c.P < 0.01 && c.Target == 0 && c.Before == 2; got != found || c.Target == target {
				t.Errorf("target %d has the value %v: %+v", target, value, c)
			}
		}
	}
}

// A target whose trials all failed has no values, and still comes before others. Its number may be any.
func TestCarryOverFromATargetWithoutValues(t *testing.T) {
	trials := simulation.Trials(t, 8, 20)
	for gap := range 3 {
		var found int
		for seed := range uint64(trials) {
			var turns []Turn
			for _, turn := range ordered(seed, 40, 1) {
				if turn.Target == gap {
					continue
				}
				if turn.Before == gap && turn.Target == (gap+1)%3 {
					turn.Value *= 1.3
				}
				turns = append(turns, turn)
			}
			if c := FindCarryOver(turns, seed); c.P < 0.01 && c.Target == (gap+1)%3 && c.Before == gap && math.Abs(c.Ratio-1.3) < 0.1 {
				found++
			}
		}
		simulation.AtLeast(t, 0.9, found, trials, "target %d has no values: its effect on the next is found", gap)
	}
}

// With many values the limiting distribution gives the same answers.
func TestCarryOverOfManyValues(t *testing.T) {
	if c := FindCarryOver(ordered(1, 1000, 1.02), 1); c.P > 0.001 || c.Target != 0 || c.Before != 2 {
		t.Errorf("an effect of 2 %% in 1000 blocks: %+v", c)
	}
	trials := simulation.Trials(t, 100, 400)
	var invented int
	for seed := range uint64(trials) {
		invented += count(FindCarryOver(ordered(seed, 1000, 1), seed).P < 0.05)
	}
	simulation.AtMost(t, 0.05, invented, trials, "runs without carry-over that have one")
}
