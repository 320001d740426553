package podman

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// longestAnswer bounds what is read of what Podman prints, in bytes.
const longestAnswer = 64 << 10

// PodmanError is what Podman said when a command went wrong.
type PodmanError struct {
	Message string // from its standard error, or how it ended
	Exit    process.Exit
}

func (e *PodmanError) Error() string { return e.Message }

// manner is how Podman is called for a container.
type manner struct {
	flags   []string // of the runtime
	bridged bool     // in the network namespace that has the bridge
}

// command is a Podman command on this target's directories.
func (e *Engine) command(ctx context.Context, m manner, args ...string) *exec.Cmd {
	all := []string{
		"--root", e.root(), "--runroot", e.runRoot(), "--tmpdir", e.tmpDir(), "--cgroup-manager", "cgroupfs",
		"--runtime", e.info.Binary,
	}
	for _, f := range m.flags {
		all = append(all, "--runtime-flag", strings.TrimPrefix(f, "--"))
	}
	cmd := exec.CommandContext(ctx, e.paths.podman, append(all, args...)...)
	cmd.Env, cmd.Dir = e.environment(), "/"
	if m.bridged {
		e.mounts.EnterBoth(cmd)
	} else {
		e.mounts.Enter(cmd)
	}
	return cmd
}

// change runs a Podman command that changes something. If the caller has given up meanwhile that is the error,
// and what was printed is given all the same.
func (e *Engine) change(ctx context.Context, m manner, args ...string) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	inner, cancel := engine.WithGracePeriod(ctx, undoLimit)
	defer cancel()
	answer, err := e.run(inner, e.command(inner, m, args...))
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return answer, err
}

// run runs a Podman command and gives what it prints on standard output. It prints into files in memory: a pipe
// would be held open by what the command leaves behind.
func (e *Engine) run(ctx context.Context, cmd *exec.Cmd) (string, error) {
	var printed [2]*os.File
	for n := range printed {
		fd, err := unix.MemfdCreate("printed", unix.MFD_CLOEXEC)
		if err != nil {
			return "", fmt.Errorf("make a file for what Podman prints: %w", err)
		}
		printed[n] = os.NewFile(uintptr(fd), "printed")
		defer func() { _ = printed[n].Close() }() // it is in memory
	}
	cmd.Stdout, cmd.Stderr = printed[0], printed[1]
	err := e.session.Launcher.Run(ctx, cmd)
	if err != nil && ctx.Err() == nil {
		var ended *process.ExitError
		if errors.As(err, &ended) {
			err = &PodmanError{Message: message(contents(printed[1]), err.Error()), Exit: ended.Exit}
		}
	}
	return contents(printed[0]), err
}

// contents reads what was printed. What cannot be read is missing from a message, no more.
func contents(f *os.File) string {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return ""
	}
	text, _ := io.ReadAll(io.LimitReader(f, longestAnswer))
	return strings.ToValidUTF8(string(bytes.TrimSpace(text)), "")
}

// longestMessage bounds what an error says of what was printed, in bytes: youki repeats itself at each layer.
const longestMessage = 1 << 10

// errorPrefix begins the line with which a Podman command ends that fails.
const errorPrefix = "Error: "

// message takes from what Podman and the runtime printed what tells of the error: all but the lines of Podman's
// log. The runtime's own words may stand before Podman's, which then has only its exit code.
func message(printed, otherwise string) string {
	var lines []string
	for line := range strings.Lines(printed) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "time=\"") {
			lines = append(lines, strings.TrimPrefix(line, errorPrefix))
		}
	}
	if len(lines) == 0 {
		return otherwise
	}
	all := strings.Join(lines, "; ")
	return strings.ToValidUTF8(all[:min(len(all), longestMessage)], "")
}
