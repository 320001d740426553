package selfcheck_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/report/selfcheck"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats/simulation"
)

// Targets of the tests, and the time of each operation without a delay.
const (
	base = "oci/x-base"
	same = "oci/x-same"
	took = 10 * time.Millisecond
)

// run makes a run with two equal targets and delayed ones.
func run(n, blocks int, noise float64, delayed []selfcheck.Delayed) result.Run {
	random := rand.New(rand.NewPCG(uint64(n), 9))
	r := result.Run{ID: fmt.Sprintf("r%d", n), Seed: uint64(n), Overhead: result.Overhead{EmptyRegion: 100, Exec: time.Millisecond}}
	add := func(target string, delay func(i int) time.Duration, block int) {
		for i, o := range append(selfcheck.Operations(), selfcheck.Headline()) {
			v := (took + delay(i)).Seconds() * math.Exp(noise*random.NormFloat64())
			r.Trials = append(r.Trials, result.Trial{
				Seq: len(r.Trials) + 1, Cell: result.Cell{Benchmark: o.Benchmark, Target: target}, Block: block, Status: result.OK,
				Samples: []result.Sample{{Metric: o.Metric, Value: v}}, Elapsed: 100 * time.Millisecond, Self: time.Millisecond,
			})
		}
	}
	for block := range blocks {
		for _, name := range []string{base, same} {
			add(name, func(int) time.Duration { return 0 }, block)
		}
		for _, d := range delayed {
			add(d.Target, func(i int) time.Duration {
				if i < len(d.Delays) {
					return d.Delays[i]
				}
				return 0
			}, block)
		}
	}
	return r
}

func pace() selfcheck.Pace {
	return selfcheck.Pace{SetUp: time.Second, Block: map[string]time.Duration{
		"operations.container.lifecycle": 200 * time.Millisecond, "operations.container.exec": 400 * time.Millisecond,
	}}
}

// planned returns the delays for a number of blocks, with names of targets.
func planned(t *testing.T, noise float64, blocks int) []selfcheck.Delayed {
	t.Helper()
	delayed, err := selfcheck.Plan(run(0, 10, noise, nil), base, same, blocks, nil)
	must.Do(t, err)
	for i := range delayed {
		delayed[i].Target = fmt.Sprintf("oci/x-%s%d", delayed[i].Kind, delayed[i].Size)
	}
	return delayed
}

