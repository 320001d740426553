package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
)

// Exec runs a further process until it exits.
func (b *container) Exec(ctx context.Context, p engine.Process) (engine.Exit, error) {
	if err := b.exists("execute in"); err != nil {
		return engine.Exit{}, err
	}
	exit, err := b.exec(ctx, p)
	if err != nil {
		return engine.Exit{}, runtimes.ExplainExec(b.e.target.Isolation, b.explain(ctx, "execute in", err))
	}
	return exit, nil
}

func (b *container) exec(ctx context.Context, p engine.Process) (engine.Exit, error) {
	var execution client.ExecCreateResult
	err := engine.Step(ctx, "ExecCreate", func() (err error) {
		execution, err = b.e.client.ExecCreate(ctx, b.id, client.ExecCreateOptions{
			Cmd: p.Args, Env: p.Env, WorkingDir: "/", AttachStdout: true, AttachStderr: true,
		})
		return err
	})
	if err != nil {
		return engine.Exit{}, err
	}
	prefix := &head{sink: sink{w: p.Stdout}}
	err = engine.Step(ctx, "ExecStart", func() error {
		attached, err := b.e.client.ExecAttach(ctx, execution.ID, client.ExecAttachOptions{})
		if err != nil {
			return err
		}
		output := copyOutput(attached.HijackedResponse, engine.Process{Stdout: prefix, Stderr: p.Stderr})
		defer context.AfterFunc(ctx, output.stop)()
		if err := output.wait(ctx); err != nil {
			return err
		}
		return output.err
	})
	if err != nil {
		return engine.Exit{}, err
	}
	var inspection client.ExecInspectResult
	err = engine.Step(ctx, "ExecInspect", func() (err error) {
		inspection, err = b.e.client.ExecInspect(ctx, execution.ID, client.ExecInspectOptions{})
		return err
	})
	switch {
	case err != nil:
		return engine.Exit{}, err
	case inspection.Running:
		return engine.Exit{}, errors.New("the process has closed its output and still runs")
	case strings.HasPrefix(prefix.kept.String(), failedExec) && (inspection.ExitCode == 126 || inspection.ExitCode == 127):
		return engine.Exit{}, errors.New(strings.TrimSpace(prefix.kept.String()))
	}
	return engine.ExitOfCode(inspection.ExitCode), nil
}

// failedExec begins the text that the daemon writes as output if the process did not start.
const failedExec = "OCI runtime exec failed"

// stream carries the output of a process from the daemon to writers.
type stream struct {
	from client.HijackedResponse
	done chan struct{} // closed when the writers are closed
	err  error         // once done is closed: the reason why the output is incomplete
}

// copyOutput starts to copy until the output or the connection ends.
func copyOutput(source client.HijackedResponse, p engine.Process) *stream {
	s := &stream{from: source, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		_, s.err = stdcopy.StdCopy(&sink{w: p.Stdout}, &sink{w: p.Stderr}, source.Reader)
		p.CloseOutput()
		source.Close()
	}()
	return s
}

// stop ends the copying early.
func (s *stream) stop() { s.from.Close() }

// wait returns when all output has been copied.
func (s *stream) wait(ctx context.Context) error {
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of the output: %w", context.Cause(ctx))
	}
}

// sink writes to w, which may be nil, until w fails. It discards the rest, because a failing writer must not block the
// container.
type sink struct {
	w      io.Writer
	failed bool
}

func (s *sink) Write(p []byte) (int, error) {
	if s.w != nil && !s.failed {
		_, err := s.w.Write(p)
		s.failed = err != nil
	}
	return len(p), nil
}

// headSize is the size of the kept beginning of an output in bytes.
const headSize = 1 << 10

// head keeps the beginning of an output on its way to a writer.
type head struct {
	sink
	kept bytes.Buffer
}

func (h *head) Write(p []byte) (int, error) {
	h.kept.Write(p[:min(len(p), headSize-h.kept.Len())])
	return h.sink.Write(p)
}

// Close closes the writer.
func (h *head) Close() error {
	if c, ok := h.w.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
