package cri

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/crilog"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
)

const (
	// cancelGrace is the time in which the engine may finish a call after the caller's context has ended.
	cancelGrace = 10 * time.Second
	// killGrace is the engine's time for the end of a call after the pod's processes were killed.
	killGrace = 30 * time.Second
	// confirmRounds bounds the requests for an end that the engine has not recorded yet. The pause after each request is
	// longer than the one before by confirmStep: about ten seconds in all. The end is then seen late by a few
	// hundredths of the time that the engine took.
	confirmRounds = 1000
	confirmStep   = 20 * time.Microsecond
	// termTimeout is the timeout of StopContainer for SIGTERM. The caller's context ends before it.
	termTimeout = 24 * time.Hour
)

var errNoProcess = errors.New("the container has no process")

// container is a pod with one container.
type container struct {
	e    *Engine
	id   string
	args []string // program with its arguments
	dir  string
	// logDir is a directory on disk.
	logDir string
	group  *cgroup.Group // nil if the engine chooses cgroups by itself
	log    *crilog.Follower
	pod    string // the engine's ID of the pod; empty before it exists
	name   string // the engine's ID of the container; empty before it exists
	// unwatch ends the watch of a virtual machine's processes. It is nil without a watch.
	unwatch context.CancelFunc

	sandboxes []string // the IDs of virtual machines whose files may be left; see findSandboxes

	updating sync.Mutex
	limits   engine.Resources // of the pod, guarded by updating

	mu       sync.Mutex
	event    *exitEvent // nil for an engine without exit events
	guest    *exitEvent // the exit of a pod that is a virtual machine; nil for other pods
	started  bool       // it may have been started
	ran      bool       // Start has returned without an error
	shimless bool       // the virtual machine's shim has exited
	stopped  bool       // a request to stop it was made
	exited   bool       // exit is known
	exit     engine.Exit
	lost     error // the virtual machine ended before the program
	removed  bool  // the engine has removed the container and the pod
	// abandoned means that the processes are killed, and the engine keeps its records: see abandon.
	abandoned bool
	deleted   bool
	left      []string // found at the deletion: see Traces
}

func (c *container) ID() string { return c.id }

// create makes the pod and the container.
func (c *container) create(ctx context.Context, spec engine.Spec) error {
	s := c.e.service
	if err := c.prepare(spec); err != nil {
		return err
	}
	cgroupParent := ""
	var kill func(context.Context)
	if c.group != nil {
		cgroupParent = c.group.Path()
		if c.e.handler.guest != nil {
			kill = c.kill
		}
	}
	limits := c.e.handler.resources(spec.Resources)
	limits.OomScoreAdj = int64(c.e.session.Launcher.OOMScore())
	pod := podConfig(spec, limits, c.e.session, c.logDir, cgroupParent)
	sandbox, err := step(ctx, "RunPodSandbox", killAfterGrace(s.RunPodSandbox, kill), &api.RunPodSandboxRequest{Config: pod, RuntimeHandler: c.e.handler.name})
	c.pod = sandbox.GetPodSandboxId()
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	request := &api.CreateContainerRequest{PodSandboxId: c.pod, Config: containerConfig(spec, limits, c.e.session, c.dir, spec.Image == s.image), SandboxConfig: pod}
	answer, err := step(ctx, "CreateContainer", killAfterGrace(s.CreateContainer, kill), request)
	c.name = answer.GetContainerId()
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil && c.e.exits != nil {
		c.event, err = c.e.exits.expect(ctx, c.name)
		if err == nil && c.e.handler.guest != nil {
			c.guest, err = c.e.exits.expect(ctx, c.pod)
		}
		if err == nil && c.e.isGuestOfCRIO() {
			err = c.watchGuest(ctx)
		}
	}
	return err
}

// prepare makes the cgroup of the pod, as the kubelet does, the directory for the container's /tmp, and its log. All
// of it precedes the first step of Create.
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
			c.group = nil // it may belong to another container
			return err
		}
		if err := c.limitPod(spec.Resources); err != nil {
			return err
		}
	}
	c.log, err = c.e.logs.Follow(filepath.Join(c.logDir, logName), spec.Process.Stdout, spec.Process.Stderr)
	return err
}

