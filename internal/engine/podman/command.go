package podman

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// longestAnswer bounds the output that is read from Podman, in bytes.
const longestAnswer = 64 << 10

// invocation holds the parts of a Podman command that depend on the container's network.
type invocation struct {
	flags   []string // of the runtime
	bridged bool     // in the network namespace with the bridge
	env     []string // variables in addition to the environment of Podman
}

// command returns a Podman command on this target's directories. Its working directory is one of them, because conmon inherits it
// and makes the file "oom" there after a container has exceeded its memory limit.
func (e *Engine) command(ctx context.Context, call invocation, args ...string) *exec.Cmd {
	argv := []string{
		"--root", e.root(), "--runroot", e.runRoot(), "--tmpdir", e.tmpDir(), "--cgroup-manager", "cgroupfs",
		"--runtime", e.info.Binary,
	}
	for _, f := range call.flags {
		argv = append(argv, "--runtime-flag", strings.TrimPrefix(f, "--"))
	}
	cmd := exec.CommandContext(ctx, e.paths.podman, append(argv, args...)...)
	cmd.Env, cmd.Dir = append(e.environment(), call.env...), e.state
	if call.bridged {
		e.mounts.EnterBoth(cmd)
	} else {
		e.mounts.Enter(cmd)
	}
	return cmd
}

// change runs a Podman command that changes state. If ctx ends meanwhile, its cause is the error. The output is returned in any
// case.
func (e *Engine) change(ctx context.Context, call invocation, args ...string) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	inner, cancel := engine.WithGracePeriod(ctx, engine.UndoLimit)
	defer cancel()
	answer, err := e.run(inner, e.command(inner, call, args...))
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return answer, err
}

// run runs a Podman command and returns its standard output. The output goes to files in memory, because conmon would hold a
// pipe open.
func (e *Engine) run(ctx context.Context, cmd *exec.Cmd) (string, error) {
	if err := e.Broken(); err != nil {
		return "", err
	}
	var outputs [2]*os.File
	for n := range outputs {
		file, err := process.NewBlank()
		if err != nil {
			return "", fmt.Errorf("call Podman: %w", err)
		}
		outputs[n] = file
		defer func() { _ = file.Close() }() // it is in memory
	}
	cmd.Stdout, cmd.Stderr = outputs[0], outputs[1]
	err := e.Outcome(e.Session.Launcher.Run(ctx, cmd))
	if err != nil && ctx.Err() == nil {
		if _, hasExited := errors.AsType[*process.ExitError](err); hasExited {
			err = errors.New(message(contents(outputs[1]), err.Error()))
		}
	}
	return contents(outputs[0]), err
}

// contents reads a file of output.
func contents(f *os.File) string {
	text := process.Printed(f)
	return strings.ToValidUTF8(string(bytes.TrimSpace(text[:min(len(text), longestAnswer)])), "")
}

// longestMessage bounds the output in an error, in bytes. youki repeats its message at each layer.
const longestMessage = 1 << 10

// errorPrefix begins the last line of a failing Podman command.
const errorPrefix = "Error: "

// message extracts the error from the output of Podman and the runtime: all lines except Podman's log. The runtime's own message
// may precede Podman's, which then has only the exit code.
func message(output, fallback string) string {
	var lines []string
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "time=\"") {
			lines = append(lines, strings.TrimPrefix(line, errorPrefix))
		}
	}
	if len(lines) == 0 {
		return fallback
	}
	text := strings.Join(lines, "; ")
	return strings.ToValidUTF8(text[:min(len(text), longestMessage)], "")
}