// The delays that follow from the noise are found as predicted: the largest always, the smallest rarely.
func TestDelaysAreFound(t *testing.T) {
	runs := simulation.Trials(t, 2, 5)
	const noise, blocks = 0.05, 30
	delayed := planned(t, noise, blocks)
	if len(delayed) != 2*selfcheck.Sizes {
		t.Fatalf("%d delayed targets", len(delayed))
	}
	var list []result.Run
	for n := range runs {
		list = append(list, run(n+1, blocks, noise, delayed))
	}
	c := selfcheck.Evaluate(list, base, same, delayed, nil, pace(), true)
	if c.Alarms.Comparisons != 5*runs || c.Alarms.Shown > runs {
		t.Errorf("%d of %d comparisons of equal targets show a difference", c.Alarms.Shown, c.Alarms.Comparisons)
	}
	bySize := map[int]int{}
	for i, f := range c.Delays {
		size := i % selfcheck.Sizes
		bySize[size] += f.Found
		if d := delayed[size].Delays; f.Runs != runs || f.Delay <= 0 || len(d) != 4 {
			t.Errorf("%+v", f)
		}
		if f.Measured == nil || size == 2 && math.Abs(*f.Measured-f.Delay) > 0.5*f.Delay {
			t.Errorf("%s by %s: a delay of %g s is measured as %v", f.Verb, f.Kind, f.Delay, f.Measured)
		}
	}
	tries := 4 * 2 * runs // of each size
	if bySize[2] < tries*9/10 || bySize[0] > tries*7/10 || bySize[1] <= bySize[0] {
		t.Errorf("of %d tries each, the sizes were found %v times", tries, bySize)
	}
	if len(c.Smallest) != 8 {
		t.Fatalf("%d smallest delays, want one for each operation and kind", len(c.Smallest))
	}
	for _, s := range c.Smallest {
		if s.Delay == nil || *s.Share > 0.2 {
			t.Errorf("%s by %s: the smallest delay is %v", s.Verb, s.Kind, s.Delay)
		}
	}
	if first := c.Delays[0]; first.Verb != "create" || first.Kind != selfcheck.Sleep || first.Delay >= c.Delays[1].Delay {
		t.Errorf("the delays begin with %+v", c.Delays[:2])
	}

	// Noise of 5 % on both sides is 7 % a block. In 5 minutes are 1495 blocks: 2.8 · 7 % / √1495 = 0.5 %, and more with a variation between
	// runs by chance.
	var headline []float64
	for _, l := range c.Limits {
		if l.Metric == "CreateAndRun" {
			headline = append(headline, *l.Difference)
		}
	}
	if len(headline) != 3 || headline[0] < headline[1] || headline[1] < headline[2] || headline[1] < 0.003 || headline[1] > 0.03 {
		t.Errorf("the limits are %v, want about 0.005 in 5 minutes", headline)
	}
	s := c.Summary(time.Unix(0, 0), "1.0.0", "oci/x")
	if len(s.Limits) != 3 || s.Limits[1] != (result.DetectionLimit{Minutes: 5, Difference: headline[1]}) || s.Metric != "CreateAndRun" || s.Target != "oci/x" {
		t.Errorf("the summary is %+v", s)
	}
	if len(c.Operations) != 4 || c.Operations[0].Region != 1e-7 || *c.Operations[0].Launch != 1e-3 || math.Abs(c.Self-0.01) > 1e-9 {
		t.Errorf("the overhead is %+v, the share of CPU %g", c.Operations, c.Self)
	}
	one, rate := list[:1], pace()
	for name := range rate.Block {
		rate.Block[name] = 20 * time.Second // few blocks, because the limits of many take long
	}
	one[0].Overhead.Requests = map[string]time.Duration{"oci": time.Millisecond, "docker": time.Millisecond}
	if c := selfcheck.Evaluate(one, base, same, nil, nil, rate, true); c.Operations[0].Request != nil || c.Operations[0].Calls != 0 {
		t.Errorf("a runtime that Touchstone starts, without phases, has the overhead %+v", c.Operations[0])
	}
	if daemon := selfcheck.Evaluate(one, base, same, nil, nil, rate, false); daemon.Operations[0].Launch != nil {
		t.Error("a runtime that a daemon starts has the start of a process as Touchstone's own part")
	}
}

// The calls of each operation, and the time of a request that does nothing.
func TestRequestsToADaemon(t *testing.T) {
	one := run(1, 8, 0, nil)
	one.Overhead.Requests = map[string]time.Duration{"docker": 300 * time.Microsecond, "other": time.Second}
	for i := range one.Trials {
		trial := &one.Trials[i]
		trial.Target = strings.Replace(trial.Target, "oci/", "docker/", 1)
		for _, name := range []string{
			"create", "create/ContainerCreate", "create/ContainerWait", "start", "exec", "exec/ExecCreate", "exec/ExecStart", "exec/ExecInspect",
			"exec", "exec/ExecCreate", "exec/ExecStart", "exec/ExecInspect", "kill", "exit", "delete",
		} {
			trial.Phases = append(trial.Phases, result.Phase{Name: name})
		}
	}
	c := selfcheck.Evaluate([]result.Run{one}, "docker/x-base", "docker/x-same", nil, nil, pace(), false)
	for i, calls := range []float64{2, 1, 3, 2} {
		if o := c.Operations[i]; o.Calls != calls || o.Launch != nil || o.Request == nil || *o.Request != 0.0003 {
			t.Errorf("%s: %+v, want %g calls of 300 µs", o.Verb, o, calls)
		}
	}
	for i := range one.Trials { // with a poll of the exit
		one.Trials[i].Phases = append(one.Trials[i].Phases, result.Phase{Name: "exit/ContainerStatus"})
	}
	if o := selfcheck.Evaluate([]result.Run{one}, "docker/x-base", "docker/x-same", nil, nil, pace(), false).Operations[3]; o.Calls != 3 {
		t.Errorf("delete after a poll: %+v", o)
	}
}

