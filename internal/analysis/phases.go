package analysis

import (
	"slices"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// ComparedPhase compares the time of a phase on two targets over the blocks of a run.
type ComparedPhase struct {
	Name string
	// Base and Value are the medians of the baseline and of the target, in seconds.
	Base, Value float64
	// Comparison is judged in the family of all phases of the benchmark.
	Comparison stats.Comparison
	// Difference is Value − Base within blocks, in seconds.
	Difference stats.Difference
}

// ComparePhases compares the phases of the trials of a benchmark that both targets have, in the order of their first call. trials are of the
// run with this index.
func (a *Analysis) ComparePhases(run int, trials []result.Trial, b *Benchmark, baseline, target string) []ComparedPhase {
	section := b.Sections[run]
	if section == nil || section.outcome(baseline) == nil || section.outcome(target) == nil {
		return nil
	}
	var names []string
	points := map[string]map[string][]Point{baseline: {}, target: {}} // by target and phase
	for i := range trials {
		t := &trials[i]
		list, isSide := points[t.Target]
		if !isSide || t.Benchmark != b.Name || t.Params != b.Params || t.Status != result.OK || t.Warmup {
			continue
		}
		for name, length := range PhaseTimes(t.Phases) {
			list[name] = append(list[name], Point{t, length.Seconds()})
		}
		for _, p := range t.Phases {
			if name := PhaseOf(p.Name); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	var phases []ComparedPhase
	var family []stats.Comparison
	for _, name := range names {
		base, values := points[baseline][name], points[target][name]
		if len(base) == 0 || len(values) == 0 {
			continue
		}
		seed := cellSeed(a.Runs[run].Seed, b.Key, target, "phase "+name)
		family = append(family, section.compare(result.Lower, baseline, target, base, values, seed))
		phases = append(phases, ComparedPhase{
			Name: name, Base: medianOf(base), Value: medianOf(values), Difference: stats.Subtract(samplesOf(values), [][]stats.Sample{samplesOf(base)}),
		})
	}
	for i, c := range judge(family, a.Runs[run].Unjudged, a.MinEffect) {
		phases[i].Comparison = c
	}
	return phases
}

// PhaseOf is the phase of a step: "create" of "create/RunPodSandbox".
func PhaseOf(step string) string {
	name, _, _ := strings.Cut(step, "/")
	return name
}

// PhaseTimes adds up the time of each phase. A phase that is recorded only by its steps has their sum.
func PhaseTimes(phases []result.Phase) map[string]time.Duration {
	wholes, parts := map[string]time.Duration{}, map[string]time.Duration{}
	for _, p := range phases {
		if name := PhaseOf(p.Name); name == p.Name {
			wholes[name] += p.Duration
		} else {
			parts[name] += p.Duration
		}
	}
	for name, length := range parts {
		if _, ok := wholes[name]; !ok {
			wholes[name] = length
		}
	}
	return wholes
}

func medianOf(points []Point) float64 {
	values := make([]float64, len(points))
	for i, p := range points {
		values[i] = p.Value
	}
	return stats.Median(values)
}
