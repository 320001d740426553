package bench

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// Where runs the program of a spec to its exit in some place and returns its standard output: InContainer, AsClient or
// the result of Within. A program that fails is an error: its output is not a result.
type Where func(ctx context.Context, t Trial, spec engine.Spec) ([]byte, error)

// Run runs a program by its spec and parses its output, which it also returns.
func Run(ctx context.Context, t Trial, runner Where, spec engine.Spec, p workload.Program) (workload.Values, []byte, error) {
	text, err := runner(ctx, t, spec)
	if err != nil {
		return nil, nil, err
	}
	values, err := p.Parse(text)
	if err != nil {
		return nil, nil, fmt.Errorf("read the output of %q: %w", spec.Process.Args, err)
	}
	return values, text, nil
}

// Measure is Run for a program of the benchmark's image. The options complete the container's spec.
func Measure(ctx context.Context, t Trial, runner Where, p workload.Program, options ...func(*engine.Spec)) (workload.Values, error) {
	spec := SpecOf(t, p)
	for _, option := range options {
		option(&spec)
	}
	values, _, err := Run(ctx, t, runner, spec, p)
	return values, err
}

// SpecOf describes a container that runs a program of the benchmark's image.
func SpecOf(t Trial, p workload.Program) engine.Spec {
	spec := t.Spec(p.Args...)
	spec.Process.Env = p.Env
	return spec
}

// RecordAll records the metrics. It returns an error if the values lack a metric that is not optional.
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

// InContainer runs the program as the first process of a new container.
func InContainer(ctx context.Context, t Trial, spec engine.Spec) ([]byte, error) {
	return runToExit(ctx, t, spec, "", t.Create)
}

// onHost runs the program at the host's end of the target's Link.
func onHost(ctx context.Context, t Trial, spec engine.Spec) ([]byte, error) {
	return runToExit(ctx, t, spec, atHost, t.createAtHost)
}

// atHost is the prefix of the phases of programs at the host's end.
const atHost = "host "

// createAtHost is a createFunc. A program at the host's end has no limits of containers.
func (t Trial) createAtHost(ctx context.Context, spec engine.Spec) (engine.Container, Span, error) {
	spec.Resources = engine.Resources{}
	c, err := t.Network.CreateHost(ctx, spec)
	return c, Span{}, err
}

// Within runs the program as a further process of a running container.
func Within(c engine.Container) Where {
	return func(ctx context.Context, t Trial, spec engine.Spec) ([]byte, error) {
		execer, err := Optional[engine.Execer](c, engine.CanExec)
		if err != nil {
			return nil, err
		}
		out := t.Watch()
		spec.Process.Stdout, spec.Process.Stderr = out, t.Watch()
		exit, err := execer.Exec(ctx, spec.Process) // bounded only by the trial's limit, as in Running.WaitOK
		if err != nil {
			return nil, err
		}
		return out.Bytes(), exitError(spec, t.Info.SmallGuest, exit)
	}
}

// runToExit runs a program in the container that create makes. The names of its phases begin with a prefix.
func runToExit(ctx context.Context, t Trial, spec engine.Spec, prefix string, create createFunc) ([]byte, error) {
	spec.Process.Stderr = t.Watch()
	r, err := launch(ctx, t, spec, prefix, create)
	if err != nil {
		return nil, err
	}
	if err := r.WaitOK(ctx); err != nil {
		return nil, err
	}
	if _, err := r.Remove(ctx, t); err != nil {
		return nil, err
	}
	return r.Output.Bytes(), nil
}

// createFunc is Core.Create, or its counterpart on the host.
type createFunc func(context.Context, engine.Spec) (engine.Container, Span, error)

// Running is a container whose program was started.
type Running struct {
	engine.Container
	Output                Watch // standard output
	CreateSpan, StartSpan Span  // of the phases "create" and "start"

	trial      Trial
	spec       engine.Spec
	smallGuest string // the remedy: see engine.Info
	prefix     string // of the names of phases
}

// Launch creates and starts a container. Standard output goes to a Watch: the spec's own, if it has one.
func Launch(ctx context.Context, t Trial, spec engine.Spec) (*Running, error) {
	return launch(ctx, t, spec, "", t.Create)
}

func launch(ctx context.Context, t Trial, spec engine.Spec, prefix string, create createFunc) (_ *Running, err error) {
	r := &Running{trial: t, prefix: prefix, smallGuest: t.Info.SmallGuest}
	if prefix == atHost {
		r.smallGuest = ""
	}
	isWatch := false
	if r.Output, isWatch = spec.Process.Stdout.(Watch); !isWatch {
		r.Output = t.Watch()
		spec.Process.Stdout = r.Output
	}
	r.spec = spec
	if r.Container, r.CreateSpan, err = create(ctx, spec); err != nil {
		return nil, err
	}
	if r.StartSpan, err = t.Time(ctx, prefix+"start", r.Start); err != nil {
		return nil, err
	}
	return r, nil
}

// Start launches a container that runs the probe's ready command, and waits for its first line. The options complete the
// container's spec.
func Start(ctx context.Context, t Trial, options ...func(*engine.Spec)) (*Running, error) {
	spec := t.Spec(probe.Ready()...)
	for _, option := range options {
		option(&spec)
	}
	r, err := Launch(ctx, t, spec)
	if err != nil {
		return nil, err
	}
	_, err = r.Ready(ctx)
	return r, err
}

