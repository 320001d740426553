package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// trialHost implements bench.Host.
type trialHost struct{ *trial }

func (t trialHost) Create(ctx context.Context, spec engine.Spec) (engine.Container, error) {
	if t.r.Host == nil {
		return nil, &engine.UnsupportedError{What: "a process outside the target", Reason: "this run has no engine for programs on the host"}
	}
	return t.createOutside(ctx, "create outside the target", spec)
}

func (t trialHost) Control(ctx context.Context, argv []string) (stdout []byte, err error) {
	controller, ok := t.r.Host.(engine.Controller)
	if !ok {
		return nil, &engine.UnsupportedError{What: "a control outside of containers", Reason: "this run has no engine for programs on the host"}
	}
	err = t.inHostGroup(func() error {
		return t.bounded(ctx, "the control outside of containers", func(ctx context.Context) (err error) {
			stdout, err = controller.Control(ctx, argv[1:])
			return err
		})
	})
	return stdout, err
}

// createOutside creates a process of the host's engine, which the runner removes at the end of the trial.
func (t *trial) createOutside(ctx context.Context, what string, spec engine.Spec) (c engine.Container, err error) {
	err = t.inHostGroup(func() error {
		return t.bounded(ctx, what, func(ctx context.Context) (err error) {
			c, err = t.r.Host.Create(ctx, spec)
			return err
		})
	})
	if c != nil {
		t.keep(c)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// inHostGroup calls f while the host's engine starts its processes in a cgroup beside the trial's: none of their
// instructions may count as the target's. The target's engine shares the launcher and must not be called meanwhile.
func (t *trial) inHostGroup(f func() error) error {
	t.mu.Lock()
	t.outside = true
	t.mu.Unlock()
	placer, ok := t.r.Host.(engine.CgroupPlacer)
	if !ok || t.group == nil {
		t.mu.Lock()
		t.costMixed = true
		t.mu.Unlock()
		return f()
	}
	name := t.groupName() + "-host"
	if t.hostGroup == nil {
		g, err := t.r.Cgroups.Create(name)
		if err != nil {
			return fmt.Errorf("make a cgroup for processes outside the target: %w", err)
		}
		t.hostGroup = g
	}
	if err := placer.SetCgroupParent(name); err != nil {
		return err
	}
	err := f()
	// The target's engine places the launcher again: not every engine puts it into the trial's cgroup.
	return errors.Join(err, placer.SetCgroupParent(""), t.engine.(engine.CgroupPlacer).SetCgroupParent(t.groupName()))
}
