// Package native is the engine without a container: bare metal, the baseline of
// all others.
//
// It runs the same program with the same arguments from the same root file system, by
// chroot, in a cgroup of its own beside those of the containers (in the caller's
// cgroup a baseline is wrong by tens of per cent on a busy machine), and shares
// all else with the host. The steps have their counterparts: Create makes the
// cgroup and a process that has entered it and the root file system and waits;
// Start lets it execute the program.
package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Driver opens the native target.
type Driver struct{}

var _ engine.Driver = Driver{}

// Name is "native".
func (Driver) Name() string { return target.Native }

// Candidates gives the one target there is.
func (d Driver) Candidates(context.Context, engine.Session) []engine.Candidate {
	info := engine.Info{Target: target.Target{Engine: target.Native}, Version: kernel(), Isolation: engine.NoIsolation}
	return []engine.Candidate{{Info: info, Default: true}}
}

// kernel is what a bare process runs on.
func kernel() string {
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return "Linux"
	}
	return "Linux " + unix.ByteSliceToString(uts.Release[:])
}

// Open makes the target live.
func (Driver) Open(_ context.Context, t target.Target, s engine.Session) (engine.Engine, error) {
	if len(t.Options) > 0 {
		return nil, &engine.UnsupportedError{What: t.String(), Reason: "native has no options", Advice: "write native alone"}
	}
	info := engine.Info{
		Target: t, Version: kernel(), Isolation: engine.NoIsolation,
		Rootless: os.Geteuid() != 0, Cgroup: string(cgroup.None),
		Notes: []string{"shares the host's namespaces and network; root file system by chroot"},
	}
	if s.Cgroups != nil {
		info.Cgroup = string(s.Cgroups.Mode)
	} else {
		info.Notes = append(info.Notes, "in the caller's cgroup, for want of the right to make one: on a busy machine this baseline may be off")
	}
	if info.Rootless {
		info.Notes = append(info.Notes, "rootless: chroot in a user namespace that maps this user to root")
	}
	return &Engine{session: s, info: info, containers: map[string]bool{}}, nil
}

// Engine runs processes on the host.
type Engine struct {
	session engine.Session
	info    engine.Info

	mu         sync.Mutex
	group      string
	containers map[string]bool
}

var (
	_ engine.Engine     = (*Engine)(nil)
	_ engine.Placer     = (*Engine)(nil)
	_ engine.Accountant = (*Engine)(nil)
	_ engine.Execer     = (*container)(nil)
)

// Info says what the host is.
func (e *Engine) Info() engine.Info { return e.info }

// Supports tells what a bare process can do.
func (e *Engine) Supports(c engine.Capability) error {
	switch c {
	case engine.CanPause, engine.CanUpdate:
		return &engine.UnsupportedError{What: string(c), Reason: "there is no container whose cgroup a runtime would change"}
	case engine.CanPull:
		return &engine.UnsupportedError{What: string(c), Reason: "it takes the root file system as a directory, and pulls nothing"}
	case engine.CanStats:
		return &engine.UnsupportedError{What: string(c), Reason: "there is no engine to ask"}
	case engine.CanExec, engine.NetworkHost:
		return nil
	default:
		return &engine.UnsupportedError{What: string(c), Reason: "there is no such capability"}
	}
}

// Place implements engine.Placer.
func (e *Engine) Place(group string) error {
	if err := e.session.Place(group); err != nil {
		return err
	}
	e.mu.Lock()
	e.group = group
	e.mu.Unlock()
	return nil
}

// Usage implements engine.Accountant.
func (e *Engine) Usage() engine.Usage { return engine.Usage{CPU: e.session.Launcher.CPU()} }

// Close has nothing to remove.
func (e *Engine) Close() error { return nil }

// Create makes a process that waits in its cgroup and root file system.
func (e *Engine) Create(ctx context.Context, spec engine.Spec) (engine.Container, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("create %q: %w", spec.ID, context.Cause(ctx))
	}
	e.mu.Lock()
	group, exists := e.group, e.containers[spec.ID]
	e.containers[spec.ID] = true
	e.mu.Unlock()
	if exists {
		return nil, fmt.Errorf("create %q: a process of this name exists", spec.ID)
	}
	c := &container{e: e, spec: spec, ended: make(chan struct{})}
	if e.session.Cgroups != nil {
		if group == "" {
			group = "/" + engine.Prefix + e.session.RunID
		}
		g, err := e.session.Cgroups.Create(group + "/" + spec.ID)
		if err != nil {
			e.forget(spec.ID)
			return nil, fmt.Errorf("create %q: %w", spec.ID, err)
		}
		c.group = g
	}
	if err := c.create(ctx); err != nil {
		return nil, errors.Join(err, c.undo(ctx))
	}
	return c, nil
}

func (e *Engine) forget(id string) {
	e.mu.Lock()
	delete(e.containers, id)
	e.mu.Unlock()
}

// enter gives the command that runs a program in the container's surroundings, by the
// probe, which joins and enters from within: a process cannot be born in a v1 cgroup.
func (c *container) enter(ctx context.Context, argv, env []string, gate bool) *exec.Cmd {
	args := []string{"enter", "--root", c.spec.Rootfs}
	if gate {
		args = append(args, "--gate")
	}
	if c.e.info.Rootless {
		args = append(args, "--uidmap")
	}
	args = append(args, "--system", "--read-only", "--tmpfs", "/tmp")
	for _, m := range c.spec.Mounts {
		bind := m.Source + ":" + m.Target
		if m.ReadOnly {
			bind += ":ro"
		}
		args = append(args, "--bind", bind)
	}
	if c.group != nil {
		for _, file := range c.group.ProcsFiles() {
			if !c.e.session.Hides(file) { // it was born in that hierarchy's group of the trial
				args = append(args, "--cgroup", file)
			}
		}
	}
	args = append(args, "--")
	args = append(args, argv...)
	cmd := exec.CommandContext(ctx, c.e.session.Probe, args...)
	cmd.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, env...)
	return cmd
}

// complaint gives what the probe said about its own doing, if it said anything.
func complaint(stderr string) string {
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "enter: ") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