// rpc is a method of a CRI client.
type rpc[Q, A any] func(context.Context, Q, ...grpc.CallOption) (A, error)

// step makes a request as a recorded step. The empty name is for the only request of a method.
func step[Q, A any](ctx context.Context, name string, call rpc[Q, A], request Q) (answer A, err error) {
	err = engine.Step(ctx, name, func() error {
		answer, err = call(ctx, request)
		return err
	})
	return answer, err
}

// uninterrupted returns a call that may go on for cancelGrace after ctx is cancelled. Only the response names the objects to
// remove. Until then their names are taken, and they cannot be removed.
func uninterrupted[Q, A any](call rpc[Q, A]) rpc[Q, A] { return withGrace(call, cancelGrace) }

func withGrace[Q, A any](call rpc[Q, A], grace time.Duration) rpc[Q, A] {
	return func(ctx context.Context, request Q, _ ...grpc.CallOption) (answer A, err error) {
		if ctx.Err() != nil {
			return answer, context.Cause(ctx)
		}
		inner, cancel := engine.WithGracePeriod(ctx, grace)
		defer cancel()
		return call(inner, request)
	}
}

// killAfterGrace returns an uninterrupted call that makes a part of a pod. If it still goes on cancelGrace after ctx is cancelled, kill is
// called, which kills the processes of the pod, and the call may go on for killGrace. The engine then sees the exit of the shim,
// removes the parts of the pod and responds. After a cancelled call it would remove them in the background, and only after its requests
// to a shim that hangs have timed out. kill is nil for a pod without a virtual machine: its runtime does not wait for a guest.
func killAfterGrace[Q, A any](call rpc[Q, A], kill func(context.Context)) rpc[Q, A] {
	if kill == nil {
		return uninterrupted(call)
	}
	call = withGrace(call, cancelGrace+killGrace)
	return func(ctx context.Context, request Q, _ ...grpc.CallOption) (A, error) {
		callCtx, cancelCall := context.WithCancel(context.WithoutCancel(ctx))
		done := make(chan struct{})
		stopKiller := context.AfterFunc(ctx, func() {
			defer close(done)
			unlessEnded(callCtx, cancelGrace, kill)
		})
		defer func() {
			cancelCall()
			if !stopKiller() {
				<-done
			}
		}()
		return call(ctx, request)
	}
}

// unlessEnded calls callback if ctx does not end within a time. It returns when one of both has ended.
func unlessEnded(ctx context.Context, timeout time.Duration, callback func(context.Context)) (hasCalled bool) {
	limitCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	<-limitCtx.Done()
	if ctx.Err() != nil {
		return false
	}
	callback(ctx)
	return true
}

// shimClosed is containerd's error for a request to a shim that ends meanwhile.
const shimClosed = "ttrpc: closed"

// removeRequest is step for a removal: an object that does not exist is no error. It repeats a request that meets the end of a shim. Each request
// is a step, so that the time of one that fails is no value. containerd shuts the shim down when its sandbox has exited by itself, and
// older versions fail a request to the pod meanwhile (https://github.com/containerd/containerd/pull/12387).
func removeRequest[Q, A any](ctx context.Context, name string, call rpc[Q, A], request Q) (err error) {
	for range confirmations(ctx) {
		err = engine.Step(ctx, name, func() error {
			_, err := call(ctx, request)
			return ignoreNotFound(err)
		})
		if !strings.Contains(status.Convert(err).Message(), shimClosed) {
			break
		}
	}
	return err
}

