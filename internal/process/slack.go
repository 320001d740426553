package process

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// slack is how late timers of this program's own threads may fire, in nanoseconds.
//
// While any goroutine runs, Go's monitor thread wakes up every 20 µs, for as long as a
// child takes to be forked, too. In a virtual machine such a wake-up costs as much as it lets
// pass, on a CPU that may be the one which runs what is measured: a quarter of all that
// Touchstone took. It does nothing there that cannot wait for some milliseconds, and no
// other timer is set more finely.
const slack = 4_000_000

// usualSlack is the timer slack that the program was started with, which is the children's.
var usualSlack = sync.OnceValue(func() int {
	ns, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil || ns <= 0 {
		return 50_000 // the kernel's default
	}
	return ns
})

// setSlack sets the timer slack of all threads of this program, and so that of threads which
// these make. It is of no consequence if that is not allowed.
func setSlack(ns int) {
	tasks, _ := filepath.Glob("/proc/self/task/*")
	for _, task := range tasks {
		// The directory of the task itself has no such file.
		_ = os.WriteFile(filepath.Join("/proc", filepath.Base(task), "timerslack_ns"), []byte(strconv.Itoa(ns)), 0)
	}
}
