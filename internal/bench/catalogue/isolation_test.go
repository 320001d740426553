package catalogue_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/runner/meter"
)

const (
	isolationCPU    = "isolation.cpu"
	isolationMemory = "isolation.memory"
	isolationPIDs   = "isolation.pids"

	isolationNetwork = "isolation.network"
)

// Fake containers share one CPU, so an aggressor takes half of the victim's speed, two take two thirds.
func TestLossOfTheVictim(t *testing.T) {
	for _, name := range []string{isolationCPU, isolationMemory} {
		for aggressors, want := range map[string]float64{"1": 1.0 / 2, "2": 2.0 / 3} {
			trial := ok(t, name, "fake/a", bench.Params{"aggressors": aggressors})
			for metric, value := range map[string]float64{"Loss": want, "Kept": 1 - want, "RawLoss": want} {
				if got := sample(t, trial, metric); math.Abs(got-value) > 0.02 {
					t.Errorf("%s beside %s: %s = %v, want %v", name, aggressors, metric, got, value)
				}
			}
			if got := sample(t, trial, "ControlLoss"); math.Abs(got) > 1e-6 {
				t.Errorf("%s: ControlLoss = %v", name, got)
			}
			baseTail, loadTail := sample(t, trial, "TailBefore"), sample(t, trial, "TailDuring")
			if got := loadTail / baseTail; math.Abs(got*(1-want)-1) > 0.1 {
				t.Errorf("%s: the tail grows by %v", name, got)
			}
			if got := sample(t, trial, "Recovery"); got < 0.05 || got > 0.5 {
				t.Errorf("%s: Recovery = %v", name, got)
			}
			if got := trial.Conditions["loss"]; !strings.HasPrefix(got, "shown") {
				t.Errorf("%s: the loss is %s", name, got)
			}
			checkTimelines(t, trial, aggressors)
		}
	}
}

// checkTimelines checks the timelines of the parties: the victim's falls while the aggressors' exist. Each party has a name, because
// a report has one line for a name.
func checkTimelines(t *testing.T, trial result.Trial, aggressors string) {
	t.Helper()
	byName := map[string]result.Timeline{}
	for _, l := range trial.Timelines {
		if _, duplicate := byName[l.Name]; duplicate {
			t.Errorf("two timelines have the name %q", l.Name)
		}
		byName[l.Name] = l
		if len(l.At) != len(l.Values) || len(l.At) < 2 || len(l.At) > 1000 || l.Group != trial.Timelines[0].Group {
			t.Errorf("the timeline %q has %d times, %d values and the group %q", l.Name, len(l.At), len(l.Values), l.Group)
		}
	}
	name := "aggressor"
	if aggressors != "1" {
		name += " " + aggressors
	}
	victim, aggressor := byName["victim"], byName[name]
	if len(victim.At) == 0 || len(aggressor.At) == 0 || len(byName["victim, control"].At) == 0 {
		t.Fatalf("there are timelines of %d parties", len(byName))
	}
	begin, end := aggressor.At[0], aggressor.At[len(aggressor.At)-1]
	for i, moment := range victim.At {
		if v := victim.Values[i]; moment < begin-time.Second && math.Abs(v-1) > 0.2 || moment > begin+200*ms && moment < end-100*ms && v > 0.7 {
			t.Errorf("the victim's speed at %v is %v; the aggressor runs from %v to %v", moment, v, begin, end)
		}
	}
}

func TestIsolationFails(t *testing.T) {
	for _, tt := range []struct {
		what   string
		params bench.Params
		status result.Status
		reason string
	}{
		{"without an engine for the host", bench.Params{"aggressor": "native"}, result.Skipped, "no engine for programs on the host"},
		{"an aggressor that makes no progress", bench.Params{"noise": "9000", "during": "200ms"}, result.Failed, "made no progress"},
		{"too few reports", bench.Params{"before": "100ms", "n": "2000"}, result.Failed, "set longer phases"},
	} {
		checkEnd(t, tt.what, run(t, isolationCPU, "fake/a", tt.params), tt.status, tt.reason)
	}
}

// A victim that reports often, or for long beside aggressors that start slowly, writes more than a program may otherwise.
func TestVictimReportsWithoutLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("it has many reports")
	}
	trial := ok(t, isolationCPU, "fake/a", bench.Params{"aggressors": "1", "n": "100", "noise": "400", "before": "8s", "during": "8s"})
	if got := sample(t, trial, "Loss"); math.Abs(got-0.5) > 0.02 {
		t.Errorf("Loss = %v, want a half", got)
	}
}

// crowd is an engine on the clock of a synctest bubble. Its calls take 10 ms each, and longer beside a fork bomb.
type crowd struct {
	scripted
	bombs atomic.Int64
	delay time.Duration // of a call by each fork bomb
	// Deviations from a working engine.
	unlimited bool          // no limit of processes holds
	fragile   bool          // a container exits when it reaches its limit
	dies      time.Duration // a fork bomb exits after this time
}

func (e *crowd) pass() { time.Sleep(10*ms + time.Duration(e.bombs.Load())*e.delay) }

func (e *crowd) Create(_ context.Context, s engine.Spec) (engine.Container, error) {
	e.pass()
	return &member{scriptedContainer: scriptedContainer{spec: s}, engine: e, process: process{ended: make(chan struct{})}}, nil
}

