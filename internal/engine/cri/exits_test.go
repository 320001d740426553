package cri

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/touchstone-bench/touchstone/internal/engine"
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
				slow := &slowRecorder{recorded: time.Now().Add(tt.after)}
				c := &container{e: &Engine{service: &service{client: &client{RuntimeServiceClient: slow}}}}
				ctx, cancel := context.WithTimeout(t.Context(), tt.given)
				defer cancel()
				began := time.Now()
				exit, err := c.confirmExit(ctx)
				if tt.message == "" && (err != nil || exit != engine.Exit{Code: 3}) {
					t.Errorf("confirmExit() = %+v, %v; want exit code 3", exit, err)
				}
				if tt.message != "" && (err == nil || !strings.Contains(err.Error(), tt.message)) {
					t.Errorf("error %v, want one with %q", err, tt.message)
				}
				if took := time.Since(began); took > tt.want || slow.requests > tt.requests {
					t.Errorf("confirmExit took %v and %d requests, want at most %v and %d", took, slow.requests, tt.want, tt.requests)
				}
			})
		})
	}
}

// The exit of a program that ended with its virtual machine is an error, and other exits are not.
func TestLostGuest(t *testing.T) {
	const killed = 128 + int(syscall.SIGKILL)
	for _, c := range []struct {
		name         string
		code         int
		guest, ended bool
		byUs         bool
		want         bool
	}{
		{name: "the hypervisor is killed", code: lostGuestCode, guest: true, ended: true, want: true},
		{name: "the shim is killed", code: killed, guest: true, ended: true, want: true},
		{name: "a program exits with the same code", code: lostGuestCode, guest: true},
		{name: "the guest kills a program", code: killed, guest: true},
		{name: "Kill", code: killed, guest: true, ended: true, byUs: true},
		{name: "another exit code", code: 1, guest: true, ended: true},
		{name: "no virtual machine", code: killed, ended: true},
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
