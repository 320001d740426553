package bench

import (
	"context"
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// Program runs a container to its end and returns what its program wrote on standard
// output. A program that ends badly is an error: its output is no result.
func Program(ctx context.Context, t Trial, spec engine.Spec) ([]byte, error) {
	out, complaints := t.Watch(), t.Watch()
	spec.Process.Stdout, spec.Process.Stderr = out, complaints
	c, _, err := t.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	if _, err := t.Time(ctx, "start", c.Start); err != nil {
		return nil, err
	}
	// Bounded by the trial's limit only: how long a program runs is a parameter.
	exit, err := c.Wait(ctx)
	if err != nil {
		return nil, err
	}
	if !exit.OK() {
		return nil, fmt.Errorf("the program %q ended: %v", spec.Process.Args, exit)
	}
	// Some engines know only then that no more output will come.
	if _, err := t.Time(ctx, "delete", c.Delete); err != nil {
		return nil, err
	}
	if err := out.Ended(ctx); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Start creates and starts a container that runs the probe's ready command, and waits
// for its first line.
func Start(ctx context.Context, t Trial) (engine.Container, error) {
	out := t.Watch()
	spec := t.Spec(workload.Ready()...)
	spec.Process.Stdout = out
	c, _, err := t.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	if _, err := t.Time(ctx, "start", c.Start); err != nil {
		return nil, err
	}
	return c, CheckReady(ctx, out)
}

// CheckReady waits for the first line of the probe's ready command.
func CheckReady(ctx context.Context, out Watch) error {
	line, _, err := out.FirstLine(ctx)
	if err != nil {
		return err
	}
	if line != workload.ReadyLine {
		return fmt.Errorf("the program's first line is %q instead of %q", line, workload.ReadyLine)
	}
	return nil
}
