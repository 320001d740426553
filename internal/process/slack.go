package process

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// slack is the timer slack of this program's own threads, in nanoseconds: the longest delay of their timers.
//
// While a goroutine runs, Go's monitor thread wakes up every 20 µs, also during a fork. In a virtual machine a wake-up costs
// about as much time as there is between two, perhaps on the CPU of the measured container. It was a quarter of Touchstone's total
// overhead. The work of the monitor thread can wait for some milliseconds, and no other timer of Touchstone is finer.
const slack = 4_000_000

// usualSlack returns the timer slack that the program was started with. Children have this slack.
var usualSlack = sync.OnceValue(func() int {
	ns, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil || ns <= 0 {
		return 50_000 // the kernel's default
	}
	return ns
})

// setSlack sets the timer slack of all threads of this program. Their new threads inherit it. Missing permission is not an error: the
// slack only reduces overhead.
func setSlack(ns int) {
	tasks, _ := filepath.Glob("/proc/self/task/*")
	for _, task := range tasks {
		// /proc/self/task/*/ has no timerslack_ns, but /proc/TID has.
		_ = os.WriteFile(filepath.Join("/proc", filepath.Base(task), "timerslack_ns"), []byte(strconv.Itoa(ns)), 0)
	}
}
