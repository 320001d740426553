package cri

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/crilog"
)

const (
	// undoLimit bounds the removal of a container whose creation failed or was given up.
	undoLimit = 20 * time.Second
	// settleLimit is how long an engine may take to finish what nobody waits for any more.
	settleLimit = 10 * time.Second
	// settleRounds bounds the calls in which an engine has to note an end that has happened. Each is followed by a pause
	// that is longer than the one before by settleStep: some ten seconds in all, and the end is known late by a few
	// hundredths of the time that the engine took.
	settleRounds = 1000
	settleStep   = 20 * time.Microsecond
	// patience is the time for ending after SIGTERM, which the caller's context bounds before.
	patience = 24 * time.Hour
)

var errNoProcess = errors.New("the container has no process")

// container is a pod with one container.
type container struct {
	e     *Engine
	id    string
	args  []string // program with its arguments
	dir   string
	group *cgroup.Group // nil if the engine chooses cgroups by itself
	log   *crilog.Follower
	pod   string // as the engine calls it; empty before it is made
	name  string // of the container, likewise

	updating sync.Mutex
	limits   engine.Resources // of the pod, behind updating

	mu      sync.Mutex
	ending  *ending // nil for an engine without such events
	started bool
	ended   bool // exit is known
	exit    engine.Exit
	removed bool // the engine does not know it any more
	deleted bool
}

func (c *container) ID() string { return c.id }

// create makes the pod and the container.
func (c *container) create(ctx context.Context, spec engine.Spec) error {
	s := c.e.service
	if err := c.prepare(spec); err != nil {
		return err
	}
	cgroupParent := ""
	if c.group != nil {
		cgroupParent = c.group.Path()
	}
	limits := c.e.handler.resources(spec.Resources)
	pod := podConfig(spec, limits, c.e.session.RunID, c.dir, cgroupParent)
	err := engine.Step(ctx, "RunPodSandbox", func() error {
		return settled(ctx, func(ctx context.Context) error {
			answer, err := s.RunPodSandbox(ctx, &api.RunPodSandboxRequest{Config: pod, RuntimeHandler: c.e.handler.name})
			c.pod = answer.GetPodSandboxId()
			return err
		})
	})
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	request := &api.CreateContainerRequest{PodSandboxId: c.pod, Config: containerConfig(spec, limits, c.e.session.RunID, c.dir, spec.Image == s.image), SandboxConfig: pod}
	err = engine.Step(ctx, "CreateContainer", func() error {
		return settled(ctx, func(ctx context.Context) error {
			answer, err := s.CreateContainer(ctx, request)
			c.name = answer.GetContainerId()
			return err
		})
	})
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil && s.endings != nil {
		c.ending, err = s.endings.expect(ctx, c.name)
	}
	return err
}

// prepare makes what the engine is to find: the cgroup of the pod, as the kubelet does, the directory
// that is the container's /tmp, and its log.
func (c *container) prepare(spec engine.Spec) (err error) {
	tmp := c.dir + "/tmp"
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(tmp, 0o777|os.ModeSticky); err != nil {
		return err
	}
	if c.group != nil {
		if err := c.e.makeGroup(c.group); err != nil {
			c.group = nil // it is not ours
			return err
		}
		if err := c.limitPod(spec.Resources); err != nil {
			return err
		}
	}
	c.log, err = c.e.logs.Follow(c.dir+"/"+logName, spec.Process.Stdout, spec.Process.Stderr)
	return err
}

// settled makes a call that goes on for a while when ctx is cancelled: only its answer tells what there is to
// remove, and until then names are taken and containers cannot be removed.
func settled(ctx context.Context, call func(context.Context) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	inner, cancel := engine.WithGracePeriod(ctx, settleLimit)
	defer cancel()
	return call(inner)
}

// undo removes a container whose creation failed or was given up. What the engine may have made without
// telling is found by its labels.
func (c *container) undo(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
	defer cancel()
	if c.pod == "" {
		left, err := c.e.service.ListPodSandbox(ctx, &api.ListPodSandboxRequest{
			Filter: &api.PodSandboxFilter{LabelSelector: map[string]string{runLabel: c.e.session.RunID, idLabel: c.id}},
		})
		if err != nil {
			return errors.Join(c.explain(ctx, "clean up", err), c.clear(ctx))
		}
		for _, pod := range left.GetItems() {
			c.pod = pod.GetId()
		}
	}
	err := c.Delete(ctx)
	if err == nil || c.group == nil || c.e.service.dead() != nil {
		return err
	}
	// What hangs is ended from outside, and the engine may see it then.
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
	defer cancel()
	if err := c.group.Kill(ctx); err != nil {
		return err
	}
	if again := c.Delete(ctx); again == nil {
		return nil
	}
	return errors.Join(err, c.clear(ctx))
}

