package stats

import (
	"math"
	"slices"
	"testing"
)

// Four nodes that agree better than their noise permits have the interval of the noise, and not the narrower one of their differences.
func TestFleetKeepsTheNoiseWithinNodes(t *testing.T) {
	var nodes []NodeEffect
	for _, log := range []float64{0.100, 0.101, 0.099, 0.100} {
		nodes = append(nodes, NodeEffect{Effect{log, 0.02}, 30, "a"})
	}
	f := PoolNodes(nodes)
	near(t, "standard error", f.SE, 0.01, 1e-12) // 0.02/√4
	near(t, "noise", f.Noise, 0.02, 1e-12)
	near(t, "spread", f.Spread(), 0, 0)
	near(t, "share", f.Share, 0, 0)
	if f.SpreadP < 0.99 || f.P > 0.01 {
		t.Errorf("a spread has the p-value %g, and the mean %g", f.SpreadP, f.P)
	}
}

// Without noise within nodes one more node has the prediction of textbooks, and the spread is the standard deviation.
func TestFleetOfUnknownNoise(t *testing.T) {
	nodes := []NodeEffect{{Effect{1, 0}, 30, "a"}, {Effect{2, 0}, 30, "a"}, {Effect{3, 0.1}, 30, "b"}, {Effect{4, 0}, 30, "b"}}
	f := PoolNodes(nodes)
	const sd = 1.2909944487358056
	near(t, "spread", f.Spread(), sd, 1e-12)
	near(t, "prediction", f.Prediction(0.05).Hi, 2.5+3.182446305284263*sd*math.Sqrt(1.25), 1e-6)
	if !math.IsNaN(f.SpreadP) || !math.IsNaN(f.Share) {
		t.Errorf("a spread has the p-value %g and the share %g, want none", f.SpreadP, f.Share)
	}
	if one := PoolNodes(nodes[:1]); !math.IsNaN(one.P) || !math.IsInf(one.Prediction(0.05).Hi, 1) {
		t.Errorf("one node gives %+v", one)
	}
}

func TestFleetKinds(t *testing.T) {
	kind := func(logs ...float64) Fleet {
		var nodes []NodeEffect
		for _, log := range logs {
			nodes = append(nodes, NodeEffect{Effect{log, 0}, 30, ""})
		}
		return PoolNodes(nodes)
	}
	// Welch's t of two samples: t = 4/√(1/3 + 4/3), with 2.941 degrees of freedom.
	d := kind(5, 7, 9).Minus(kind(2, 3, 4))
	near(t, "difference", d.Log, 4, 1e-12)
	near(t, "standard error", d.SE, math.Sqrt(5.0/3), 1e-12)
	near(t, "p-value", d.P, 0.0546, 0.0005)
	near(t, "upper end", d.Interval(d.P).Hi, 8, 1e-6) // the interval at the p-value ends at 0
	if d := kind(5, 7).Minus(kind(2, 3, 4)); !math.IsNaN(d.P) {
		t.Errorf("a kind of two nodes has the difference %+v", d)
	}
	if d := kind(3, 3, 3).Minus(kind(2, 2, 2)); d.P != 0 || d.Interval(0.05) != (Interval{1, 1}) {
		t.Errorf("kinds without any variation have the difference %+v", d)
	}
}

// B. Rosner, Technometrics 25 (1983), example: of 54 values the three largest are outliers. No value is one by itself: the first two steps have no small p-value.
func TestOddNodesPublished(t *testing.T) {
	values := []float64{
		-0.25, 0.68, 0.94, 1.15, 1.20, 1.26, 1.26, 1.34, 1.38, 1.43, 1.49, 1.49, 1.55, 1.56, 1.58, 1.65, 1.69, 1.70, 1.76, 1.77, 1.81, 1.91, 1.94, 1.96, 1.99, 2.06, 2.09,
		2.10, 2.14, 2.15, 2.23, 2.24, 2.26, 2.35, 2.37, 2.40, 2.47, 2.54, 2.62, 2.64, 2.90, 2.92, 2.92, 2.93, 3.21, 3.26, 3.30, 3.59, 3.68, 4.30, 4.64, 5.34, 5.42, 6.01,
	}
	var group []NodeEffect
	for _, v := range values {
		group = append(group, NodeEffect{Effect{v, 0}, 30, ""})
	}
	var found []int
	for _, o := range OddNodes([][]NodeEffect{group[:3], group}, 0.05) {
		if o.Group != 1 || !(o.P < 0.05) || !(o.Log > 2) {
			t.Errorf("an odd node is %+v", o)
		}
		found = append(found, o.Node)
	}
	if want := []int{53, 52, 51}; !slices.Equal(found, want) {
		t.Errorf("the odd nodes are %v, want %v", found, want)
	}
	if odd := OddNodes([][]NodeEffect{group, group, group}, 0.05); odd != nil {
		t.Errorf("in a family of three groups the odd nodes are %+v, want none", odd)
	}
}

