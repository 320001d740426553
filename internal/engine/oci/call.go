package oci

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// argv is a command line of the runtime: its global flags, and a command with the arguments. The runtime writes errors into
// the log in the scratch directory, as JSON.
func (c *container) argv(log string, command ...string) []string {
	flags := []string{c.e.info.Binary, "--root", c.e.root, "--log", filepath.Join(c.e.scratch.Dir(), log), "--log-format", "json"}
	return slices.Concat(flags, c.e.flags, c.network, command)
}

// longestMessage bounds the part of a runtime's output or log that an error contains, in bytes.
const longestMessage = 4 << 10

// call calls the runtime and returns its output.
func (c *container) call(ctx context.Context, command ...string) ([]byte, error) {
	file, err := c.e.scratch.Blank()
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", c.e.info.Binary, err)
	}
	err = c.run(ctx, file, file, command...)
	text := c.e.scratch.Printed(file)
	if err != nil && len(text) > 0 {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(text[max(0, len(text)-longestMessage):]))
	}
	return text, err
}

// run calls the runtime with files for its output.
func (c *container) run(ctx context.Context, stdout, stderr *os.File, command ...string) error {
	exit, err := c.launch(ctx, process.Program{Args: c.argv(c.logName, command...), Env: c.e.env, Stdout: stdout, Stderr: stderr})
	if err == nil && exit.Status != 0 {
		err = &process.ExitError{Command: c.e.info.Binary, Exit: exit}
	}
	return err
}

// launch runs a program as the timed step of the method.
func (c *container) launch(ctx context.Context, p process.Program) (exit process.Exit, err error) {
	if err := c.e.Broken(); err != nil {
		return process.Exit{}, err
	}
	err = engine.Call(ctx, func() error {
		exit, err = c.e.Session.Launcher.Call(ctx, p)
		return err
	})
	return exit, c.e.Outcome(err)
}
