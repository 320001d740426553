package trace

import (
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// faultVariable makes the test program a process that waits in a page fault.
const faultVariable = "TOUCHSTONE_TEST_FAULT"

// A wait for a page is outside of system calls, also directly after a call that often waits.
func TestWaitForPage(t *testing.T) {
	const length = 50 * time.Millisecond
	if os.Getenv(faultVariable) != "" {
		must.Do(t, waitForPage(length))
		return
	}
	tracer := start(t, monitor.Target{})
	self, err := os.Executable()
	must.Do(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestWaitForPage$")
	cmd.Env = append(os.Environ(), faultVariable+"=1")
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	counts, err := tracer.Stop()
	must.Do(t, err)
	if len(counts) != 1 {
		t.Fatalf("one step has the counts %+v", counts)
	}
	// The thread is ready or runs for a part of its wait if it loses its CPU just before it waits.
	c := &counts[0]
	if c.Blocked[result.OutsideCalls]+c.Queued+c.Running < length/2 || c.Faults == 0 || c.Calls["ppoll"] == 0 {
		t.Errorf("a wait of %v for a page: %+v", length, counts)
	}
}

// waitForPage touches a page, after a call of poll, and gives it the page after a time. The kernel lets the process itself handle the fault.
func waitForPage(length time.Duration) error {
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
	if errno != 0 {
		return errno
	}
	handler := os.NewFile(fd, "userfaultfd")
	page := os.Getpagesize()
	memory, err := unix.Mmap(-1, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	// The structures of the kernel's userfaultfd.h, and its ioctl numbers.
	area := uint64(uintptr(unsafe.Pointer(&memory[0])))
	api := [3]uint64{0xaa}
	register := [4]uint64{area, uint64(page), 1}
	zero := [4]uint64{area, uint64(page)}
	control := func(number uintptr, argument unsafe.Pointer) error {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, number, uintptr(argument)); errno != 0 {
			return errno
		}
		return nil
	}
	if err := control(0xc018aa3f, unsafe.Pointer(&api)); err != nil {
		return err
	}
	if err := control(0xc020aa00, unsafe.Pointer(&register)); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		_, _ = unix.Poll(nil, 0) // the last call before the fault
		memory[0] = 1
		close(done)
	}()
	if _, err := io.ReadFull(handler, make([]byte, 32)); err != nil { // the message of the fault
		return err
	}
	hold := unix.NsecToTimespec(int64(length))
	if err := unix.Nanosleep(&hold, nil); err != nil {
		return err
	}
	if err := control(0xc020aa04, unsafe.Pointer(&zero)); err != nil {
		return err
	}
	<-done
	return handler.Close()
}
