package docker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
)

// box is a container of the daemon.
type box struct {
	e       *Engine
	name    string
	program []string // with its arguments
	id      string   // the daemon's own; empty until created
	// group is the container's cgroup; nil where the daemon chooses it.
	group *cgroup.Group
	// life is the context of what goes on beside the calls: waiting, and copying output.
	life context.Context
	end  context.CancelFunc

	output  *stream       // nil if nobody wants the output
	waiting bool          // for the end, since creation
	done    chan struct{} // closed when exit or lost is known
	exit    engine.Exit
	lost    error // why the exit is not known

	mu      sync.Mutex
	started bool  // or it was tried to
	refused error // why Start failed: the process may not have run
	paused  bool
	memory  int64 // the limit in bytes; 0 is none
	deleted bool
}

// unlimited is the limit that the kernel shows where there is none: all bytes that a signed number
// can count, in whole pages of the largest size.
const unlimited = math.MaxInt64 &^ (64<<10 - 1)

func newBox(ctx context.Context, e *Engine, spec engine.Spec) *box {
	b := &box{e: e, name: spec.ID, program: spec.Process.Args, memory: spec.Resources.Memory, done: make(chan struct{})}
	b.life, b.end = context.WithCancel(context.WithoutCancel(ctx))
	return b
}

func (b *box) ID() string { return b.name }

