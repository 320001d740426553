package engine

import (
	"context"
	"fmt"
	"syscall"
)

// lastSignal is the highest number of a signal.
const lastSignal = 64

// ExitOfCode translates the exit code of a container. Runtimes and shells report signal n as 128+n. A program that exits with
// such a code by itself is indistinguishable from a killed one.
func ExitOfCode(code int) Exit {
	if n := code - 128; n > 0 && n <= lastSignal {
		return Exit{Signal: syscall.Signal(n)}
	}
	return Exit{Code: code}
}

// RunToExit starts a created container and checks its exit code. Drivers use it for their test containers.
func RunToExit(ctx context.Context, c Container, code int) error {
	if err := c.Start(ctx); err != nil {
		return err
	}
	exit, err := c.Wait(ctx)
	if err != nil {
		return err
	}
	if exit != (Exit{Code: code}) {
		return fmt.Errorf("the probe exited with %v instead of exit code %d", exit, code)
	}
	return nil
}
