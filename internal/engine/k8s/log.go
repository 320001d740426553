package k8s

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// output is the log of a pod on its way to the writer of the program's output.
type output struct {
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // after ended
}

// follow copies the log of the pod to the program's writer until its end. The container engine of the node has stamped each line with
// nanoseconds: the first and the last line are stages.
func (p *pod) follow(ctx context.Context) *output {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	o := &output{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(o.ended)
		defer p.process.CloseOutput()
		defer cancel()
		o.err = p.copyLog(ctx)
		if o.err != nil {
			p.fail(o.err)
		}
	}()
	return o
}

func (p *pod) copyLog(ctx context.Context) error {
	stream, err := p.watcher.pods().GetLogs(p.manifest.Name, &corev1.PodLogOptions{Container: containerName, Follow: true, Timestamps: true}).Stream(ctx)
	if err != nil {
		return explain(err)
	}
	defer func() { _ = stream.Close() }()
	sink := p.process.Stdout
	if sink == nil {
		sink = io.Discard
	}
	last, err := copyLines(sink, stream, p.process.OneLine, func(real time.Time) { p.receiver().MarkAt(engine.StageFirstLine, real) })
	if !last.IsZero() && !p.process.OneLine {
		p.receiver().MarkAt(engine.StageLastLine, last)
	}
	return err
}

// receiver receives the stages.
func (p *pod) receiver() engine.Marker {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.marker
}

// errNoTime is the error of a line that the container engine has not stamped.
var errNoTime = errors.New("a line of the log has no time, so it is a message of the kubelet, or the log is damaged")

// errWatches is the kubelet's message in a log if the node has no watch of files for it.
const errWatches = "too many open files"

// noTime is the error of a line without a time.
func noTime(line string) error {
	advice := ""
	if strings.Contains(line, errWatches) {
		advice = "; raise fs.inotify.max_user_instances on the node"
	}
	return fmt.Errorf("%w: %q%s", errNoTime, excerpt(line), advice)
}

// copyLines copies the lines of a log without their times, or only the first line. It calls first before the first line, and returns the time of the last one. The length
// of a line is not limited, because a program may write a large result in one.
func copyLines(w io.Writer, log io.Reader, isBrief bool, first func(time.Time)) (last time.Time, err error) {
	reader := bufio.NewReaderSize(log, 64<<10)
	isStart := true
	for {
		piece, err := reader.ReadSlice('\n')
		if len(piece) > 0 {
			text := piece
			if isStart {
				stamp, rest, ok := bytes.Cut(piece, []byte{' '})
				real, parseErr := time.Parse(time.RFC3339Nano, string(stamp))
				if !ok || parseErr != nil {
					return last, noTime(string(piece))
				}
				if last.IsZero() {
					first(real)
				}
				last, text = real, rest
			}
			isStart = piece[len(piece)-1] == '\n'
			if _, err := w.Write(text); err != nil || isBrief && isStart {
				return last, err
			}
		}
		switch {
		case err == nil, errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return last, nil
		default:
			return last, &FaultError{
				Reason: "the API server has cut the log: " + excerpt(err.Error()), Advice: "look at the control plane, and at the proxies in front of it",
				Transient: true, Outage: true, cause: err,
			}
		}
	}
}

// endOutput waits for the end of the log of a pod that does not exist any more.
func (p *pod) endOutput(ctx context.Context) error {
	p.mu.Lock()
	o := p.output
	p.mu.Unlock()
	if o == nil {
		p.process.CloseOutput()
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, outputLimit, fmt.Errorf("it has not ended %v after the removal of the pod", outputLimit))
	defer cancel()
	select {
	case <-o.ended:
	case <-ctx.Done():
		o.cancel()
		return context.Cause(ctx)
	}
	// The output has one end: a later call has no error.
	p.update(func() { p.output = nil })
	return o.err
}
