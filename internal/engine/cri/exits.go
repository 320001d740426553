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
)

// exitEvents are the exits of containers by containerd's own event service, which listens at the same socket. There is
// one subscription for all targets of the engine.
//
// CRI's GetContainerEvents is not used: containerd 1.6 lacks it; containerd 1.7 gives each event to one
// subscriber only, so that a kubelet on the same host would miss ours; CRI-O has it off by default.
type exitEvents struct {
	conn grpc.ClientConnInterface

	mu      sync.Mutex
	cancel  context.CancelFunc // of the subscription; nil if there is none
	ended   chan struct{}      // closed when the subscription has ended
	waiting map[string]*exitEvent
}

// exitEvent is the exit of one container.
type exitEvent struct {
	done chan struct{}
	code int   // once done is closed
	err  error // the reason why the exit stays unknown
}

func newExitEvents(conn grpc.ClientConnInterface) *exitEvents {
	return &exitEvents{conn: conn, waiting: map[string]*exitEvent{}}
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

// forget drops the event of a container that was deleted.
func (e *exitEvents) forget(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.waiting, id)
}

// subscribe must be called with the mutex held.
func (e *exitEvents) subscribe(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := events.NewEventsClient(e.conn).Subscribe(ctx, &events.SubscribeRequest{
		Filters: []string{`namespace=="k8s.io",topic=="/tasks/exit"`},
	})
	if err != nil {
		cancel()
		return fmt.Errorf("subscribe to events: %w", err)
	}
	ended := make(chan struct{})
	e.cancel, e.ended = cancel, ended
	go func() {
		defer close(ended)
		err := e.receive(stream)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.cancel = nil
		cancel()
		for id, w := range e.waiting {
			w.set(0, fmt.Errorf("the engine's event stream has ended: %w", err))
			delete(e.waiting, id)
		}
	}()
	return nil
}

// receive passes events on until the stream ends.
func (e *exitEvents) receive(stream events.Events_SubscribeClient) error {
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
		e.mu.Lock()
		if w, ok := e.waiting[exit.GetContainerID()]; ok {
			w.set(int(exit.GetExitStatus()), nil)
			delete(e.waiting, exit.GetContainerID())
		}
		e.mu.Unlock()
	}
}

// close ends the subscription.
func (e *exitEvents) close() {
	e.mu.Lock()
	cancel, ended := e.cancel, e.ended
	e.mu.Unlock()
	if cancel != nil {
		cancel()
		<-ended
	}
}

func (w *exitEvent) set(code int, err error) {
	w.code, w.err = code, err
	close(w.done)
}

// openProcess opens a pidfd of a process, which the caller closes. It returns nil if the process has been reaped.
func openProcess(pid int) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) {
		return nil, nil
	}
	if err != nil {
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	return os.NewFile(uintptr(fd), "pidfd"), nil // non-blocking, and therefore in Go's poller
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
