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
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// patience is how long a program may take before it counts as hanging. Nothing below waits
// for it unless something is broken.
const patience = 2 * time.Minute

// program is touchstone, being executed in a folder of its own.
type program struct {
	t      *testing.T
	cmd    *exec.Cmd
	lines  *bufio.Reader // of standard error
	stderr io.ReadCloser
	said   bytes.Buffer // what was read of it so far
	stdout bytes.Buffer
	// ended reads standard error to its end and waits for the program's, which it gives each time.
	ended func() (readErr, err error)
}

// start executes touchstone in a folder.
func start(t *testing.T, dir string, args ...string) *program {
	t.Helper()
	return startCommand(t, dir, append([]string{"touchstone"}, args...)...)
}

// startCommand executes a command that becomes touchstone in the end.
func startCommand(t *testing.T, dir string, argv ...string) *program {
	t.Helper()
	p := prepare(t, dir, argv...)
	p.run()
	return p
}

// prepare makes a program that run executes.
func prepare(t *testing.T, dir string, argv ...string) *program {
	t.Helper()
	return prepareFor(t, patience, dir, argv...)
}

// prepareFor is prepare for a program that has other work than most.
func prepareFor(t *testing.T, limit time.Duration, dir string, argv ...string) *program {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	p := &program{t: t, cmd: exec.CommandContext(ctx, argv[0], argv[1:]...)}
	p.cmd.Dir = dir
	p.cmd.Stdout = &p.stdout
	p.cmd.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+dir)
	var err error
	if p.stderr, err = p.cmd.StderrPipe(); err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewReader(p.stderr)
	return p
}

func (p *program) run() {
	p.t.Helper()
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.ended = sync.OnceValues(func() (error, error) {
		_, readErr := io.Copy(&p.said, p.lines)
		return readErr, p.cmd.Wait()
	})
	p.t.Cleanup(func() {
		// All are for a test that has failed.
		_ = p.cmd.Process.Kill()
		_ = p.stderr.Close()
		_, _ = p.ended()
	})
}

var progressLine = regexp.MustCompile(`^ *[0-9]+%  trial ([0-9]+) of [0-9]+  operations`)

// awaitProgress reads standard error up to a line of progress, and gives the number of the
// trial that has begun.
func (p *program) awaitProgress() int {
	p.t.Helper()
	for {
		line, err := p.lines.ReadString('\n')
		p.said.WriteString(line)
		if m := progressLine.FindStringSubmatch(line); m != nil {
			trial, err := strconv.Atoi(m[1])
			if err != nil {
				p.t.Fatal(err)
			}
			return trial
		}
		if err != nil {
			p.t.Fatalf("standard error ended (%v) without a line of progress:\n%s%s", err, p.said.String(), p.stdout.String())
		}
	}
}

func (p *program) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// ends waits for the end and checks the exit code, -1 for death by a signal. Where several
// are right, it depends on the host which one it is.
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

// says checks what the program has written, to standard error or output.
func (p *program) says(patterns ...string) {
	p.t.Helper()
	all := p.said.String() + p.stdout.String()
	for _, pattern := range patterns {
		if !regexp.MustCompile("(?m)" + pattern).MatchString(all) {
			p.t.Errorf("touchstone %s does not say %q:\n%s", strings.Join(p.cmd.Args[1:], " "), pattern, all)
		}
	}
}

// export gives a run that is kept in a folder.
func export(t *testing.T, dir, ref string) result.Run {
	t.Helper()
	p := start(t, dir, "export", ref)
	p.ends(0)
	document, err := result.Decode(&p.stdout)
	if err != nil {
		t.Fatal(err)
	}
	return document.Runs[0]
}
