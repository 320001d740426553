package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// patience is the time after which a program counts as hanging. Only a broken program takes that long.
const patience = 15 * time.Minute

// program is a touchstone process in a folder of its own.
type program struct {
	t      *testing.T
	cmd    *exec.Cmd
	lines  *bufio.Reader // of standard error
	stderr io.ReadCloser
	said   bytes.Buffer // standard error so far
	stdout bytes.Buffer
	// ended reads standard error to its end and waits for the exit. It returns the same errors each time.
	ended func() (readErr, err error)
}

// start executes touchstone in a folder.
func start(t *testing.T, dir string, args ...string) *program {
	t.Helper()
	return startCommand(t, dir, append([]string{"touchstone"}, args...)...)
}

// startNarrow is startCommand with a pipe of one page for standard error. Lines of progress fill it, so the program cannot end before the test
// reads on.
func startNarrow(t *testing.T, dir string, argv ...string) *program {
	t.Helper()
	p := prepare(t, dir, argv...)
	pipe, err := p.stderr.(syscall.Conn).SyscallConn()
	must.Do(t, err)
	var failed error
	err = pipe.Control(func(fd uintptr) { _, failed = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, os.Getpagesize()) })
	if err := errors.Join(err, failed); err != nil {
		t.Fatalf("make the pipe of standard error small: %v", err)
	}
	p.run()
	return p
}

// startCommand executes a command that finally executes touchstone.
func startCommand(t *testing.T, dir string, argv ...string) *program {
	t.Helper()
	p := prepare(t, dir, argv...)
	p.run()
	return p
}

// startSmall is start with 256 MiB of memory. A program with the race detector reserves more, and cannot begin.
func startSmall(t *testing.T, dir string, args ...string) *program {
	t.Helper()
	if info, has := debug.ReadBuildInfo(); has && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector reserves more memory than the program may have")
	}
	return startCommand(t, dir, append([]string{"prlimit", "--data=268435456", "touchstone"}, args...)...)
}

// prepare returns a program that run starts.
func prepare(t *testing.T, dir string, argv ...string) *program {
	t.Helper()
	return prepareFor(t, patience, dir, argv...)
}

func prepareFor(t *testing.T, limit time.Duration, dir string, argv ...string) *program {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	p := &program{t: t, cmd: exec.CommandContext(ctx, argv[0], argv[1:]...)}
	p.cmd.Dir = dir
	p.cmd.Stdout = &p.stdout
	p.cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CACHE_HOME=", "TMPDIR="+dir)
	var err error
	if p.stderr, err = p.cmd.StderrPipe(); err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewReader(p.stderr)
	return p
}

func (p *program) run() {
	p.t.Helper()
	must.Do(p.t, p.cmd.Start())
	p.ended = sync.OnceValues(func() (error, error) {
		_, readErr := io.Copy(&p.said, p.lines)
		return readErr, p.cmd.Wait()
	})
	p.t.Cleanup(func() {
		// Both errors are for the message of a failed test.
		_ = p.cmd.Process.Kill()
		_ = p.stderr.Close()
		_, _ = p.ended()
	})
}

var progressLine = regexp.MustCompile(`^ *[0-9]+%  trial ([0-9]+) of [0-9]+  operations`)

// awaitProgress reads standard error up to a line of progress, and returns the number of the trial in it.
func (p *program) awaitProgress() int {
	p.t.Helper()
	for {
		line, err := p.lines.ReadString('\n')
		p.said.WriteString(line)
		if m := progressLine.FindStringSubmatch(line); m != nil {
			trial, err := strconv.Atoi(m[1])
			must.Do(p.t, err)
			return trial
		}
		if err != nil {
			p.t.Fatalf("standard error ended (%v) without a line of progress:\n%s%s", err, p.said.String(), p.stdout.String())
		}
	}
}

func (p *program) signal(s os.Signal) {
	p.t.Helper()
	must.Do(p.t, p.cmd.Process.Signal(s))
}

// ends waits for the exit and checks the exit code, which is -1 after a signal. It accepts several codes if the right
// one depends on the host.
func (p *program) ends(codes ...int) {
	p.t.Helper()
	readErr, err := p.ended()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	if got := p.cmd.ProcessState.ExitCode(); !slices.Contains(codes, got) || strings.Contains(p.said.String(), "goroutine ") {
		p.t.Fatalf("touchstone %s: exit code %d (%v), want %v; read: %v\nstderr:\n%s\nstdout:\n%s",
			strings.Join(p.cmd.Args[1:], " "), got, p.cmd.ProcessState, codes, readErr, p.said.String(), p.stdout.String())
	}
}

// says checks standard error and standard output.
func (p *program) says(patterns ...string) {
	p.t.Helper()
	text := p.said.String() + p.stdout.String()
	for _, pattern := range patterns {
		if !regexp.MustCompile("(?m)" + pattern).MatchString(text) {
			p.t.Errorf("touchstone %s does not print %q:\n%s", strings.Join(p.cmd.Args[1:], " "), pattern, text)
		}
	}
}

func export(t *testing.T, dir, ref string) result.Run {
	t.Helper()
	p := start(t, dir, "export", ref)
	p.ends(0)
	document, err := result.Decode(&p.stdout)
	must.Do(t, err)
	return document.Runs[0]
}
