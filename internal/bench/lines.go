package bench

import (
	"bytes"
	"context"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// lineWatch is a watch that calls line for each complete line of output, in order.
type lineWatch struct {
	Watch
	line func(line string, moment time.Duration)
	rest []byte
}

// maxLine is the number of bytes that is kept of a line, more than any expected line has.
const maxLine = 4096

// Write is called by one goroutine.
func (f *lineWatch) Write(p []byte) (int, error) {
	n, err := f.Watch.Write(p) // first, since it notes the time
	moment := f.Last()
	for piece := range bytes.Lines(p) {
		text, ends := bytes.CutSuffix(piece, []byte("\n"))
		f.rest = append(f.rest, text[:min(len(text), maxLine-len(f.rest))]...)
		if ends {
			f.line(string(f.rest), moment)
			f.rest = f.rest[:0]
		}
	}
	return n, err
}

// Lines returns a watch that calls line for each complete line of output, in order, with the time of its arrival. The call
// must return soon: meanwhile no further output is read.
func Lines(t Trial, line func(text string, moment time.Duration)) Watch {
	return &lineWatch{Watch: t.Watch(), line: line}
}

// Followed is a running container whose lines are followed and whose exit is awaited.
type Followed struct {
	*Running
	Exit *Exit
}

// Follow launches a container and calls line for each line of its output, as Lines does. The context bounds the wait for
// its exit.
func Follow(ctx context.Context, t Trial, spec engine.Spec, line func(text string, moment time.Duration)) (Followed, error) {
	return follow(ctx, t, spec, "", t.Create, line)
}

// FollowOutside is Follow for a bare process of the host, beside the target.
func FollowOutside(ctx context.Context, t Trial, spec engine.Spec, line func(text string, moment time.Duration)) (Followed, error) {
	create := func(ctx context.Context, spec engine.Spec) (engine.Container, Span, error) {
		c, err := t.Host.Create(ctx, spec)
		return c, Span{}, err
	}
	return follow(ctx, t, spec, "outside ", create, line)
}

func follow(ctx context.Context, t Trial, spec engine.Spec, prefix string, create createFunc, line func(string, time.Duration)) (Followed, error) {
	spec.Process.Stdout, spec.Process.Stderr = Lines(t, line), t.Watch()
	r, err := launch(ctx, t, spec, prefix, create)
	if err != nil {
		return Followed{}, err
	}
	return Followed{r, r.Await(ctx)}, nil
}
