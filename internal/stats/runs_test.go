package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/stats/simulation"
)

func close4(a, b float64) bool { return math.Abs(a-b) <= 5e-5*max(1, math.Abs(b)) }

// TestCompareRunsPublished repeats the example of Welch's test in R's help of t.test, extra sleep by two soporific drugs ("Student", "The Probable
// Error of a Mean", Biometrika 6 (1908) 1–25): t = -1.8608, df = 17.776, p-value = 0.07939, 95 percent confidence interval of the
// difference −3.3654832 to 0.2054832.
func TestCompareRunsPublished(t *testing.T) {
	exp := func(logs ...float64) []float64 {
		for i, l := range logs {
			logs[i] = math.Exp(l)
		}
		return logs
	}
	one := exp(0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0)
	two := exp(1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4)
	c := CompareRuns(two, one)
	if !close4(c.effect/c.se, -1.8608) || !close4(c.df, 17.776) || !close4(c.P, 0.07939) ||
		!close4(math.Log(c.CI.Lo), -3.3654832) || !close4(math.Log(c.CI.Hi), 0.2054832) {
		t.Errorf("the comparison is %+v, t = %v", c, c.effect/c.se)
	}
	back := CompareRuns(one, two)
	if !close4(back.Ratio, 1/c.Ratio) || !close4(back.CI.Lo, 1/c.CI.Hi) || back.P != c.P {
		t.Errorf("the sides are not symmetric: %+v, %+v", c, back)
	}
}

// TestCompareRunsWithOneRun uses the variance of one side: for 10 runs and one run the interval is the prediction interval of the eleventh run.
func TestCompareRunsWithOneRun(t *testing.T) {
	logs := []float64{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0} // mean 0.75, sd 1.78901
	var runs []float64
	for _, l := range logs {
		runs = append(runs, math.Exp(l))
	}
	c := CompareRuns(runs, []float64{math.Exp(0.75)})
	// qt(0.975, 9) = 2.262157, times 1.78901 × sqrt(1.1)
	if half := 2.262157 * 1.78901 * math.Sqrt(1.1); !c.Pooled || !close4(math.Log(c.CI.Hi), half) || !close4(c.Ratio, 1) {
		t.Errorf("the comparison is %+v, want ± %v", c, half)
	}
}

func TestCompareRunsRefuses(t *testing.T) {
	for name, sides := range map[string][2][]float64{
		"one run each": {{1}, {2}}, "no run": {{1, 2}, nil}, "zero": {{1, 2}, {0, 1}}, "negative": {{1, -2}, {1, 1}},
		"infinite": {{1, math.Inf(1)}, {1, 1}}, "not a number": {{1, 2}, {math.NaN(), 1}},
	} {
		c := CompareRuns(sides[0], sides[1])
		m := c.AgainstMargin(0.03, Lower)
		if c.CI != nil || !math.IsNaN(c.P) || !math.IsNaN(m.Worse) || !math.IsNaN(m.NotWorse) || c.RunsNeeded(0.03, Lower, 1) != 0 {
			t.Errorf("%s: %+v, %+v", name, c, m)
		}
	}
}

// TestCompareConstantRuns compares runs without any variation, such as sizes of files. 3 and 3 runs separate by chance in 1 of 20 divisions.
func TestCompareConstantRuns(t *testing.T) {
	twin := CompareRuns([]float64{5, 5, 5, 5}, []float64{5, 5, 5, 5})
	if m := twin.AgainstMargin(0.03, Lower); twin.P != 1 || twin.Ratio != 1 || m.Worse != 1 || !close4(m.NotWorse, 1.0/70) {
		t.Errorf("equal runs: %+v, %+v", twin, m)
	}
	rival := CompareRuns([]float64{5, 5, 5}, []float64{6, 6, 6})
	if !math.IsInf(rival.Detectable, 1) || twin.Detectable != 0 {
		t.Errorf("3 and 3 runs show differences from %g on, 4 and 4 from %g on; want none and every one", rival.Detectable, twin.Detectable)
	}
	if m := rival.AgainstMargin(0.03, Lower); rival.P != 2./20 || m.Worse != 1./20 || m.NotWorse != 1 {
		t.Errorf("different runs: %+v, %+v", rival, m)
	}
	if m := rival.AgainstMargin(0.03, Higher); m.Worse != 1 || m.NotWorse != 1./20 {
		t.Errorf("different runs of a rate: %+v", m)
	}
	if m := rival.AgainstMargin(0.2, Lower); m.Worse != 1 || m.NotWorse != 1 {
		t.Errorf("a difference as large as the margin is neither above nor below it: %+v", m)
	}
}

