package report_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// lose changes the outcome of a target's trials of the benchmark cpu in some blocks.
func lose(run *result.Run, target string, status result.Status, reason string, blocks ...int) {
	for i := range run.Trials {
		if t := &run.Trials[i]; t.Benchmark == cpu && t.Target == target && slices.Contains(blocks, t.Block) {
			t.Status, t.Reason, t.Samples = status, reason, nil
		}
	}
}

// without removes the trials of oci/crun of the benchmark cpu from a block on.
func without(run *result.Run, block int) {
	run.Trials = slices.DeleteFunc(run.Trials, func(t result.Trial) bool {
		return t.Benchmark == cpu && t.Target == "oci/crun" && t.Block >= block
	})
}

// comparedRun has two metrics. oci/crun is faster than native in the first and meets the goal of both.
func comparedRun() result.Run {
	return scoredRun(3, 40,
		scoredMetric{"cpu", result.DimensionCPU, result.Lower, on(1, 0.8, 1.5), 0.001},
		scoredMetric{"disk", result.DimensionDisk, result.Lower, on(1, 0.8, 1.5), 0.001},
	)
}

const cpu = "suite.of.cpu"

// Invariant lost-trials: A lost trial never helps its target: no verdict "faster", no goal, and no passed gate.
func TestLostTrialsNeverHelp(t *testing.T) {
	for name, tt := range map[string]struct {
		target   string
		lose     func(*result.Run)
		crun     stats.Verdict // of oci/crun, which is faster
		runsc    stats.Verdict // of oci/runsc, which is slower
		goal     analysis.ScoreVerdict
		missed   analysis.ScoreVerdict
		warning  string
		cheapest bool // oci/crun
	}{
		"none": {
			lose: func(*result.Run) {},
			crun: stats.Faster, runsc: stats.Slower, goal: analysis.Met, missed: analysis.Missed, cheapest: true,
		},
		"5 % of the trials": {
			lose: func(r *result.Run) { lose(r, "oci/crun", result.Timeout, "start took longer", 3, 9) },
			crun: stats.Faster, runsc: stats.Slower, goal: analysis.Met, missed: analysis.Missed, cheapest: true,
			warning: cpu + " on oci/crun: 2 of 40 blocks are lost (2 timed out): start took longer",
		},
		"more": {
			lose: func(r *result.Run) {
				lose(r, "oci/crun", result.Timeout, "start took longer\nthan its limit", 3, 9)
				lose(r, "oci/crun", result.Failed, "it failed", 11)
			},
			crun: stats.TrialsLost, runsc: stats.Slower, goal: analysis.NotShown, missed: analysis.Missed,
			warning: cpu + " on oci/crun: 3 of 40 blocks are lost (1 failed, 2 timed out): start took longer",
		},
		"the trials after a quarantine": {
			lose: func(r *result.Run) {
				lose(r, "oci/crun", result.Skipped, "quarantined", 30)
				without(r, 31)
			},
			crun: stats.TrialsLost, runsc: stats.Slower, goal: analysis.NotShown, missed: analysis.Missed,
			warning: cpu + " on oci/crun: 10 of 40 blocks are lost (10 not tried): quarantined",
		},
		"a quarantine in the last block": {
			lose: func(r *result.Run) { lose(r, "oci/crun", result.Skipped, "quarantined", 39) },
			crun: stats.Faster, runsc: stats.Slower, goal: analysis.Met, missed: analysis.Missed, cheapest: true,
			warning: cpu + " on oci/crun: 1 of 40 blocks is lost (1 not tried): quarantined",
		},
		"on bare metal": {
			lose: func(r *result.Run) { lose(r, "native", result.Failed, "it failed", 1, 2, 3) },
			crun: stats.Faster, runsc: stats.TrialsLost, goal: analysis.Met, missed: analysis.NotShown, cheapest: true,
			warning: cpu + " on native: 3 of 40 blocks are lost (3 failed): it failed",
		},
		"the budget cuts the last blocks": {
			lose: func(r *result.Run) { without(r, 35) },
			crun: stats.Faster, runsc: stats.Slower, goal: analysis.Met, missed: analysis.Missed, cheapest: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			run := comparedRun()
			tt.lose(&run)
			m := model(run)
			b := benchmark(t, m, cpu)
			for target, want := range map[string]stats.Verdict{"oci/crun": tt.crun, "oci/runsc": tt.runsc} {
				if got := cell(t, b, "cpu", target).Comparison; got.Verdict != want {
					t.Errorf("the verdict on %s is %q, want %q", target, got.Verdict, want)
				}
			}
			if got := score(t, m, result.DimensionCPU, "oci/crun").Verdict; got != tt.goal {
				t.Errorf("the goal of oci/crun is %q, want %q", got, tt.goal)
			}
			if got := score(t, m, result.DimensionCPU, "oci/runsc").Verdict; got != tt.missed {
				t.Errorf("the goal of oci/runsc is %q, want %q", got, tt.missed)
			}
			var warnings []string
			for _, g := range m.Warnings[0] {
				if g.Title == "Lost blocks" {
					warnings = append(warnings, g.Items...)
				}
			}
			if got := strings.Join(warnings, "\n"); got != tt.warning {
				t.Errorf("the warning is %q, want %q", got, tt.warning)
			}
			if text := m.Findings.Answers[0].Text; strings.Contains(text, "oci/crun costs least in cpu") != tt.cheapest {
				t.Errorf("oci/crun costs least: want %t: %s", tt.cheapest, text)
			}
			isFaster := slices.ContainsFunc(m.Findings.Statements, func(s string) bool {
				return strings.Contains(s, "oci/crun") && strings.Contains(s, "faster") && strings.Contains(s, cpu)
			})
			if text := strings.Join(m.Findings.Open, " "); tt.goal == analysis.NotShown && (isFaster || !strings.Contains(text, "the loss of more than 5 % of the trials: CPU on oci/crun")) {
				t.Errorf("findings %q and open goals %q", m.Findings.Statements, text)
			}
		})
	}
}

// A ratio without a verdict because of lost trials has no direction, and is counted.
func TestLostTrialsInWords(t *testing.T) {
	run := comparedRun()
	lose(&run, "oci/crun", result.Timeout, "start took longer", 3, 9, 11)
	m := model(run)
	c := cell(t, benchmark(t, m, cpu), "cpu", "oci/crun")
	if got := quantity.Ratio(c.Comparison, result.Metric{Unit: result.Seconds, Better: result.Lower}); got != "ratio 0.800" {
		t.Errorf("the factor is %q", got)
	}
	if !strings.Contains(m.Findings.Comparisons, "; 1 has no verdict because of lost trials") {
		t.Errorf("the comparisons are %q", m.Findings.Comparisons)
	}
}
