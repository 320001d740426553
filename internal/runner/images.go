package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
)

// trialImages implements bench.Images.
type trialImages struct{ trialStorage }

func (t trialImages) Fresh(ctx context.Context, size int64) (string, error) {
	ref, err := t.r.Registry.Fresh(ctx, size)
	if err != nil {
		return "", err
	}
	t.mu.Lock()
	t.fresh = append(t.fresh, ref)
	t.mu.Unlock()
	return ref, nil
}

func (t trialImages) Minimal(ctx context.Context, arch string) (bench.Minimal, error) {
	parent, err := t.Scratch(bench.Disk)
	if err != nil {
		return bench.Minimal{}, err
	}
	image := bench.Minimal{Rootfs: filepath.Join(parent, "rootfs")}
	var program []byte
	if image.Ref, program, err = t.r.Registry.Minimal(ctx, arch, image.Rootfs); err != nil {
		return bench.Minimal{}, err
	}
	t.mu.Lock()
	t.fresh = append(t.fresh, image.Ref)
	t.mu.Unlock()
	if t.r.Emulator != nil {
		image.Emulator = t.r.Emulator(program)
	}
	return image, nil
}

func (t trialImages) Pull(ctx context.Context, ref string) (bench.Span, error) {
	puller, err := t.puller()
	if err != nil {
		return bench.Span{}, err
	}
	t.mu.Lock()
	t.pulled = append(t.pulled, ref)
	t.mu.Unlock()
	span, err := t.Time(ctx, "pull", func(ctx context.Context) error { return puller.Pull(ctx, ref) })
	if err != nil {
		return bench.Span{}, err
	}
	if transfer, size := t.r.Registry.Served(ref); transfer < size {
		return bench.Span{}, fmt.Errorf("pull of %s returned success without the image: want %d bytes from the registry, got %d", ref, size, transfer)
	}
	return span, nil
}

func (t trialImages) Remove(ctx context.Context, ref string) (bench.Span, error) {
	puller, err := t.puller()
	if err != nil {
		return bench.Span{}, err
	}
	span, err := t.Time(ctx, "remove", func(ctx context.Context) error { return puller.RemoveImage(ctx, ref) })
	if err == nil {
		t.mu.Lock()
		t.pulled = slices.DeleteFunc(t.pulled, func(p string) bool { return p == ref })
		t.mu.Unlock()
	}
	return span, err
}

func (t trialImages) puller() (engine.Puller, error) {
	if err := t.engine.Supports(engine.CanPull); err != nil {
		return nil, err
	}
	return bench.Optional[engine.Puller](t.engine, engine.CanPull)
}

// pullLimit bounds the pull of an image that a benchmark runs from. Such an image may be a hundred times larger than the
// images that CallLimit suits.
const pullLimit = 5 * time.Minute

// pullLimit is the limit in this run: a pull may take a fifth of the budget, and two calls in any case.
func (r *run) pullLimit() time.Duration {
	if r.Budget <= 0 {
		return pullLimit
	}
	return min(pullLimit, max(2*r.CallLimit, r.Budget/5))
}

// pulled is an image that an engine has for the run.
type pulled struct {
	target string
	engine engine.Puller
	ref    string
}

// pull pulls an image once in a run for an engine that pulls. It does so outside of the trials: otherwise the first
// trial would be an outlier and carry the cost of all. Opening an engine provides the probe's image.
func (r *run) pull(ctx context.Context, image bench.Image, t Target) error {
	puller, ok := t.Engine.(engine.Puller)
	ref := r.Images[image].Ref
	has := func(p pulled) bool { return p.target == t.Name && p.ref == ref }
	if !ok || image == bench.ProbeImage || ref == "" || slices.ContainsFunc(r.pulled, has) {
		return nil
	}
	// An engine that takes root directories may also pull, for operations.image.pull.
	if err := t.Engine.Supports(engine.CanPull); err != nil {
		return err
	}
	hung := pulled{target: t.Name, ref: ref}
	if r.hungPulls[hung] >= timeoutsAllowed {
		return &engine.UnsupportedError{What: "image " + string(image), Reason: fmt.Sprintf("its pull exceeded the limit %d times", timeoutsAllowed)}
	}
	if r.Pulling != nil {
		r.Pulling(t.Name, image)
	}
	err := r.limit(ctx, "the pull of image "+string(image), r.pullLimit(), func(ctx context.Context) error { return puller.Pull(ctx, ref) })
	if err != nil {
		if timedOut(err) && ctx.Err() == nil {
			r.hungPulls[hung]++
			r.breaker.note(t.Name, err, nil)
		}
		// The engine may have part of it.
		return errors.Join(fmt.Errorf("get image %s ready: %w", image, err), r.removeImage(ctx, puller, ref))
	}
	r.pulled = append(r.pulled, pulled{t.Name, puller, ref})
	return nil
}

func (r *run) removeImage(ctx context.Context, p engine.Puller, ref string) error {
	return r.limit(context.WithoutCancel(ctx), "the removal of an image", r.patience(), func(ctx context.Context) error {
		return p.RemoveImage(ctx, ref)
	})
}

// limit bounds a call.
func (r *run) limit(ctx context.Context, what string, limit time.Duration, call func(context.Context) error) error {
	ctx, cancel := r.Clock.WithTimeoutCause(ctx, limit, &LimitError{what, limit})
	defer cancel()
	return limited(ctx, call(ctx))
}
