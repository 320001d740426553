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
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// beyond is the memory that the program allocates, over its limit. Then it exits, so that the host is in no danger if the
// limit does not hold.
const beyond = 2

// least is the minimum part of its limit that a program has when the limit kills it. gVisor's sandbox uses the most memory
// within the same limit, and even it leaves more than this of the default limit.
const least = 1.0 / 3

// sandboxExit is the exit code of gVisor's shim for a container that ended with its sandbox. The program never exits with
// it.
const sandboxExit = 128

func memoryOOM() bench.Benchmark {
	metrics := []result.Metric{
		bounded("Reached", 1.1, "does not hold its memory limit",
			"peak memory of the program over its limit: 1 if it never exceeded the limit, 2 if nothing stopped it"),
		optional(result.Metric{
			Name: "Usable", Unit: result.Ratio, Better: result.Higher, AnySpeed: true,
			Help: "memory of the program when it was killed, over its limit; the sandbox uses the rest of the limit",
		}),
		optional(bench.Seconds("KillTime", "from the program's last report of its memory to the exit of the container as the engine reports it")),
	}
	return bench.Benchmark{
		Name:      "limits.memory.oom",
		Summary:   "a program that exceeds its memory limit, and whether and when it is killed",
		Source:    "peers (docker run --memory, the kubelet's OOM tests)",
		Metrics:   metrics,
		Waits:     []bench.Medium{bench.Memory}, // the program's own memory, under its limit
		OwnLimits: []bench.Limit{bench.MemoryLimit},
		Params: []bench.Param{
			{Name: "mib", Help: "the limit in MiB; the program takes twice as much if nothing stops it", Quick: "64", Paper: "64", Check: bench.IntRange(16, 64<<10)},
		},
		Needs: bench.InMemory(func(p bench.Params) int64 { return beyond * int64(p.Int("mib")) << 20 }),
		Run: func(ctx context.Context, t bench.Trial) error {
			mib := t.Int("mib")
			limit := int64(mib) << 20
			t.Condition("memory limit", strconv.Itoa(mib)+" MiB")
			spec := t.Spec(probe.Grow(beyond * mib)...)
			spec.Resources.Memory = limit
			end, err := grow(ctx, t, spec, beyond*limit)
			if err != nil {
				return err
			}
			if err := end.check(limit); err != nil {
				return err
			}
			peak := float64(end.held) / float64(limit)
			t.Record("Reached", max(1, peak))
			if end.killed {
				t.Record("Usable", peak)
			}
			if end.killed && end.took > 0 { // unless the output arrives after the exit
				t.Record("KillTime", end.took.Seconds())
			}
			return nil
		},
	}
}

// growth is the memory that a program has reported.
type growth struct {
	most int64

	mu   sync.Mutex
	held int64         // -1 before the first line
	last time.Duration // the time of the last line
	err  error
}

func (g *growth) line(line string, moment time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return
	}
	size, err := probe.ParseHeld(line)
	if err == nil && (size <= g.held || size > g.most) {
		err = fmt.Errorf("the program reports %d of %d bytes after %d", size, g.most, g.held)
	}
	if err != nil {
		g.err = err
		return
	}
	g.held, g.last = size, moment
}

// oomEnd is the end of a program whose memory grew.
type oomEnd struct {
	held   int64
	killed bool
	took   time.Duration // from the last report of its memory to its exit
	exit   engine.Exit
}

// grow runs the program until it exits or is killed.
func grow(ctx context.Context, t bench.Trial, spec engine.Spec, limit int64) (oomEnd, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g := &growth{most: limit, held: -1}
	c, err := bench.Follow(ctx, t, spec, g.line)
	if err != nil {
		return oomEnd{}, err
	}
	<-c.Exit.Done
	if c.Exit.Err != nil {
		return oomEnd{}, c.Exit.Err
	}
	removal, err := c.Remove(ctx, t)
	if err != nil {
		return oomEnd{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return oomEnd{}, g.err
	}
	end := oomEnd{held: g.held, exit: c.Exit.Exit}
	end.killed = end.exit.Signal == syscall.SIGKILL || slices.Contains([]int{128 + int(syscall.SIGKILL), sandboxExit}, end.exit.Code)
	if g.held >= 0 {
		end.took = removal.Start - g.last
	}
	return end, nil
}

// check returns an error unless the program ended in a way that a limit, or a missing limit, explains.
func (e oomEnd) check(limit int64) error {
	ceiling := beyond * limit
	switch {
	case e.held <= 0:
		return fmt.Errorf("the program got no memory: %v", e.exit)
	case e.killed && float64(e.held) < least*float64(limit):
		return fmt.Errorf("the program was killed with %d bytes, less than a third of its limit of %d: the host may be out of "+
			"memory, or the sandbox uses the rest; free memory, or set a higher limit", e.held, limit)
	case e.killed && e.held < ceiling, e.exit.OK() && e.held == ceiling:
		return nil
	}
	return fmt.Errorf("the program ended with %d of %d bytes: %v", e.held, ceiling, e.exit)
}
