package cri

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// life is the lifetime of an engine. The channel is closed at its end.
type life chan struct{}

var errLife = errors.New("exit code 3")

func (l life) Exited() <-chan struct{} { return l }
func (l life) Err() error              { return errLife }

// watched returns the exits by the files of a directory.
func watched(t *testing.T, dir string) *exitEvents {
	t.Helper()
	e := newExitEvents(exitFiles(dir, make(life)))
	t.Cleanup(e.close)
	return e
}

func expected(t *testing.T, e *exitEvents, id string) *exitEvent {
	t.Helper()
	event, err := e.expect(t.Context(), id)
	must.Do(t, err)
	return event
}

func exitFile(t *testing.T, dir, name, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

// A new file is the exit of the container with this name, with any content, and even if it soon disappears.
func TestExitFiles(t *testing.T) {
	dir := t.TempDir()
	exitFile(t, dir, "before", "Exited")
	e := watched(t, dir)
	writeEvent, moveEvent, empty, oldEvent, lateEvent := expected(t, e, "written"), expected(t, e, "moved"), expected(t, e, "empty"), expected(t, e, "before"), expected(t, e, "directory")
	must.Do(t, os.Mkdir(filepath.Join(dir, "directory"), 0o700))
	exitFile(t, dir, "of another container", "Exited")
	exitFile(t, dir, "written", "\x00 no exit code")
	exitFile(t, dir, "temporary", "0")
	exitFile(t, dir, "empty", "")
	must.Do(t, errors.Join(os.Remove(filepath.Join(dir, "written")), os.Rename(filepath.Join(dir, "temporary"), filepath.Join(dir, "moved"))))
	for _, event := range []*exitEvent{writeEvent, moveEvent, empty} {
		if err := engine.Await(t.Context(), event.done); err != nil || event.err != nil || event.code != unknownCode {
			t.Errorf("an exit with code %d, %v, %v; want one without code", event.code, event.err, err)
		}
	}
	for _, event := range []*exitEvent{oldEvent, lateEvent} {
		if engine.Ended(event.done) {
			t.Errorf("an exit by an older file or a directory: %+v", event)
		}
	}
	e.lose(errForgotten, "before")
	if engine.Await(t.Context(), oldEvent.done) != nil || !errors.Is(oldEvent.err, errForgotten) {
		t.Errorf("the exit of a deleted container: %v", oldEvent.err)
	}
	e.close()
	if engine.Await(t.Context(), lateEvent.done) != nil || !errors.Is(lateEvent.err, context.Canceled) {
		t.Errorf("an exit after the end of the watch: %v", lateEvent.err)
	}
}

// A directory that disappears makes the exits unknown, with the reason. A new one is watched again.
func TestExitFilesWithoutDirectory(t *testing.T) {
	for _, tt := range []struct {
		name string
		lose func(dir string) error
	}{
		{"removed", os.Remove},
		{"moved", func(dir string) error { return os.Rename(dir, dir+".old") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "exits")
			must.Do(t, os.Mkdir(dir, 0o700))
			e := watched(t, dir)
			event := expected(t, e, "one")
			must.Do(t, tt.lose(dir))
			if engine.Await(t.Context(), event.done) != nil || !errors.Is(event.err, errNoExitsDir) || !strings.Contains(event.err.Error(), dir) {
				t.Errorf("error %v, want one with the directory", event.err)
			}
			if _, err := e.expect(t.Context(), "two"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), dir) {
				t.Errorf("expect without the directory: %v", err)
			}
			must.Do(t, os.Mkdir(dir, 0o700))
			event = expected(t, e, "three")
			exitFile(t, dir, "three", "Exited")
			if err := engine.Await(t.Context(), event.done); err != nil || event.err != nil {
				t.Errorf("the exit in a new directory: %v, %v", event.err, err)
			}
		})
	}
}

// The exit of CRI-O makes the exits unknown.
func TestExitFilesWithoutEngine(t *testing.T) {
	crio := make(life)
	e := newExitEvents(exitFiles(t.TempDir(), crio))
	t.Cleanup(e.close)
	event := expected(t, e, "one")
	close(crio)
	if engine.Await(t.Context(), event.done) != nil || !errors.Is(event.err, errLife) {
		t.Errorf("error %v, want the reason of CRI-O's exit", event.err)
	}
}