// An engine calls the runtime in other operations than its own: the delay of an operation is the sum over the commands in it.
func TestCommandsOfAnEngine(t *testing.T) {
	docker := selfcheck.Commands{"create": {}, "start": {"create", "start"}, "delete": {"delete", "delete"}}
	containerd := selfcheck.Commands{"create": {"create", "start"}, "start": {"create", "start"}}
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		selfcheck.Commands
		planned []time.Duration // of the smallest size, without noise
		verbs   []string
		delays  []time.Duration // by verb, with delays of 1, 2, 4 and 8 ms
		added   time.Duration
	}{
		"a bare runtime": {nil, []time.Duration{20, 20, 20, 20}, []string{"create", "start", "exec", "delete"}, []time.Duration{1 * ms, 2 * ms, 4 * ms, 8 * ms}, 23 * ms},
		"docker":         {docker, []time.Duration{0, 20, 20, 10}, []string{"start", "exec", "delete"}, []time.Duration{3 * ms, 4 * ms, 16 * ms}, 31 * ms},
		"containerd":     {containerd, []time.Duration{10, 10, 20, 20}, []string{"create", "start", "exec", "delete"}, []time.Duration{3 * ms, 3 * ms, 4 * ms, 8 * ms}, 26 * ms},
	} {
		calibration := run(0, 10, 0, nil)
		for i := range calibration.Trials {
			trial := &calibration.Trials[i]
			trial.Phases = []result.Phase{{Name: "create"}, {Name: "create/Step"}, {Name: "start"}, {Name: "kill"}, {Name: "delete"}}
			if trial.Benchmark == "operations.container.exec" {
				trial.Phases = []result.Phase{{Name: "exec"}, {Name: "exec"}, {Name: "exec"}}
			}
		}
		plan, err := selfcheck.Plan(calibration, base, same, 8, test.Commands)
		must.Do(t, err)
		for i, want := range test.planned {
			if got := plan[0].Delays[i]; got != want*time.Microsecond {
				t.Errorf("%s: the delay of %s is %v, want %v", name, selfcheck.Operations()[i].Verb, got, want*time.Microsecond)
			}
		}
		delayed := []selfcheck.Delayed{{Target: "oci/x-1", Kind: selfcheck.Sleep, Delays: []time.Duration{1 * ms, 2 * ms, 4 * ms, 8 * ms}}}
		if got := selfcheck.Added(calibration, delayed, test.Commands); got != test.added {
			t.Errorf("%s: the delays add %v to a block, want %v", name, got, test.added)
		}
		c := selfcheck.Evaluate([]result.Run{run(1, 8, 0, delayed)}, base, same, delayed, test.Commands, pace(), false)
		var verbs []string
		var delays []time.Duration
		for _, f := range c.Delays {
			verbs, delays = append(verbs, f.Verb), append(delays, time.Duration(math.Round(f.Delay*1e9)))
		}
		if !slices.Equal(verbs, test.verbs) || !slices.Equal(delays, test.delays) || len(c.Smallest) != 2*len(verbs) || len(c.Operations) != 4 {
			t.Errorf("%s: the delays are %v of %v, want %v of %v; %d smallest ones, %d operations", name, delays, verbs, test.delays, test.verbs, len(c.Smallest), len(c.Operations))
		}
	}
}

