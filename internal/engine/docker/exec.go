package docker

import (
	"context"
	"errors"
	"strings"

	"github.com/moby/moby/client"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// Exec runs a further process until it exits.
func (b *container) Exec(ctx context.Context, p engine.Process) (engine.Exit, error) {
	if err := b.exists("execute in"); err != nil {
		return engine.Exit{}, err
	}
	exit, err := b.exec(ctx, p)
	if err != nil {
		return engine.Exit{}, b.explain(ctx, "execute in", err)
	}
	return exit, nil
}

func (b *container) exec(ctx context.Context, p engine.Process) (engine.Exit, error) {
	var made client.ExecCreateResult
	err := engine.Step(ctx, "ExecCreate", func() (err error) {
		made, err = b.e.client.ExecCreate(ctx, b.id, client.ExecCreateOptions{
			Cmd: p.Args, Env: p.Env, WorkingDir: "/", AttachStdout: true, AttachStderr: true,
		})
		return err
	})
	if err != nil {
		return engine.Exit{}, err
	}
	beginning := &head{sink: sink{w: p.Stdout}}
	err = engine.Step(ctx, "ExecStart", func() error {
		attached, err := b.e.client.ExecAttach(ctx, made.ID, client.ExecAttachOptions{})
		if err != nil {
			return err
		}
		output := copyOutput(attached.HijackedResponse, engine.Process{Stdout: beginning, Stderr: p.Stderr})
		defer context.AfterFunc(ctx, output.stop)()
		if err := output.wait(ctx); err != nil {
			return err
		}
		return output.err
	})
	if err != nil {
		return engine.Exit{}, err
	}
	var ended client.ExecInspectResult
	err = engine.Step(ctx, "ExecInspect", func() (err error) {
		ended, err = b.e.client.ExecInspect(ctx, made.ID, client.ExecInspectOptions{})
		return err
	})
	switch {
	case err != nil:
		return engine.Exit{}, err
	case ended.Running:
		return engine.Exit{}, errors.New("the process has closed its output and still runs")
	case strings.HasPrefix(beginning.kept.String(), failedExec) && (ended.ExitCode == 126 || ended.ExitCode == 127):
		return engine.Exit{}, errors.New(strings.TrimSpace(beginning.kept.String()))
	}
	return engine.ExitOfCode(ended.ExitCode), nil
}

// failedExec begins the text that the daemon writes as output if the process did not start.
const failedExec = "OCI runtime exec failed"