// A noisy node is far from the others by its noise, and is not odd.
func TestOddNodesAllowForNoise(t *testing.T) {
	var group []NodeEffect
	for i := range 12 {
		group = append(group, NodeEffect{Effect{0.01 * float64(i%3), 0.01}, 30, ""})
	}
	group[5] = NodeEffect{Effect{0.3, 0.15}, 30, ""}
	if odd := OddNodes([][]NodeEffect{group}, 0.05); odd != nil {
		t.Errorf("a noisy node is odd: %+v", odd)
	}
	group[5].SE = 0.01
	if odd := OddNodes([][]NodeEffect{group}, 0.05); len(odd) != 1 || odd[0].Node != 5 {
		t.Errorf("the odd nodes are %+v, want node 5", odd)
	}
}

func TestSeparate(t *testing.T) {
	first := func(k int) func(int) bool { return func(i int) bool { return i < k } }
	values := []float64{1, 2, 3, 7, 8, 9, 10}
	s, ok := Separate(values, first(3))
	if !ok || s.Larger {
		t.Errorf("the lower three give %+v, %v", s, ok)
	}
	near(t, "p-value", s.P, 2.0/35, 1e-12)
	if s, ok := Separate(values, func(i int) bool { return i >= 3 }); !ok || !s.Larger {
		t.Errorf("the upper four give %+v, %v", s, ok)
	}
	for name, isMember := range map[string]func(int) bool{"nobody": first(0), "all": first(7), "an exception": func(i int) bool { return i < 2 || i == 6 }} {
		if s, ok := Separate(values, isMember); ok {
			t.Errorf("%s separates the values: %+v", name, s)
		}
	}
	if _, ok := Separate([]float64{1, 1, 1, 2}, first(2)); ok {
		t.Error("equal values are separated")
	}
}

func TestFleetVerdict(t *testing.T) {
	fleet := func(n int, log, spread float64) Fleet {
		var nodes []NodeEffect
		for i := range n {
			nodes = append(nodes, NodeEffect{Effect{log + spread*float64(i%2*2-1), 0.001}, 30, ""})
		}
		return PoolNodes(nodes)
	}
	for name, c := range map[string]struct {
		fleet    Fleet
		better   Direction
		adjusted float64
		margin   float64
		lost     Losses
		want     Verdict
	}{
		"five nodes":                   {fleet(5, 0.1, 0.01), Lower, 1e-6, 0, Losses{}, TooFew},
		"slower":                       {fleet(6, 0.1, 0.01), Lower, 0.01, 0, Losses{}, Slower},
		"slower by a rate":             {fleet(6, -0.1, 0.01), Higher, 0.01, 0, Losses{}, Slower},
		"faster":                       {fleet(6, -0.1, 0.01), Lower, 0.01, 0, Losses{}, Faster},
		"faster, and it lost nodes":    {fleet(6, -0.1, 0.01), Lower, 0.01, 0, Losses{Other: 0.1}, TrialsLost},
		"slower, and it lost nodes":    {fleet(6, 0.1, 0.01), Lower, 0.01, 0, Losses{Other: 0.1}, Slower},
		"slower than a lossy baseline": {fleet(6, 0.1, 0.01), Lower, 0.01, 0, Losses{Baseline: 0.1}, TrialsLost},
		"small":                        {fleet(6, 0.01, 0.001), Lower, 0.01, 0.05, Losses{}, Negligible},
		"small, but nodes are lost":    {fleet(6, 0.01, 0.001), Lower, 0.01, 0.05, Losses{Other: 0.1}, Slower},
		"no difference in the family":  {fleet(6, 0.1, 0.1), Lower, 0.06, 0, Losses{}, NoDifference},
		"an interval beyond a fourth":  {fleet(6, 0.1, 0.5), Lower, 0.6, 0, Losses{}, TooNoisy},
	} {
		if got := c.fleet.Verdict(c.better, c.adjusted, Alpha, c.margin, c.lost); got != c.want {
			t.Errorf("%s: the verdict is %q, want %q", name, got, c.want)
		}
	}
}

func TestLevelOf(t *testing.T) {
	var samples []Sample
	for i := range 9 {
		samples = append(samples, Sample{Block: i, Value: math.Exp(float64(i))})
	}
	e := LevelOf(samples)
	near(t, "logarithm", e.Log, 4, 1e-12)
	if !(e.SE > 0.5 && e.SE < 1.5) { // the standard deviation is 2.74, so the error of a mean is 0.91
		t.Errorf("the standard error is %g", e.SE)
	}
	if e := LevelOf(samples[:5]); !math.IsNaN(e.SE) {
		t.Errorf("five samples have the standard error %g", e.SE)
	}
}
