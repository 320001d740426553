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
	"github.com/touchstone-bench/touchstone/internal/process"
)

// box is a container of Podman.
type box struct {
	e      *Engine
	name   string
	id     string // Podman's own
	log    string // file
	manner manner
	group  *cgroup.Group
	output *crilog.Follower
	exit   *exit

	mu      sync.Mutex
	conmon  *process.Orphan // nil until started
	started bool
	deleted bool
}

func (b *box) ID() string { return b.name }

func (b *box) conmonFile() string { return b.log + ".conmon" }

// entrypoint spells a program with its arguments as Podman takes it for a list.
func entrypoint(args []string) string {
	list, _ := json.Marshal(args) // strings always can
	return string(list)
}

// call runs a Podman command on the container.
func (b *box) call(ctx context.Context, op string, args ...string) (string, error) {
	b.mu.Lock()
	deleted := b.deleted
	b.mu.Unlock()
	if deleted {
		return "", fmt.Errorf("%s container %q: it has been deleted", op, b.name)
	}
	answer, err := b.e.change(ctx, b.manner, append(args, b.id)...)
	if err != nil {
		return "", b.explain(op, err)
	}
	return answer, nil
}

// explain says what a call did to the container and why it failed.
func (b *box) explain(op string, err error) error {
	return fmt.Errorf("%s container %q with %s: %w", op, b.name, b.e.info.Target, err)
}

func (b *box) Start(ctx context.Context) error {
	_, err := b.call(ctx, "start", "start")
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deleted {
		return err
	}
	b.started = err == nil
	return errors.Join(err, b.adopt())
}

// adopt takes over conmon, if there is one. b.mu is held.
func (b *box) adopt() error {
	text, err := os.ReadFile(b.conmonFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return b.explain("find the conmon of", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return b.explain("find the conmon of", fmt.Errorf("its pid file says %.20q", text))
	}
	b.conmon = b.e.session.Launcher.Adopt(pid)
	return nil
}

func (b *box) ended() bool {
	select {
	case <-b.exit.done:
		return true
	default:
		return false
	}
}

func (b *box) Kill(ctx context.Context, signal syscall.Signal) error {
	if b.ended() {
		return nil
	}
	_, err := b.call(ctx, "kill", "kill", "--signal", strconv.Itoa(int(signal)))
	if err != nil && ctx.Err() == nil && b.ended() { // while we were about it
		return nil
	}
	return err
}

func (b *box) Wait(ctx context.Context) (engine.Exit, error) {
	if !b.ended() { // an exit that is known is told even to a caller whose time is up
		b.mu.Lock()
		var monitor <-chan struct{}
		if b.conmon != nil {
			monitor = b.conmon.Done()
		}
		b.mu.Unlock()
		select {
		case <-b.exit.done:
		case <-monitor:
			if !b.e.exits.known(b.id) {
				return engine.Exit{}, b.explain("wait for", errors.New("conmon has ended without a word of how the container did"))
			}
		case <-ctx.Done():
			return engine.Exit{}, b.explain("wait for", context.Cause(ctx))
		}
	}
	if b.exit.err != nil {
		return engine.Exit{}, b.explain("wait for", b.exit.err)
	}
	return b.exit.Exit, nil
}

func (b *box) State(ctx context.Context) (engine.State, error) {
	status, err := b.call(ctx, "ask for the state of", "container", "inspect", "--format", "{{.State.Status}}")
	if err != nil {
		return "", err
	}
	switch status {
	case "configured", "created", "initialized":
		return engine.Created, nil
	case "stopping": // a signal is on its way
		return engine.Running, nil
	case "exited", "removing":
		return engine.Stopped, nil
	}
	return engine.State(status), nil
}

func (b *box) Delete(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deleted {
		return nil
	}
	lost := b.lost()
	if _, err := b.e.change(ctx, b.manner, "rm", "--force", "--ignore", "--time", "0", "--volumes", b.id); err != nil {
		return b.explain("delete", err)
	}
	if lost {
		b.deleteOCI(ctx)
	}
	if b.conmon == nil { // unless a start that was given up got that far
		if err := b.adopt(); err != nil {
			return err
		}
	}
	if b.conmon != nil {
		select {
		case <-b.conmon.Done():
		case <-ctx.Done():
			return b.explain("delete", fmt.Errorf("wait for the end of conmon: %w", context.Cause(ctx)))
		}
	}
	if b.group != nil {
		// runsc leaves it behind if the container was paused or did not start.
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
		b.e.exits.settle(b.id, engine.Exit{Signal: syscall.SIGKILL}, nil) // which is how it was removed
	} else {
		b.e.exits.settle(b.id, engine.Exit{}, errors.New("it was removed before its process ran"))
	}
	// The exit file is there again if conmon came late.
	for _, file := range []string{b.log, b.conmonFile(), filepath.Join(b.e.exitDir(), b.id)} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return b.explain("delete", err)
		}
	}
	b.deleted = true
	b.e.mu.Lock()
	delete(b.e.boxes, b.id)
	b.e.mu.Unlock()
	return nil
}

