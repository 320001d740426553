package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
)

// pullLimit bounds one pull of an image that a benchmark runs from, which may have a hundred times the size of those that
// calls are bounded for.
const pullLimit = 5 * time.Minute

// pulled is an image that an engine has for the run.
type pulled struct {
	target string
	engine engine.Puller
	ref    string
}

// pull makes sure that an engine which pulls has an image. It does so once a run, outside of every trial: that the
// first trial pays for all would be an outlier, and its cost nobody's. The probe's image is there when
// an engine has been opened.
func (r *run) pull(ctx context.Context, image bench.Image, t Target) error {
	puller, ok := t.Engine.(engine.Puller)
	ref := r.Files[image].Ref
	has := func(p pulled) bool { return p.target == t.Name && p.ref == ref }
	if !ok || image == bench.ProbeImage || ref == "" || slices.ContainsFunc(r.pulled, has) {
		return nil
	}
	// One that takes directories may pull too, for the benchmark of it.
	if err := t.Engine.Supports(engine.CanPull); err != nil {
		return err
	}
	if r.Pulling != nil {
		r.Pulling(t.Name, image)
	}
	err := r.limit(ctx, "the pull of image "+string(image), pullLimit, func(ctx context.Context) error { return puller.Pull(ctx, ref) })
	if err != nil {
		// Part of it may be there.
		return errors.Join(fmt.Errorf("get image %s ready: %w", image, err), r.removeImage(ctx, puller, ref))
	}
	r.pulled = append(r.pulled, pulled{t.Name, puller, ref})
	return nil
}

// removeImages removes what was pulled, also when the run is being interrupted: an engine of the user's lives on.
func (r *run) removeImages(ctx context.Context) {
	for _, p := range r.pulled {
		if err := r.removeImage(ctx, p.engine, p.ref); err != nil {
			r.out.Cut = append(r.out.Cut, fmt.Sprintf("the image %s stays with %s: %v", p.ref, p.target, err))
		}
	}
}

func (r *run) removeImage(ctx context.Context, p engine.Puller, ref string) error {
	return r.limit(context.WithoutCancel(ctx), "the removal of an image", r.CallLimit, func(ctx context.Context) error {
		return p.RemoveImage(ctx, ref)
	})
}

// limit bounds a call.
func (r *run) limit(ctx context.Context, what string, limit time.Duration, call func(context.Context) error) error {
	ctx, cancel := r.Clock.WithTimeoutCause(ctx, limit, &LimitError{what, limit})
	defer cancel()
	return limited(ctx, call(ctx))
}