// TestRunsNeededAtTheMargin: the number depends on the distance of the ratio from the margin, on its side, and on the metrics that are judged together.
func TestRunsNeededAtTheMargin(t *testing.T) {
	five, six := []float64{5, 5, 5}, []float64{6, 6, 6}
	varying := func(ratio float64) []float64 { return []float64{ratio * 0.99, ratio, ratio * 1.01} }
	for _, c := range []struct {
		name     string
		a, b     []float64
		better   Direction
		together int
		least    int
		most     int
	}{
		{"constant and equal", five, five, Lower, 1, 4, 4},
		{"constant and worse", five, six, Lower, 1, 4, 4},
		{"constant and worse, with nine other metrics", five, six, Lower, 10, 5, 5},
		{"constant and better", five, six, Higher, 10, 4, 4},
		{"equal", varying(1), varying(1), Lower, 1, 3, 4},
		{"near the margin", varying(1), varying(1.028), Lower, 1, 200, 1000},
		{"at the margin", varying(1), varying(1.03), Lower, 1, 0, 0},
		{"worse", varying(1), varying(1.08), Lower, 1, 2, 3},
		{"worse, with nine other metrics", varying(1), varying(1.08), Lower, 10, 3, 4},
	} {
		got := CompareRuns(c.a, c.b)
		if n := got.RunsNeeded(0.03, c.better, c.together); n < c.least || n > c.most {
			t.Errorf("%s: %d runs are needed, want %d to %d", c.name, n, c.least, c.most)
		}
	}
}

// runsOf returns one value for each of n runs of a machine whose runs vary by deviation.
func runsOf(random *rand.Rand, n int, level, deviation float64) []float64 {
	var runs []float64
	for range n {
		runs = append(runs, level*math.Exp(deviation*random.NormFloat64()))
	}
	return runs
}

// TestRunsErrorRates checks the promises by simulation with 3 % between runs: intervals cover, a test of equal sides has 5 % false
// alarms, and a difference of exactly the margin is called worse or not worse in at most 5 %. If the runs of the smaller side vary twice as much, no
// test of so few runs keeps 5 %: here 8 % are allowed. The variation of a single run is unknown, so that 35 % are allowed. Welch's test alone is the
// rejected design.
func TestRunsErrorRates(t *testing.T) {
	trials := simulation.Trials(t, 1000, 4000)
	const margin = 0.03
	for _, s := range []struct {
		n         [2]int
		deviation float64 // of the second side
		most      float64
	}{
		{[2]int{3, 3}, 0.03, 0.05},
		{[2]int{5, 5}, 0.03, 0.05},
		{[2]int{10, 3}, 0.03, 0.05},
		{[2]int{8, 1}, 0.03, 0.05},
		{[2]int{5, 5}, 0.06, 0.05},
		{[2]int{10, 3}, 0.06, 0.08},
		{[2]int{10, 2}, 0.06, 0.08},
		{[2]int{8, 1}, 0.06, 0.35},
	} {
		n := s.n
		random := rand.New(rand.NewPCG(uint64(n[0]), uint64(n[1])))
		var alarms, welch, worseHits, notWorse int
		for range trials {
			a, equal := runsOf(random, n[0], 1, 0.03), runsOf(random, n[1], 1, s.deviation)
			if c := CompareRuns(a, equal); c.CI.Lo > 1 || c.CI.Hi < 1 {
				alarms++
			}
			welch += count(welchP(a, equal) < Alpha)
			c := CompareRuns(a, runsOf(random, n[1], 1+margin, s.deviation))
			if m := c.AgainstMargin(margin, Lower); m.Worse < Alpha {
				worseHits++
			} else if m.NotWorse < Alpha {
				notWorse++
			}
		}
		remark := ""
		if n[1] > 1 {
			remark = fmt.Sprintf(", by Welch's test alone in %.1f %%", 100*share(welch, trials))
		}
		t.Logf("%d and %d runs, deviation 0.03 and %v: false alarms in %.1f %%%s; at the margin worse in %.1f %%, not worse in %.1f %%",
			n[0], n[1], s.deviation, 100*share(alarms, trials), remark, 100*share(worseHits, trials), 100*share(notWorse, trials))
		for name, count := range map[string]int{"false alarms": alarms, "worse": worseHits, "not worse": notWorse} {
			simulation.AtMost(t, s.most, count, trials, "%d and %d runs, deviation %v: %s", n[0], n[1], s.deviation, name)
		}
		if n == [2]int{10, 3} && s.deviation == 0.03 {
			simulation.AtLeast(t, 0.06, welch, trials, "false alarms of Welch's test alone")
			simulation.AtMost(t, 0.08, welch, trials, "false alarms of Welch's test alone")
		}
	}
}