// check refuses calls for a container that was deleted.
func (c *container) check(op string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.removed {
		return fmt.Errorf("%s container %q: it has been deleted", op, c.id)
	}
	return nil
}

func (c *container) Start(ctx context.Context) error {
	if err := c.check("start"); err != nil {
		return err
	}
	err := engine.Step(ctx, "StartContainer", func() error {
		return settled(ctx, func(ctx context.Context) error {
			_, err := c.e.service.StartContainer(ctx, &api.StartContainerRequest{ContainerId: c.name})
			return err
		})
	})
	c.mu.Lock()
	// Also if the call was given up: it may have worked.
	c.started = c.started || err == nil || ctx.Err() != nil
	c.mu.Unlock()
	if err != nil {
		return c.explain(ctx, "start", c.specify(err))
	}
	return nil
}

// reasonless is what the shim says of a runtime that has ended without a word.
var reasonless = regexp.MustCompile(`did not terminate successfully: exit status [0-9]+(: unknown)?$`)

// specify adds what was to be run to an error without a reason: the shim knows where runc and gVisor write theirs, and
// loses that of others (youki).
func (c *container) specify(err error) error {
	if !reasonless.MatchString(said(err)) {
		return err
	}
	return status.Errorf(status.Code(err), "%s: the runtime failed without a reason that reaches the engine; it was to run %q", said(err), c.args)
}

// over tells whether the process is known to have ended.
func (c *container) over() (engine.Exit, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exit, c.ended
}

// Kill maps signals to what CRI has: StopContainer.
func (c *container) Kill(ctx context.Context, signal syscall.Signal) error {
	if _, over := c.over(); over {
		return nil
	}
	if err := c.check("kill"); err != nil {
		return err
	}
	var timeout time.Duration
	switch signal {
	case syscall.SIGKILL:
	case syscall.SIGTERM: // the default, which no image of ours changes
		timeout = patience
	default:
		return fmt.Errorf("kill container %q: CRI has no call that sends signal %d (%s), only SIGTERM and SIGKILL", c.id, int(signal), signal)
	}
	err := engine.Step(ctx, "StopContainer", func() error { return c.stop(ctx, timeout) })
	if err == nil {
		return nil
	}
	if now, unknown := c.status(ctx); unknown == nil && now.state == api.ContainerState_CONTAINER_EXITED {
		return nil // it ended while we were about it
	}
	return c.explain(ctx, "kill", err)
}

// stop is StopContainer, which returns when the container has stopped and the engine knows it.
func (c *container) stop(ctx context.Context, timeout time.Duration) error {
	_, err := c.e.service.StopContainer(ctx, &api.StopContainerRequest{ContainerId: c.name, Timeout: int64(timeout / time.Second)})
	return err
}

func (c *container) Wait(ctx context.Context) (engine.Exit, error) {
	if exit, over := c.over(); over {
		return exit, nil
	}
	if err := c.check("wait for"); err != nil {
		return engine.Exit{}, err
	}
	exit, err := c.wait(ctx)
	if err == nil {
		return exit, nil
	}
	if exit, over := c.over(); over {
		return exit, nil // it was deleted meanwhile
	}
	return engine.Exit{}, c.explain(ctx, "wait for", err)
}

// wait waits for the event of the end, and until the engine has taken note of it.
func (c *container) wait(ctx context.Context) (engine.Exit, error) {
	if c.ending != nil {
		select {
		case <-c.ending.done:
		case <-ctx.Done():
			return engine.Exit{}, context.Cause(ctx)
		}
		if c.ending.err != nil {
			return engine.Exit{}, c.ending.err
		}
	} else if err := c.awaitProcess(ctx); err != nil {
		return engine.Exit{}, err
	}
	return c.settle(ctx)
}

// awaitProcess waits for the end of the container's process on the host.
func (c *container) awaitProcess(ctx context.Context) error {
	now, err := c.status(ctx)
	if err != nil || now.state == api.ContainerState_CONTAINER_EXITED {
		return err
	}
	if now.pid <= 0 { // also one that was only created has a process
		return fmt.Errorf("%s does not tell the process of a container", c.e.service.title())
	}
	return awaitProcess(ctx, now.pid, func() (bool, error) {
		again, err := c.status(ctx)
		return again.state != api.ContainerState_CONTAINER_EXITED && again.pid == now.pid, err
	})
}

