package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/parts"
)

// Main executes the command line in the process's environment, handles signals and returns the exit code. The
// program must end right after.
func Main(args []string) int { return execute(System(), args) }

func execute(env Environment, args []string) int {
	hangup := make(chan struct{}, 1)
	env.Stdout, env.Stderr = pipe{env.Stdout, hangup}, pipe{env.Stderr, hangup}
	app := New(env)
	if err := parts.Prepend(); err != nil {
		app.line(fmt.Sprintf("touchstone: not all programs of touchstone setup are used: %v", err))
	}
	return app.supervise(hangup, func(ctx context.Context) int { return app.Run(ctx, args) })
}

// supervise calls run, whose context the first signal cancels. The second signal abandons the run.
func (a *App) supervise(hangup <-chan struct{}, run func(context.Context) int) int {
	ctx, interrupt := context.WithCancelCause(context.Background())
	signals, handled := notify()
	codes := make(chan int, 2)
	go func() {
		select {
		case <-signals:
		case <-hangup:
		}
		interrupt(ErrInterrupted) // the run ends in order
		<-signals
		// A third signal has the kernel's default effect: it ends the program at once, also if the clean-up hangs.
		signal.Reset(handled...)
		a.Abandon() // the run ends at once
		codes <- ExitInterrupted
	}()
	go func() { codes <- run(ctx) }()
	return <-codes
}

// notify subscribes to the signals that end the program, and returns them. Signals that the process ignores from its start
// (nohup, or a background job of a script) stay ignored.
//
// SIGPIPE does not end the program, but notify subscribes to it. Its default action would kill the program in the
// middle of a run when the output pipe is closed, and leave containers behind. The kernel also sends it
// when a daemon exits during a call; that call then returns an error.
func notify() (signals chan os.Signal, handled []os.Signal) {
	signals = make(chan os.Signal, 2)
	for _, s := range []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
			handled = append(handled, s)
		}
	}
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	return signals, handled
}

// pipe is an output stream. When its reader has closed it, the run ends in order. A
// closed pipe never counts as the user's second signal.
type pipe struct {
	io.Writer
	closed chan<- struct{}
}

func (p pipe) Write(b []byte) (int, error) {
	n, err := p.Writer.Write(b)
	if errors.Is(err, unix.EPIPE) {
		select {
		case p.closed <- struct{}{}:
		default: // already reported
		}
	}
	return n, err
}
