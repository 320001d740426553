package process_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// shell returns a shell script as a program that writes its output to a file.
func shell(script string, output *os.File) process.Program {
	return process.Program{Args: []string{"/bin/sh", "-c", script}, Env: []string{"WORD=said"}, Stdout: output, Stderr: output}
}

func TestCall(t *testing.T) {
	l := launcher(t, process.Options{})
	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	must.Do(t, err)
	defer func() { _ = output.Close() }()
	// The program gets its environment, both files, no input, and its own process group.
	script := `read x && echo input; echo $WORD; echo complaint >&2; [ $$ = $(cut -d" " -f5 /proc/$$/stat) ] && exit 3`
	exit, err := l.Call(t.Context(), shell(script, output))
	if err != nil || exit.Status.ExitStatus() != 3 || exit.CPU <= 0 {
		t.Errorf("Call() = %+v, %v; want exit code 3 and some CPU time", exit, err)
	}
	if text, err := os.ReadFile(output.Name()); err != nil || string(text) != "said\ncomplaint\n" {
		t.Errorf("it printed %q, %v", text, err)
	}
	exit, err = l.Call(t.Context(), shell("kill -9 $$", output))
	if err != nil || exit.Status.Signal() != syscall.SIGKILL {
		t.Errorf("Call() = %+v, %v; want killed by signal 9", exit, err)
	}
	program := shell("", output)
	program.Args[0] = "/no/such/program"
	if _, err := l.Call(t.Context(), program); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing program: %v", err)
	}
}

// While strays are ignored, exits of children and adopted orphans are still reported. Strays are reaped afterwards.
func TestIgnoreStrays(t *testing.T) {
	l := launcher(t, process.Options{})
	l.IgnoreStrays(true)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				exit, err := l.Call(t.Context(), shell("exit 3", os.Stderr))
				if err != nil || exit.Status.ExitStatus() != 3 {
					t.Errorf("Call() = %+v, %v; want exit code 3", exit, err)
				}
				var exitErr *process.ExitError
				if err := l.Run(t.Context(), exec.Command("/bin/sh", "-c", "exit 4")); !errors.As(err, &exitErr) || exitErr.Exit.Status.ExitStatus() != 4 {
					t.Errorf("Run() = %v, want exit code 4", err)
				}
			}
		})
	}
	wg.Wait()
	adopted, release := orphan(t, l)
	stray, releaseStray := orphan(t, l)
	o := l.Adopt(adopted)
	release()
	releaseStray()
	<-o.Done()
	if got := o.Exit().Status.ExitStatus(); got != 7 {
		t.Errorf("exit status %d of the adopted orphan, want 7", got)
	}
	var info unix.Siginfo // of the zombie, which stays
	must.Do(t, unix.Waitid(unix.P_PID, stray, &info, unix.WEXITED|unix.WNOWAIT, nil))
	if err := syscall.Kill(stray, 0); err != nil {
		t.Errorf("the stray %d is already reaped: %v", stray, err)
	}
	l.IgnoreStrays(false)
	if err := syscall.Kill(stray, 0); !errors.Is(err, syscall.ESRCH) || l.Strays() == 0 {
		t.Errorf("the stray was not reaped: %v; there are %d", err, l.Strays())
	}
}

