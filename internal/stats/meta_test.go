package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The expected values come from an independent program: Newton's method for τ² (DerSimonian & Kacker 2007), and the quantile of
// Student's t by integration of its density.
func TestPoolIndependent(t *testing.T) {
	// G. A. Colditz et al., JAMA 271 (1994) 698–702: 13 trials of the BCG vaccine. Each row has the ill and the healthy
	// with vaccine, then without.
	trials := [][4]float64{
		{4, 119, 11, 128},
		{6, 300, 29, 274},
		{3, 228, 11, 209},
		{62, 13536, 248, 12619},
		{33, 5036, 47, 5761},
		{180, 1361, 372, 1079},
		{8, 2537, 10, 619},
		{505, 87886, 499, 87892},
		{29, 7470, 45, 7232},
		{17, 1699, 65, 1600},
		{186, 50448, 141, 27197},
		{5, 2493, 3, 2338},
		{27, 16886, 29, 17825},
	}
	var risks, odds []Effect
	for _, n := range trials {
		a, b, c, d := n[0], n[1], n[2], n[3]
		risks = append(risks, Effect{math.Log((a / (a + b)) / (c / (c + d))), math.Sqrt(1/a - 1/(a+b) + 1/c - 1/(c+d))})
		odds = append(odds, Effect{math.Log(a * d / (b * c)), math.Sqrt(1/a + 1/b + 1/c + 1/d)})
	}
	homogeneous := []Effect{{0.01, 0.01}, {0.012, math.Sqrt(2e-4)}, {0.009, 0.01}, {0.0105, math.Sqrt(1.5e-4)}}
	for _, c := range []struct {
		name                  string
		effects               []Effect
		tau2, log, se, lo, hi float64
	}{
		{"log risk ratios", risks, 0.3180684522050243, -0.7149681534934442, 0.18089219153762356, -1.1090983812022468, -0.3208379257846416},
		{"log odds ratios", odds, 0.3412051021778679, -0.7454603905316224, 0.18679033647127657, -1.1524415720931052, -0.3384792089701396},
		{"no variation between runs", homogeneous, 0, 0.010105263157894737, 0.0005741427428755642, 0.008278084707124942, 0.011932441608664532},
	} {
		original := slices.Clone(c.effects)
		p := Pool(c.effects)
		ci := p.Interval(0.05)
		near(t, c.name+": variance between runs", p.Tau*p.Tau, c.tau2, 1e-9)
		near(t, c.name+": mean", p.Log, c.log, 1e-9)
		near(t, c.name+": standard error", p.SE, c.se, 1e-9)
		near(t, c.name+": lower end", ci.Lo, c.lo, 1e-6)
		near(t, c.name+": upper end", ci.Hi, c.hi, 1e-6)
		if !slices.Equal(original, c.effects) {
			t.Errorf("%s: Pool changed its argument", c.name)
		}
	}
}

// Runs with equal or unknown standard errors have the interval of a mean.
func TestPoolOfEqualWeights(t *testing.T) {
	const mean, sd = 2.5, 1.2909944487358056 // of 1, 2, 3, 4
	for _, se := range []float64{0.1, 100, 0, math.NaN(), math.Inf(1)} {
		var effects []Effect
		for i := range 4 {
			effects = append(effects, Effect{float64(i + 1), se})
		}
		p := Pool(effects)
		near(t, "mean", p.Log, mean, 1e-12)
		near(t, "standard error", p.SE, sd/2, 1e-9)
		near(t, "upper end", p.Interval(0.05).Hi, mean+3.182446305284263*sd/2, 1e-6)
	}
}

func TestShareNoise(t *testing.T) {
	got := ShareNoise([]Effect{{1, 0.1}, {2, 0.3}}, []int{10, 40})
	// s² = (0.01·10 + 0.09·40)/2
	near(t, "10 blocks", got[0].SE, math.Sqrt(1.85/10), 1e-12)
	near(t, "40 blocks", got[1].SE, math.Sqrt(1.85/40), 1e-12)
	for _, odd := range []float64{0, math.NaN()} {
		if got := ShareNoise([]Effect{{1, 0.1}, {2, odd}}, []int{10, 10}); got[0] != (Effect{1, 0}) || got[1] != (Effect{2, 0}) {
			t.Errorf("with a standard error of %g the effects are %v, want unknown standard errors", odd, got)
		}
	}
}

