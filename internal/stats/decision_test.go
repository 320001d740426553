package stats

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/stats/simulation"
)

// recorded are the values of two equal targets in the blocks of one run, in the order of their measurement.
type recorded [][2]float64

// recordedRuns reads testdata/equal.txt. Its head describes the values.
func recordedRuns(t *testing.T) (runs []recorded) {
	t.Helper()
	f, err := os.Open("testdata/equal.txt")
	must.Do(t, err)
	defer func() { _ = f.Close() }()
	var run recorded
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, "#"):
		case line == "":
			runs, run = append(runs, run), nil
		default:
			var pair [2]float64
			if _, err := fmt.Sscan(line, &pair[0], &pair[1]); err != nil {
				t.Fatalf("testdata/equal.txt: %q: %v", line, err)
			}
			run = append(run, pair)
		}
	}
	must.Do(t, lines.Err())
	return append(runs, run)
}

// part is a part of a recorded run.
func part(r *rand.Rand, runs []recorded, blocks int) recorded {
	run := runs[r.IntN(len(runs))]
	start := r.IntN(len(run) - blocks + 1)
	return run[start : start+blocks]
}

// inTurn are 2n values in the order of their measurement, as if a target had the first n trials and another one the next n. The second is delayed.
func inTurn(r *rand.Rand, runs []recorded, n int, delay float64) (first, second []float64) {
	for i, pair := range part(r, runs, n) {
		if i < n/2 {
			first = append(first, pair[:]...)
		} else {
			second = append(second, pair[0]+delay, pair[1]+delay)
		}
	}
	return first, second
}

// A delay of 3 % in real times of crun: the trials until a decision, and the trials of designs whose number of runs is fixed and whose targets follow each
// other. All use the same values, so a trial takes the same time in all of them.
func TestDecisionTimePower(t *testing.T) {
	trials := simulation.Trials(t, 10, 100)
	const first, limit, batch = 100, 2000, 20
	runs := recordedRuns(t)
	var values []float64
	for _, run := range runs {
		for _, pair := range run {
			values = append(values, pair[:]...)
		}
	}
	delay := 0.03 * Median(values)

	rule := NewSequential(Looks(first, limit))
	decide := func(delay float64) (found int, mean float64) {
		r := random(1)
		blocks := 0
		for trial := range uint64(trials) {
			var a, b []Sample
			for block, pair := range part(r, runs, limit) {
				swap := r.IntN(2)
				a, b = append(a, Sample{block, pair[swap]}), append(b, Sample{block, pair[1-swap] + delay})
			}
			for _, n := range rule.looks {
				decided := rule.At(n, false).P(compare(a[:n], b[:n], Lower, trial, firstSwaps).P) < Alpha
				found += count(decided)
				if decided || n == limit {
					blocks += n
					break
				}
			}
		}
		return found, float64(blocks) / float64(trials)
	}
	found, blocks := decide(delay)
	alarms, _ := decide(0)
	ours := 2 * blocks
	t.Logf("until decided: found in %.0f %% after a mean of %.0f trials; %.0f %% of equal targets differ", 100*share(found, trials), ours, 100*share(alarms, trials))
	simulation.AtLeast(t, 0.85, found, trials, "until decided: found")
	simulation.AtMost(t, Alpha, alarms, trials, "until decided: equal targets that differ")
	if !simulation.Full() {
		return // the search for the sizes of the other designs takes a minute
	}
	power := share(found, trials)

	mannWhitney := func(a, b []float64) bool { return CompareUnpaired(a, b, Lower).P < Alpha }
	// runsInTurn are runs of each target in turn, and join makes one value or several of a run.
	runsInTurn := func(r *rand.Rand, n int, delay float64, join func([]float64) []float64) (a, b []float64) {
		for range n / batch {
			x, y := inTurn(r, runs, batch, delay)
			a, b = append(a, join(x)...), append(b, join(y)...)
		}
		return a, b
	}
	for _, design := range []struct {
		name   string
		most   int // trials of each target
		differ func(r *rand.Rand, n int, delay float64) bool
		times  float64 // least trials, in those until the decision; 0 if the design is not honest
	}{
		{"all trials of one target, then all of the other; Mann and Whitney's test", limit, func(r *rand.Rand, n int, delay float64) bool {
			return mannWhitney(inTurn(r, runs, n, delay))
		}, 0},
		{"runs of 20 trials in turn; a t test of the means of the runs", 5 * limit, func(r *rand.Rand, n int, delay float64) bool {
			a, b := runsInTurn(r, n, delay, func(run []float64) []float64 { return []float64{meanOf(run)} })
			return CompareRuns(a, b).P < Alpha
		}, 2},
		{"runs of 20 trials in turn; Mann and Whitney's test of all trials", 5 * limit, func(r *rand.Rand, n int, delay float64) bool {
			return mannWhitney(runsInTurn(r, n, delay, func(run []float64) []float64 { return run }))
		}, 2},
	} {
		rate := func(n int, delay float64) float64 {
			r := random(uint64(n))
			differ := 0
			for range 2 * trials {
				differ += count(design.differ(r, n, delay))
			}
			return share(differ, 2*trials)
		}
		n := 2 * batch
		for n < design.most && rate(n, delay) < power {
			n = min(design.most, n*5/4/batch*batch+batch)
		}
		found, alarms, times := rate(n, delay), rate(n, 0), float64(2*n)/ours
		t.Logf("%s: found in %.0f %% after %d trials, %.1f times as many; %.0f %% of equal targets differ", design.name, 100*found, 2*n, times, 100*alarms)
		if honest := alarms < 0.1; honest != (design.times > 0) || times < design.times {
			t.Errorf("%s: %.1f times as many trials, %.0f %% false alarms", design.name, times, 100*alarms)
		}
	}
}