// A runtime can have children, leave its process group, start programs in sessions of their own (as sudo does), and leave orphans behind. All
// of them must be killed.
//
// Invariant call-limit: A call ends soon after its limit, wherever its processes have moved, and a process that cannot be killed blocks no other
// call, no exit and no shutdown.
func TestCancelledCallKillsDescendants(t *testing.T) {
	l := launcher(t, process.Options{})
	cause := errors.New("enough")
	const loop = "while :; do read x </dev/zero; done"
	for name, script := range map[string]string{
		"no child":                    `echo $$; ` + loop,
		"a child":                     `(` + loop + `) & echo $!; wait`,
		"another session":             `setsid sh -c 'echo $$; ` + loop + `'; :`,
		"another session of a child":  `(setsid sh -c 'echo $$; ` + loop + `' & wait); :`,
		"an orphan in a session":      `(setsid sh -c 'echo $$; ` + loop + `' &) & ` + loop,
		"a child that ignores SIGHUP": `(trap "" HUP TERM; echo $$; ` + loop + `)`,
	} {
		for method, run := range map[string]func(context.Context, string, *os.File) error{
			"Call": func(ctx context.Context, script string, output *os.File) error {
				_, err := l.Call(ctx, shell(script, output))
				return err
			},
			"Run": func(ctx context.Context, script string, output *os.File) error {
				cmd := exec.CommandContext(ctx, "/bin/sh", "-c", script)
				cmd.Stdout = output
				return l.Run(ctx, cmd)
			},
		} {
			t.Run(name+"/"+method, func(t *testing.T) {
				r, w, err := os.Pipe()
				must.Do(t, err)
				ctx, cancel := context.WithCancelCause(t.Context())
				go func() {
					pid := 0
					_, _ = fmt.Fscanln(r, &pid)
					cancel(cause)
				}()
				if err := run(ctx, script, w); !errors.Is(err, cause) {
					t.Errorf("%v, want the cause of the cancellation", err)
				}
				_ = w.Close()
				_, _ = io.Copy(io.Discard, r) // hangs while a descendant has the pipe
				_ = r.Close()
				if err := run(ctx, "echo started >&2", os.Stderr); method == "Call" && !errors.Is(err, cause) || err == nil {
					t.Errorf("%v after the end of the context, want its cause", err)
				}
			})
		}
	}
}

// A process that moves itself to another process group, such as the caller's, must be killed too.
//
// Invariant call-limit.
func TestCancelledCallKillsProcessOutsideItsGroup(t *testing.T) {
	if os.Getenv("TOUCHSTONE_TEST_LEAVE_GROUP") != "" {
		group, err := syscall.Getpgid(os.Getppid())
		if err == nil {
			err = syscall.Setpgid(0, group)
		}
		fmt.Println(err)
		_, _ = unix.Ppoll(nil, nil, nil) // forever
		return
	}
	l := launcher(t, process.Options{})
	self, err := os.Executable()
	must.Do(t, err)
	r, w, err := os.Pipe()
	must.Do(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(r).ReadString('\n')
		answer <- line
		cancel()
	}()
	_, err = l.Call(ctx, process.Program{
		Args: []string{self, "-test.run=^" + t.Name() + "$"}, Env: append(os.Environ(), "TOUCHSTONE_TEST_LEAVE_GROUP=1"), Stdout: w, Stderr: w,
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Call() = %v, want the cancellation", err)
	}
	if line := <-answer; line != "<nil>\n" {
		t.Errorf("the process did not leave its group: %s", line)
	}
	_, _ = r.Close(), w.Close()
}

// A cancelled command takes no other one with it, although a command that is just being started belongs to nobody yet.
func TestCancelledCallSparesOtherCalls(t *testing.T) {
	l := launcher(t, process.Options{})
	var isOver atomic.Bool
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for !isOver.Load() {
				if exit, err := l.Call(t.Context(), shell("sleep 0.05; exit 3", os.Stderr)); err != nil || exit.Status.ExitStatus() != 3 {
					t.Errorf("Call() = %v, %v beside a cancelled one, want exit code 3", exit.Status, err)
					return
				}
			}
		})
	}
	cancelled := 30
	if testing.Short() {
		cancelled = 5
	}
	for range cancelled {
		r, w, err := os.Pipe()
		must.Do(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, _ = r.Read(make([]byte, 1))
			cancel()
		}()
		if _, err := l.Call(ctx, shell("echo; while :; do read x </dev/zero; done", w)); !errors.Is(err, context.Canceled) {
			t.Errorf("Call() = %v, want the cancellation", err)
		}
		_, _ = r.Close(), w.Close()
	}
	isOver.Store(true)
	wg.Wait()
}

func BenchmarkCall(b *testing.B) {
	l, err := process.New(process.Options{})
	must.Do(b, err)
	defer func() { _ = l.Close() }()
	l.IgnoreStrays(true)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	p := process.Program{Args: []string{"/bin/true"}, Stdout: os.Stderr, Stderr: os.Stderr}
	for b.Loop() {
		_, err := l.Call(ctx, p)
		must.Do(b, err)
	}
}
