package oci

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// Exec runs a further process. It does not go through go-runc, whose Exec puts a file into
// the user's temporary directory, where a kill would leave it behind.
func (c *container) Exec(ctx context.Context, p engine.Process) (engine.Exit, error) {
	select {
	case <-c.init.Done(): // what a runtime then exits with could be a program's code
		return engine.Exit{}, fmt.Errorf("execute in container %q: its process has ended", c.id)
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
	args := append([]string{"--root", c.runc.Root, "--log", log, "--log-format", string(c.runc.LogFormat)}, c.runc.ExtraArgs...)
	cmd := exec.CommandContext(ctx, c.runc.Command, append(args, "exec", "--process", file, c.id)...)
	out.Set(cmd)
	done, err := c.e.session.Launcher.Start(cmd)
	_ = out.Close()
	if err != nil {
		return engine.Exit{}, fmt.Errorf("execute in container %q: %w", c.id, err)
	}
	exit := exitOf((<-done).Status)
	if err := out.Wait(ctx); err != nil {
		return engine.Exit{}, fmt.Errorf("execute in container %q: %w", c.id, err)
	}
	if ctx.Err() != nil || !exit.OK() && lastError(log) != "" {
		return engine.Exit{}, c.explainLog(ctx, "execute in", fmt.Errorf("%s exec ended with %v", c.e.info.Target, exit), log, out.Tail())
	}
	return exit, nil // the program's own: the runtime has nothing to complain of
}
