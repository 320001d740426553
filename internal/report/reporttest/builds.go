package reporttest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/report/ab"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// The sides of a comparison of two builds.
const buildA, buildB = "oci/runc-a", "oci/runc-b"

// The values of a comparison: a time, a rate and an amount.
var (
	buildTime   = ab.Value{Key: analysis.Key{Name: lifecycle}, Metric: result.Metric{Name: "CreateAndRun", Unit: result.Seconds, Better: result.Lower}}
	buildRate   = ab.Value{Key: analysis.Key{Name: "performance.cpu.time", Params: "copies=2"}, Metric: result.Metric{Name: "Rate", Unit: result.PerSecond, Better: result.Higher}}
	buildMemory = ab.Value{Key: analysis.Key{Name: lifecycle}, Metric: result.Metric{Name: "HostMemory", Unit: result.Bytes, Better: result.Lower}}
)

// Builds is a made comparison of two builds: a time that is not worse, a rate that is undecided, and an amount that is zero on A. Its text
// is hostile to HTML and to terminals.
func Builds() *ab.Document {
	values := []ab.Value{buildTime, buildRate, buildMemory}
	d := builds(8, 8, 6, values, func(run, block int) [2]map[string]float64 {
		noise := 0.004 * math.Sin(float64(7*run+3*block))
		return [2]map[string]float64{
			{"CreateAndRun": 0.020 * (1 + noise), "Rate": 500, "HostMemory": 0},
			{"CreateAndRun": 0.0199 + 0.0001*math.Sin(float64(run)), "Rate": 490 + 15*math.Cos(float64(3*run)) + 100*noise, "HostMemory": 4096},
		}
	}, nil)
	d.Started = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	d.Machine = &ab.Machine{Hostname: "bench1", OS: "Example Linux 1", Kernel: "6.1.0", CPU: "Example CPU", CPUs: 2}
	d.Tool = result.Tool{Version: "1.0", Go: "go1.26"}
	d.A.Version, d.A.Binary = "runc version 1.1.12", "/usr/bin/runc"
	d.B.Version, d.B.Binary = "runc <b>1.2</b>\x1b[31m", "/home/me/<script>alert(1)</script>/runc"
	d.Code, d.Budget, d.Spent = 6, 600, 254
	return d
}

// builds makes a comparison of runs with these samples of A and B. spoil changes a run before it counts.
func builds(plan, runs, blocks int, values []ab.Value, samples func(run, block int) [2]map[string]float64, spoil func(run int, r *result.Run)) *ab.Document {
	s := ab.New(ab.Design{A: buildA, B: buildB, Margin: 0.03, Runs: plan, Blocks: blocks, MostBlocks: 100_000, Values: values})
	for n := range runs {
		r := result.Run{
			ID: fmt.Sprintf("20261120-10%02d%02d-aaaa", n/60, n%60), Seed: 1, Baseline: buildA,
			Targets: []result.Target{{Name: buildA}, {Name: buildB}},
		}
		params := map[string]string{}
		for _, v := range values {
			i := slices.IndexFunc(r.Bench, func(b result.Benchmark) bool { return b.Name == v.Name })
			if i < 0 {
				i = len(r.Bench)
				r.Bench = append(r.Bench, result.Benchmark{Name: v.Name})
			}
			r.Bench[i].Metrics = append(r.Bench[i].Metrics, v.Metric)
			params[v.Name] = v.Params
		}
		for block := range blocks {
			for i, sample := range samples(n, block) {
				for _, b := range r.Bench {
					t := result.Trial{
						Seq: len(r.Trials) + 1, Cell: result.Cell{Benchmark: b.Name, Params: params[b.Name], Target: []string{buildA, buildB}[i]}, Block: block, Status: result.OK,
					}
					for _, m := range b.Metrics {
						t.Samples = append(t.Samples, result.Sample{Metric: m.Name, Value: sample[m.Name]})
					}
					r.Trials = append(r.Trials, t)
				}
			}
		}
		if spoil != nil {
			spoil(n, &r)
		}
		if err := s.Add(analysis.NewSource(&r, analysis.Options{}), 31*time.Second); err != nil {
			panic(err) // the caller asked for more runs than planned
		}
	}
	return s.Document(func(id string) string { return "report-" + id + ".html" })
}

// OddBuilds gives comparisons of two builds that lack something that most have, by the oddity.
func OddBuilds() map[string]*ab.Document {
	one := []ab.Value{buildTime}
	// of makes a run for each ratio of a list.
	build := func(plan, blocks int, spoil func(run int, r *result.Run), ratios ...float64) *ab.Document {
		return builds(plan, len(ratios), blocks, one, func(run, block int) [2]map[string]float64 {
			a := 0.02 * (1 + 0.001*float64(block))
			return [2]map[string]float64{{"CreateAndRun": a}, {"CreateAndRun": a * ratios[run]}}
		}, spoil)
	}
	lose := func(match func(run, block int) bool) func(int, *result.Run) {
		return func(run int, r *result.Run) {
			for i := range r.Trials {
				if t := &r.Trials[i]; t.Target == buildB && match(run, t.Block) {
					t.Status, t.Samples, t.Reason = result.Failed, nil, "it rains\n<here>"
				}
			}
		}
	}
	odd := map[string]*ab.Document{
		"no run":             build(0, 0, nil),
		"no value":           builds(4, 0, 0, nil, nil, nil),
		"one run":            build(8, 6, nil, 1.1),
		"one block each":     build(8, 1, nil, 1, 1.01, 0.99, 1.02),
		"equal ratios":       build(8, 6, nil, 1, 1, 1, 1),
		"equal worse ratios": build(8, 6, nil, 1.25, 1.25, 1.25, 1.25),
		"a rate of half":     builds(8, 4, 6, []ab.Value{buildRate}, func(int, int) [2]map[string]float64 { return [2]map[string]float64{{"Rate": 10}, {"Rate": 5}} }, nil),
		"B always fails":     build(4, 6, lose(func(int, int) bool { return true }), 1, 1, 1, 1),
		"B fails in one run": build(5, 6, lose(func(run, _ int) bool { return run == 2 }), 1, 1.01, 1, 0.99, 1),
		"B loses trials":     build(4, 6, lose(func(_, block int) bool { return block < 2 }), 0.9, 0.91, 0.9, 0.89),
		"B is not available": build(4, 6, func(_ int, r *result.Run) { r.Targets[1].Unavailable = "no such file" }, 1, 1, 1, 1),
		"values of zero":     build(4, 6, nil, 0, 0, 0, 0),
		"negative values":    build(4, 6, nil, -1, -1, -1, -1),
		"an infinite value":  build(4, 6, nil, 1, math.Inf(1), 1, 1),
		"no numbers":         build(4, 6, nil, math.NaN(), math.NaN(), 1, 1),
		"a ratio too large":  build(4, 6, nil, 1, 1, 1, math.MaxFloat64),
		"a wide interval":    build(4, 6, nil, 1e-200, 1e200, 1e-150, 1e150),
		"orders apart":       build(4, 6, nil, 0.01, 100, 0.1, 10),
	}
	odd["many runs"] = build(200, 1, nil, func() (ratios []float64) {
		for i := range 200 {
			ratios = append(ratios, 1.03+0.2*math.Sin(float64(i*i)))
		}
		return ratios
	}()...)
	document := build(8, 6, nil, 1.02, 1.05)
	document.Unfinished, document.Code = "interrupted", 130
	odd["interrupted"] = document
	half := build(4, 6, nil, 1, 1.1, 0.9, 1)
	half.Values[0].Hi = nil // no upper end
	odd["half an interval"] = half
	return odd
}