// welchP is the p-value of Welch's test of the logarithms. It is NaN for a side of one run.
func welchP(a, b []float64) float64 {
	meanA, varianceA := stat.MeanVariance(logarithms(a), nil)
	meanB, varianceB := stat.MeanVariance(logarithms(b), nil)
	nA, nB := float64(len(a)), float64(len(b))
	partA, partB := varianceA/nA, varianceB/nB
	freedom := (partA + partB) * (partA + partB) / (partA*partA/(nA-1) + partB*partB/(nB-1))
	return 2 * distuv.StudentsT{Sigma: 1, Nu: freedom}.Survival(math.Abs(meanB-meanA)/math.Sqrt(partA+partB))
}

// TestOneRunEachMisleads repeats the reason for several runs a side: with 3 % between runs, the trials of one run each show a difference far too often.
func TestOneRunEachMisleads(t *testing.T) {
	const trials = 300
	for _, c := range []struct {
		noise       float64
		least, most float64
	}{{0.10, 0.27, 0.60}, {0.05, 0.45, 0.80}} {
		random := rand.New(rand.NewPCG(7, 7))
		alarms := 0
		for range trials {
			var sides [2][]float64
			for i := range sides {
				sides[i] = runsOf(random, 40, math.Exp(0.03*random.NormFloat64()), c.noise)
			}
			alarms += count(mannWhitney(sorted(sides[0]), sorted(sides[1])) < Alpha)
		}
		if rate := float64(alarms) / trials; rate < c.least || rate > c.most {
			t.Errorf("noise of %.0f %%: %.0f %% false alarms, want %.0f to %.0f %%", 100*c.noise, 100*rate, 100*c.least, 100*c.most)
		}
	}
}

func sorted(values []float64) []float64 {
	values = slices.Clone(values)
	slices.Sort(values)
	return values
}

// TestRunsNeededTable checks the table of docs/compare.md.
func TestRunsNeededTable(t *testing.T) {
	page, err := os.ReadFile("../../docs/compare.md")
	must.Do(t, err)
	for _, deviation := range []float64{0.01, 0.02, 0.03} {
		c := RunsComparison{CI: &Interval{1, 1}, deviation: deviation}
		row := fmt.Sprintf("| %.0f %% |", 100*deviation)
		for _, margin := range []float64{0.02, 0.03, 0.05, 0.10} {
			row += fmt.Sprintf(" %d |", c.RunsNeeded(margin, Lower, 1))
		}
		if !strings.Contains(string(page), "\n"+row+"\n") {
			t.Errorf("docs/compare.md lacks the row %s", row)
		}
	}
}

// TestRunsNeededPower checks the number of runs by simulation: with it equal sides are accepted with a power of about 80 %.
func TestRunsNeededPower(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	c := CompareRuns(runsOf(random, 200, 1, 0.02), runsOf(random, 200, 1, 0.02))
	c.effect = 0
	n := c.RunsNeeded(0.03, Lower, 1)
	if n < 5 || n > 9 {
		t.Fatalf("%d runs a side are needed", n)
	}
	const trials = 2000
	accepted := 0
	for range trials {
		c := CompareRuns(runsOf(random, n, 1, 0.02), runsOf(random, n, 1, 0.02))
		accepted += count(c.AgainstMargin(0.03, Higher).NotWorse < Alpha)
	}
	if power := float64(accepted) / trials; power < 0.76 || power > 0.92 {
		t.Errorf("%d runs a side: a power of %.0f %%", n, 100*power)
	}
}
