// Package selfcheck shows what this machine can show: the false alarms of a runtime against itself, the smallest known delay that is
// found, and the smallest delay that a comparison shows in a given time.
//
// Its runs have a runtime as the baseline, the same runtime once more, and the same runtime with known delays before
// create, start, exec and delete. A delay either sleeps or uses a CPU. Each operation is judged by itself, as a comparison
// of two targets. The sizes of the delays follow from a calibration: half of the smallest delay that the runs should show, this
// delay, and twice as much. So the delays also check the prediction.
//
// The package does no input or output, and refuses a calibration without values of every operation.
package selfcheck

import (
	"fmt"
	"math"
	"slices"
	"strings"
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

// Commands are the runtime's commands in the time of each operation, by the operation's verb. An operation that is missing is the one command of
// its verb.
type Commands map[string][]string

// of returns the commands of an operation.
func (c Commands) of(o Operation) []string {
	if list, ok := c[o.Verb]; ok {
		return list
	}
	return []string{o.Verb}
}

// delay is the delay of an operation: the sum over its commands.
func (c Commands) delay(o Operation, d Delayed) time.Duration {
	var sum time.Duration
	for _, verb := range c.of(o) {
		index := slices.IndexFunc(Operations(), func(o Operation) bool { return o.Verb == verb })
		sum += d.Delays[index]
	}
	return sum
}

// delayed counts the commands of an operation that Plan delays.
func (c Commands) delayed(o Operation) int {
	n := 0
	for _, verb := range c.of(o) {
		if len(c.of(Operation{Verb: verb})) > 0 {
			n++
		}
	}
	return n
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
	// Delays are by the runtime's command, in the order of Operations.
	Delays []time.Duration
}

// Noise is the variation of an operation.
type Noise struct {
	// Median and Mean are of the values on the baseline, in seconds. NaN is unknown.
	Median, Mean float64
	// base and same are the values of the two equal targets by run, and between the standard deviation of their log ratio from run to
	// run.
	base, same [][]stats.Sample
	between    float64
	seed       uint64
}

// Measure returns the noise of an operation in runs with two equal targets.
func Measure(runs []result.Run, o Operation, base, twin string) Noise {
	n := Noise{Median: math.NaN(), Mean: math.NaN()}
	var values []float64
	for i := range runs {
		a := samples(&runs[i], o, base)
		for _, s := range a {
			values = append(values, s.Value)
		}
		n.base, n.same = append(n.base, a), append(n.same, samples(&runs[i], o, twin))
	}
	if len(values) > 0 {
		n.Median, n.Mean = stats.Median(values), stat.Mean(values, nil)
	}
	if len(runs) > 0 {
		n.seed = runs[0].Seed
	}
	n.between = stats.BetweenRuns(n.base, n.same, n.seed)
	return n
}

// smallest is the smallest delay that a run of a number of blocks shows, as a share of the median. It is NaN with too few values or blocks.
func (n *Noise) smallest(blocks int) float64 {
	return stats.SmallestDelay(n.base, n.same, n.between, blocks, n.seed) / n.Median
}

// samples are the values of an operation on a target.
func samples(run *result.Run, o Operation, target string) []stats.Sample {
	var list []stats.Sample
	for _, t := range run.Trials {
		if t.Benchmark != o.Benchmark || t.Target != target || t.Warmup || t.Status != result.OK {
			continue
		}
		if values := t.Values(o.Metric); len(values) > 0 {
			list = append(list, stats.Sample{Block: t.Block, Value: stats.Median(values)})
		}
	}
	return list
}

// Plan returns the delays of each kind and size for runs with a number of blocks. The calibration is a run with two equal targets. With ten blocks its
// smallest delay is wrong by up to a factor of two, so the sizes span this range.
//
// The delay of an operation of several commands is divided among them. A command whose own operation does not call the runtime has no delay.
func Plan(calibration result.Run, base, twin string, blocks int, commands Commands) ([]Delayed, error) {
	var list []Delayed
	for _, kind := range Kinds() {
		for size := range Sizes {
			list = append(list, Delayed{Kind: kind, Size: size})
		}
	}
	for _, o := range Operations() {
		n := Measure([]result.Run{calibration}, o, base, twin)
		limit := n.smallest(blocks)
		if math.IsNaN(limit) {
			return nil, fmt.Errorf("the calibration has too few values of %s (%s of %s)", o.Verb, o.Metric, o.Benchmark)
		}
		for i := range list {
			var delay time.Duration
			if parts := commands.delayed(o); parts > 0 {
				share := max(LeastDelay, limit/2) * float64(int(1)<<list[i].Size)
				delay = time.Duration(share * n.Median * float64(time.Second) / float64(parts))
			}
			list[i].Delays = append(list[i].Delays, delay)
		}
	}
	return list, nil
}

// Added is the time that the delays add to a block of all targets, by the calls of an average trial of the calibration.
func Added(calibration result.Run, delayed []Delayed, commands Commands) time.Duration {
	trials, calls := map[string]float64{}, map[string]map[string]float64{}
	for _, t := range calibration.Trials {
		if t.Status != result.OK {
			continue
		}
		trials[t.Benchmark]++
		for _, p := range t.Phases {
			if calls[t.Benchmark] == nil {
				calls[t.Benchmark] = map[string]float64{}
			}
			calls[t.Benchmark][p.Name]++
		}
	}
	var sum float64
	for benchmark, n := range trials {
		for _, o := range Operations() {
			for _, d := range delayed {
				sum += calls[benchmark][o.Verb] / n * float64(commands.delay(o, d))
			}
		}
	}
	return time.Duration(sum)
}

// Check is the result of a selfcheck.
type Check struct {
	Alarms     Alarms     `json:"false_alarms" doc:"The differences that equal targets showed."`
	Delays     []Found    `json:"delays" doc:"The delays, with the runs that found them."`
	Smallest   []Smallest `json:"smallest_delays" doc:"The smallest delay that was found, by operation and kind."`
	Limits     []Limit    `json:"limits" doc:"The smallest delay that a verdict shows, by metric and time."`
	Operations []Overhead `json:"overhead" doc:"Touchstone's own part in each operation."`
	Self       float64    `json:"self_cpu_share" doc:"Touchstone's own CPU time as a share of the time of all trials."`
}

// Alarms counts the differences that equal targets showed.
type Alarms struct {
	Shown       int `json:"shown" doc:"Number of comparisons of equal targets that showed a difference. By chance it is about one in twenty."`
	Comparisons int `json:"comparisons" doc:"Number of comparisons of equal targets."`
}

// Found counts the runs that found a delay.
type Found struct {
	Verb     string   `json:"operation" doc:"The operation that was delayed."`
	Kind     Kind     `json:"kind" doc:"The kind of delay."`
	Delay    float64  `json:"delay_s" doc:"The delay in seconds."`
	Share    float64  `json:"share" doc:"The delay as a share of the operation's median."`
	Found    int      `json:"found_in_runs" doc:"Number of runs that found the delay."`
	Runs     int      `json:"runs" doc:"Number of runs with the delay."`
	Measured *float64 `json:"measured_s,omitempty" doc:"The median over the runs of the difference of the means, in seconds; absent if it is unknown."`
}

// Smallest is the smallest delay that was found in at least four of five runs, as were all larger ones.
type Smallest struct {
	Verb  string   `json:"operation" doc:"The operation that was delayed."`
	Kind  Kind     `json:"kind" doc:"The kind of delay."`
	Delay *float64 `json:"delay_s,omitempty" doc:"The delay in seconds; absent if not even the largest delay was found."`
	Share *float64 `json:"share,omitempty" doc:"The delay as a share of the operation's median; absent if not even the largest delay was found."`
}

// Limit is the smallest delay that the verdict of a comparison of two targets shows in a time, in any part of the distribution, with a probability
// of 80 %.
type Limit struct {
	Metric     string   `json:"metric" doc:"Name of the metric."`
	Minutes    int      `json:"minutes" doc:"Time of the comparison, in minutes."`
	Difference *float64 `json:"difference,omitempty" doc:"The delay as a share of the median: 0.03 is 3 %; absent if the time is too short for any delay."`
}

// Minutes are the times of the limits.
func Minutes() []int { return []int{1, 5, 20} }

// Overhead is Touchstone's own part in the time of an operation, in seconds.
type Overhead struct {
	Verb    string   `json:"operation" doc:"The operation."`
	Median  float64  `json:"median_s" doc:"Its median, in seconds."`
	Region  float64  `json:"empty_region_s" doc:"The time of an empty timed region, in seconds."`
	Calls   float64  `json:"calls,omitempty" doc:"The starts of processes or the requests to a daemon that Touchstone makes in the operation; absent if unknown."`
	Launch  *float64 `json:"launch_s,omitempty" doc:"The time to start a process that does nothing, until its exit, in seconds; absent unless each call starts a process."`
	Request *float64 `json:"request_s,omitempty" doc:"The round trip of a request that does nothing, in seconds; absent unless each call is a request to a daemon."`
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

// Evaluate judges the runs. launches is set if Touchstone starts a process for each call. An operation that does not call the runtime has no delays.
func Evaluate(runs []result.Run, base, twin string, delayed []Delayed, commands Commands, pace Pace, launches bool) Check {
	c := Check{}
	operations := Operations()
	compare := func(o Operation, target string) []stats.Comparison {
		var list []stats.Comparison
		for i := range runs {
			list = append(list, stats.Compare(samples(&runs[i], o, base), samples(&runs[i], o, target), stats.Lower, runs[i].Seed))
		}
		return list
	}
	noise := map[string]Noise{}
	for _, o := range append(slices.Clone(operations), Headline()) {
		noise[o.Metric] = Measure(runs, o, base, twin)
		for _, comparison := range compare(o, twin) {
			c.Alarms.Comparisons++
			if comparison.Differs() {
				c.Alarms.Shown++
			}
		}
	}
	for _, o := range operations {
		if len(commands.of(o)) == 0 {
			continue
		}
		for _, kind := range Kinds() {
			minimum := Smallest{Verb: o.Verb, Kind: kind}
			unbroken := true
			var list []Found
			for i := len(delayed) - 1; i >= 0; i-- {
				d := delayed[i]
				if d.Kind != kind {
					continue
				}
				f := found(compare(o, d.Target), commands.delay(o, d), noise[o.Metric])
				f.Verb, f.Kind = o.Verb, kind
				list = append(list, f)
				if unbroken = unbroken && f.Runs > 0 && 5*f.Found >= 4*f.Runs; unbroken {
					minimum.Delay, minimum.Share = &f.Delay, known(f.Share)
				}
			}
			slices.Reverse(list) // the smallest first
			c.Delays, c.Smallest = append(c.Delays, list...), append(c.Smallest, minimum)
		}
	}
	c.limits(append([]Operation{Headline()}, operations...), noise, pace)
	c.overhead(runs, base, noise, launches)
	return c
}

// found counts the comparisons that show that a delayed target is slower. The delay is measured by the means: the typical ratio of times with two modes
// exceeds the share of a delay that is small beside their distance.
func found(comparisons []stats.Comparison, delay time.Duration, noise Noise) Found {
	f := Found{Delay: delay.Seconds(), Share: delay.Seconds() / noise.Median, Runs: len(comparisons)}
	var delays []float64
	for _, c := range comparisons {
		if c.Verdict == stats.Slower {
			f.Found++
		}
		if !math.IsNaN(c.Means) {
			delays = append(delays, (c.Means-1)*noise.Mean)
		}
	}
	if len(delays) > 0 {
		f.Measured = known(stats.Median(delays))
	}
	return f
}

// limits predicts the smallest delays.
func (c *Check) limits(operations []Operation, noise map[string]Noise, pace Pace) {
	for _, o := range operations {
		for _, minutes := range Minutes() {
			n := noise[o.Metric]
			blocks := pace.blocks(o.Benchmark, time.Duration(minutes)*time.Minute)
			c.Limits = append(c.Limits, Limit{o.Metric, minutes, known(n.smallest(blocks))})
		}
	}
}

// overhead collects Touchstone's own cost from the runs.
func (c *Check) overhead(runs []result.Run, base string, noise map[string]Noise, launches bool) {
	var regions, launch, request []float64
	daemon, _, _ := strings.Cut(base, "/")
	var self, elapsed time.Duration
	for _, r := range runs {
		regions, launch = append(regions, r.Overhead.EmptyRegion.Seconds()), append(launch, r.Overhead.Exec.Seconds())
		if took, ok := r.Overhead.Requests[daemon]; ok && !launches {
			request = append(request, took.Seconds())
		}
		for _, t := range r.Trials {
			self, elapsed = self+t.Self, elapsed+t.Elapsed
		}
	}
	if elapsed > 0 {
		c.Self = self.Seconds() / elapsed.Seconds()
	}
	for _, o := range Operations() {
		cost := Overhead{Verb: o.Verb, Median: noise[o.Metric].Median}
		if len(runs) > 0 {
			cost.Region = stats.Median(regions)
			if launches {
				cost.Launch = known(stats.Median(launch))
			}
			if len(request) > 0 {
				cost.Request = known(stats.Median(request))
			}
			cost.Calls = calls(runs, o, base)
		}
		if math.IsNaN(cost.Median) {
			continue
		}
		c.Operations = append(c.Operations, cost)
	}
}

// calls is the number of calls in an operation, as the phases of the target's trials show them: a phase is one call, or has a phase for each. The
// wait for the exit of a container makes no call of its own. The result is 0 without phases.
func calls(runs []result.Run, o Operation, target string) float64 {
	const exit = "exit"
	phases := []string{o.Verb}
	if o.Verb == "delete" {
		phases = []string{"kill", exit, o.Verb} // the metric is their sum
	}
	var counts []float64
	for _, r := range runs {
		for _, t := range r.Trials {
			if t.Benchmark != o.Benchmark || t.Target != target || t.Warmup || t.Status != result.OK {
				continue
			}
			numbers := map[string]int{}
			for _, p := range t.Phases {
				numbers[p.Name]++
				if phase, _, step := strings.Cut(p.Name, "/"); step {
					numbers[phase+"/"]++
				}
			}
			if numbers[o.Verb] == 0 {
				continue
			}
			n := 0
			for _, phase := range phases {
				if steps := numbers[phase+"/"]; steps > 0 || phase == exit {
					n += steps
				} else {
					n += numbers[phase]
				}
			}
			counts = append(counts, float64(n)/float64(numbers[o.Verb]))
		}
	}
	if len(counts) == 0 {
		return 0
	}
	return stats.Median(counts)
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