// now is the state of a container.
type now struct {
	state api.ContainerState
	code  int
	pid   int // 0 if the engine does not tell
}

// status asks for the state of the container.
func (c *container) status(ctx context.Context) (now, error) {
	answer, err := c.e.service.ContainerStatus(ctx, &api.ContainerStatusRequest{ContainerId: c.name, Verbose: c.ending == nil})
	if err != nil {
		return now{}, err
	}
	n := now{state: answer.GetStatus().GetState(), code: int(answer.GetStatus().GetExitCode())}
	var info struct{ Pid int }
	if json.Unmarshal([]byte(answer.GetInfo()["info"]), &info) == nil {
		n.pid = info.Pid
	}
	return n, nil
}

// settle returns when the engine says that a container has exited whose process has ended. StopContainer
// waits for that, but for the time in which the task is gone and containerd has not noted the end yet: the call then fails
// or returns too early. Meanwhile containerd has the shim end, which takes a few milliseconds; if it fails in that, as it may
// on a busy machine, it tries again after a second, and then after two and four.
func (c *container) settle(ctx context.Context) (engine.Exit, error) {
	var stop error
	pause := time.NewTimer(0)
	defer pause.Stop()
	for round := range settleRounds {
		stop = c.stop(ctx, 0)
		now, err := c.status(ctx)
		if err != nil {
			return engine.Exit{}, err
		}
		switch now.state {
		case api.ContainerState_CONTAINER_EXITED:
			c.mu.Lock()
			defer c.mu.Unlock()
			c.exit, c.ended = engine.ExitOfCode(now.code), true
			return c.exit, nil
		case api.ContainerState_CONTAINER_RUNNING:
		default:
			return engine.Exit{}, errNoProcess
		}
		pause.Reset(time.Duration(round) * settleStep)
		select {
		case <-pause.C:
		case <-ctx.Done():
			return engine.Exit{}, context.Cause(ctx)
		}
	}
	return engine.Exit{}, errors.Join(errors.New("the process has ended and the engine does not say so"), stop)
}

func (c *container) State(ctx context.Context) (engine.State, error) {
	if err := c.check("ask for the state of"); err != nil {
		return "", err
	}
	now, err := c.status(ctx)
	if err != nil {
		return "", c.explain(ctx, "ask for the state of", err)
	}
	switch now.state {
	case api.ContainerState_CONTAINER_CREATED:
		return engine.Created, nil
	case api.ContainerState_CONTAINER_RUNNING:
		return engine.Running, nil
	case api.ContainerState_CONTAINER_EXITED:
		return engine.Stopped, nil
	default:
		return "", fmt.Errorf("ask for the state of container %q: %s says %s", c.id, c.e.service.title(), now.state)
	}
}

// Delete stops the container if it runs, and removes it with its pod.
func (c *container) Delete(ctx context.Context) error {
	c.mu.Lock()
	removed, deleted := c.removed, c.deleted
	c.mu.Unlock()
	if deleted {
		return nil
	}
	if !removed {
		if err := c.remove(ctx); err != nil {
			err = c.explain(ctx, "delete", err)
			if c.e.service.dead() == nil {
				return err
			}
			// Nobody will remove it any more; what it has on the host can go all the same.
			return errors.Join(err, c.clear(ctx))
		}
	}
	return c.clear(ctx)
}

// remove lets the engine remove the container and the pod.
func (c *container) remove(ctx context.Context) error {
	s := c.e.service
	if c.name != "" {
		if _, over := c.over(); !over {
			// Also if it was not started: CRI-O gives what crun has created ten seconds to end. If it fails
			// because the process is just ending, settle finds out.
			_ = engine.Step(ctx, "StopContainer", func() error { return c.stop(ctx, 0) })
		}
		if _, over := c.over(); !over && c.wasStarted() {
			// What waiting is told from now on. A container that is lost has no end, and can go all the same.
			if _, err := c.settle(ctx); err != nil && ctx.Err() != nil {
				return err
			}
		}
		if err := engine.Step(ctx, "RemoveContainer", func() error {
			_, err := s.RemoveContainer(ctx, &api.RemoveContainerRequest{ContainerId: c.name})
			return known(err)
		}); err != nil {
			return err
		}
	}
	if c.pod != "" {
		if err := engine.Step(ctx, "StopPodSandbox", func() error {
			_, err := s.StopPodSandbox(ctx, &api.StopPodSandboxRequest{PodSandboxId: c.pod})
			return known(err)
		}); err != nil {
			return err
		}
		if err := engine.Step(ctx, "RemovePodSandbox", func() error {
			_, err := s.RemovePodSandbox(ctx, &api.RemovePodSandboxRequest{PodSandboxId: c.pod})
			return known(err)
		}); err != nil {
			return err
		}
	}
	c.mu.Lock()
	c.removed = true
	c.mu.Unlock()
	return nil
}