// reporter is CRI-O, which reports a hypervisor, and records an exit only when it is asked to stop the container.
type reporter struct {
	api.RuntimeServiceClient
	pid     int
	stopped bool
}

func (r *reporter) ContainerStatus(context.Context, *api.ContainerStatusRequest, ...grpc.CallOption) (*api.ContainerStatusResponse, error) {
	answer := &api.ContainerStatus{State: api.ContainerState_CONTAINER_RUNNING}
	if r.stopped {
		answer.State, answer.ExitCode = api.ContainerState_CONTAINER_EXITED, lostGuestCode
	}
	return &api.ContainerStatusResponse{Status: answer, Info: map[string]string{"info": fmt.Sprintf(`{"pid": %d}`, r.pid)}}, nil
}

func (r *reporter) StopContainer(context.Context, *api.StopContainerRequest, ...grpc.CallOption) (*api.StopContainerResponse, error) {
	r.stopped = true
	return &api.StopContainerResponse{}, nil
}

// guestOf returns a container with the processes of a virtual machine: a shim, whose file has this text, and a hypervisor.
func guestOf(t *testing.T, shim string, hypervisor int) *container {
	t.Helper()
	dir := t.TempDir()
	bundle := filepath.Join(dir, "pod", "userdata")
	must.Do(t, os.MkdirAll(bundle, 0o700))
	if shim != "" {
		exitFile(t, bundle, "shim.pid", shim)
	}
	e := &Engine{service: &service{client: &client{RuntimeServiceClient: &reporter{pid: hypervisor}}, bundles: dir}, exits: watched(t, t.TempDir())}
	c := &container{e: e, pod: "pod", name: "container"}
	c.event, c.guest = expected(t, e.exits, c.name), expected(t, e.exits, c.pod)
	return c
}

func sleeping(t *testing.T) *os.Process {
	t.Helper()
	sleep := exec.CommandContext(t.Context(), "sleep", "1000")
	must.Do(t, sleep.Start())
	t.Cleanup(func() { _ = sleep.Wait() }) // it is killed
	return sleep.Process
}

func kill(t *testing.T, p *os.Process) {
	t.Helper()
	must.Do(t, p.Kill())
}

// A virtual machine of CRI-O is lost if its shim or its hypervisor is killed.
func TestWatchGuest(t *testing.T) {
	for _, victim := range []string{"shim", "hypervisor"} {
		t.Run(victim, func(t *testing.T) {
			shim, hypervisor := sleeping(t), sleeping(t)
			deadGuest, left := guestOf(t, fmt.Sprintln(shim.Pid), hypervisor.Pid), guestOf(t, fmt.Sprint(shim.Pid), hypervisor.Pid)
			must.Do(t, errors.Join(deadGuest.watchGuest(t.Context()), left.watchGuest(t.Context())))
			left.unwatch()
			if victim == "shim" {
				kill(t, shim)
			} else {
				kill(t, hypervisor)
				deadGuest.e.exits.report(deadGuest.name, unknownCode) // the shim reports it
			}
			if _, err := deadGuest.Wait(t.Context()); !errors.Is(err, errLostGuest) {
				t.Errorf("Wait: %v", err)
			}
			deadGuest.mu.Lock()
			shimless := deadGuest.shimless
			deadGuest.mu.Unlock()
			if shimless != (victim == "shim") || engine.Ended(left.event.done) || engine.Ended(left.guest.done) {
				t.Errorf("the shim has exited: %t; events without a watch: %t, %t", shimless, engine.Ended(left.event.done), engine.Ended(left.guest.done))
			}
		})
	}
}

// CRI-O keeps its records of a virtual machine that it cannot remove, which is no lie of its Delete. Processes that it leaves are traces.
func TestTracesOfAbandonedGuest(t *testing.T) {
	want := []string{"processes: 7"}
	c := &container{abandoned: true, deleted: true, left: want}
	if got, err := c.Traces(t.Context()); err != nil || !slices.Equal(got, want) {
		t.Errorf("Traces = %q, %v; want %q", got, err, want)
	}
}