func TestPoolOfOddRuns(t *testing.T) {
	if p := Pool(nil); p.N != 0 || !math.IsNaN(p.Log) || p.RunsNeeded(1, 0.05, 4, 100) != 0 {
		t.Errorf("no run gives %+v", p)
	}
	one := Pool([]Effect{{0.1, 0.01}, {math.NaN(), 1}, {math.Inf(1), 1}})
	if ci := one.Interval(0.05); one.N != 1 || one.Log != 0.1 || !math.IsNaN(one.SE) || !math.IsInf(ci.Lo, -1) || !math.IsInf(ci.Hi, 1) {
		t.Errorf("one run gives %+v with the interval %v, want no bound", one, ci)
	}
	point := Pool(slices.Repeat([]Effect{{0.1, 0}}, 4))
	if ci := point.Interval(0.001); point.SE != 0 || ci != (Interval{point.Log, point.Log}) || math.Abs(point.Log-0.1) > 1e-15 {
		t.Errorf("equal runs give %+v with the interval %v, want a point", point, ci)
	}
}

// Intervals of runs that vary cover the true ratio as often as stated, whether the standard errors within runs are known,
// estimated from few blocks, or wrong by a factor of 3.
func TestPooledErrorRates(t *testing.T) {
	const replicates = 4000
	random := rand.New(rand.NewPCG(1, 2))
	for _, tau := range []float64{0, 0.005, 0.02} {
		for _, c := range []struct {
			name     string
			believed func(se float64) float64
		}{
			{"known", func(se float64) float64 { return se }},
			{"estimated", func(se float64) float64 {
				sum := 0.0
				for range 9 {
					sum += math.Pow(random.NormFloat64(), 2)
				}
				return se * math.Sqrt(sum/9)
			}},
			{"too large", func(se float64) float64 { return 3 * se }},
		} {
			for _, runs := range []int{4, 8} {
				coverCount := 0
				effects, blocks := make([]Effect, runs), make([]int, runs)
				for range replicates {
					for i := range effects {
						blocks[i] = 20 / (1 + i%2)
						se := 0.04 / math.Sqrt(float64(blocks[i]))
						effects[i] = Effect{0.03 + tau*random.NormFloat64() + se*random.NormFloat64(), c.believed(se)}
					}
					coverCount += count(covers(Pool(ShareNoise(effects, blocks)).Interval(0.05), 0.03))
				}
				t.Logf("pooled runs, deviation %g between runs, standard errors %s, %d runs: the interval covers the ratio in %.1f %%", tau, c.name, runs, 100*float64(coverCount)/replicates)
				if share := float64(coverCount) / replicates; share < 0.94 {
					t.Errorf("tau %g, standard errors %s, %d runs: the interval covers the ratio in %.1f %%, want at least 94 %% (± simulation)", tau, c.name, runs, 100*share)
				}
			}
		}
	}
}

func TestRunsNeeded(t *testing.T) {
	p := Pooled{N: 4, SE: 0.01} // a standard deviation of 0.02 between runs
	got := p.RunsNeeded(0.01, 0.05, 4, 10_000)
	// By the normal approximation ((1.96 + 0.84) · 0.02 / 0.01)² = 31.4; Student's t needs two more.
	if got < 32 || got > 36 {
		t.Errorf("%d runs, want about 34", got)
	}
	if n := p.RunsNeeded(-0.01, 0.05, 4, 10_000); n != got {
		t.Errorf("%d runs for the opposite distance, want %d", n, got)
	}
	if n := p.RunsNeeded(10, 0.05, 4, 10_000); n != 4 {
		t.Errorf("%d runs for a large distance, want the least number", n)
	}
	if p.RunsNeeded(0.01, 0.05, 4, got-1) != 0 || p.RunsNeeded(0, 0.05, 4, 100) != 0 {
		t.Error("a number of runs is given although none is enough")
	}
}