// create makes the container.
func (b *box) create(ctx context.Context, options client.ContainerCreateOptions) error {
	inner, cancel := engine.WithGracePeriod(ctx, undoLimit)
	defer cancel()
	made, err := b.e.client.ContainerCreate(inner, options)
	b.id = made.ID
	if err == nil {
		err = ignored(made.Warnings)
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// attach begins to copy the output, and to wait for the end.
func (b *box) attach(ctx context.Context, p engine.Process) error {
	stop := context.AfterFunc(ctx, b.end) // which gives up the requests, too
	defer stop()
	if p.Stdout != nil || p.Stderr != nil {
		err := engine.Step(ctx, "ContainerAttach", func() error {
			attached, err := b.e.client.ContainerAttach(ctx, b.id, client.ContainerAttachOptions{Stream: true, Stdout: true, Stderr: true})
			if err == nil {
				b.output = copyOutput(attached.HijackedResponse, p)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return engine.Step(ctx, "ContainerWait", func() error {
		// It returns when the daemon waits too, so that no end is missed.
		result := b.e.client.ContainerWait(b.life, b.id, client.ContainerWaitOptions{Condition: container.WaitConditionNextExit})
		select {
		case err := <-result.Error:
			return err
		default:
		}
		b.waiting = true
		go b.await(result)
		return nil
	})
}

// await keeps how the container's process ended.
func (b *box) await(result client.ContainerWaitResult) {
	defer close(b.done)
	select {
	case end := <-result.Result:
		if end.Error != nil {
			b.lost = errors.New(end.Error.Message)
		}
		b.exit = engine.ExitOfCode(int(end.StatusCode))
	case b.lost = <-result.Error:
	}
}

// explain says what a call did to the container and why it failed.
func (b *box) explain(ctx context.Context, op string, err error) error {
	return b.e.explain(ctx, fmt.Sprintf("%s container %q with %s", op, b.name, b.e.target.Target), err)
}

// exists refuses calls for a container that was deleted.
func (b *box) exists(op string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deleted {
		return fmt.Errorf("%s container %q: it has been deleted", op, b.name)
	}
	return nil
}

func (b *box) Start(ctx context.Context) error {
	if err := b.exists("start"); err != nil {
		return err
	}
	b.set(true, nil)
	_, err := b.e.client.ContainerStart(ctx, b.id, client.ContainerStartOptions{})
	if err != nil {
		err = b.explain(ctx, "start", b.specify(err))
		b.set(true, err)
	}
	return err
}

// specify adds what was to run to an error that does not tell why it did not: the log of some runtimes (youki)
// is none that containerd's shim can read.
func (b *box) specify(err error) error {
	if strings.HasSuffix(err.Error(), "exit status 1: unknown") {
		return fmt.Errorf("%w: the runtime failed without a reason that reaches the daemon; it was to run %q", err, b.program)
	}
	return err
}

func (b *box) set(started bool, refused error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.started, b.refused = started, refused
}

func (b *box) ended() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

func (b *box) Kill(ctx context.Context, signal syscall.Signal) error {
	if b.ended() {
		return nil
	}
	_, err := b.e.client.ContainerKill(ctx, b.id, client.ContainerKillOptions{Signal: strconv.Itoa(int(signal))})
	b.mu.Lock()
	started := b.started
	b.mu.Unlock()
	// The daemon refuses to kill what does not run, and may know of an end before we do.
	if err != nil && (!started || !errdefs.IsConflict(err)) {
		return b.explain(ctx, "kill", err)
	}
	return nil
}

func (b *box) Wait(ctx context.Context) (engine.Exit, error) {
	// An exit that is known is told even to a caller whose time is up.
	if !b.ended() {
		select {
		case <-b.done:
		case <-ctx.Done():
			return engine.Exit{}, b.explain(ctx, "wait for", ctx.Err())
		}
	}
	err := b.lost
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil && b.exit.OK() && (!b.started || b.refused != nil) {
		err = errors.New("it was removed before its process ran") // which the daemon tells as 0
	}
	if err != nil {
		return engine.Exit{}, b.explain(context.WithoutCancel(ctx), "wait for", err)
	}
	return b.exit, nil
}

func (b *box) State(ctx context.Context) (engine.State, error) {
	if err := b.exists("ask for the state of"); err != nil {
		return "", err
	}
	answer, err := b.e.client.ContainerInspect(ctx, b.id, client.ContainerInspectOptions{})
	if err != nil {
		return "", b.explain(ctx, "ask for the state of", err)
	}
	if answer.Container.State == nil {
		return "", b.explain(ctx, "ask for the state of", errors.New("the daemon does not tell"))
	}
	switch status := answer.Container.State.Status; status {
	case container.StateExited, container.StateDead, container.StateRemoving:
		return engine.Stopped, nil
	default:
		return engine.State(status), nil
	}
}

func (b *box) Delete(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deleted {
		return nil
	}
	if b.paused {
		// runsc gets no signal while it is frozen. If this does not work the daemon says more.
		_, _ = b.e.client.ContainerUnpause(ctx, b.id, client.ContainerUnpauseOptions{})
	}
	if err := b.remove(ctx); err != nil {
		return b.explain(ctx, "delete", err)
	}
	if b.group != nil {
		// Some runtimes (runsc of 2026) leave it behind if the container was paused or did not start.
		if err := b.group.Destroy(ctx); err != nil {
			return b.explain(ctx, "delete", err)
		}
	}
	if b.output != nil {
		ran := b.started && b.refused == nil
		if !ran {
			b.output.stop() // nothing has come, and nothing ends it
		}
		err := b.output.wait(ctx)
		if ran {
			err = errors.Join(err, b.output.err)
		}
		if err != nil {
			return b.explain(ctx, "delete", err)
		}
	}
	if b.waiting {
		select {
		case <-b.done:
		case <-ctx.Done():
			return b.explain(ctx, "delete", ctx.Err())
		}
	}
	b.end()
	b.deleted = true
	return nil
}

// remove has the daemon kill and remove the container, or waits until it has if it is about it already.
func (b *box) remove(ctx context.Context) error {
	_, err := b.e.client.ContainerRemove(ctx, b.id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if errdefs.IsConflict(err) {
		result := b.e.client.ContainerWait(ctx, b.id, client.ContainerWaitOptions{Condition: container.WaitConditionRemoved})
		select {
		case <-result.Result:
			return nil
		case err = <-result.Error:
		}
	}
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// undo removes a container whose creation failed or was given up.
func (b *box) undo(ctx context.Context) error {
	defer b.end()
	if b.id == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
	defer cancel()
	return b.Delete(ctx)
}

func (b *box) Pause(ctx context.Context) error {
	if err := b.exists("pause"); err != nil {
		return err
	}
	if _, err := b.e.client.ContainerPause(ctx, b.id, client.ContainerPauseOptions{}); err != nil {
		return b.explain(ctx, "pause", err)
	}
	b.setPaused(true)
	return nil
}

func (b *box) Resume(ctx context.Context) error {
	if err := b.exists("resume"); err != nil {
		return err
	}
	if _, err := b.e.client.ContainerUnpause(ctx, b.id, client.ContainerUnpauseOptions{}); err != nil {
		return b.explain(ctx, "resume", err)
	}
	b.setPaused(false)
	return nil
}

func (b *box) setPaused(paused bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paused = paused
}

func (b *box) Update(ctx context.Context, r engine.Resources) error {
	if err := b.exists("update"); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.Memory == 0 && b.e.choice.kind.Name == "crun" {
		// The daemon sends 0 for what is not to change, and crun takes that for a limit.
		r.Memory = cmp.Or(b.memory, unlimited)
	}
	answer, err := b.e.client.ContainerUpdate(ctx, b.id, client.ContainerUpdateOptions{Resources: resources(r)})
	if err == nil {
		err = ignored(answer.Warnings)
	}
	if err != nil {
		return b.explain(ctx, "update", err)
	}
	b.memory = cmp.Or(r.Memory, b.memory)
	return nil
}

// Stats asks the daemon for one reading.
func (b *box) Stats(ctx context.Context) (engine.Stats, error) {
	const op = "ask what is used by"
	if err := b.exists(op); err != nil {
		return engine.Stats{}, err
	}
	var read container.StatsResponse
	answer, err := b.e.client.ContainerStats(ctx, b.id, client.ContainerStatsOptions{})
	if err == nil {
		err = errors.Join(json.NewDecoder(answer.Body).Decode(&read), answer.Body.Close())
	}
	if err != nil {
		return engine.Stats{}, b.explain(ctx, op, err)
	}
	return engine.Stats{CPU: time.Duration(read.CPUStats.CPUUsage.TotalUsage), Memory: int64(read.MemoryStats.Usage)}, nil
}
