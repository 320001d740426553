package cri

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/touchstone-bench/touchstone/internal/engine/runtimes/kata"
)

// kill kills the processes of a pod while a request for it hangs. undo kills them again, and reports an error.
func (c *container) kill(ctx context.Context) {
	c.findSandboxes()
	_ = c.group.Kill(ctx)
}

// findSandboxes adds the virtual machines with a cgroup in the pod's cgroup to c.sandboxes. The response of a hanging call would name the
// pod, but only that cgroup shows it before the response.
func (c *container) findSandboxes() {
	if c.e.handler.guest == nil || c.group == nil {
		return
	}
	groups, err := c.group.Children()
	if err != nil {
		return // their files are left, and their processes are not
	}
	for _, group := range groups {
		if id := kata.SandboxOf(group); id != "" && !slices.Contains(c.sandboxes, id) {
			c.sandboxes = append(c.sandboxes, id)
		}
	}
}

// removeGuestFiles removes the files of the pod's virtual machine, which a shim that was killed has left.
func (c *container) removeGuestFiles() error {
	if c.e.handler.guest == nil {
		return nil
	}
	proc := "/proc/self"
	if private := c.e.service.private; private != nil {
		proc = fmt.Sprintf("/proc/%d", private.Daemon().PIDs[0])
	}
	for _, id := range append(slices.Clone(c.sandboxes), c.pod) {
		if err := kata.RemoveState(proc, c.e.service.socket, id); err != nil {
			return fmt.Errorf("clean up after container %q: %w", c.id, err)
		}
	}
	return nil
}

// hangLimit is the longest removal of a virtual machine. Kata's shim waits for a hypervisor without a limit.
const hangLimit = time.Minute

// removeByForce is remove. If a virtual machine is not removed within hangLimit, its processes are killed.
func (c *container) removeByForce(ctx context.Context) error {
	if c.e.handler.guest == nil || c.group == nil {
		return c.remove(ctx)
	}
	return removeHanging(ctx, c.remove, c.kill)
}

// removeHanging calls kill if remove takes longer than hangLimit. An error of that remove may be the effect of kill, so remove is tried again.
func removeHanging(ctx context.Context, remove func(context.Context) error, kill func(context.Context)) error {
	removeCtx, end := context.WithCancel(ctx)
	kills := make(chan bool, 1)
	go func() { kills <- unlessEnded(removeCtx, hangLimit, kill) }()
	err := remove(ctx)
	end()
	if hung := <-kills; err != nil && hung && ctx.Err() == nil {
		return remove(ctx)
	}
	return err
}

// watchGuest watches Kata's shim and the hypervisor of a pod in CRI-O. CRI-O reports no exit if the shim is killed, and the exit of the
// pod late if the hypervisor is killed.
func (c *container) watchGuest(ctx context.Context) error {
	snapshot, err := c.statusStep(ctx)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(c.e.service.bundles, c.pod, "userdata", "shim.pid"))
	if err != nil {
		return fmt.Errorf("find Kata's shim: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("find Kata's shim: %w", err)
	}
	ctx, c.unwatch = context.WithCancel(context.WithoutCancel(ctx))
	return errors.Join(
		c.watch(ctx, pid, func() {
			c.mu.Lock()
			c.shimless = true
			c.mu.Unlock()
			c.e.exits.lose(errLostGuest, c.name)
		}),
		c.watch(ctx, snapshot.pid, func() { c.e.exits.report(c.pod, unknownCode) }),
	)
}

// watch calls a function when a process has exited.
func (c *container) watch(ctx context.Context, pid int, callback func()) error {
	process, err := openProcess(pid)
	if err != nil {
		return fmt.Errorf("watch process %d of the virtual machine: %w", pid, err)
	}
	if process == nil {
		return errLostGuest
	}
	go func() {
		defer func() { _ = process.Close() }() // it is only polled
		if awaitExit(ctx, process) == nil {
			callback()
		}
	}()
	return nil
}

// abandon ends a virtual machine that CRI-O cannot remove. If its container was never started, CRI-O 1.34 waits two minutes for an exit that
// Kata's shim does not report, and then refuses. If the shim has exited, it refuses at once. The private CRI-O keeps the records of container
// and pod, and holds the log open, until it stops.
func (c *container) abandon(ctx context.Context) error {
	if err := c.group.Kill(ctx); err != nil {
		return err
	}
	c.log.Abandon()
	// CRI-O releases the pod's address, and then fails to reach the shim.
	_, _ = step(ctx, "StopPodSandbox", c.e.service.StopPodSandbox, &api.StopPodSandboxRequest{PodSandboxId: c.pod})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removed, c.abandoned = true, true
	return nil
}
