package enginetest

import (
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/thread"
)

// LeastPause is the shortest pause of a CPU that Pauses counts. On an idle host no thread with real-time priority wakes so late, however
// many other programs run. A pause of this length is a quarter of the period of a CPU limit.
const LeastPause = 25 * time.Millisecond

// Pauses counts the time that the host of a virtual machine withheld CPUs from it. No program of the machine itself causes a pause. The
// kernel's count of steal is no substitute: it lacks the pauses that a quota of the host causes.
type Pauses struct {
	mu    sync.Mutex
	total time.Duration
}

// WatchPauses counts pauses until the test ends. On each CPU a thread with real-time priority sleeps, and notes how late it wakes. Without
// the right to this priority nothing is counted.
func WatchPauses(t testing.TB) *Pauses {
	t.Helper()
	p, done := new(Pauses), make(chan struct{})
	var affinity unix.CPUSet
	if err := unix.SchedGetaffinity(0, &affinity); err != nil {
		t.Fatalf("read the CPUs of the test: %v", err)
	}
	var ready, watches sync.WaitGroup
	for cpu := range len(affinity) * 64 {
		if affinity.IsSet(cpu) {
			ready.Add(1)
			watches.Add(1)
			thread.Go(func() {
				defer watches.Done()
				err := pin(cpu)
				ready.Done()
				if err != nil {
					t.Logf("pauses of CPU %d are unknown: %v", cpu, err)
					return
				}
				p.watch(done)
			})
		}
	}
	ready.Wait()
	t.Cleanup(func() {
		close(done)
		watches.Wait()
	})
	return p
}

// pin gives the calling thread real-time priority on a CPU.
func pin(cpu int) error {
	var one unix.CPUSet
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return err
	}
	return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0)
}

// watch adds the pauses of the goroutine's CPU.
func (p *Pauses) watch(done <-chan struct{}) {
	const nap = 10 * time.Millisecond
	span := unix.NsecToTimespec(nap.Nanoseconds())
	for {
		select {
		case <-done:
			return
		default:
		}
		start := monotonic()
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &span, nil) // a signal only shortens it
		if delay := monotonic() - start - nap; delay >= LeastPause {
			p.add(delay)
		}
	}
}

// monotonic reads the kernel's clock for sleeps. Linux always has it.
func monotonic() time.Duration {
	var timestamp unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &timestamp)
	return time.Duration(timestamp.Nano())
}

func (p *Pauses) add(delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total += delay
}

// Total is the sum of all pauses of all CPUs so far.
func (p *Pauses) Total() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total
}
