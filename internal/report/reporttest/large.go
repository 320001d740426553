package reporttest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// Large is the shape of a run with many samples. Its trials are made one at a time, so that a reader can measure its own memory.
type Large struct {
	Name string
	// Targets × Benchmarks × Blocks is the number of trials. A trial has Values values of each of Metrics metrics.
	Targets, Benchmarks, Blocks, Metrics, Values int
	// Series is set if the metrics are series.
	Series bool
}

// Millions are the shapes of a run with 10⁶ samples: long series in a few trials, and many trials with a few samples each.
func Millions() []Large {
	return []Large{
		{Name: "series", Targets: 4, Benchmarks: 1, Blocks: 10, Metrics: 1, Values: 25_000, Series: true},
		{Name: "blocks", Targets: 20, Benchmarks: 1, Blocks: 5_000, Metrics: 10, Values: 1},
	}
}

// LargeBenchmark is the first benchmark of a Large run. The others have a number behind this name.
const LargeBenchmark = "scalability.large"

// Far is the largest value of every target and metric of a Large run, as a multiple of the usual value. One trial has it.
const Far = 40

// Samples is the number of samples.
func (l Large) Samples() int { return l.Targets * l.Benchmarks * l.Blocks * l.Metrics * l.Values }

// Run returns the whole run.
func (l Large) Run() result.Run {
	var c collector
	if err := l.Read(&c); err != nil {
		panic(err)
	}
	return c.run
}

// collector is a visitor that keeps the run.
type collector struct{ run result.Run }

func (c *collector) Begin(run result.Run) error {
	c.run = run
	return nil
}

func (c *collector) Trial(t result.Trial) error {
	c.run.Trials = append(c.run.Trials, t)
	return nil
}

func (c *collector) Trace(t result.Trace) error {
	c.run.Traces = append(c.run.Traces, t)
	return nil
}

func (*collector) End() error { return nil }

// Read passes the run to v, like result.Read.
func (l Large) Read(v result.Visitor) error {
	var run result.Run
	load("run.json", &run)
	run.ID, run.Name, run.Baseline = "01K9Z0TOUCHSTONE0"+l.Name, l.Name, "native"
	run.Bench = nil
	for n := range l.Benchmarks {
		bench := result.Benchmark{Name: LargeBenchmark, Summary: "many samples", Source: "none", Phases: true}
		if n > 0 {
			bench.Name += strconv.Itoa(n + 1)
		}
		for m := range l.Metrics {
			bench.Metrics = append(bench.Metrics, result.Metric{
				Name: fmt.Sprintf("Latency%d", m+1), Unit: result.Seconds, Better: result.Lower, Series: l.Series, Help: "a time",
			})
		}
		run.Bench = append(run.Bench, bench)
	}
	for n := range l.Targets {
		t := result.Target{Name: "native", Kind: result.KindNative}
		if n > 0 {
			t = result.Target{Name: fmt.Sprintf("oci/runtime%d", n), Kind: result.KindRuntime, Runtime: fmt.Sprintf("runtime%d", n)}
		}
		run.Targets = append(run.Targets, t)
	}
	run.Ended = run.Started.Add(time.Hour)
	if err := v.Begin(run); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(20261125, 6))
	seq := 0
	for block := range l.Blocks {
		host := 0.05 * random.NormFloat64() // all targets of a block share it
		for i := range run.Bench {
			for _, n := range random.Perm(l.Targets) {
				seq++
				if err := v.Trial(l.trial(&run, &run.Bench[i], random, seq, block, n, host)); err != nil {
					return err
				}
			}
		}
	}
	return v.End()
}

func (l Large) trial(run *result.Run, bench *result.Benchmark, random *rand.Rand, seq, block, target int, host float64) result.Trial {
	start := run.Started.Add(time.Duration(seq) * 30 * time.Millisecond)
	t := result.Trial{
		Seq: seq, Cell: result.Cell{Benchmark: bench.Name, Target: run.Targets[target].Name}, Block: block, Status: result.OK,
		Started: start, Elapsed: 25 * time.Millisecond, Self: time.Millisecond,
		Conditions: map[string]string{"cpus": "2-3"},
	}
	load, pressure := 1.25, 0.01*random.Float64()
	t.Host = result.Disturbance{Load: &load, CPUPressure: &pressure, IOPressure: &pressure}
	if random.IntN(100) == 0 {
		t.Host.Marks = []string{fmt.Sprintf("programs waited for I/O %.1f %% of the time", 10+10*random.Float64())}
	}
	offset := time.Millisecond
	for _, phase := range []string{"create", "start", "kill", "delete"} {
		length := time.Duration(1e6 * math.Exp(0.1*random.NormFloat64()))
		t.Phases = append(t.Phases, result.Phase{Name: phase, Start: offset, Duration: length})
		offset += length
	}
	isFar := block == l.Blocks/3
	t.Samples = slices.Grow(t.Samples, l.Metrics*l.Values)
	for _, m := range bench.Metrics {
		base := 1e-3 * (1 + 0.05*float64(target))
		for i := range l.Values {
			value := base * math.Exp(host+0.1*random.NormFloat64())
			if isFar && i == l.Values/7 {
				value = Far * base
			}
			record(&t, m.Name, value)
		}
	}
	return t
}