func (c *container) wasStarted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.started
}

// known takes away the error that the engine does not know a container or pod.
func known(err error) error {
	if status.Code(err) == codes.NotFound {
		return nil
	}
	return err
}

// clear removes what belongs to the container and is not the engine's: its cgroup, its output, its directory.
func (c *container) clear(ctx context.Context) error {
	if c.group != nil {
		if err := c.group.Destroy(ctx); err != nil {
			return fmt.Errorf("remove the cgroup of container %q: %w", c.id, err)
		}
	}
	var bad error
	if c.log != nil {
		if bad = c.log.Finish(ctx); bad != nil && ctx.Err() != nil {
			return fmt.Errorf("delete container %q: %w", c.id, bad)
		}
	}
	if c.ending != nil {
		c.e.service.endings.forget(c.name)
	}
	if err := os.RemoveAll(c.dir); err != nil {
		return fmt.Errorf("remove the directory of container %q: %w", c.id, err)
	}
	c.mu.Lock()
	c.removed, c.deleted = true, true
	c.mu.Unlock()
	if bad != nil {
		return fmt.Errorf("output of container %q: %w", c.id, bad)
	}
	return nil
}

// Exec runs a further process by ExecSync, which passes output on when the process has ended.
func (c *container) Exec(ctx context.Context, p engine.Process) (engine.Exit, error) {
	defer p.CloseOutput()
	if err := c.check("execute in"); err != nil {
		return engine.Exit{}, err
	}
	if len(p.Env) > 0 {
		return engine.Exit{}, fmt.Errorf("execute in container %q: CRI passes no environment to a further process", c.id)
	}
	answer, err := c.e.service.ExecSync(ctx, &api.ExecSyncRequest{ContainerId: c.name, Cmd: p.Args})
	if err != nil {
		return engine.Exit{}, c.explain(ctx, "execute in", err)
	}
	// A writer that fails gets no more, as with the output of a container.
	if p.Stdout != nil {
		_, _ = p.Stdout.Write(answer.GetStdout())
	}
	if p.Stderr != nil {
		_, _ = p.Stderr.Write(answer.GetStderr())
	}
	return engine.ExitOfCode(int(answer.GetExitCode())), nil
}

// Update changes the limits of the container, and those of its pod as limitPod has it: for the time of the call the pod
// has the wider of old and new, because on v1 no group can have more than the one above it.
func (c *container) Update(ctx context.Context, r engine.Resources) error {
	if err := c.check("update"); err != nil {
		return err
	}
	c.updating.Lock()
	defer c.updating.Unlock()
	then := merged(c.limits, r)
	err := c.limitPod(wider(c.limits, then))
	if err == nil {
		_, err = c.e.service.UpdateContainerResources(ctx, &api.UpdateContainerResourcesRequest{ContainerId: c.name, Linux: c.e.handler.resources(r)})
	}
	if err == nil {
		err = c.limitPod(then)
	}
	if err != nil {
		return c.explain(ctx, "update", err)
	}
	return nil
}

// Stats asks the engine, as a kubelet does.
func (c *container) Stats(ctx context.Context) (engine.Stats, error) {
	const op = "ask what is used by"
	if err := c.check(op); err != nil {
		return engine.Stats{}, err
	}
	answer, err := c.e.service.ContainerStats(ctx, &api.ContainerStatsRequest{ContainerId: c.name})
	if err != nil {
		return engine.Stats{}, c.explain(ctx, op, err)
	}
	cpu, memory := answer.GetStats().GetCpu().GetUsageCoreNanoSeconds(), answer.GetStats().GetMemory().GetWorkingSetBytes()
	if cpu == nil || memory == nil {
		return engine.Stats{}, fmt.Errorf("%s container %q: %s tells nothing", op, c.id, c.e.service.title())
	}
	return engine.Stats{CPU: time.Duration(cpu.GetValue()), Memory: int64(memory.GetValue())}, nil
}

// explain makes what an engine said the error of a call.
func (c *container) explain(ctx context.Context, op string, err error) error {
	return c.e.explain(ctx, fmt.Sprintf("%s container %q", op, c.id), err)
}