func TestWatchGuestFails(t *testing.T) {
	victim := sleeping(t)
	kill(t, victim)
	if _, err := victim.Wait(); err != nil {
		t.Fatal(err)
	}
	self := os.Getpid()
	for _, tt := range []struct {
		shim       string
		hypervisor int
		want       error
	}{
		{fmt.Sprint(victim.Pid), self, errLostGuest},
		{fmt.Sprint(self), victim.Pid, errLostGuest},
		{fmt.Sprint(self), 0, unix.EINVAL},
		{"12 34", self, strconv.ErrSyntax},
		{"", self, fs.ErrNotExist},
	} {
		c := guestOf(t, tt.shim, tt.hypervisor)
		if err := c.watchGuest(t.Context()); !errors.Is(err, tt.want) {
			t.Errorf("shim %q and hypervisor %d: %v, want %v", tt.shim, tt.hypervisor, err, tt.want)
		}
		if c.unwatch != nil {
			c.unwatch()
		}
	}
}

// More exits than the kernel's queue holds are an error of all containers, because some exits are lost.
func TestExitFilesOverflow(t *testing.T) {
	e := watched(t, t.TempDir())
	e.open = func(context.Context) (func(func(string, int)) error, error) {
		return func(report func(string, int)) error {
			return readExits(slices.Concat(inotifyEvent(unix.IN_CREATE, "one"), inotifyEvent(unix.IN_Q_OVERFLOW, ""), inotifyEvent(unix.IN_CREATE, "three")), report)
		}, nil
	}
	e.mu.Lock()
	one, two, three := &exitEvent{done: make(chan struct{})}, &exitEvent{done: make(chan struct{})}, &exitEvent{done: make(chan struct{})}
	e.waiting = map[string]*exitEvent{"one": one, "two": two, "three": three}
	err := e.subscribe(t.Context())
	e.mu.Unlock()
	must.Do(t, err)
	for event, want := range map[*exitEvent]error{one: nil, two: errLostEvents, three: errLostEvents} {
		if err := engine.Await(t.Context(), event.done); err != nil || !errors.Is(event.err, want) {
			t.Errorf("an exit is %v, %v; want %v", event.err, err, want)
		}
	}
}

// inotifyEvent returns an event as the kernel writes it. The name ends with zeros.
func inotifyEvent(mask uint32, name string) []byte {
	const align = unix.SizeofInotifyEvent
	size := (len(name) + align) / align * align
	if name == "" {
		size = 0
	}
	b := make([]byte, unix.SizeofInotifyEvent+size)
	binary.NativeEndian.PutUint32(b[4:], mask)
	binary.NativeEndian.PutUint32(b[12:], uint32(size))
	copy(b[unix.SizeofInotifyEvent:], name)
	return b
}

func TestReadExits(t *testing.T) {
	buffer := slices.Concat(inotifyEvent(unix.IN_CREATE, "a"), inotifyEvent(unix.IN_MOVED_TO, strings.Repeat("b", 64)))
	var ids []string
	report := func(id string, _ int) { ids = append(ids, id) }
	if err := readExits(buffer, report); err != nil || !slices.Equal(ids, []string{"a", strings.Repeat("b", 64)}) {
		t.Errorf("readExits = %q, %v", ids, err)
	}
	for n := 1; n < len(inotifyEvent(unix.IN_CREATE, "a")); n++ {
		if err := readExits(buffer[:n], func(string, int) { t.Errorf("an exit in %d bytes", n) }); err == nil {
			t.Errorf("%d bytes of an event are no error", n)
		}
	}
	for _, mask := range []uint32{unix.IN_IGNORED, unix.IN_MOVE_SELF, unix.IN_UNMOUNT} {
		if err := readExits(inotifyEvent(mask, ""), report); !errors.Is(err, errNoExitsDir) {
			t.Errorf("event %x: %v", mask, err)
		}
	}
}

func FuzzReadExits(f *testing.F) {
	f.Add(inotifyEvent(unix.IN_CREATE, "a"))
	f.Add(slices.Concat(inotifyEvent(unix.IN_CREATE|unix.IN_ISDIR, "a"), inotifyEvent(unix.IN_Q_OVERFLOW, "")))
	f.Fuzz(func(t *testing.T, buffer []byte) {
		_ = readExits(buffer, func(id string, code int) {
			if code != unknownCode || strings.ContainsRune(id, 0) {
				t.Errorf("exit %q with code %d", id, code)
			}
		})
	})
}
