package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
)

// goodPatience is the time for a clean-up or a try-out that a short limit of calls does not reduce below its half: a busy host needs
// time to start a program.
const goodPatience = 5 * time.Second

// patience is the time for the whole clean-up of a trial whose target hangs, and for a try-out. It is a third of a call's limit, because a
// target that hangs takes the time of the others.
func (r *run) patience() time.Duration {
	return max(r.CallLimit/3, min(r.CallLimit/2, goodPatience))
}

// removers is the number of removals at once after the deadline of a clean-up. More of them would fill a small host with processes.
const removers = 16

// leftover is an object of a trial that still exists.
type leftover struct {
	target, what string
	remove       func(context.Context) error
}

// cleanUp removes everything that the benchmark left, also if the run is interrupted. It has one deadline.
//
// The removal in turn may take as long as the trial itself, and one call more. When that time is over, or when one removal takes longer than
// the limit of a call, the processes in the trial's cgroup are killed. Everything that is left is then removed in parallel, and the
// last step is the cgroup. If a call has already exceeded its limit, all of it takes the run's patience. A failed removal is tried twice: the trial has failed, but its leftovers would disturb later
// trials.
func (t *trial) cleanUp(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	patience := t.r.patience()
	c := cleaner{trial: t, ctx: ctx, each: t.r.CallLimit}
	limit := t.r.CallLimit + t.now()
	if t.hurried {
		c.each, limit = patience/2, patience/2
	}
	if t.r.Budget > 0 {
		limit = min(limit, max(patience/2, t.r.Budget-t.r.elapsed()+patience/2))
	}
	gentle, cancel := t.r.Clock.WithTimeoutCause(ctx, limit, &LimitError{cleaningUp, limit})
	defer cancel()
	c.gentle = gentle
	c.remove(t.leftContainers())
	c.remove(t.leftImages())
	for _, ref := range t.fresh {
		t.r.Registry.Forget(ref)
	}
	if t.group != nil {
		c.add(t.engine.(engine.CgroupPlacer).SetCgroupParent(""))
		last := patience
		if !c.late.IsZero() {
			last = patience / 6
		}
		c.inGroups(last, (*cgroup.Group).Destroy)
	}
	if t.r.EmptyHidden != nil {
		c.add(t.r.EmptyHidden())
	}
	for _, dir := range t.scratch {
		c.add(os.RemoveAll(dir))
	}
	return errors.Join(c.errs...)
}

// cleaningUp is the name of a removal in messages.
const cleaningUp = "the clean-up"

// leftContainers are the trial's containers, the newest first.
func (t *trial) leftContainers() []leftover {
	var objects []leftover
	for _, c := range slices.Backward(t.containers) {
		objects = append(objects, leftover{what: "container " + c.ID(), remove: c.Delete})
	}
	return objects
}

func (t *trial) leftImages() []leftover {
	puller, ok := t.engine.(engine.Puller)
	if !ok {
		return nil
	}
	var objects []leftover
	for _, ref := range t.pulled {
		objects = append(objects, leftover{what: "image " + ref, remove: func(ctx context.Context) error { return puller.RemoveImage(ctx, ref) }})
	}
	return objects
}

// cleaner is one clean-up.
type cleaner struct {
	*trial
	ctx    context.Context //nolint:containedctx // of the clean-up, which is over when cleanUp returns
	gentle context.Context //nolint:containedctx // likewise: it ends when the removal in turn ends
	each   time.Duration   // for one removal in turn
	late   time.Time       // the end of the removal at once; zero before the deadline
	errs   []error
}

func (c *cleaner) add(err error) {
	if err != nil {
		c.errs = append(c.errs, fmt.Errorf("clean up: %w", err))
	}
}

// remove removes objects in turn until the deadline, then the rest at once.
func (c *cleaner) remove(leftovers []leftover) {
	var rest []leftover
	for _, object := range leftovers {
		if c.late.IsZero() {
			start := c.now()
			err := c.r.limit(c.gentle, cleaningUp, c.each, object.remove)
			c.called("remove "+object.what, bench.Span{Start: start, End: c.now()}, err)
			if err == nil {
				continue
			}
			c.add(err)
			if timedOut(err) {
				left := c.r.patience() / 3
				c.late = c.r.Clock.Now().Add(left)
				c.inGroups(left, (*cgroup.Group).Kill)
			}
		}
		rest = append(rest, object)
	}
	left := c.r.patience() / 3
	if !c.late.IsZero() {
		left = c.late.Sub(c.r.Clock.Now())
	}
	start := c.now()
	for i, err := range c.r.removeAtOnce(c.ctx, cleaningUp, left, rest) {
		c.called("remove "+rest[i].what+" beside others", bench.Span{Start: start, End: c.now()}, err)
		if err != nil {
			c.add(err)
			rest[i].target = c.target
			c.r.left = append(c.r.left, rest[i])
		}
	}
}

// inGroups calls f for the trial's cgroups.
func (c *cleaner) inGroups(limit time.Duration, f func(*cgroup.Group, context.Context) error) {
	for _, g := range []*cgroup.Group{c.group, c.hostGroup} {
		if g != nil {
			c.add(c.r.limit(c.ctx, cleaningUp, limit, func(ctx context.Context) error { return f(g, ctx) }))
		}
	}
}

// removeAtOnce removes objects in parallel and returns their errors.
func (r *run) removeAtOnce(ctx context.Context, what string, limit time.Duration, leftovers []leftover) []error {
	errs := make([]error, len(leftovers))
	ctx, cancel := r.Clock.WithTimeoutCause(ctx, limit, &LimitError{what, limit})
	defer cancel()
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(removers, len(leftovers)) {
		wg.Go(func() {
			for i := range next {
				errs[i] = limited(ctx, leftovers[i].remove(ctx))
			}
		})
	}
	for i := range leftovers {
		next <- i
	}
	close(next)
	wg.Wait()
	return errs
}

// removeLeft removes the objects that a clean-up during an outage has left. Those that stay are removed at the end of the run.
func (r *run) removeLeft(ctx context.Context) {
	var rest []leftover
	for i, err := range r.removeAtOnce(context.WithoutCancel(ctx), cleaningUp, r.CallLimit, r.left) {
		if err != nil {
			rest = append(rest, r.left[i])
		}
	}
	r.left = rest
}

// removeRest removes the run's images, and the objects that no clean-up has removed, also if the run is interrupted: the user's own engines
// outlive the run.
func (r *run) removeRest(ctx context.Context) {
	objects := r.left
	for _, p := range r.pulled {
		objects = append(objects, leftover{p.target, "image " + p.ref, func(ctx context.Context) error { return p.engine.RemoveImage(ctx, p.ref) }})
	}
	limit := r.CallLimit
	if r.Budget > 0 {
		limit = min(limit, max(r.patience()/2, r.Budget-r.elapsed()+r.patience()))
	}
	for i, err := range r.removeAtOnce(context.WithoutCancel(ctx), "the removal", limit, objects) {
		if err != nil {
			r.out.Caveats = append(r.out.Caveats, fmt.Sprintf("the %s stays with %s: %v", objects[i].what, objects[i].target, err))
		}
	}
}
