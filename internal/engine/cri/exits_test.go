package cri

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes/kata"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// requestTime is the duration of a request by the test's fake clock.
const requestTime = time.Millisecond

// slowRecorder is an engine that records the exit of a container's process late.
type slowRecorder struct {
	api.RuntimeServiceClient
	recorded time.Time
	requests int
}

func (s *slowRecorder) StopContainer(context.Context, *api.StopContainerRequest, ...grpc.CallOption) (*api.StopContainerResponse, error) {
	return &api.StopContainerResponse{}, nil
}

func (s *slowRecorder) ContainerStatus(ctx context.Context, _ *api.ContainerStatusRequest, _ ...grpc.CallOption) (*api.ContainerStatusResponse, error) {
	s.requests++
	select {
	case <-time.After(requestTime):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	answer := &api.ContainerStatus{State: api.ContainerState_CONTAINER_RUNNING}
	if !time.Now().Before(s.recorded) {
		answer.State, answer.ExitCode = api.ContainerState_CONTAINER_EXITED, 3
	}
	return &api.ContainerStatusResponse{Status: answer}, nil
}

// confirmExit returns soon after an engine has recorded an exit late, and makes few requests until then.
func TestExitRecordedLate(t *testing.T) {
	for _, tt := range []struct {
		name     string
		after    time.Duration // until the engine records the exit
		given    time.Duration // limit of the call
		want     time.Duration // longest time of the call
		requests int           // most requests
		message  string
	}{
		{"at once", 0, time.Minute, 2 * requestTime, 1, ""},
		{"after the usual moment", 5 * time.Millisecond, time.Minute, 7 * time.Millisecond, 7, ""},
		{"after one retry", 1100 * time.Millisecond, time.Minute, 1110 * time.Millisecond, 300, ""},
		{"after the third retry", 7100 * time.Millisecond, time.Minute, 7130 * time.Millisecond, 900, ""},
		{"never", time.Hour, time.Minute, 11 * time.Second, confirmRounds, "does not record it"},
		{"after the caller's deadline", time.Hour, 3 * time.Second, 3 * time.Second, 600, "deadline exceeded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				recorder := &slowRecorder{recorded: time.Now().Add(tt.after)}
				c := &container{e: &Engine{service: &service{client: &client{RuntimeServiceClient: recorder}}}}
				ctx, cancel := context.WithTimeout(t.Context(), tt.given)
				defer cancel()
				start := time.Now()
				exit, err := c.confirmExit(ctx)
				if tt.message == "" && (err != nil || exit != engine.Exit{Code: 3}) {
					t.Errorf("confirmExit() = %+v, %v; want exit code 3", exit, err)
				}
				if tt.message != "" && (err == nil || !strings.Contains(err.Error(), tt.message)) {
					t.Errorf("error %v, want one with %q", err, tt.message)
				}
				if took := time.Since(start); took > tt.want || recorder.requests > tt.requests {
					t.Errorf("confirmExit took %v and %d requests, want at most %v and %d", took, recorder.requests, tt.want, tt.requests)
				}
			})
		})
	}
}

// An exit event without a code precedes the engine's record, which has the code.
func TestExitWithoutCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := &slowRecorder{recorded: time.Now().Add(5 * time.Millisecond)}
		c := &container{e: &Engine{service: &service{client: &client{RuntimeServiceClient: recorder}}}, event: &exitEvent{done: make(chan struct{})}}
		time.AfterFunc(time.Second, func() { c.event.set(unknownCode, nil) })
		start := time.Now()
		if exit, err := c.Wait(t.Context()); err != nil || exit != (engine.Exit{Code: 3}) {
			t.Errorf("Wait() = %+v, %v; want exit code 3", exit, err)
		}
		if took := time.Since(start); recorder.requests == 0 || took > time.Second+10*time.Millisecond {
			t.Errorf("Wait took %v and %d requests", took, recorder.requests)
		}
	})
}

