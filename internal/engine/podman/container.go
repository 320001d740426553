package podman

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/crilog"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// container is a container of Podman.
type container struct {
	e      *Engine
	name   string
	id     string // Podman's own
	log    string // file
	how    invocation
	group  *cgroup.Group
	output *crilog.Follower
	exit   *exit

	mu      sync.Mutex
	conmon  *process.Process // nil until started
	started bool
	deleted bool
}

func (b *container) ID() string { return b.name }

func (b *container) conmonFile() string { return b.log + ".conmon" }

// entrypoint encodes a program with its arguments as a list for Podman.
func entrypoint(args []string) string {
	list, _ := json.Marshal(args) // strings always can
	return string(list)
}

// call runs a Podman command on the container.
func (b *container) call(ctx context.Context, op string, args ...string) (string, error) {
	b.mu.Lock()
	isDeleted := b.deleted
	b.mu.Unlock()
	if isDeleted {
		return "", fmt.Errorf("%s container %q: it has been deleted", op, b.name)
	}
	answer, err := b.e.change(ctx, b.how, append(args, b.id)...)
	if err != nil {
		return "", b.explain(op, err)
	}
	return answer, nil
}

// explain adds the operation and the container to an error.
func (b *container) explain(op string, err error) error {
	return fmt.Errorf("%s container %q with %s: %w", op, b.name, b.e.info.Target, err)
}