// A delay of the fast mode is found in times with two modes, and the limits predict that.
func TestDelaysOfTwoModesAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("it has many runs")
	}
	const blocks, runs = 40, 3
	modes := func(runs []result.Run) { // of 10 and 24 ms, by chance
		random := rand.New(rand.NewPCG(7, 9))
		for _, r := range runs {
			for _, trial := range r.Trials {
				if random.Uint64()&1 == 0 {
					trial.Samples[0].Value += 0.014
				}
			}
		}
	}
	var delayed []selfcheck.Delayed
	for size := range selfcheck.Sizes {
		delay := time.Duration(250<<size) * time.Microsecond
		delayed = append(delayed, selfcheck.Delayed{
			Target: fmt.Sprint("oci/x-", size), Kind: selfcheck.Sleep, Size: size, Delays: []time.Duration{delay, delay, delay, delay},
		})
	}
	var list []result.Run
	for n := range runs {
		list = append(list, run(n+1, blocks, 0.02, delayed))
	}
	modes(list)
	c := selfcheck.Evaluate(list, base, same, delayed, nil, pace(), true)
	for _, s := range c.Smallest {
		if s.Kind == selfcheck.Sleep && (s.Delay == nil || *s.Delay > 0.001) {
			t.Errorf("%s: the smallest delay is %v", s.Verb, s.Delay)
		}
	}
	// By the typical value alone it would be about 10 % in 295 blocks.
	for _, l := range c.Limits {
		if l.Difference == nil || *l.Difference <= 0 {
			t.Errorf("the limit of %s in %d min is unknown", l.Metric, l.Minutes)
		} else if l.Minutes == 1 && *l.Difference > 0.03 {
			t.Errorf("the limit of %s is %g", l.Metric, *l.Difference)
		}
	}
}

func TestOddCalibrations(t *testing.T) {
	if _, err := selfcheck.Plan(run(0, 1, 0.1, nil), base, same, 30, nil); err == nil {
		t.Error("a calibration of one block is accepted")
	}
	if _, err := selfcheck.Plan(result.Run{}, base, same, 30, nil); err == nil {
		t.Error("an empty calibration is accepted")
	}
	if _, err := selfcheck.Plan(run(0, 10, 0.1, nil), base, same, 5, nil); err == nil {
		t.Error("runs with too few blocks for an interval are accepted")
	}
	// Equal values have no noise. The delays are the least ones, and each is found.
	delayed := planned(t, 0, 8)
	if minimum := delayed[0].Delays[0]; minimum != time.Duration(selfcheck.LeastDelay*float64(took)) {
		t.Errorf("without noise the smallest delay is %v", minimum)
	}
	c := selfcheck.Evaluate([]result.Run{run(1, 8, 0, delayed)}, base, same, delayed, nil, pace(), true)
	for _, s := range c.Smallest {
		if s.Delay == nil {
			t.Errorf("without noise no delay of %s by %s is found", s.Verb, s.Kind)
		}
	}
	if c.Alarms.Shown != 0 {
		t.Errorf("%d alarms without noise", c.Alarms.Shown)
	}
}

// Without runs, or with one block each, nothing is found and no limit is known.
func TestTooFewSamples(t *testing.T) {
	delayed := planned(t, 0.05, 10)
	for name, runs := range map[string][]result.Run{"no run": nil, "one block": {run(1, 1, 0.05, delayed)}} {
		c := selfcheck.Evaluate(runs, base, same, delayed, nil, pace(), true)
		for _, s := range c.Smallest {
			if s.Delay != nil {
				t.Errorf("%s: the delay of %s is found", name, s.Verb)
			}
		}
		for _, l := range c.Limits {
			if l.Difference != nil {
				t.Errorf("%s: the limit of %s is %g", name, l.Metric, *l.Difference)
			}
		}
		if s := c.Summary(time.Unix(0, 0), "", ""); s.Limits != nil {
			t.Errorf("%s: the summary is %+v", name, s)
		}
	}
}
