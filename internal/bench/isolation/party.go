package isolation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
)

// step is work that a load has completed since its step before.
type step struct {
	at    time.Duration // arrival of the report on the host, on the clock of the trial
	work  float64
	times []times // of the units; nil if the step is one unit, which took the time since the step before
}

// times counts units of work that took the same time.
type times struct {
	seconds float64
	count   float64
}

// reader parses one line of a load. It reports false for a line without progress.
type reader func(line string) (s step, ok bool, err error)

// gate lets one goroutine pass at a time. It is a channel, because a bubble of synctest cannot wait for a mutex.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

func (g gate) enter() (leave func()) {
	g <- struct{}{}
	return func() { <-g }
}

// party is a load: the victim or an aggressor.
type party struct {
	name string
	fail context.CancelCauseFunc // ends the pass
	// gate is held while containers of the party are made. Outside processes are made only while the party of the
	// target is idle, because they share the launcher.
	gate gate

	mu         sync.Mutex
	steps      []step
	begun      chan struct{} // closed at the first step
	ending     bool
	containers []bench.Followed
	stops      []func() // end the work in the background; called before the containers are deleted
}

func newParty(name string, gate gate, fail context.CancelCauseFunc) *party {
	return &party{name: name, fail: fail, gate: gate, begun: make(chan struct{})}
}

// add adds a step.
func (p *party) add(s step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ending {
		return
	}
	if len(p.steps) == 0 {
		close(p.begun)
	}
	p.steps = append(p.steps, s)
}

// done returns the steps so far.
func (p *party) done() []step {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.steps[:len(p.steps):len(p.steps)]
}

// isEnding reports whether the party is being ended.
func (p *party) isEnding() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ending
}

// broken fails the pass, unless the party is being ended.
func (p *party) broken(err error) {
	if !p.isEnding() {
		p.fail(fmt.Errorf("the %s: %w", p.name, err))
	}
}

// lines returns the handler of the lines of a program.
func (p *party) lines(read reader) func(string, time.Duration) {
	return func(line string, moment time.Duration) {
		s, ok, err := read(line)
		if err != nil {
			p.broken(err)
			return
		}
		if ok {
			s.at = moment
			p.add(s)
		}
	}
}

// launcher is bench.Follow, bench.FollowOutside or bench.FollowClient.
type launcher func(context.Context, bench.Trial, engine.Spec, func(string, time.Duration)) (bench.Followed, error)

// launch starts a program that runs until the party is ended. Its exit before that fails the pass.
func (p *party) launch(ctx context.Context, t bench.Trial, launch launcher, spec engine.Spec, read reader) (bench.Followed, error) {
	defer p.gate.enter()()
	c, err := launch(ctx, t, spec, p.lines(read))
	if err != nil {
		return bench.Followed{}, fmt.Errorf("start the %s: %w", p.name, err)
	}
	c.Output.Endless() // a victim reports for as long as the aggressors start
	p.mu.Lock()
	p.containers = append(p.containers, c)
	p.mu.Unlock()
	go func() {
		<-c.Exit.Done
		if ctx.Err() == nil {
			p.broken(early(c.Exit, spec))
		}
	}()
	return c, nil
}

// early is the error of a program that ended before it was told to.
func early(exit *bench.Exit, spec engine.Spec) error {
	err := exit.Failure()
	if err == nil {
		return fmt.Errorf("the program %q ended early", spec.Process.Args)
	}
	if exit.Err == nil && killed(exit.Exit) {
		return fmt.Errorf("it ended early: %w; the likely cause is its memory limit, or a host that is out of memory: free memory, or set a higher limit", err)
	}
	return fmt.Errorf("it ended early: %w", err)
}

// sandboxExit is the exit code of gVisor's shim for a container that ended with its sandbox.
const sandboxExit = 128

func killed(e engine.Exit) bool {
	return e.Signal == syscall.SIGKILL || e.Code == sandboxExit || e.Code == sandboxExit+int(syscall.SIGKILL)
}

// started waits for the first step.
func (p *party) started(ctx context.Context, t bench.Trial) error { return wait(ctx, t, p.begun) }

// wait waits until a channel is closed. It looks again and again, since only Sleep lets time pass on every clock.
func wait(ctx context.Context, t bench.Trial, signal <-chan struct{}) error {
	for {
		select {
		case <-signal:
			return nil
		default:
		}
		if _, err := t.Sleep(ctx, look); err != nil {
			return err
		}
	}
}

// look is the interval of wait.
const look = 5 * time.Millisecond

// leave waits until nothing of the party runs in the background, after its context has ended. The runner deletes its containers.
func (p *party) leave() {
	p.mu.Lock()
	p.ending = true
	stops := p.stops
	p.stops = nil
	p.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
}

// end deletes the party's containers by force, the last one first. A kill before it could meet a server that has exited
// because its client has.
func (p *party) end(ctx context.Context, t bench.Trial) error {
	p.mu.Lock()
	p.ending = true
	containers, stops := p.containers, p.stops
	p.containers, p.stops = nil, nil
	p.mu.Unlock()
	var errs []error
	for _, stop := range stops {
		stop()
	}
	for i := len(containers) - 1; i >= 0; i-- {
		_, err := t.Time(ctx, "end", containers[i].Delete)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("end the %s: %w", p.name, err)
	}
	return nil
}
