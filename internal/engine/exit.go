package engine

import (
	"context"
	"fmt"
	"syscall"
)

// lastSignal is the highest number of a signal.
const lastSignal = 64

// ExitOfCode translates the exit code of a container as runtimes and shells report it, in which 128+n means
// signal n. A program that exits with such a code by itself cannot be told from one that was killed.
func ExitOfCode(code int) Exit {
	if n := code - 128; n > 0 && n <= lastSignal {
		return Exit{Signal: syscall.Signal(n)}
	}
	return Exit{Code: code}
}

// RunToExit starts a created container and waits for its end, which must come with this exit code. Drivers
// try their targets with it.
func RunToExit(ctx context.Context, c Container, code int) error {
	if err := c.Start(ctx); err != nil {
		return err
	}
	exit, err := c.Wait(ctx)
	if err != nil {
		return err
	}
	if exit != (Exit{Code: code}) {
		return fmt.Errorf("the probe ended with %v instead of exit code %d", exit, code)
	}
	return nil
}
