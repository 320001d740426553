package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/moby/moby/client"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// Pause implements engine.Pauser.
func (b *container) Pause(ctx context.Context) error {
	return b.setPaused(ctx, "pause", true, func() error {
		_, err := request(ctx, b, "pause", b.e.client.ContainerPause, client.ContainerPauseOptions{})
		return err
	})
}

// Resume implements engine.Pauser.
func (b *container) Resume(ctx context.Context) error {
	return b.setPaused(ctx, "resume", false, func() error {
		_, err := request(ctx, b, "resume", b.e.client.ContainerUnpause, client.ContainerUnpauseOptions{})
		return err
	})
}

// setPaused makes a request that pauses or resumes the container.
//
// The daemon sets the state in the request, and once more when it handles the event of containerd. This can happen after the
// next request has set the other state. Until the daemon has handled the event of that request too, it has the wrong state
// and refuses a request without calling the runtime. Then setPaused waits for the right state, outside of the step, and
// repeats the request.
func (b *container) setPaused(ctx context.Context, op string, pause bool, send func() error) error {
	for {
		err := engine.Call(ctx, func() error {
			err := send()
			if isWrongState(err) && b.paused.Load() != pause {
				err = fmt.Errorf("%w: %w", engine.ErrRefused, err)
			}
			return err
		})
		if err == nil {
			b.paused.Store(pause)
		}
		if !errors.Is(err, engine.ErrRefused) {
			return err
		}
		if waitErr := b.awaitPaused(ctx, !pause); waitErr != nil {
			return errors.Join(err, b.explain(ctx, op, waitErr))
		}
	}
}

// isWrongState recognizes the refusal of a request because of the container's state. Its HTTP status depends on the version.
func isWrongState(err error) bool {
	return err != nil && (strings.HasSuffix(err.Error(), "is already paused") || strings.HasSuffix(err.Error(), "is not paused"))
}

// awaitPaused waits until the daemon shows the container in a state. Each change of the state is followed by an event of the
// daemon. The daemon first repeats older events, so the first one shows that no later event is missed.
func (b *container) awaitPaused(ctx context.Context, pause bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := b.e.client.Events(ctx, client.EventsListOptions{Since: "0", Filters: make(client.Filters).Add("container", b.id)})
	for {
		select {
		case <-events.Messages:
		case err := <-events.Err:
			return err
		}
		answer, err := b.e.client.ContainerInspect(ctx, b.id, client.ContainerInspectOptions{})
		switch state := answer.Container.State; {
		case err != nil:
			return err
		case state == nil || !state.Running:
			return errors.New("the container does not run")
		case state.Paused == pause:
			return nil
		}
	}
}
