package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// Program runs a container to its end and returns what its program wrote on standard
// output. A program that ends badly is an error: its output is no result.
func Program(ctx context.Context, t Trial, spec engine.Spec) ([]byte, error) {
	return toItsEnd(ctx, t, spec, "", func(ctx context.Context, spec engine.Spec) (engine.Container, error) {
		c, _, err := t.Create(ctx, spec)
		return c, err
	})
}

// HostProgram is Program for a process at the host's end of the target's Link.
func HostProgram(ctx context.Context, t Trial, spec engine.Spec) ([]byte, error) {
	return toItsEnd(ctx, t, spec, "host ", t.CreateHost)
}

// toItsEnd runs what create makes to its end. The names of its phases begin with a prefix.
func toItsEnd(
	ctx context.Context, t Trial, spec engine.Spec, prefix string, create func(context.Context, engine.Spec) (engine.Container, error),
) ([]byte, error) {
	out, complaints := t.Watch(), t.Watch()
	spec.Process.Stdout, spec.Process.Stderr = out, complaints
	c, err := create(ctx, spec)
	if err != nil {
		return nil, err
	}
	if _, err := t.Time(ctx, prefix+"start", c.Start); err != nil {
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
	if _, err := t.Time(ctx, prefix+"delete", c.Delete); err != nil {
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
	return StartReady(ctx, t, t.Spec(workload.Ready()...))
}

// StartReady is Start with a spec of that command.
func StartReady(ctx context.Context, t Trial, spec engine.Spec) (engine.Container, error) {
	out := t.Watch()
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

// SpecOf describes a container that runs a program of the benchmark's image.
func SpecOf(t Trial, p workload.Program) engine.Spec {
	spec := t.Spec(p.Args...)
	spec.Process.Env = p.Env
	return spec
}

// Measure runs a program to its end in a container and reads what it wrote. The spec is what SpecOf
// gives, with what the benchmark adds to it.
func Measure(ctx context.Context, t Trial, spec engine.Spec, p workload.Program) (workload.Values, error) {
	text, err := Program(ctx, t, spec)
	if err != nil {
		return nil, err
	}
	return read(text, engine.Exit{}, p) // Program refuses any other end
}

// MeasureIn is Measure in a container that runs, as a further process.
func MeasureIn(ctx context.Context, t Trial, c engine.Container, p workload.Program) (workload.Values, error) {
	execer, ok := c.(engine.Execer)
	if !ok {
		return nil, errors.New("the engine says that it can start further processes, and has no way to")
	}
	out, complaints := t.Watch(), t.Watch()
	// Bounded by the trial's limit only, as in Program.
	exit, err := execer.Exec(ctx, engine.Process{Args: p.Args, Env: p.Env, Stdout: out, Stderr: complaints})
	if err != nil {
		return nil, err
	}
	return read(out.Bytes(), exit, p)
}

// read gives the values of a program that has ended.
func read(text []byte, exit engine.Exit, p workload.Program) (workload.Values, error) {
	if !exit.OK() {
		return nil, fmt.Errorf("the program %q ended: %v", p.Args, exit)
	}
	values, err := p.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("read the output of %q: %w", p.Args, err)
	}
	return values, nil
}

// RecordAll records the metrics, of which the values must have each that is not optional.
func RecordAll(t Trial, values workload.Values, metrics []result.Metric) error {
	for _, m := range metrics {
		value, ok := values[m.Name]
		switch {
		case ok:
			t.Record(m.Name, value)
		case !m.Optional:
			return fmt.Errorf("the program's output has no %s", m.Name)
		}
	}
	return nil
}
