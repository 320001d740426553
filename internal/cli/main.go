package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// Main executes the command line in the process's environment, handles signals and returns the exit code. The
// program must end right after.
func Main(args []string) int {
	closed := make(chan struct{}, 1)
	env := System()
	env.Stdout, env.Stderr = pipe{env.Stdout, closed}, pipe{env.Stderr, closed}
	app := New(env)
	ctx, interrupt := context.WithCancelCause(context.Background())
	signals := notify()
	ended := make(chan int, 2)
	go func() {
		select {
		case <-signals:
		case <-closed:
		}
		interrupt(ErrInterrupted) // the run ends in order
		<-signals
		app.Abandon() // the run ends at once
		ended <- ExitInterrupted
	}()
	go func() { ended <- app.Run(ctx, args) }()
	return <-ended
}

// notify subscribes to the signals that end the program. Signals that the process ignores from its start
// (nohup, or a background job of a script) stay ignored.
//
// SIGPIPE does not end the program, but notify subscribes to it. Its default action would kill the program in the
// middle of a run when the output pipe is closed, and leave containers behind. The kernel also sends it
// when a daemon exits during a call; that call then returns an error.
func notify() chan os.Signal {
	signals := make(chan os.Signal, 2)
	for _, s := range []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	return signals
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
