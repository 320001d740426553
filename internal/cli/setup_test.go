package cli_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/cli"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/parts"
)

// TestSetupAsks: only a yes installs anything, and ^C ends the question. The part here cannot be installed, so an attempt is another error.
func TestSetupAsks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.Do(t, err)
	root, source := filepath.Join(dir, "runtimes"), filepath.Join(dir, "source")
	bin := filepath.Join(source, "runc/1.5.2/bin")
	must.Do(t, os.MkdirAll(bin, 0o755), os.WriteFile(filepath.Join(bin, "runc"), []byte("#!/bin/sh\nexit 1\n"), 0o755),
		os.WriteFile(filepath.Join(source, "runc/1.5.2", parts.Record), []byte(`{"name": "runc", "version": "1.5.2", "programs": [{"name": "runc", "sha256": "0"}]}`), 0o644))
	t.Setenv(parts.Variable, root)
	for answer, want := range map[string]struct {
		code  int
		error string
	}{
		"y\n":    {cli.ExitFailure, "touchstone: install runc@1.5.2: "},
		" Yes\n": {cli.ExitFailure, "touchstone: install runc@1.5.2: "},
		"n\n":    {cli.ExitFailure, "touchstone: nothing is installed"},
		"\n":     {cli.ExitFailure, "touchstone: nothing is installed"},
		"":       {cli.ExitFailure, "touchstone: nothing is installed"},
		"^C":     {cli.ExitInterrupted, "touchstone: interrupted"},
	} {
		ctx, interrupt := context.WithCancelCause(t.Context())
		var stderr bytes.Buffer
		var stdin io.Reader = strings.NewReader(answer)
		if answer == "^C" {
			stdin = question{interrupt}
		}
		app := cli.New(cli.Environment{Stdout: io.Discard, Stderr: &stderr, Stdin: stdin, RunID: func() string { return "20260101-000000-abcd" }})
		code := app.Run(ctx, []string{"setup", "--allow-concurrent", "--from", source, "runc"})
		if text := stderr.String(); code != want.code || !strings.Contains(text, "Install? [y/N] ") || !strings.Contains(text, want.error) {
			t.Errorf("the answer %q: exit code %d, %s", answer, code, text)
		}
		if _, err := os.Stat(filepath.Join(root, "runc")); err == nil {
			t.Errorf("the answer %q installs a damaged part", answer)
		}
		interrupt(nil)
	}
}

// question is a terminal whose user types ^C.
type question struct{ interrupt context.CancelCauseFunc }

func (q question) Read([]byte) (int, error) {
	q.interrupt(cli.ErrInterrupted)
	select {} // until the end of the program
}
