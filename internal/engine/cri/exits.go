package cri

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	taskevents "github.com/containerd/containerd/api/events"
	events "github.com/containerd/containerd/api/services/events/v1"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/touchstone-bench/touchstone/internal/process"
)

// exitEvents are the exits of containers by a stream of the engine. There is one stream for all targets of the engine.
//
// CRI's GetContainerEvents is not used: containerd 1.6 lacks it; containerd 1.7 gives each event to one
// subscriber only, so that a kubelet on the same host would miss ours; CRI-O has it off by default.
type exitEvents struct {
	open exitSource

	mu      sync.Mutex
	cancel  context.CancelFunc // of the stream; nil without one
	ended   chan struct{}      // closed when the stream has ended
	waiting map[string]*exitEvent
}

// exitSource opens a stream of exits, which ends with the context. receive calls report for each exit of a container, and returns
// the reason when the stream ends.
type exitSource func(context.Context) (receive func(report func(id string, code int)) error, err error)

// unknownCode is the exit code of a stream without codes. The engine's record has the code.
const unknownCode = -1

// exitEvent is the exit of one container.
type exitEvent struct {
	done chan struct{}
	code int   // once done is closed; may be unknownCode
	err  error // the reason why the exit stays unknown
}

func newExitEvents(open exitSource) *exitEvents {
	return &exitEvents{open: open, waiting: map[string]*exitEvent{}}
}

// expect returns the future exit event of a container that has not been started.
func (e *exitEvents) expect(ctx context.Context, id string) (*exitEvent, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cancel == nil {
		if err := e.subscribe(context.WithoutCancel(ctx)); err != nil {
			return nil, err
		}
	}
	w := &exitEvent{done: make(chan struct{})}
	e.waiting[id] = w
	return w, nil
}

// errForgotten is the reason why the exit of a container that was deleted may stay unknown.
var errForgotten = errors.New("the container was deleted before its exit was known")

// report passes an exit on.
func (e *exitEvents) report(id string, code int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.resolve(id, code, nil)
}

// lose ends the events of containers whose exits will not be known.
func (e *exitEvents) lose(err error, ids ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range ids {
		e.resolve(id, 0, err)
	}
}

// resolve passes an exit to the container with this ID, if one waits. It must be called with the mutex held.
func (e *exitEvents) resolve(id string, code int, err error) {
	if w, ok := e.waiting[id]; ok {
		w.set(code, err)
		delete(e.waiting, id)
	}
}

// subscribe must be called with the mutex held.
func (e *exitEvents) subscribe(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	receive, err := e.open(ctx)
	if err != nil {
		cancel()
		return err
	}
	done := make(chan struct{})
	e.cancel, e.ended = cancel, done
	go func() {
		defer close(done)
		err := receive(e.report)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.cancel = nil
		cancel()
		for id := range e.waiting {
			e.resolve(id, 0, fmt.Errorf("the engine's event stream has ended: %w", err))
		}
	}()
	return nil
}

// close ends the subscription.
func (e *exitEvents) close() {
	e.mu.Lock()
	cancel, done := e.cancel, e.ended
	e.mu.Unlock()
	if cancel != nil {
		cancel()
		<-done
	}
}

// taskExits is containerd's own event service, which listens at the same socket.
func taskExits(conn grpc.ClientConnInterface) exitSource {
	return func(ctx context.Context) (func(func(string, int)) error, error) {
		stream, err := events.NewEventsClient(conn).Subscribe(ctx, &events.SubscribeRequest{
			Filters: []string{`namespace=="k8s.io",topic=="/tasks/exit"`},
		})
		if err != nil {
			return nil, fmt.Errorf("subscribe to events: %w", err)
		}
		return func(report func(string, int)) error { return receiveTasks(stream, report) }, nil
	}
}

// receiveTasks passes the exits of containers on until the stream ends.
func receiveTasks(stream events.Events_SubscribeClient, report func(string, int)) error {
	for {
		envelope, err := stream.Recv()
		if err != nil {
			return err
		}
		var exit taskevents.TaskExit
		if envelope.GetEvent().GetTypeUrl() != "containerd.events.TaskExit" {
			continue
		}
		if err := proto.Unmarshal(envelope.GetEvent().GetValue(), &exit); err != nil {
			return fmt.Errorf("read an event: %w", err)
		}
		if exit.GetID() != exit.GetContainerID() {
			continue // of an exec
		}
		report(exit.GetContainerID(), int(exit.GetExitStatus()))
	}
}

func (w *exitEvent) set(code int, err error) {
	w.code, w.err = code, err
	close(w.done)
}

// openProcess opens a pidfd of a process, which the caller closes. It returns nil if the process has been reaped.
func openProcess(pid int) (*os.File, error) {
	pidfd, err := process.OpenPidfd(pid)
	if errors.Is(err, os.ErrProcessDone) {
		return nil, nil
	}
	return pidfd, err
}

// awaitExit returns when the process of a pidfd has exited.
func awaitExit(ctx context.Context, pidfd *os.File) error {
	raw, err := pidfd.SyscallConn()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = pidfd.SetReadDeadline(time.Unix(1, 0)) }) // long ago
	defer stop()
	err = raw.Read(func(fd uintptr) bool {
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return ready > 0 && err == nil
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
