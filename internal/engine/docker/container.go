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
	"sync/atomic"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	api "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
)

// container is a container of the daemon.
type container struct {
	e       *Engine
	name    string
	program []string // with its arguments
	id      string   // the daemon's own; empty until created
	// group is the container's cgroup; nil if the daemon chooses it.
	group *cgroup.Group
	// life is the context of the background work: waiting, and copying output.
	life context.Context
	end  context.CancelFunc

	output  *stream // nil without writers
	waiting bool    // await runs
	paused  atomic.Bool
	done    chan struct{} // closed when exit or lost is set
	exit    engine.Exit
	lost    error // the reason why the exit is not known

	mu      sync.Mutex
	started bool  // Start was called
	refused error // the error of Start: the process may not have run
	memory  int64 // the limit in bytes; 0 is none
	deleted bool
}

// unlimited is the value that the kernel shows for no limit: the largest signed number, rounded down to the largest page
// size.
const unlimited = math.MaxInt64 &^ (64<<10 - 1)

func newContainer(ctx context.Context, e *Engine, spec engine.Spec) *container {
	b := &container{e: e, name: spec.ID, program: spec.Process.Args, memory: spec.Resources.Memory, done: make(chan struct{})}
	b.life, b.end = context.WithCancel(context.WithoutCancel(ctx))
	return b
}

func (b *container) ID() string { return b.name }

