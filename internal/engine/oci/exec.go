package oci

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// Exec runs a further process.
func (c *container) Exec(ctx context.Context, p engine.Process) (engine.Exit, error) {
	select {
	case <-c.init.Done(): // the runtime's own exit code would look like a program's
		return engine.Exit{}, fmt.Errorf("execute in container %q: its process has exited", c.id)
	default:
	}
	c.mu.Lock()
	c.execs++
	name := filepath.Join(c.bundle, "exec"+strconv.Itoa(c.execs))
	c.mu.Unlock()
	file, log := name+".json", name+".log"
	data, err := json.Marshal(processSpec(p))
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		return engine.Exit{}, fmt.Errorf("describe a process for container %q: %w", c.id, err)
	}
	var out process.Output
	if err := out.Open(p.Stdout, p.Stderr); err != nil {
		return engine.Exit{}, fmt.Errorf("execute in container %q: %w", c.id, err)
	}
	stdout, stderr := out.Files()
	ended, err := c.launch(ctx, process.Program{
		Args: c.argv(log, "exec", "--process", file, c.id), Env: c.e.env, Stdout: stdout, Stderr: stderr,
	})
	_ = out.Close()
	if err != nil {
		return engine.Exit{}, fmt.Errorf("execute in container %q: %w", c.id, err)
	}
	exit := exitOf(ended.Status)
	if err := out.Wait(ctx); err != nil {
		return engine.Exit{}, fmt.Errorf("execute in container %q: %w", c.id, err)
	}
	if !exit.OK() && lastError(log) != "" {
		return engine.Exit{}, c.explainLog(ctx, "execute in", fmt.Errorf("%s exec ended with %v", c.e.info.Target, exit), log, out.Tail())
	}
	return exit, nil // of the program: the runtime's log has no error
}
