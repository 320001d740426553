package engine

import "syscall"

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
