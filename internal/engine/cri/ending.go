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

// endings tells of the end of containers by containerd's own events, which it has at the same socket. It
// subscribes once, for all targets of the engine.
//
// CRI's GetContainerEvents is not used: containerd 1.6 lacks it; containerd 1.7 gives each event to one
// subscriber only, so that a kubelet on the same host would miss those that we get; CRI-O has it switched
// off by default.
type endings struct {
	conn grpc.ClientConnInterface

	mu      sync.Mutex
	cancel  context.CancelFunc // of the subscription; nil if there is none
	ended   chan struct{}      // closed when the subscription has ended
	waiting map[string]*ending
}

// ending is the end of one container.
type ending struct {
	done chan struct{}
	code int   // once done is closed
	err  error // why it will not be known
}

func newEndings(conn grpc.ClientConnInterface) *endings {
	return &endings{conn: conn, waiting: map[string]*ending{}}
}

// expect gives the ending of a container that has not been started.
func (e *endings) expect(ctx context.Context, id string) (*ending, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cancel == nil {
		if err := e.subscribe(context.WithoutCancel(ctx)); err != nil {
			return nil, err
		}
	}
	w := &ending{done: make(chan struct{})}
	e.waiting[id] = w
	return w, nil
}

// forget is called when nobody waits for the end of a container any more.
func (e *endings) forget(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.waiting, id)
}

// subscribe must be called with the mutex held.
func (e *endings) subscribe(ctx context.Context) error {
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
			w.end(0, fmt.Errorf("the engine's stream of events has ended: %w", err))
			delete(e.waiting, id)
		}
	}()
	return nil
}

// receive passes events on until the stream ends.
func (e *endings) receive(stream events.Events_SubscribeClient) error {
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
			w.end(int(exit.GetExitStatus()), nil)
			delete(e.waiting, exit.GetContainerID())
		}
		e.mu.Unlock()
	}
}

// close ends the subscription.
func (e *endings) close() {
	e.mu.Lock()
	cancel, ended := e.cancel, e.ended
	e.mu.Unlock()
	if cancel != nil {
		cancel()
		<-ended
	}
}

func (w *ending) end(code int, err error) {
	w.code, w.err = code, err
	close(w.done)
}

// awaitProcess returns when the process of this pid has ended. still tells whether the pid is that of the
// process that is meant: asked once the process is held, since an ID may come to mean another process.
func awaitProcess(ctx context.Context, pid int, still func() (bool, error)) error {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return os.NewSyscallError("pidfd_open", err)
	}
	file := os.NewFile(uintptr(fd), "pidfd") // non-blocking: it is waited for with all other events
	defer func() { _ = file.Close() }()
	if same, err := still(); err != nil || !same {
		return err
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = file.SetReadDeadline(time.Unix(1, 0)) }) // long ago
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
