// Package selfcheck shows what this machine can show: the false alarms of a runtime against itself, the smallest known delay that is
// found, and so the smallest difference that a comparison shows in a given time.
//
// Its runs have a runtime as the baseline, the same runtime once more, and the same runtime with known delays before
// create, start, exec and delete. A delay either sleeps or uses a CPU. Each operation is judged by itself, as a comparison
// of two targets. The sizes of the delays follow from a calibration: half of the smallest difference that the runs should show, this
// difference, and twice as much. So the delays also check the prediction.
//
// The package does no input or output, and refuses a calibration without values of every operation.
package selfcheck

import (
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// Operation is a call of a runtime that can be delayed.
type Operation struct {
	// Verb is the runtime's command.
	Verb string
	// Benchmark and Metric measure it.
	Benchmark, Metric string
}

// Operations are the delayed operations, in the order of a container's life.
func Operations() []Operation {
	const lifecycle = "operations.container.lifecycle"
	return []Operation{
		{"create", lifecycle, "Create"},
		{"start", lifecycle, "Run"},
		{"exec", "operations.container.exec", "Exec"},
		{"delete", lifecycle, "Destroy"},
	}
}

// Headline is the value whose limits are quoted in reports.
func Headline() Operation {
	return Operation{"create and start", "operations.container.lifecycle", "CreateAndRun"}
}

// Kind is a kind of delay.
type Kind string

// The kinds.
const (
	Sleep Kind = "sleep"
	CPU   Kind = "CPU"
)

// Kinds lists the kinds.
func Kinds() []Kind { return []Kind{Sleep, CPU} }

// Sizes is the number of sizes of each kind.
const Sizes = 3

// LeastDelay is the least relative delay. A smaller one is below the resolution of a sleep.
const LeastDelay = 0.002

// Delayed is a target with delays.
type Delayed struct {
	Target string
	Kind   Kind
	// Size counts the sizes from 0, the smallest.
	Size int
	// Delays are by operation.
	Delays []time.Duration
}

// Noise is the variation of an operation.
type Noise struct {
	// Median and Mean are of the values on the baseline, in seconds.
	Median, Mean float64
	// Within is the standard deviation of the log ratio of equal targets in one block, and Between from run to run. NaN is unknown.
	Within, Between float64
}

// Measure returns the noise of an operation in runs with two equal targets.
func Measure(runs []result.Run, o Operation, base, same string) Noise {
	var values []float64
	var effects []stats.Effect
	var blocks []int
	variance, known := 0.0, 0
	for i := range runs {
		a, b := samples(&runs[i], o, base), samples(&runs[i], o, same)
		for _, s := range a {
			values = append(values, s.Value)
		}
		c := stats.Compare(a, b, stats.Lower, runs[i].Seed)
		if math.IsNaN(c.Ratio) {
			continue
		}
		effects, blocks = append(effects, stats.Effect{Log: math.Log(c.Ratio), SE: c.LogSE}), append(blocks, c.N)
		if c.LogSE >= 0 {
			variance += c.LogSE * c.LogSE * float64(c.N)
			known++
		}
	}
	n := Noise{Median: math.NaN(), Mean: math.NaN(), Within: math.NaN(), Between: math.NaN()}
	if len(values) > 0 {
		n.Median, n.Mean = stats.Median(values), stat.Mean(values, nil)
	}
	if known > 0 {
		n.Within = math.Sqrt(variance / float64(known))
	}
	if len(effects) > 1 {
		n.Between = stats.Pool(stats.ShareNoise(effects, blocks)).Tau
	}
	return n
}

// samples are the values of an operation on a target.
func samples(run *result.Run, o Operation, target string) []stats.Sample {
	var all []stats.Sample
	for _, t := range run.Trials {
		if t.Benchmark != o.Benchmark || t.Target != target || t.Warmup || t.Status != result.OK {
			continue
		}
		if values := t.Values(o.Metric); len(values) > 0 {
			all = append(all, stats.Sample{Block: t.Block, Value: stats.Median(values)})
		}
	}
	return all
}

// Plan returns the delays of each kind and size for runs with a number of blocks. The calibration is a run with two equal targets.
func Plan(calibration result.Run, base, same string, blocks int) ([]Delayed, error) {
	var all []Delayed
	for _, kind := range Kinds() {
		for size := range Sizes {
			d := Delayed{Kind: kind, Size: size}
			for _, o := range Operations() {
				n := Measure([]result.Run{calibration}, o, base, same)
				share := stats.SmallestShown(n.Within, math.NaN(), blocks)
				if !(n.Median > 0) || math.IsNaN(share) {
					return nil, fmt.Errorf("the calibration has too few values of %s (%s of %s)", o.Verb, o.Metric, o.Benchmark)
				}
				share = max(LeastDelay, share/2) * float64(int(1)<<size)
				d.Delays = append(d.Delays, time.Duration(share*n.Median*float64(time.Second)))
			}
			all = append(all, d)
		}
	}
	return all, nil
}

// Check is the result of a selfcheck.
type Check struct {
	Alarms     Alarms     `json:"false_alarms"`
	Delays     []Found    `json:"delays"`
	Smallest   []Smallest `json:"smallest_delays"`
	Limits     []Limit    `json:"limits"`
	Operations []Overhead `json:"overhead"`
	Self       float64    `json:"self_cpu_share"` // Touchstone's CPU time as a share of the time of all trials
}

// Alarms counts the differences that equal targets showed.
type Alarms struct {
	// Shown of the Comparisons showed a difference. By chance it is at most one in twenty.
	Shown       int `json:"shown"`
	Comparisons int `json:"comparisons"`
}

// Found counts the runs that found a delay.
type Found struct {
	Verb string `json:"operation"`
	Kind Kind   `json:"kind"`
	// Delay is in seconds, and Share its part of the operation's median.
	Delay float64 `json:"delay_s"`
	Share float64 `json:"share"`
	Found int     `json:"found_in_runs"`
	Runs  int     `json:"runs"`
	// Measured is the median over the runs of the difference of the means in seconds; absent if unknown.
	Measured *float64 `json:"measured_s,omitempty"`
}

// Smallest is the smallest delay that was found in at least four of five runs, as were all larger ones.
type Smallest struct {
	Verb string `json:"operation"`
	Kind Kind   `json:"kind"`
	// Delay and Share are absent if not even the largest delay was found.
	Delay *float64 `json:"delay_s,omitempty"`
	Share *float64 `json:"share,omitempty"`
}

// Limit is the smallest difference that a comparison of two targets shows in a time with a probability of 80 %.
type Limit struct {
	Metric  string `json:"metric"`
	Minutes int    `json:"minutes"`
	// Difference is relative: 0.03 is 3 %. It is absent if the time is too short for any.
	Difference *float64 `json:"difference,omitempty"`
}

// Minutes are the times of the limits.
func Minutes() []int { return []int{1, 5, 20} }

// Overhead is Touchstone's own part in the time of an operation, in seconds.
type Overhead struct {
	Verb   string  `json:"operation"`
	Median float64 `json:"median_s"`
	// Region is the time of an empty timed region. Launch is the start of a process that does nothing, until its exit; it is part of each
	// operation if Touchstone itself starts the runtime, and else absent.
	Region float64  `json:"empty_region_s"`
	Launch *float64 `json:"launch_s,omitempty"`
}

// Pace is the time of a block with two targets, by benchmark, and of the set-up of a run.
type Pace struct {
	SetUp time.Duration
	Block map[string]time.Duration
}

// blocks is the number of blocks of a benchmark that fit into a time.
func (p Pace) blocks(benchmark string, in time.Duration) int {
	if p.Block[benchmark] <= 0 {
		return 0
	}
	return max(0, int((in-p.SetUp)/p.Block[benchmark]))
}

// Evaluate judges the runs. launches is set if Touchstone itself starts the runtime.
func Evaluate(runs []result.Run, base, same string, delayed []Delayed, pace Pace, launches bool) Check {
	c := Check{}
	operations := Operations()
	compare := func(o Operation, target string) []stats.Comparison {
		var all []stats.Comparison
		for i := range runs {
			all = append(all, stats.Compare(samples(&runs[i], o, base), samples(&runs[i], o, target), stats.Lower, runs[i].Seed))
		}
		return all
	}
	noise := map[string]Noise{}
	for _, o := range append(slices.Clone(operations), Headline()) {
		noise[o.Metric] = Measure(runs, o, base, same)
		for _, compared := range compare(o, same) {
			c.Alarms.Comparisons++
			if compared.Differs() {
				c.Alarms.Shown++
			}
		}
	}
	for at, o := range operations {
		for _, kind := range Kinds() {
			smallest := Smallest{Verb: o.Verb, Kind: kind}
			unbroken := true
			var all []Found
			for i := len(delayed) - 1; i >= 0; i-- {
				d := delayed[i]
				if d.Kind != kind {
					continue
				}
				f := found(compare(o, d.Target), d.Delays[at], noise[o.Metric])
				f.Verb, f.Kind = o.Verb, kind
				all = append(all, f)
				if unbroken = unbroken && f.Runs > 0 && 5*f.Found >= 4*f.Runs; unbroken {
					smallest.Delay, smallest.Share = &f.Delay, known(f.Share)
				}
			}
			slices.Reverse(all) // the smallest first
			c.Delays, c.Smallest = append(c.Delays, all...), append(c.Smallest, smallest)
		}
	}
	c.limits(append([]Operation{Headline()}, operations...), noise, pace)
	c.overhead(runs, noise, launches)
	return c
}

// found counts the comparisons that show that a delayed target is slower. The delay is measured by the means: the typical ratio of times with two modes
// exceeds the share of a delay that is small beside their distance.
func found(compared []stats.Comparison, delay time.Duration, noise Noise) Found {
	f := Found{Delay: delay.Seconds(), Share: delay.Seconds() / noise.Median, Runs: len(compared)}
	var measured []float64
	for _, c := range compared {
		if c.Verdict == stats.Slower {
			f.Found++
		}
		if !math.IsNaN(c.Means) {
			measured = append(measured, (c.Means-1)*noise.Mean)
		}
	}
	if len(measured) > 0 {
		f.Measured = known(stats.Median(measured))
	}
	return f
}

// limits predicts the smallest differences.
func (c *Check) limits(operations []Operation, noise map[string]Noise, pace Pace) {
	for _, o := range operations {
		for _, minutes := range Minutes() {
			n := noise[o.Metric]
			blocks := pace.blocks(o.Benchmark, time.Duration(minutes)*time.Minute)
			c.Limits = append(c.Limits, Limit{o.Metric, minutes, known(stats.SmallestShown(n.Within, n.Between, blocks))})
		}
	}
}

// overhead collects Touchstone's own cost from the runs.
func (c *Check) overhead(runs []result.Run, noise map[string]Noise, launches bool) {
	var regions, launch []float64
	var self, elapsed time.Duration
	for _, r := range runs {
		regions, launch = append(regions, r.Overhead.EmptyRegion.Seconds()), append(launch, r.Overhead.Exec.Seconds())
		for _, t := range r.Trials {
			self, elapsed = self+t.Self, elapsed+t.Elapsed
		}
	}
	if elapsed > 0 {
		c.Self = self.Seconds() / elapsed.Seconds()
	}
	for _, o := range Operations() {
		own := Overhead{Verb: o.Verb, Median: noise[o.Metric].Median}
		if len(runs) > 0 {
			own.Region = stats.Median(regions)
			if launches {
				own.Launch = known(stats.Median(launch))
			}
		}
		if math.IsNaN(own.Median) {
			continue
		}
		c.Operations = append(c.Operations, own)
	}
}

// Summary is the part of a check that later runs on the machine quote.
func (c *Check) Summary(date time.Time, version, target string) result.Selfcheck {
	s := result.Selfcheck{Date: date, Version: version, Target: target, Metric: Headline().Metric}
	for _, l := range c.Limits {
		if l.Metric == Headline().Metric && l.Difference != nil {
			s.Limits = append(s.Limits, result.DetectionLimit{Minutes: l.Minutes, Difference: *l.Difference})
		}
	}
	return s
}

// known is nil for a number that is not finite.
func known(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}