// create sends the request to create the container.
func (b *container) create(ctx context.Context, options client.ContainerCreateOptions) error {
	inner, cancel := engine.WithGracePeriod(ctx, engine.UndoLimit)
	defer cancel()
	answer, err := b.e.client.ContainerCreate(inner, options)
	b.id = answer.ID
	if err == nil {
		err = ignored(answer.Warnings)
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// attach starts to copy the output, and to wait for the exit. If ctx ends meanwhile, its cause is the error, although both may have begun.
func (b *container) attach(ctx context.Context, p engine.Process) (err error) {
	stop := context.AfterFunc(ctx, b.end) // this cancels the requests too
	defer func() {
		if !stop() && err == nil {
			err = context.Cause(ctx)
		}
	}()
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
		// It returns when the daemon waits too, so no exit is missed.
		result := b.e.client.ContainerWait(b.life, b.id, client.ContainerWaitOptions{Condition: api.WaitConditionNextExit})
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

// await stores the exit of the container's process.
func (b *container) await(result client.ContainerWaitResult) {
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

// explain adds the operation and the container to an error.
func (b *container) explain(ctx context.Context, op string, err error) error {
	return b.e.explain(ctx, fmt.Sprintf("%s container %q with %s", op, b.name, b.e.target.Target), err)
}

// request makes a request about a container that has not been deleted.
func request[O, R any](ctx context.Context, b *container, op string, call func(context.Context, string, O) (R, error), options O) (answer R, err error) {
	if err := b.exists(op); err != nil {
		return answer, err
	}
	if answer, err = call(ctx, b.id, options); err != nil {
		err = b.explain(ctx, op, err)
	}
	return answer, err
}

// exists refuses calls on a deleted container.
func (b *container) exists(op string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deleted {
		return fmt.Errorf("%s container %q: it has been deleted", op, b.name)
	}
	return nil
}

func (b *container) Start(ctx context.Context) error {
	if err := b.exists("start"); err != nil {
		return err
	}
	b.set(true, nil)
	err := engine.Call(ctx, func() error {
		_, err := b.e.client.ContainerStart(ctx, b.id, client.ContainerStartOptions{})
		return err
	})
	if err != nil {
		err = b.explain(ctx, "start", b.specify(err))
		b.set(true, err)
	}
	if err == nil && b.e.choice.kvm {
		if kvmErr := b.proveKVM(ctx); kvmErr != nil {
			err = b.explain(ctx, "start", kvmErr)
		}
	}
	return err
}

// proveKVM checks that the container's sandbox runs on KVM.
func (b *container) proveKVM(ctx context.Context) error {
	if b.group != nil {
		pids, err := b.group.Procs()
		if err != nil {
			return err
		}
		return runtimes.ProveKVM(pids...)
	}
	answer, err := b.e.client.ContainerInspect(ctx, b.id, client.ContainerInspectOptions{})
	if err == nil && answer.Container.State == nil {
		err = runtimes.ErrNoProofOfKVM
	}
	if err != nil {
		return err
	}
	return runtimes.ProveKVM(answer.Container.State.Pid)
}

// specify adds the program to an error without a reason. containerd's shim cannot read the log of some runtimes (youki).
func (b *container) specify(err error) error {
	if strings.HasSuffix(err.Error(), "exit status 1: unknown") {
		return fmt.Errorf("%w: the runtime failed to run %q, and its reason did not reach the daemon", err, b.program)
	}
	return err
}

func (b *container) set(isStarted bool, cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.started, b.refused = isStarted, cause
}

func (b *container) Kill(ctx context.Context, signal syscall.Signal) error {
	if engine.Ended(b.done) {
		return nil
	}
	_, err := b.e.client.ContainerKill(ctx, b.id, client.ContainerKillOptions{Signal: strconv.Itoa(int(signal))})
	b.mu.Lock()
	wasStarted := b.started
	b.mu.Unlock()
	// The daemon refuses to kill a container that does not run, and may know of the exit first.
	if err != nil && (!wasStarted || !errdefs.IsConflict(err)) {
		return b.explain(ctx, "kill", err)
	}
	return nil
}

func (b *container) Wait(ctx context.Context) (engine.Exit, error) {
	if err := engine.Await(ctx, b.done); err != nil {
		return engine.Exit{}, b.explain(ctx, "wait for", err)
	}
	err := b.lost
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil && b.exit.OK() && (!b.started || b.refused != nil) {
		err = errors.New("it was removed before its process ran") // the daemon reports exit code 0
	}
	if err != nil {
		return engine.Exit{}, b.explain(context.WithoutCancel(ctx), "wait for", err)
	}
	return b.exit, nil
}

func (b *container) State(ctx context.Context) (engine.State, error) {
	const op = "query the state of"
	answer, err := request(ctx, b, op, b.e.client.ContainerInspect, client.ContainerInspectOptions{})
	if err != nil {
		return "", err
	}
	if answer.Container.State == nil {
		return "", b.explain(ctx, op, errors.New("the daemon's response has no state"))
	}
	switch status := answer.Container.State.Status; status {
	case api.StateExited, api.StateDead, api.StateRemoving:
		return engine.Stopped, nil
	default:
		return engine.State(status), nil
	}
}

func (b *container) Delete(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deleted {
		return nil
	}
	if b.paused.Load() {
		// A frozen runsc gets no signal. If this call fails, the daemon returns the reason at the next one.
		_, _ = b.e.client.ContainerUnpause(ctx, b.id, client.ContainerUnpauseOptions{})
	}
	if err := b.remove(ctx); err != nil {
		return b.explain(ctx, "delete", err)
	}
	if b.group != nil {
		// Some runtimes (runsc of 2026) leave the cgroup behind if the container was paused or did not start.
		if err := b.group.Destroy(ctx); err != nil {
			return b.explain(ctx, "delete", err)
		}
	}
	if b.output != nil {
		ran := b.started && b.refused == nil
		if !ran {
			b.output.stop() // the stream of a container without a process does not end
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
		if err := engine.Await(ctx, b.done); err != nil {
			return b.explain(ctx, "delete", err)
		}
	}
	b.end()
	b.deleted = true
	return nil
}

// remove kills and removes the container through the daemon. If a removal is in progress it waits for it.
func (b *container) remove(ctx context.Context) error {
	_, err := b.e.client.ContainerRemove(ctx, b.id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if errdefs.IsConflict(err) {
		result := b.e.client.ContainerWait(ctx, b.id, client.ContainerWaitOptions{Condition: api.WaitConditionRemoved})
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

// undo removes a container whose creation failed or was cancelled.
func (b *container) undo(ctx context.Context) error {
	defer b.end()
	if b.id == "" {
		return nil
	}
	return engine.Undo(ctx, b)
}

func (b *container) Update(ctx context.Context, r engine.Resources) error {
	if err := b.exists("update"); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.Memory == 0 && b.e.choice.kind.Name == "crun" {
		// The daemon sends 0 for an unchanged limit, and crun would set it.
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

// Stats queries the daemon once.
func (b *container) Stats(ctx context.Context) (engine.Stats, error) {
	const op = "query the resource use of"
	answer, err := request(ctx, b, op, b.e.client.ContainerStats, client.ContainerStatsOptions{})
	if err != nil {
		return engine.Stats{}, err
	}
	var read api.StatsResponse
	if err := errors.Join(json.NewDecoder(answer.Body).Decode(&read), answer.Body.Close()); err != nil {
		return engine.Stats{}, b.explain(ctx, op, err)
	}
	return engine.Stats{CPU: time.Duration(read.CPUStats.CPUUsage.TotalUsage), Memory: int64(read.MemoryStats.Usage)}, nil
}
