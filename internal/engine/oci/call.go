package oci

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// argv is a command line of the runtime: its global flags, and a command with the arguments. The runtime writes errors into
// the log, as JSON.
func (c *container) argv(log string, command ...string) []string {
	flags := []string{c.e.info.Binary, "--root", c.e.root, "--log", log, "--log-format", "json"}
	return slices.Concat(flags, c.e.flags, c.network, command)
}

// call calls the runtime and returns its output.
func (c *container) call(ctx context.Context, command ...string) ([]byte, error) {
	file, err := blank()
	if err != nil {
		return nil, fmt.Errorf("make a file for the output of %s: %w", c.e.info.Binary, err)
	}
	err = c.run(ctx, file, file, command...)
	text := printed(file)
	if err != nil && len(text) > 0 {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(text))
	}
	return text, err
}

// run calls the runtime with files for its output.
func (c *container) run(ctx context.Context, stdout, stderr *os.File, command ...string) error {
	exit, err := c.launch(ctx, process.Program{Args: c.argv(c.log, command...), Env: c.e.env, Stdout: stdout, Stderr: stderr})
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

// blanks are empty files in memory. Most calls print nothing, and their file is reused. A pipe would need a reader beside
// the call, which is one more thread to wake within a timed region.
var blanks sync.Pool

func blank() (*os.File, error) {
	if file, ok := blanks.Get().(*os.File); ok {
		return file, nil
	}
	fd, err := unix.MemfdCreate("printed", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "printed"), nil
}

// longestPrint bounds the output of a call, in bytes. It is a state of a few lines, or a message.
const longestPrint = 1 << 20

// printed returns the content of a file, and releases the file. A read error only shortens a message.
func printed(file *os.File) []byte {
	if n, _ := file.ReadAt(make([]byte, 1), 0); n == 0 {
		blanks.Put(file)
		return nil
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(file, longestPrint))
	return text
}