// undo removes a container whose creation failed or was cancelled. A pod without a response is found by its labels.
func (c *container) undo(ctx context.Context) error {
	ctx, cancel := engine.WithUndoLimit(ctx)
	defer cancel()
	c.findSandboxes()
	if c.pod == "" {
		left, err := c.e.service.ownPods(ctx, c.e.session, map[string]string{runLabel: c.e.session.RunID, idLabel: c.id})
		if err != nil {
			return errors.Join(c.explain(ctx, "clean up", err), c.clear(ctx))
		}
		for _, pod := range left {
			c.pod = pod.GetId()
		}
	}
	err := c.Delete(ctx)
	if err == nil || c.group == nil || c.e.service.dead() != nil {
		return err
	}
	// The processes of a call that hangs are killed by their cgroup. The engine may then see the exit.
	ctx, cancel = engine.WithUndoLimit(ctx)
	defer cancel()
	if err := c.group.Kill(ctx); err != nil {
		return err
	}
	if retryErr := c.Delete(ctx); retryErr == nil {
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
	_, err := step(ctx, "StartContainer", uninterrupted(c.e.service.StartContainer), &api.StartContainerRequest{ContainerId: c.name})
	c.mu.Lock()
	// A cancelled call may have worked.
	c.started = c.started || err == nil || ctx.Err() != nil
	c.ran = c.ran || err == nil
	c.mu.Unlock()
	if err != nil {
		return c.explain(ctx, "start", c.specify(err))
	}
	if c.e.handler.kvm {
		if err := c.proveKVM(); err != nil {
			return c.explain(ctx, "start", err)
		}
	}
	return nil
}

// proveKVM checks that the sandboxes of the pod run on KVM.
func (c *container) proveKVM() error {
	if c.group == nil {
		return runtimes.ErrNoProofOfKVM
	}
	pids, err := c.group.Procs()
	if err != nil {
		return err
	}
	return runtimes.ProveKVM(pids...)
}

// reasonless is the shim's message about a runtime that failed without a message.
var reasonless = regexp.MustCompile(`did not terminate successfully: exit status [0-9]+(: unknown)?$`)

// specify adds the program to an error without a reason. The shim finds the messages of runc and gVisor, and loses the
// messages of other runtimes (youki).
func (c *container) specify(err error) error {
	if !reasonless.MatchString(message(err)) {
		return err
	}
	return status.Errorf(status.Code(err), "%s: the runtime failed, and its reason did not reach the engine; the program was %q", message(err), c.args)
}

// knownExit returns the exit of the process, and whether it is known.
func (c *container) knownExit() (engine.Exit, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exit, c.exited
}

func (c *container) setExit(code int) engine.Exit {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exit, c.exited = engine.ExitOfCode(code), true
	return c.exit
}

// Kill maps SIGKILL and SIGTERM to StopContainer, the only call of CRI that sends signals. With a grace period of the plan, SIGTERM
// precedes SIGKILL, as for clients that set a timeout.
func (c *container) Kill(ctx context.Context, signal syscall.Signal) error {
	if _, hasExited := c.knownExit(); hasExited {
		return nil
	}
	if err := c.check("kill"); err != nil {
		return err
	}
	var timeout time.Duration
	switch signal {
	case syscall.SIGKILL:
		timeout = c.e.session.Pods.Grace
	case syscall.SIGTERM: // the default stop signal, which our images do not change
		timeout = termTimeout
	default:
		return fmt.Errorf("kill container %q: CRI has no call that sends signal %d (%s), only SIGTERM and SIGKILL", c.id, int(signal), signal)
	}
	err := engine.Step(ctx, "StopContainer", func() error { return c.stop(ctx, timeout) })
	if err == nil {
		return nil
	}
	if snapshot, statusErr := c.status(ctx); statusErr == nil && snapshot.state == api.ContainerState_CONTAINER_EXITED {
		return nil // the process exited meanwhile
	}
	return c.explain(ctx, "kill", err)
}

// stop is StopContainer, which returns when the engine has recorded the exit of the container.
func (c *container) stop(ctx context.Context, timeout time.Duration) error {
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	return c.requestStop(ctx, timeout)
}

func (c *container) requestStop(ctx context.Context, timeout time.Duration) error {
	_, err := c.e.service.StopContainer(ctx, &api.StopContainerRequest{ContainerId: c.name, Timeout: int64(timeout / time.Second)})
	return err
}

// Invariant no-polling.
func (c *container) Wait(ctx context.Context) (engine.Exit, error) {
	if exit, hasExited := c.knownExit(); hasExited {
		return exit, c.lostGuest()
	}
	if err := c.check("wait for"); err != nil {
		return engine.Exit{}, err
	}
	wait := c.waitForProcess
	if c.event != nil {
		wait = c.waitForEvent
	}
	exit, err := wait(ctx)
	if err == nil {
		return exit, c.findLostGuest(ctx, "wait for", exit)
	}
	if exit, hasExited := c.knownExit(); hasExited {
		return exit, c.lostGuest() // it was deleted meanwhile
	}
	return engine.Exit{}, c.explain(ctx, "wait for", err)
}

// lostGuestCode is the exit code that Kata's shim reports for the processes of a virtual machine that has ended.
const lostGuestCode = 255

// lostGuestLimit bounds the time between the exit of a program and the exit of its virtual machine, if one fault ends both.
const lostGuestLimit = 2 * time.Second

var errLostGuest = errors.New("its virtual machine ended before the program: the guest's kernel panicked, or the hypervisor, its file server or the shim was killed")

// lostGuest returns the error of findLostGuest again.
func (c *container) lostGuest() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

// findLostGuest returns an error if a program has no exit code of its own, because its virtual machine has ended. The shim then
// reports lostGuestCode, and containerd a kill in the place of a shim that has exited. It waits at most lostGuestLimit, and
// only for such an exit of a program that was not stopped.
func (c *container) findLostGuest(ctx context.Context, op string, exit engine.Exit) error {
	c.mu.Lock()
	guest, wasStopped := c.guest, c.stopped
	c.mu.Unlock()
	if guest == nil || wasStopped || exit.Code != lostGuestCode && exit.Signal != syscall.SIGKILL {
		return nil
	}
	limitCtx, cancel := context.WithTimeout(ctx, lostGuestLimit)
	defer cancel()
	if engine.Await(limitCtx, guest.done) != nil || guest.err != nil {
		return nil // the virtual machine runs
	}
	err := c.explain(ctx, op, errLostGuest)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = err
	return err
}

// waitForEvent waits for the exit event. It makes no request, unless the event lacks the exit code.
func (c *container) waitForEvent(ctx context.Context) (engine.Exit, error) {
	err := engine.Call(ctx, func() error { return engine.Await(ctx, c.event.done) })
	if err == nil {
		err = c.event.err
	}
	if err != nil {
		return engine.Exit{}, err
	}
	if c.event.code == unknownCode {
		return c.confirmExit(ctx)
	}
	return c.setExit(c.event.code), nil
}

// waitForProcess waits for the exit of the container's process on the host, for engines without exit events. The
// requests for the process's ID are recorded steps. confirmExit gets the exit code after the last step.
func (c *container) waitForProcess(ctx context.Context) (engine.Exit, error) {
	snapshot, err := c.statusStep(ctx)
	if err != nil {
		return engine.Exit{}, err
	}
	if snapshot.state == api.ContainerState_CONTAINER_EXITED {
		return c.setExit(snapshot.code), nil
	}
	if snapshot.pid <= 0 { // a created container has a process too
		return engine.Exit{}, fmt.Errorf("%s does not report the process of a container", c.e.service.title())
	}
	process, err := openProcess(snapshot.pid)
	if err != nil {
		return engine.Exit{}, err
	}
	if process != nil {
		defer func() { _ = process.Close() }()
		// The kernel may have given the ID to another process before it was opened.
		recheck, err := c.statusStep(ctx)
		if err != nil {
			return engine.Exit{}, err
		}
		if recheck.state != api.ContainerState_CONTAINER_EXITED && recheck.pid == snapshot.pid {
			if err := engine.Call(ctx, func() error { return awaitExit(ctx, process) }); err != nil {
				return engine.Exit{}, err
			}
		}
	}
	return c.confirmExit(ctx)
}

// containerStatus is the engine's view of a container.
type containerStatus struct {
	state api.ContainerState
	code  int
	pid   int // 0 if the engine does not report it
}

// status requests the state of the container.
func (c *container) status(ctx context.Context) (containerStatus, error) {
	return c.requestStatus(ctx, c.event == nil || c.e.isGuestOfCRIO())
}

// verboseStatus is status with the process ID, if the engine reports it.
func (c *container) verboseStatus(ctx context.Context) (containerStatus, error) {
	return c.requestStatus(ctx, true)
}

func (c *container) requestStatus(ctx context.Context, verbose bool) (containerStatus, error) {
	answer, err := c.e.service.ContainerStatus(ctx, &api.ContainerStatusRequest{ContainerId: c.name, Verbose: verbose})
	if err != nil {
		return containerStatus{}, err
	}
	snapshot := containerStatus{state: answer.GetStatus().GetState(), code: int(answer.GetStatus().GetExitCode())}
	var info struct{ Pid int }
	if json.Unmarshal([]byte(answer.GetInfo()["info"]), &info) == nil {
		snapshot.pid = info.Pid
	}
	return snapshot, nil
}

// statusStep is status as a recorded step.
func (c *container) statusStep(ctx context.Context) (snapshot containerStatus, err error) {
	err = engine.Step(ctx, "ContainerStatus", func() error {
		snapshot, err = c.status(ctx)
		return err
	})
	return snapshot, err
}

// confirmExit returns when the engine has recorded the exit of a process that has exited. It polls. Its requests are no
// steps, so that they follow the timed region of Wait.
//
// StopContainer waits for the record, except while containerd has deleted the task and not recorded the exit yet: the call
// then fails or returns early. In that time containerd shuts the shim down, which takes some milliseconds. If that
// fails, as on a busy machine, containerd retries after one second, and then after two and four.
//
// Invariant no-polling.
func (c *container) confirmExit(ctx context.Context) (engine.Exit, error) {
	var stop error
	for range confirmations(ctx) {
		snapshot, err := c.status(ctx)
		if err != nil {
			return engine.Exit{}, err
		}
		switch snapshot.state {
		case api.ContainerState_CONTAINER_EXITED:
			return c.setExit(snapshot.code), nil
		case api.ContainerState_CONTAINER_RUNNING:
		default:
			return engine.Exit{}, errNoProcess
		}
		stop = c.requestStop(ctx, 0) // the process has exited, so this stops nothing
	}
	if ctx.Err() != nil {
		return engine.Exit{}, context.Cause(ctx)
	}
	return engine.Exit{}, errors.Join(errors.New("the process has exited, and the engine does not record it"), stop)
}

// confirmations yields the rounds of requests for an end that the engine is about to record, with the pauses between them. It stops with ctx.
func confirmations(ctx context.Context) func(yield func() bool) {
	return func(yield func() bool) {
		pause := time.NewTimer(0)
		defer pause.Stop()
		for round := range confirmRounds {
			if !yield() {
				return
			}
			pause.Reset(time.Duration(round) * confirmStep)
			select {
			case <-pause.C:
			case <-ctx.Done():
				return
			}
		}
	}
}

// confirmExitStep is confirmExit as one recorded step.
func (c *container) confirmExitStep(ctx context.Context) error {
	return engine.Step(ctx, "ContainerStatus", func() error {
		_, err := c.confirmExit(ctx)
		return err
	})
}

func (c *container) State(ctx context.Context) (engine.State, error) {
	const op = "get the state of"
	if err := c.check(op); err != nil {
		return "", err
	}
	snapshot, err := c.status(ctx)
	if _, hasExited := c.knownExit(); err == nil && hasExited && snapshot.state == api.ContainerState_CONTAINER_RUNNING {
		// The exit event precedes the engine's own record.
		_, err = c.confirmExit(ctx)
		snapshot.state = api.ContainerState_CONTAINER_EXITED
	}
	if err != nil {
		return "", c.explain(ctx, op, err)
	}
	switch snapshot.state {
	case api.ContainerState_CONTAINER_CREATED:
		return engine.Created, nil
	case api.ContainerState_CONTAINER_RUNNING:
		return engine.Running, nil
	case api.ContainerState_CONTAINER_EXITED:
		return engine.Stopped, nil
	default:
		return "", fmt.Errorf("%s container %q: %s reports %s", op, c.id, c.e.service.title(), snapshot.state)
	}
}

// Delete stops the container if it runs, and removes it with its pod.
func (c *container) Delete(ctx context.Context) error {
	c.mu.Lock()
	isRemoved, isDeleted := c.removed, c.deleted
	c.mu.Unlock()
	if isDeleted {
		return nil
	}
	if !isRemoved {
		if err := c.removeByForce(ctx); err != nil {
			err = c.explain(ctx, "delete", err)
			if c.e.service.dead() == nil {
				return err
			}
			// A dead engine removes nothing. The container's files on the host can still be removed.
			return errors.Join(err, c.clear(ctx))
		}
	}
	return c.clear(ctx)
}

// remove has the engine remove the container and the pod.
func (c *container) remove(ctx context.Context) error {
	s := c.e.service
	c.mu.Lock()
	removable := c.ran && !c.shimless
	c.mu.Unlock()
	if c.name != "" && !removable && c.e.isGuestOfCRIO() {
		return c.abandon(ctx)
	}
	if c.name != "" {
		if err := c.removeContainer(ctx); err != nil {
			return err
		}
	}
	if c.pod != "" {
		if err := removeRequest(ctx, "StopPodSandbox", s.StopPodSandbox, &api.StopPodSandboxRequest{PodSandboxId: c.pod}); err != nil {
			return err
		}
		if err := removeRequest(ctx, "RemovePodSandbox", s.RemovePodSandbox, &api.RemovePodSandboxRequest{PodSandboxId: c.pod}); err != nil {
			return err
		}
	}
	c.mu.Lock()
	c.removed = true
	c.mu.Unlock()
	return nil
}

// removeContainer removes the container, after it has stopped a process that may run.
func (c *container) removeContainer(ctx context.Context) error {
	remove := func() error {
		return removeRequest(ctx, "RemoveContainer", c.e.service.RemoveContainer, &api.RemoveContainerRequest{ContainerId: c.name})
	}
	if _, hasExited := c.knownExit(); hasExited {
		err := remove()
		if err == nil || c.confirmExitStep(ctx) != nil {
			return err
		}
		return remove() // the engine had not recorded the exit
	}
	// StopContainer also precedes the removal of a container that was not started: CRI-O gives a process of crun ten seconds
	// to exit. If the call fails because the process is just exiting, confirmExit finds out.
	_ = engine.Step(ctx, "StopContainer", func() error { return c.stop(ctx, 0) })
	c.mu.Lock()
	wasStarted := c.started
	c.mu.Unlock()
	if wasStarted {
		// Callers of Wait need the exit. A container that is lost has none, and can still be removed.
		if err := c.confirmExitStep(ctx); err != nil && ctx.Err() != nil {
			return err
		}
	}
	return remove()
}

// ignoreNotFound drops the error about an object that does not exist.
func ignoreNotFound(err error) error {
	if status.Code(err) == codes.NotFound {
		return nil
	}
	return err
}

// clear removes the cgroup and the directory of the container, which are not the engine's, and ends its output.
func (c *container) clear(ctx context.Context) error {
	c.mu.Lock()
	isRemoved := c.removed
	c.mu.Unlock()
	if c.group != nil {
		if isRemoved {
			c.inspectGroup(ctx)
		}
		if err := c.group.Destroy(ctx); err != nil {
			return fmt.Errorf("remove the cgroup of container %q: %w", c.id, err)
		}
	}
	if err := c.removeGuestFiles(); err != nil {
		return err
	}
	var bad error
	if c.log != nil {
		if bad = c.log.Finish(ctx); bad != nil && ctx.Err() != nil {
			return fmt.Errorf("delete container %q: %w", c.id, bad)
		}
	}
	if c.unwatch != nil {
		c.unwatch()
	}
	if c.event != nil {
		c.e.exits.lose(errForgotten, c.name, c.pod)
	}
	if err := errors.Join(os.RemoveAll(c.dir), os.RemoveAll(c.logDir)); err != nil {
		return fmt.Errorf("remove the directories of container %q: %w", c.id, err)
	}
	c.mu.Lock()
	c.removed, c.deleted = true, true
	c.mu.Unlock()
	if bad != nil {
		return fmt.Errorf("output of container %q: %w", c.id, bad)
	}
	return nil
}

// Exec runs a further process by ExecSync, which returns the output when the process has exited.
func (c *container) Exec(ctx context.Context, p engine.Process) (engine.Exit, error) {
	defer p.CloseOutput()
	if err := c.check("execute in"); err != nil {
		return engine.Exit{}, err
	}
	if len(p.Env) > 0 {
		return engine.Exit{}, fmt.Errorf("execute in container %q: CRI passes no environment to a further process", c.id)
	}
	answer, err := step(ctx, "", c.e.service.ExecSync, &api.ExecSyncRequest{ContainerId: c.name, Cmd: p.Args})
	if err != nil {
		return engine.Exit{}, runtimes.ExplainExec(c.e.info.Isolation, c.explain(ctx, "execute in", err))
	}
	exit := engine.ExitOfCode(int(answer.GetExitCode()))
	if err := c.findLostGuest(ctx, "execute in", exit); err != nil {
		return engine.Exit{}, err
	}
	// The error of a writer is ignored, as for the output of a container.
	if p.Stdout != nil {
		_, _ = p.Stdout.Write(answer.GetStdout())
	}
	if p.Stderr != nil {
		_, _ = p.Stderr.Write(answer.GetStderr())
	}
	return exit, nil
}

// Update changes the limits of the container as its timed step, and the limits of the pod before and after. During the step
// the pod has the wider of the old and new limits, because on v1 no cgroup can have more than its parent.
func (c *container) Update(ctx context.Context, r engine.Resources) error {
	if err := c.check("update"); err != nil {
		return err
	}
	c.updating.Lock()
	defer c.updating.Unlock()
	next := merged(c.limits, r)
	err := c.limitPod(wider(c.limits, next))
	if err == nil {
		request := &api.UpdateContainerResourcesRequest{ContainerId: c.name, Linux: c.e.handler.resources(r)}
		_, err = step(ctx, "", c.e.service.UpdateContainerResources, request)
	}
	if err == nil {
		err = c.limitPod(next)
	}
	if err != nil {
		return c.explain(ctx, "update", err)
	}
	return nil
}

// Stats makes the request that a kubelet makes.
func (c *container) Stats(ctx context.Context) (engine.Stats, error) {
	const op = "get the resource usage of"
	if err := c.check(op); err != nil {
		return engine.Stats{}, err
	}
	answer, err := step(ctx, "", c.e.service.ContainerStats, &api.ContainerStatsRequest{ContainerId: c.name})
	if err != nil {
		return engine.Stats{}, c.explain(ctx, op, err)
	}
	cpu, memory := answer.GetStats().GetCpu().GetUsageCoreNanoSeconds(), answer.GetStats().GetMemory().GetWorkingSetBytes()
	if cpu == nil || memory == nil {
		return engine.Stats{}, fmt.Errorf("%s container %q: %s reports none", op, c.id, c.e.service.title())
	}
	return engine.Stats{CPU: time.Duration(cpu.GetValue()), Memory: int64(memory.GetValue())}, nil
}

// explain wraps an error of the engine in the error of a call.
func (c *container) explain(ctx context.Context, op string, err error) error {
	return c.e.explain(ctx, fmt.Sprintf("%s container %q", op, c.id), err)
}