// Ready waits for the first line of the probe's ready command, and returns the time of its first byte.
func (r *Running) Ready(ctx context.Context) (time.Duration, error) {
	line, first, err := r.FirstLine(ctx)
	if err == nil && line != probe.ReadyLine {
		err = fmt.Errorf("the program's first line is %q instead of %q", line, probe.ReadyLine)
	}
	return first, err
}

// outputLimit bounds the wait for the first line of a program that writes it at once. A host that needs longer measures nothing.
const outputLimit = time.Minute

var errSilent = fmt.Errorf("no output within %v", outputLimit)

// FirstLine waits for the first line of a program that writes it at once, as proof that the program was started, and only by start. It
// returns the line without its end, and the time of its first byte.
func (r *Running) FirstLine(ctx context.Context) (line string, first time.Duration, err error) {
	// With a context that has ended, the call returns only a line that is there already.
	waitCtx, end := context.WithCancel(ctx)
	end()
	if line, first, err = r.Output.FirstLine(waitCtx); errors.Is(err, context.Canceled) {
		limitCtx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		go func() {
			if _, err := r.trial.Sleep(limitCtx, outputLimit); err == nil {
				cancel(errSilent)
			}
		}()
		line, first, err = r.Output.FirstLine(limitCtx)
		if err != nil && context.Cause(limitCtx) != nil {
			err = r.instead(ctx, "the first line of the program after start returned success", err)
		}
	}
	if err == nil && first < r.StartSpan.Start {
		err = fmt.Errorf("the program ran before start: want no output of a created container, got %.80q %v before the call", line, r.StartSpan.Start-first)
	}
	return line, first, err
}

// instead adds the wanted effect of a call and the container's state to the error of the wait for that effect.
func (r *Running) instead(ctx context.Context, want string, err error) error {
	ctx, cancel := engine.WithUndoLimit(ctx)
	defer cancel()
	state, stateErr := r.State(ctx)
	if stateErr != nil {
		return fmt.Errorf("%w; want %s, got an unknown state: %w", err, want, stateErr)
	}
	return fmt.Errorf("%w; want %s, got a container that the engine reports as %s", err, want, state)
}

// WaitOK waits for the program's exit. Only the trial's limit bounds it: the run time of a program is a parameter. A program
// that fails is an error.
func (r *Running) WaitOK(ctx context.Context) error {
	exit, err := r.Wait(ctx)
	if err != nil {
		return err
	}
	return exitError(r.spec, r.smallGuest, exit)
}

// exitError is the error of a program that failed. The usual cause of a kill in a guest is the guest's lack of memory.
func exitError(spec engine.Spec, smallGuest string, exit engine.Exit) error {
	switch {
	case exit.OK():
		return nil
	case smallGuest != "" && spec.Resources.Memory == 0 && exit.Signal == syscall.SIGKILL:
		return fmt.Errorf("the program %q ended: %v; its guest may have too little memory: %s", spec.Process.Args, exit, smallGuest)
	}
	return fmt.Errorf("the program %q ended: %v", spec.Process.Args, exit)
}

// Remove deletes the container after its exit, as the phase "delete", and waits for the end of its output: some engines
// know only then that no more output follows.
func (r *Running) Remove(ctx context.Context, t Trial) (Span, error) {
	span, err := t.Time(ctx, r.prefix+"delete", r.Delete)
	if err != nil {
		return Span{}, err
	}
	return span, r.Output.Ended(ctx)
}

// Destroy kills the container, waits for its exit and deletes it, as the phases "kill", "exit" and "delete". It returns the
// sum of the three phases, and the span from the start of the first to the end of the last.
func (r *Running) Destroy(ctx context.Context, t Trial) (time.Duration, Span, error) {
	kill, err := t.Time(ctx, "kill", func(ctx context.Context) error { return r.Kill(ctx, syscall.SIGKILL) })
	if err != nil {
		return 0, Span{}, err
	}
	exit, err := t.Time(ctx, "exit", func(ctx context.Context) error {
		_, err := r.Wait(ctx)
		return err
	})
	if err != nil {
		return 0, Span{}, r.instead(ctx, "the exit of the program after kill returned success", err)
	}
	remove, err := t.Time(ctx, "delete", r.Delete)
	return kill.Length() + exit.Length() + remove.Length(), Span{Start: kill.Start, End: remove.End}, err
}

// Exit is the exit of a program that a goroutine awaits.
type Exit struct {
	Done <-chan struct{} // closed after the exit, when the other fields are set
	engine.Exit
	Err error // of the wait

	spec       engine.Spec
	smallGuest string
}

// Await waits for the exit in the background until ctx ends.
func (r *Running) Await(ctx context.Context) *Exit {
	done := make(chan struct{})
	e := &Exit{Done: done, spec: r.spec, smallGuest: r.smallGuest}
	go func() {
		defer close(done)
		e.Exit, e.Err = r.Wait(ctx)
	}()
	return e
}

// Failure is the error of the wait or of the program, after Done.
func (e *Exit) Failure() error {
	if e.Err != nil {
		return e.Err
	}
	return exitError(e.spec, e.smallGuest, e.Exit)
}

// HistogramOf is the histogram of a system call of the probe as a distribution of a metric, in seconds.
func HistogramOf(metric string, c probe.Call) result.Distribution {
	d := result.Distribution{Metric: metric, Unit: result.Seconds, Batch: c.Batch}
	for _, bucket := range c.Histogram {
		d.Lows, d.Counts = append(d.Lows, float64(bucket[0])/1e9), append(d.Counts, bucket[1])
	}
	return d
}