// lost tells whether conmon has ended without telling how the container did. b.mu is held.
func (b *box) lost() bool {
	if b.conmon == nil {
		return false
	}
	select {
	case <-b.conmon.Done():
		return !b.e.exits.known(b.id)
	default:
		return false
	}
}

// deleteOCI removes a container from the runtime: Podman leaves that to what conmon calls at its end. The
// runtime may not know it any more.
func (b *box) deleteOCI(ctx context.Context) {
	args := append(slices.Clone(b.manner.flags), "delete", "--force", b.id)
	cmd := exec.CommandContext(ctx, b.e.info.Binary, args...)
	b.e.mounts.Enter(cmd)
	_ = b.e.session.Launcher.Run(ctx, cmd)
}

// undo removes a container whose creation failed or was given up.
func (b *box) undo(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
	defer cancel()
	return b.Delete(ctx)
}

func (b *box) Pause(ctx context.Context) error {
	_, err := b.call(ctx, "pause", "pause")
	return err
}

func (b *box) Resume(ctx context.Context) error {
	_, err := b.call(ctx, "resume", "unpause")
	return err
}

func (b *box) Update(ctx context.Context, r engine.Resources) error {
	_, err := b.call(ctx, "update", append([]string{"update"}, limits(r)...)...)
	return err
}

// notRun are the exit codes by which podman exec says that the process did not run, or by which a process ended.
func notRun(code int) bool { return code >= 125 && code <= 127 || code == 255 }

// Exec runs a further process and waits for its end.
func (b *box) Exec(ctx context.Context, p engine.Process) (engine.Exit, error) {
	if b.ended() {
		return engine.Exit{}, fmt.Errorf("execute in container %q: its process has ended", b.name)
	}
	var out process.Output
	if err := out.Open(p.Stdout, p.Stderr); err != nil {
		return engine.Exit{}, b.explain("execute in", err)
	}
	args := []string{"exec", "--workdir", "/"}
	for _, v := range p.Env {
		args = append(args, "--env", v)
	}
	cmd := b.e.command(ctx, b.manner, append(append(args, b.id), p.Args...)...)
	out.Set(cmd)
	done, err := b.e.session.Launcher.Start(cmd)
	_ = out.Close() // our copies
	if err != nil {
		return engine.Exit{}, b.explain("execute in", err)
	}
	status := (<-done).Status
	if err := out.Wait(ctx); err != nil {
		return engine.Exit{}, b.explain("execute in", err)
	}
	said := strings.TrimSpace(out.Tail())
	switch {
	case ctx.Err() != nil:
		return engine.Exit{}, b.explain("execute in", context.Cause(ctx))
	case status.Signaled():
		return engine.Exit{}, b.explain("execute in", fmt.Errorf("podman exec was killed by signal %d (%s)", int(status.Signal()), status.Signal()))
	case notRun(status.ExitStatus()) && strings.Contains("\n"+said, "\n"+errorPrefix):
		return engine.Exit{}, b.explain("execute in", &PodmanError{Message: message(said, "podman exec failed")})
	}
	return engine.ExitOfCode(status.ExitStatus()), nil
}