// The exit of a program that ended with its virtual machine is an error, and other exits are not.
//
// Invariant lost-machine: The exit of a lost virtual machine is no exit code of the program.
func TestLostGuest(t *testing.T) {
	const killCode = 128 + int(syscall.SIGKILL)
	for _, c := range []struct {
		name         string
		code         int
		guest, ended bool
		byUs         bool
		want         bool
	}{
		{name: "the hypervisor is killed", code: lostGuestCode, guest: true, ended: true, want: true},
		{name: "the shim is killed", code: killCode, guest: true, ended: true, want: true},
		{name: "a program exits with the same code", code: lostGuestCode, guest: true},
		{name: "the guest kills a program", code: killCode, guest: true},
		{name: "Kill", code: killCode, guest: true, ended: true, byUs: true},
		{name: "another exit code", code: 1, guest: true, ended: true},
		{name: "no virtual machine", code: killCode, ended: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &container{e: &Engine{service: &service{}}, id: "x", stopped: c.byUs, event: &exitEvent{done: make(chan struct{})}}
				if c.guest {
					b.guest = &exitEvent{done: make(chan struct{})}
				}
				b.event.set(c.code, nil)
				if c.guest && c.ended { // a moment later than the program
					time.AfterFunc(lostGuestLimit/2, func() { b.guest.set(0, nil) })
				}
				for range 2 {
					if _, err := b.Wait(t.Context()); errors.Is(err, errLostGuest) != c.want || err == nil == c.want {
						t.Errorf("Wait: %v; want an error: %v", err, c.want)
					}
				}
			})
		})
	}
}

// A call that hangs after its caller's deadline ends when the processes of the pod are killed, with the engine's own response.
//
// Invariant hanging-machine: A virtual machine that hangs ends at the call's limit, and leaves nothing while the daemon runs.
func TestHangingCall(t *testing.T) {
	const undoing = 2 * time.Second
	errKilled := errors.New("shim exited")
	for _, c := range []struct {
		name    string
		given   time.Duration // the deadline of the caller
		needs   time.Duration // duration of the call by itself
		deaf    bool          // the call does not end with the processes
		nothing bool          // the pod has no cgroup
		took    time.Duration
		killed  bool
		want    error
	}{
		{name: "in time", given: time.Minute, needs: time.Second, took: time.Second},
		{name: "late", given: time.Minute, needs: time.Minute + cancelGrace/2, took: time.Minute + cancelGrace/2},
		{name: "hangs", given: time.Minute, needs: time.Hour, took: time.Minute + cancelGrace + undoing, killed: true, want: errKilled},
		{name: "hangs for ever", given: time.Minute, needs: time.Hour, deaf: true, took: time.Minute + cancelGrace + killGrace, killed: true, want: context.Canceled},
		{name: "no cgroup", given: time.Minute, needs: time.Hour, nothing: true, took: time.Minute + cancelGrace, want: context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kills := make(chan struct{})
				kill := func(context.Context) { close(kills) }
				if c.nothing {
					kill = nil
				}
				call := func(ctx context.Context, n int, _ ...grpc.CallOption) (int, error) {
					dies := kills
					if c.deaf {
						dies = nil
					}
					select {
					case <-time.After(c.needs):
						return n, nil
					case <-dies:
						time.Sleep(undoing)
						return 0, errKilled
					case <-ctx.Done():
						return 0, ctx.Err()
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), c.given)
				defer cancel()
				start := time.Now()
				n, err := killAfterGrace(call, kill)(ctx, 7)
				if took := time.Since(start); took != c.took || !errors.Is(err, c.want) || err == nil && n != 7 {
					t.Errorf("the call took %v and returned %d, %v; want %v and %v", took, n, err, c.took, c.want)
				}
				if got := engine.Ended(kills); got != c.killed {
					t.Errorf("the processes were killed: %v, want %v", got, c.killed)
				}
			})
		})
	}
}

