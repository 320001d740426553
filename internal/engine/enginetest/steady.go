package enginetest

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Steady calls life n times with different numbers, and fails the test if open files, goroutines or children of this process
// are left: an engine makes thousands of containers in one run.
func Steady(t *testing.T, n int, life func(number int)) {
	t.Helper()
	const first = 3 // the first lives, when packages open their permanent files
	for i := range first {
		life(i)
	}
	before := held(t)
	for i := range n {
		life(first + i)
	}
	// The last goroutine may be about to end. A leak is more than that.
	after := held(t)
	for i := 0; after.beyond(before) && i < 100_000; i++ {
		runtime.Gosched()
		after = held(t)
	}
	if after.beyond(before) {
		t.Errorf("after %d lives this process has %+v, and had %+v before", n, after, before)
	}
}

// holdings are the resources that a process can leak.
type holdings struct{ files, goroutines, children int }

func (h holdings) beyond(before holdings) bool {
	return h.files > before.files || h.goroutines > before.goroutines || h.children > before.children
}

func held(t *testing.T) holdings {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	h := holdings{files: len(files), goroutines: runtime.NumGoroutine()}
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range tasks {
		text, _ := os.ReadFile(file) // a thread may have ended
		h.children += len(strings.Fields(string(text)))
	}
	return h
}