func (b *container) Start(ctx context.Context) error {
	err := engine.Call(ctx, func() error {
		_, err := b.call(ctx, "start", "start")
		return err
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deleted {
		return err
	}
	b.started = err == nil
	if err == nil && b.e.runtime.UsesKVM(b.e.info.Target) {
		err = b.proveKVM()
	}
	return errors.Join(err, b.adopt())
}

// proveKVM checks that the container's sandbox runs on KVM.
func (b *container) proveKVM() error {
	var pids []int
	err := runtimes.ErrNoProofOfKVM
	if b.group != nil {
		pids, err = b.group.Procs()
	}
	if err == nil {
		err = runtimes.ProveKVM(pids...)
	}
	if err != nil {
		return b.explain("start", err)
	}
	return nil
}

// adopt makes the launcher reap conmon, if it runs. b.mu is held.
func (b *container) adopt() error {
	pid, err := engine.ReadPID(b.conmonFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return b.explain("find the conmon of", err)
	}
	b.conmon = b.e.Session.Launcher.Adopt(pid)
	return nil
}

func (b *container) ended() bool { return engine.Ended(b.exit.done) }

func (b *container) Kill(ctx context.Context, signal syscall.Signal) error {
	if b.ended() {
		return nil
	}
	_, err := b.call(ctx, "kill", "kill", "--signal", strconv.Itoa(int(signal)))
	if err != nil && ctx.Err() == nil && b.ended() { // it exited in the meantime
		return nil
	}
	return err
}

func (b *container) Wait(ctx context.Context) (engine.Exit, error) {
	if !b.ended() { // a known exit is returned even if the context has ended
		b.mu.Lock()
		var monitor <-chan struct{}
		if b.conmon != nil {
			monitor = b.conmon.Done()
		}
		b.mu.Unlock()
		if err := engine.Call(ctx, func() error {
			select {
			case <-b.exit.done:
			case <-monitor:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			return nil
		}); err != nil {
			return engine.Exit{}, b.explain("wait for", err)
		}
		if !b.ended() && !b.e.exits.known(b.id) {
			if err := b.findExit(ctx); err != nil && !b.ended() { // Delete ends the wait too
				return engine.Exit{}, err
			}
		}
	}
	if b.exit.err != nil {
		return engine.Exit{}, b.explain("wait for", b.exit.err)
	}
	return b.exit.Exit, nil
}

// findExit takes the exit from Podman's records, without an exit file. At the exit of a container conmon calls Podman's clean-up, which
// records the exit code and removes the file. On a busy host it can remove the file before its event was handled.
func (b *container) findExit(ctx context.Context) error {
	const op = "wait for"
	text, err := b.call(ctx, op, "container", "inspect", "--format", "{{.State.Status}} {{.State.ExitCode}}")
	if err != nil {
		return err
	}
	code, ok := strings.CutPrefix(text, "exited ")
	n, err := strconv.Atoi(code)
	if !ok || err != nil || n < 0 {
		return b.explain(op, fmt.Errorf("conmon exited without an exit file for the container, which Podman describes as %q", text))
	}
	b.e.exits.finish(b.id, engine.ExitOfCode(n), nil)
	return nil
}

func (b *container) State(ctx context.Context) (engine.State, error) {
	status, err := b.call(ctx, "query the state of", "container", "inspect", "--format", "{{.State.Status}}")
	if err != nil {
		return "", err
	}
	switch status {
	case "configured", "created", "initialized":
		return engine.Created, nil
	case "stopping": // Podman has sent a signal
		return engine.Running, nil
	case "exited", "removing":
		return engine.Stopped, nil
	}
	return engine.State(status), nil
}

func (b *container) Delete(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deleted {
		return nil
	}
	isLost := b.lost()
	if _, err := b.e.change(ctx, b.how, "rm", "--force", "--ignore", "--time", "0", "--volumes", b.id); err != nil {
		return b.explain("delete", err)
	}
	if isLost {
		b.deleteOCI(ctx)
	}
	if b.conmon == nil { // a cancelled start may have started conmon
		if err := b.adopt(); err != nil {
			return err
		}
	}
	if b.conmon != nil {
		if err := engine.Await(ctx, b.conmon.Done()); err != nil {
			return b.explain("delete", fmt.Errorf("wait for the exit of conmon: %w", err))
		}
	}
	if b.group != nil {
		// runsc leaves the cgroup behind if the container was paused or did not start.
		if err := b.group.Destroy(ctx); err != nil {
			return b.explain("delete", err)
		}
	}
	if b.output != nil {
		if err := b.output.Finish(ctx); err != nil {
			return b.explain("delete", err)
		}
	}
	if b.started {
		b.e.exits.finish(b.id, engine.Exit{Signal: syscall.SIGKILL}, nil) // the removal killed it
	} else {
		b.e.exits.finish(b.id, engine.Exit{}, errors.New("it was removed before its process ran"))
	}
	// A late conmon may have written the exit file again.
	for _, file := range []string{b.log, b.conmonFile(), filepath.Join(b.e.exitDir(), b.id)} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return b.explain("delete", err)
		}
	}
	b.deleted = true
	b.e.mu.Lock()
	delete(b.e.containers, b.id)
	b.e.mu.Unlock()
	return nil
}

// lost reports whether conmon has exited without an exit file. b.mu is held.
func (b *container) lost() bool {
	return b.conmon != nil && engine.Ended(b.conmon.Done()) && !b.e.exits.known(b.id)
}

// deleteOCI removes a container from the runtime. Podman leaves that to the command that conmon calls at its exit. The runtime may
// have removed the container before.
func (b *container) deleteOCI(ctx context.Context) {
	args := append(slices.Clone(b.how.flags), "delete", "--force", b.id)
	cmd := exec.CommandContext(ctx, b.e.info.Binary, args...)
	b.e.mounts.Enter(cmd)
	_ = b.e.Session.Launcher.Run(ctx, cmd)
}

func (b *container) Pause(ctx context.Context) error {
	_, err := b.call(ctx, "pause", "pause")
	return err
}

func (b *container) Resume(ctx context.Context) error {
	_, err := b.call(ctx, "resume", "unpause")
	return err
}

func (b *container) Update(ctx context.Context, r engine.Resources) error {
	_, err := b.call(ctx, "update", append([]string{"update"}, limits(r)...)...)
	return err
}

// notRun reports whether an exit code of podman exec can mean that the process did not run. A process may exit with it too.
func notRun(code int) bool { return code >= 125 && code <= 127 || code == 255 }

// Exec runs a further process until it exits.
func (b *container) Exec(ctx context.Context, p engine.Process) (engine.Exit, error) {
	if b.ended() {
		return engine.Exit{}, fmt.Errorf("execute in container %q: its process has exited", b.name)
	}
	fail := func(err error) (engine.Exit, error) {
		return engine.Exit{}, runtimes.ExplainExec(b.e.info.Isolation, b.explain("execute in", err))
	}
	var out process.Output
	if err := out.Open(p.Stdout, p.Stderr); err != nil {
		return fail(err)
	}
	env, err := b.e.variables(b.name, p.Env)
	if err != nil {
		_ = out.Close() // it is empty
		return fail(err)
	}
	call := b.how
	call.env = env.own
	cmd := b.e.command(ctx, call, slices.Concat([]string{"exec", "--workdir", "/"}, env.args, []string{b.id}, p.Args)...)
	out.Set(cmd)
	done, err := b.e.Session.Launcher.Start(cmd)
	_ = out.Close() // the child has its own copies
	if err != nil {
		return fail(errors.Join(err, env.remove()))
	}
	status := (<-done).Status
	if err := env.remove(); err != nil {
		return fail(err)
	}
	if err := out.Wait(ctx); err != nil {
		return fail(err)
	}
	output := strings.TrimSpace(out.Tail())
	switch {
	case ctx.Err() != nil:
		return fail(context.Cause(ctx))
	case status.Signaled():
		return fail(fmt.Errorf("podman exec was killed by signal %d (%s)", int(status.Signal()), status.Signal()))
	case notRun(status.ExitStatus()) && strings.Contains("\n"+output, "\n"+errorPrefix):
		return fail(errors.New(message(output, "podman exec failed")))
	}
	return engine.ExitOfCode(status.ExitStatus()), nil
}
