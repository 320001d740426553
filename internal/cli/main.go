package cli

import (
	"context"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// Main is the program: it executes the command line in the real surroundings, obeys
// signals and gives the exit code. The program must end right after.
func Main(args []string) int {
	app := New(System())
	ctx, interrupt := context.WithCancelCause(context.Background())
	signals, pipes := notify()
	ended := make(chan int, 2)
	go func() {
		select {
		case <-signals:
		case <-pipes:
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
// Writing to a pipe that nobody reads any more raises SIGPIPE, each time. It must not
// kill the program in the middle of a run, which would leave its containers behind, and
// does not count as a user's second signal.
func notify() (signals, pipes chan os.Signal) {
	signals, pipes = make(chan os.Signal, 2), make(chan os.Signal, 1)
	for _, s := range []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	signal.Notify(pipes, unix.SIGPIPE)
	return signals, pipes
}