// A removal that hangs is forced, and tried again only then.
//
// Invariant hanging-machine.
func TestHangingRemoval(t *testing.T) {
	errFailed, errLost := errors.New("failed"), errors.New("connection lost")
	for _, c := range []struct {
		name   string
		takes  time.Duration // by itself
		fails  error         // of a removal by itself
		given  time.Duration
		took   time.Duration
		calls  int
		killed bool
		want   error
	}{
		{name: "works", takes: time.Second, given: time.Hour, took: time.Second, calls: 1},
		{name: "fails", takes: time.Second, fails: errFailed, given: time.Hour, took: time.Second, calls: 1, want: errFailed},
		{name: "hangs", takes: 24 * time.Hour, given: time.Hour, took: hangLimit, calls: 2, killed: true},
		{name: "hangs until the caller's deadline", takes: 24 * time.Hour, given: time.Second, took: time.Second, calls: 1, want: context.DeadlineExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls, kills := 0, make(chan struct{})
				remove := func(ctx context.Context) error {
					if calls++; engine.Ended(kills) {
						return nil
					}
					select {
					case <-time.After(c.takes):
						return c.fails
					case <-kills:
						return errLost
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), c.given)
				defer cancel()
				start := time.Now()
				err := removeHanging(ctx, remove, func(context.Context) { close(kills) })
				if took := time.Since(start); took != c.took || calls != c.calls || !errors.Is(err, c.want) {
					t.Errorf("%d calls took %v: %v; want %d, %v and %v", calls, took, err, c.calls, c.took, c.want)
				}
				if got := engine.Ended(kills); got != c.killed {
					t.Errorf("the processes were killed: %v, want %v", got, c.killed)
				}
			})
		})
	}
}

// A removal that meets the end of a shim is repeated until the engine has noticed the end. Other failures are final.
func TestRemovalDuringEndOfShim(t *testing.T) {
	errClosed := status.Error(codes.Unknown, `failed to kill sandbox container: ttrpc: closed: unknown`)
	failed, errUnknown := status.Error(codes.Unknown, "device busy"), status.Error(codes.NotFound, "no such pod")
	for _, c := range []struct {
		name   string
		closed time.Duration // until the engine notices the end
		then   error
		calls  int // most calls
		want   error
	}{
		{name: "works", calls: 1},
		{name: "ends meanwhile", closed: 20 * time.Millisecond, calls: 50},
		{name: "ends meanwhile and disappears", closed: 20 * time.Millisecond, then: errUnknown, calls: 50},
		{name: "is never noticed", closed: time.Hour, calls: confirmRounds, want: errClosed},
		{name: "fails", then: failed, calls: 1, want: failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls, start := 0, time.Now()
				stop := func(context.Context, *api.StopPodSandboxRequest, ...grpc.CallOption) (*api.StopPodSandboxResponse, error) {
					if calls++; time.Since(start) < c.closed {
						return nil, errClosed
					}
					return nil, c.then
				}
				steps := 0
				ctx := engine.WithStopwatch(t.Context(), func(_ string, call func() error) error {
					steps++
					return call()
				})
				if err := removeRequest(ctx, "StopPodSandbox", stop, nil); !errors.Is(err, c.want) || calls > c.calls {
					t.Errorf("the removal returns %v after %d calls, want %v and at most %d calls", err, calls, c.want, c.calls)
				}
				if c.closed > 0 && calls == 1 || steps != calls {
					t.Errorf("%d requests are %d steps, want a step each, and several while the shim ends", calls, steps)
				}
			})
		})
	}
}

// The virtual machines of a pod are found by the names of their cgroups, once each.
func TestFindSandboxes(t *testing.T) {
	root := t.TempDir()
	id := strings.Repeat("0a", 32)
	group := filepath.Join(root, "sys/fs/cgroup/touchstone-x/pod")
	for _, dir := range []string{"kata_" + id, "other"} {
		must.Do(t, os.MkdirAll(filepath.Join(group, dir), 0o700))
	}
	enginetest.Files(t, root, map[string]string{
		"proc/self/mountinfo": "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"proc/self/cgroup":    "0::/\n", "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
	})
	groups, err := cgroup.Detect(root)
	must.Do(t, err)
	c := &container{e: &Engine{handler: handler{guest: &kata.Config{}}}}
	c.findSandboxes() // without a cgroup
	if c.group, err = groups.Open("/touchstone-x/pod"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c.findSandboxes()
	}
	if !slices.Equal(c.sandboxes, []string{id}) {
		t.Errorf("the sandboxes are %q, want %q", c.sandboxes, id)
	}
}
