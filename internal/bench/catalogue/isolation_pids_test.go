package catalogue_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
)

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
	return &member{scriptedContainer: scriptedContainer{spec: s}, engine: e, exited: make(chan struct{})}, nil
}

// member is a container of a crowd.
type member struct {
	scriptedContainer
	engine *crowd
	once   sync.Once
	exited chan struct{}
	exit   engine.Exit
	bomb   bool
}

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
				case <-c.exited:
					return
				case <-time.After(50 * ms):
				}
			}
		}()
	}
	return nil
}

func (c *member) end(e engine.Exit) {
	c.once.Do(func() {
		if c.bomb {
			c.engine.bombs.Add(-1)
		}
		c.exit = e
		close(c.exited)
		c.spec.Process.CloseOutput()
	})
}

func (c *member) Kill(_ context.Context, s syscall.Signal) error {
	c.engine.pass()
	c.end(engine.Exit{Signal: s})
	return nil
}

func (c *member) Wait(ctx context.Context) (engine.Exit, error) {
	select {
	case <-c.exited:
		return c.exit, nil
	case <-ctx.Done():
		return engine.Exit{}, context.Cause(ctx)
	}
}

func (c *member) Delete(context.Context) error {
	c.engine.pass()
	c.end(engine.Exit{Signal: syscall.SIGKILL})
	return nil
}

func inCrowd(t *testing.T, e *crowd, params bench.Params, changes ...func(*runner.Config)) (trial result.Trial) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { trial = runOn(t, isolationPIDs, e, runner.SystemClock{}, params, changes...) })
	return trial
}

// Beside a fork bomb each call takes twice as long.
func TestStartsBesideForkBomb(t *testing.T) {
	trial := inCrowd(t, &crowd{delay: 10 * ms}, bench.Params{"before": "2s", "during": "2s", "after": "2s"})
	if got := sample(t, trial, "Kept"); math.Abs(got-0.5) > 0.05 {
		t.Errorf("Kept = %v, want 0.5", got)
	}
	if before, during := sample(t, trial, "TailBefore"), sample(t, trial, "TailDuring"); math.Abs(before-0.02) > 1e-9 || math.Abs(during-0.04) > 1e-9 {
		t.Errorf("the tail of a start is %v before and %v during, want 20 ms and 40 ms", before, during)
	}
	if got := trial.Conditions["limit of processes"]; got != "256 for each aggressor" {
		t.Errorf("the limit is %q", got)
	}
}

// A victim that stands still beside the aggressor loses its speed, and has no tail there.
func TestVictimThatStandsStill(t *testing.T) {
	trial := inCrowd(t, &crowd{delay: time.Second}, bench.Params{"before": "2s", "during": "2s", "after": "5s"})
	if trial.Status != result.OK {
		t.Fatalf("%s because %s", trial.Status, trial.Reason)
	}
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
		trial := inCrowd(t, tt.engine, nil)
		if trial.Status != tt.status || !strings.Contains(trial.Reason, tt.reason) || len(trial.Samples) > 0 {
			t.Errorf("%s: %s because %q with %d samples", tt.what, trial.Status, trial.Reason, len(trial.Samples))
		}
		if !strings.Contains(tt.what, "early") && tt.engine.bombs.Load() != 0 {
			t.Errorf("%s: a fork bomb ran", tt.what)
		}
	}
}

// The probe makes a bounded number of processes, so a higher limit of the plan cannot be tested.
func TestForkBombBelowPlansLimit(t *testing.T) {
	e := &crowd{}
	trial := inCrowd(t, e, nil, func(c *runner.Config) { c.Work[0].Limits.PIDs = 4097 })
	if trial.Status != result.Skipped || !strings.Contains(trial.Reason, "the plan's limit of 4097 processes is above 4096") || e.bombs.Load() != 0 {
		t.Errorf("%s because %q after %d fork bombs", trial.Status, trial.Reason, e.bombs.Load())
	}
}
