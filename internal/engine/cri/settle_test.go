package cri

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// slowToNote is an engine that has let go of a container's process and notes its end later.
type slowToNote struct {
	api.RuntimeServiceClient
	noted time.Time
	asked int
}

func (s *slowToNote) StopContainer(context.Context, *api.StopContainerRequest, ...grpc.CallOption) (*api.StopContainerResponse, error) {
	return &api.StopContainerResponse{}, nil
}

func (s *slowToNote) ContainerStatus(ctx context.Context, _ *api.ContainerStatusRequest, _ ...grpc.CallOption) (*api.ContainerStatusResponse, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	s.asked++
	time.Sleep(time.Millisecond)
	answer := &api.ContainerStatus{State: api.ContainerState_CONTAINER_RUNNING}
	if !time.Now().Before(s.noted) {
		answer.State, answer.ExitCode = api.ContainerState_CONTAINER_EXITED, 3
	}
	return &api.ContainerStatusResponse{Status: answer}, nil
}

// Of an engine that is slow to note an end the end is known soon after, and it is not asked all the time.
func TestEndThatIsNotedLate(t *testing.T) {
	for _, tt := range []struct {
		name    string
		after   time.Duration // the engine notes the end
		given   time.Duration // for waiting
		want    time.Duration // by which the answer is there
		asked   int           // at most
		message string
	}{
		{"at once", 0, time.Minute, 2 * time.Millisecond, 1, ""},
		{"after the moment that it usually takes", 5 * time.Millisecond, time.Minute, 7 * time.Millisecond, 7, ""},
		{"after it has tried again", 1100 * time.Millisecond, time.Minute, 1110 * time.Millisecond, 300, ""},
		{"after the third time", 7100 * time.Millisecond, time.Minute, 7130 * time.Millisecond, 900, ""},
		{"never", time.Hour, time.Minute, 11 * time.Second, settleRounds, "does not say so"},
		{"after the caller has given up", time.Hour, 3 * time.Second, 3100 * time.Millisecond, 600, "deadline exceeded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := &slowToNote{noted: time.Now().Add(tt.after)}
				c := &container{e: &Engine{service: &service{client: &client{RuntimeServiceClient: slow}}}}
				ctx, cancel := context.WithTimeout(t.Context(), tt.given)
				defer cancel()
				began := time.Now()
				exit, err := c.settle(ctx)
				if tt.message == "" && (err != nil || exit != engine.Exit{Code: 3}) {
					t.Errorf("it ended with %+v, %v", exit, err)
				}
				if tt.message != "" && (err == nil || !strings.Contains(err.Error(), tt.message)) {
					t.Errorf("error %v, want one with %q", err, tt.message)
				}
				if took := time.Since(began); took > tt.want || slow.asked > tt.asked {
					t.Errorf("it took %v and %d questions, want %v and %d", took, slow.asked, tt.want, tt.asked)
				}
			})
		})
	}
}