// member is a container of a crowd.
type member struct {
	scriptedContainer
	process
	engine *crowd
	bomb   bool
}

func (c *member) Wait(ctx context.Context) (engine.Exit, error) { return c.process.Wait(ctx) }

func (c *member) Start(context.Context) error {
	c.engine.pass()
	say := func(format string, args ...any) {
		_, _ = fmt.Fprintf(c.spec.Process.Stdout, format, args...)
	}
	args := strings.Join(c.spec.Process.Args, " ")
	limit := c.spec.Resources.PIDs
	switch {
	case !strings.Contains(args, " forks "):
		say("ready\n")
	case c.engine.unlimited:
		c.end(engine.Exit{Code: 3})
	case c.engine.fragile:
		c.end(engine.Exit{Code: 2})
	case strings.HasSuffix(args, "--once"):
		say("forks %d live %d refused 1\n", limit, limit)
		c.end(engine.Exit{})
	default:
		c.bomb = true
		c.engine.bombs.Add(1)
		go func() {
			for n := int64(1); ; n++ {
				say("forks %d live %d refused %d\n", limit+n, limit, n)
				if c.engine.dies > 0 && time.Duration(n)*50*ms > c.engine.dies {
					c.end(engine.Exit{Signal: syscall.SIGKILL})
				}
				select {
				case <-c.ended:
					return
				case <-time.After(50 * ms):
				}
			}
		}()
	}
	return nil
}

func (c *member) end(e engine.Exit) {
	c.finish(e, func() {
		if c.bomb {
			c.engine.bombs.Add(-1)
		}
		c.spec.Process.CloseOutput()
	})
}

func (c *member) Kill(_ context.Context, s syscall.Signal) error {
	c.engine.pass()
	c.end(engine.Exit{Signal: s})
	return nil
}

func (c *member) Delete(context.Context) error {
	c.engine.pass()
	c.end(engine.Exit{Signal: syscall.SIGKILL})
	return nil
}

func inCrowd(t *testing.T, e *crowd, params bench.Params, changes ...func(*runner.Config)) (trial result.Trial) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { trial = runOn(t, isolationPIDs, e, meter.System{}, params, changes...) })
	return trial
}

// Beside a fork bomb each call takes twice as long.
func TestStartsBesideForkBomb(t *testing.T) {
	trial := inCrowd(t, &crowd{delay: 10 * ms}, bench.Params{"before": "2s", "during": "2s", "after": "2s"})
	if got := sample(t, trial, "Kept"); math.Abs(got-0.5) > 0.05 {
		t.Errorf("Kept = %v, want 0.5", got)
	}
	if baseTail, loadTail := sample(t, trial, "TailBefore"), sample(t, trial, "TailDuring"); math.Abs(baseTail-0.02) > 1e-9 || math.Abs(loadTail-0.04) > 1e-9 {
		t.Errorf("the tail of a start is %v before and %v during, want 20 ms and 40 ms", baseTail, loadTail)
	}
	if got := trial.Conditions["limit of processes"]; got != "256 for each aggressor" {
		t.Errorf("the limit is %q", got)
	}
}

// A victim that stands still beside the aggressor loses its speed, and has no tail there.
func TestVictimThatStandsStill(t *testing.T) {
	trial := mustBeOK(t, inCrowd(t, &crowd{delay: time.Second}, bench.Params{"before": "2s", "during": "2s", "after": "5s"}))
	if got := sample(t, trial, "Kept"); got < 0 || got > 0.05 {
		t.Errorf("Kept = %v, want almost 0", got)
	}
	if got := trial.Values("TailDuring"); len(got) > 0 {
		t.Errorf("TailDuring = %v, but no start ended beside the fork bomb", got)
	}
	if got := sample(t, trial, "TailControl"); math.Abs(got-0.02) > 1e-9 {
		t.Errorf("TailControl = %v, want 20 ms", got)
	}
}

// No fork bomb runs without a proof of its limit, and one that dies early was no load.
//
// Invariant isolation-loss.
func TestForkBombNeedsLimit(t *testing.T) {
	for _, tt := range []struct {
		what   string
		engine *crowd
		status result.Status
		reason string
	}{
		{"no limit", &crowd{unlimited: true}, result.Skipped, "could make 512 processes under a limit of 256"},
		{"a sandbox that does not survive", &crowd{fragile: true}, result.Skipped, "does not survive it"},
		{"an aggressor that dies early", &crowd{dies: 400 * ms}, result.Failed, "the aggressor: it ended early"},
	} {
		checkEnd(t, tt.what, inCrowd(t, tt.engine, nil), tt.status, tt.reason)
		if !strings.Contains(tt.what, "early") && tt.engine.bombs.Load() != 0 {
			t.Errorf("%s: a fork bomb ran", tt.what)
		}
	}
}

// The probe makes a bounded number of processes, so a higher limit of the plan cannot be tested.
func TestForkBombBelowPlansLimit(t *testing.T) {
	e := &crowd{}
	trial := inCrowd(t, e, nil, func(c *runner.Config) { c.Work[0].Limits.PIDs = 4097 })
	checkEnd(t, "a higher limit", trial, result.Skipped, "the plan's limit of 4097 processes is above 4096")
	if e.bombs.Load() != 0 {
		t.Errorf("%d fork bombs ran", e.bombs.Load())
	}
}
