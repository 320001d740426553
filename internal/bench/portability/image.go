package portability

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// other is the value of the parameter architecture for an architecture that is not the host's.
const other = "other"

// The statements of a trial: the outcome in Touchstone's words, and the error in the engine's.
const (
	outcomeStatement = "outcome"
	wordsStatement   = "in the engine's words"
)

// image runs the image of another architecture.
//
// A trial runs two images, which differ only in the architecture of their one program. The image for the host's architecture is the
// control: if it does not run, the trial fails, because the architecture of the other image does not explain any outcome. An error
// whose text names neither the format nor the platform fails the trial too.
func image() bench.Benchmark {
	return bench.Benchmark{
		Name:    "portability.image.run",
		Summary: "run an image of another architecture, and report whether it runs, is emulated, or is refused",
		Source:  "sateri section 4.1, tables 4.1 and 4.2",
		// The outcome is no metric: a ratio of targets that run the image to targets that do not says nothing.
		Metrics: []result.Metric{{
			Name: "TimeToExit", Unit: result.Seconds, Better: result.Lower, Optional: true,
			Help: "pull, create, start and exit of the program of the other architecture together, if it ran",
		}},
		Statements: []string{outcomeStatement, wordsStatement},
		Params: []bench.Param{{
			Name: "architecture", Quick: other, Paper: other, Check: bench.OneOf(other, "386", "amd64", "arm", "arm64", "riscv64"),
			Help: "architecture of the image; other is amd64 on an ARM64 host, and arm64 on every other host",
		}},
		Run: run,
	}
}

// architecture is the value of the parameter, with the architecture that other stands for.
func architecture(value, host string) string {
	switch {
	case value != other:
		return value
	case host == "arm64":
		return "amd64"
	default:
		return "arm64"
	}
}

func run(ctx context.Context, t bench.Trial) error {
	control, err := attempt(ctx, t, runtime.GOARCH)
	if err != nil {
		return err
	}
	if !control.runs() {
		return fmt.Errorf("the image for the host's own architecture %s does not run, so the other one shows nothing: %w", runtime.GOARCH, control.failure())
	}
	arch := architecture(t.Param("architecture"), runtime.GOARCH)
	execution, err := attempt(ctx, t, arch)
	if err != nil {
		return err
	}
	if t.Info.Isolation == engine.VM {
		execution.guest = true
		execution.image.Emulator = bench.Emulator{Unknown: "the kernel of the guest has its own registrations"}
	}
	found, err := execution.outcome(arch != runtime.GOARCH)
	if err != nil {
		return err
	}
	t.Condition("architecture", arch+" on "+runtime.GOARCH)
	t.Condition("emulator", emulator(execution.image.Emulator))
	t.Condition(outcomeStatement, found)
	if words := execution.words(); words != "" {
		t.Condition(wordsStatement, words)
	}
	if execution.runs() {
		t.Record("TimeToExit", execution.seconds)
	}
	return nil
}

// emulator describes the emulator that the host's kernel has for the program.
func emulator(e bench.Emulator) string {
	switch {
	case e.Unknown != "":
		return "not known: " + e.Unknown
	case e.Name == "":
		return "none registered with the kernel"
	case e.Fixed:
		return fmt.Sprintf("%s, %s, for all containers", e.Name, e.Interpreter)
	default:
		return fmt.Sprintf("%s, %s, looked up in each container (registered without the flag F)", e.Name, e.Interpreter)
	}
}

// attempt pulls the minimal image of an architecture, if the engine pulls images, and runs its program. The error is nil if the
// engine refuses the image.
func attempt(ctx context.Context, t bench.Trial, arch string) (*attempted, error) {
	image, err := t.Images.Minimal(ctx, arch)
	if err != nil {
		return nil, err
	}
	a := &attempted{image: image}
	spec := t.Spec(probe.Exit(bench.MinimalCode)...) // the program ignores its arguments
	spec.Rootfs = image.Rootfs
	if t.Require(bench.Needs{Capabilities: []engine.Capability{engine.CanPull}}) == nil {
		spec.Image = image.Ref
		span, err := t.Images.Pull(ctx, image.Ref)
		if err != nil {
			return a, a.refused(ctx, pulling, err)
		}
		a.seconds += span.Seconds()
	}
	a.id = spec.ID
	a.stderr = t.Watch()
	spec.Process.Stderr = a.stderr
	a.stdout = t.Watch()
	spec.Process.Stdout = a.stdout
	c, span, err := t.Create(ctx, spec)
	if err != nil {
		return a, a.refused(ctx, creating, err)
	}
	a.seconds += span.Seconds()
	if span, err = t.Time(ctx, "start", c.Start); err != nil {
		return a, a.refused(ctx, starting, err)
	}
	a.seconds += span.Seconds()
	span, err = t.Time(ctx, "exit", func(ctx context.Context) (err error) {
		a.exit, err = c.Wait(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	a.seconds += span.Seconds()
	// Some engines know only after the removal that no more output follows.
	if _, err := t.Time(ctx, "delete", c.Delete); err != nil {
		return nil, err
	}
	return a, errors.Join(a.stdout.Ended(ctx), a.stderr.Ended(ctx))
}
