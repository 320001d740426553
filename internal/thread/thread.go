// Package thread starts functions that change what belongs to a thread of the operating system, such as its namespaces.
package thread

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Go starts f on a thread that no other goroutine uses, and that ends with f. So f does not have to undo its changes. The thread is never the
// main thread, because the main thread does not end, and /proc/self shows its namespaces, its cgroup and its CPUs.
func Go(f func()) {
	go call(f)
}

func call(f func()) {
	runtime.LockOSThread() // never unlocked after f: the thread ends with the goroutine
	if unix.Gettid() != os.Getpid() {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		call(f)
	}()
	<-done // until then the main thread is locked, so the other goroutine runs elsewhere
	runtime.UnlockOSThread()
}
