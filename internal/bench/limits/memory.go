package limits

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// beyond is how much memory the program asks for, over its limit. Then it ends by itself, so that the host is in no danger
// where the limit does not hold.
const beyond = 2

// least is the part of its limit that a program has at least when the limit kills it. Also gVisor's sandbox, which takes most
// within the same limit, leaves it more of the default one.
const least = 1.0 / 3

// sandboxGone is the code by which gVisor's shim tells that a container ended with its sandbox. The program itself never ends
// with it.
const sandboxGone = 128

func memoryOOM() bench.Benchmark {
	metrics := []result.Metric{
		bounded("Reached", 1.1, "does not hold its memory limit",
			"most memory that the program had, over its limit: 1 if it never had more than that, 2 if nothing stopped it"),
		optional(result.Metric{
			Name: "Usable", Unit: result.Ratio, Better: result.Higher,
			Help: "memory that the program had when it was killed, over its limit: the rest is what serves it within the same limit",
		}),
		optional(seconds("KillTime", "from the last memory that the program had, to the end of the container as the engine tells it")),
	}
	return bench.Benchmark{
		Name:    "limits.memory.oom",
		Summary: "a program that takes more memory than its limit, and whether and when it is killed",
		Source:  "peers (docker run --memory, the kubelet's OOM tests)",
		Metrics: metrics,
		Waits:   []bench.Medium{bench.Memory}, // the program's own, under its limit
		Params: []bench.Param{
			{Name: "mib", Help: "the limit in MiB; the program takes twice as much if nothing stops it", Quick: "64", Paper: "64", Check: bench.IntRange(16, 64<<10)},
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			var mib int
			if err := bench.Numbers(t, map[string]*int{"mib": &mib}); err != nil {
				return err
			}
			limit := int64(mib) << 20
			t.Condition("memory limit", strconv.Itoa(mib)+" MiB")
			spec := t.Spec(workload.Grow(beyond * mib)...)
			spec.Resources.Memory = limit
			end, err := grow(ctx, t, spec, beyond*limit)
			if err != nil {
				return err
			}
			if err := end.check(limit); err != nil {
				return err
			}
			had := float64(end.held) / float64(limit)
			t.Record("Reached", max(1, had))
			if end.killed {
				t.Record("Usable", had)
			}
			if end.killed && end.took > 0 { // where the output does not come later than the end
				t.Record("KillTime", end.took.Seconds())
			}
			return nil
		},
	}
}

// growth is what a program says of the memory it has, and when it was heard.
type growth struct {
	t    bench.Trial
	most int64

	mu   sync.Mutex
	held int64       // -1 before the first line
	last bench.Watch // when the last line came
	err  error
}

func (g *growth) line(line string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return
	}
	held, err := workload.ParseHeld(line)
	if err == nil && (held <= g.held || held > g.most) {
		err = fmt.Errorf("the program has %d of %d bytes after it had %d", held, g.most, g.held)
	}
	if err != nil {
		g.err = err
		return
	}
	g.held, g.last = held, heard(g.t)
}

// fate is how a program ended that took more and more memory.
type fate struct {
	held   int64
	killed bool
	took   time.Duration // from the last it said of its memory to its end
	exit   engine.Exit
}

// grow runs the program to its end, whatever that is.
func grow(ctx context.Context, t bench.Trial, spec engine.Spec, most int64) (fate, error) {
	g := &growth{t: t, most: most, held: -1}
	out, complaints := &follower{Watch: t.Watch(), line: g.line}, t.Watch()
	spec.Process.Stdout, spec.Process.Stderr = out, complaints
	c, err := start(ctx, t, spec)
	if err != nil {
		return fate{}, err
	}
	defer c.cancel()
	<-c.ended
	if c.err != nil {
		return fate{}, c.err
	}
	end, err := c.remove(ctx, t, out)
	if err != nil {
		return fate{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return fate{}, g.err
	}
	f := fate{held: g.held, exit: c.exit}
	f.killed = c.exit.Signal == syscall.SIGKILL || slices.Contains([]int{128 + int(syscall.SIGKILL), sandboxGone}, c.exit.Code)
	if g.last != nil {
		_, at, err := g.last.FirstLine(ctx)
		if err != nil {
			return fate{}, err
		}
		f.took = end - at
	}
	return f, nil
}

// check tells whether the program ended as a limit, or the lack of one, makes it end.
func (f fate) check(limit int64) error {
	most := beyond * limit
	switch {
	case f.held <= 0:
		return fmt.Errorf("the program got no memory at all: %v", f.exit)
	case f.killed && float64(f.held) < least*float64(limit):
		return fmt.Errorf("the program was killed with %d bytes, less than a third of its limit of %d: the host may be out of "+
			"memory, or what serves the program needs the rest; free memory, or give a higher limit", f.held, limit)
	case f.killed && f.held < most, f.exit.OK() && f.held == most:
		return nil
	}
	return fmt.Errorf("the program ended with %d of %d bytes: %v", f.held, most, f.exit)
}
