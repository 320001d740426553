package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// Main is the program: it executes the command line in the real surroundings, obeys
// signals and gives the exit code. The program must end right after.
func Main(args []string) int {
	unread := make(chan struct{}, 1)
	env := System()
	env.Stdout, env.Stderr = reader{env.Stdout, unread}, reader{env.Stderr, unread}
	app := New(env)
	ctx, interrupt := context.WithCancelCause(context.Background())
	signals := notify()
	ended := make(chan int, 2)
	go func() {
		select {
		case <-signals:
		case <-unread:
		}
		interrupt(ErrInterrupted) // the run ends in order
		<-signals
		app.Abandon() // the run ends at once
		ended <- ExitInterrupted
	}()
	go func() { ended <- app.Run(ctx, args) }()
	return <-ended
}

// notify asks for the signals that end the program. Those that it was started to ignore
// (by nohup, or as a job of a script) stay ignored.
//
// SIGPIPE is not among them, but must be asked for: else it would kill the program in the middle of
// a run when nobody reads its output any more, and leave its containers behind. It also comes when a
// daemon has died that is being talked to, which is an error of that call and no more.
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

// reader is somebody who reads what the program prints. That he is gone ends a run in order, and does not
// count as a user's second signal.
type reader struct {
	io.Writer
	gone chan<- struct{}
}

func (r reader) Write(p []byte) (int, error) {
	n, err := r.Writer.Write(p)
	if errors.Is(err, unix.EPIPE) {
		select {
		case r.gone <- struct{}{}:
		default: // it is known
		}
	}
	return n, err
}
