package oci

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/network"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// undoLimit bounds the removal of a container whose creation was given up.
const undoLimit = 20 * time.Second

// drainLimit bounds the wait for the last words of a runtime that has failed.
const drainLimit = time.Second

// container is a container of a bare runtime: a bundle on disk and a process that
// the runtime left behind for us.
type container struct {
	e       *Engine
	id      string
	bundle  string
	log     string        // what the runtime says when a call goes wrong
	network []string      // global flags for the container's network
	group   *cgroup.Group // nil without cgroups
	layer   *layer        // nil unless the root is writable
	port    *network.Port // nil unless it is bridged
	output  process.Output

	mu      sync.Mutex
	init    *process.Orphan // nil until created
	paused  bool
	deleted bool
	// leftGroup tells that the runtime's delete has left the cgroup in some hierarchy.
	leftGroup bool
	execs     int
}

func (c *container) ID() string { return c.id }

// exists refuses calls for a container that was deleted: a runtime would fail too, but some
// make the directory of their log again first.
func (c *container) exists(op string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deleted {
		return fmt.Errorf("%s container %q: it has been deleted", op, c.id)
	}
	return nil
}

// create fills the bundle and has the runtime create the container.
func (c *container) create(ctx context.Context, spec engine.Spec) error {
	cgroupsPath := ""
	if c.group != nil {
		cgroupsPath = c.group.Path()
	}
	bundle := bundleSpec(spec, cgroupsPath, c.e.info.Rootless)
	if spec.Writable {
		if err := c.makeWritable(bundle); err != nil {
			return fmt.Errorf("create container %q: %w", c.id, err)
		}
	}
	if spec.Network == engine.Bridged {
		if err := c.connect(bundle); err != nil {
			return fmt.Errorf("create container %q: %w", c.id, err)
		}
	}
	if err := writeBundle(filepath.Join(c.bundle, configName), bundle); err != nil {
		return err
	}
	if err := c.output.Open(spec.Process.Stdout, spec.Process.Stderr); err != nil {
		return fmt.Errorf("create container %q: %w", c.id, err)
	}
	pidFile := filepath.Join(c.bundle, pidName)
	stdout, stderr := c.output.Files()
	err := c.run(ctx, stdout, stderr, "create", "--bundle", c.bundle, "--pid-file", pidFile, c.id)
	_ = c.output.Close() // also when the runtime did not even start
	pid, pidErr := readPid(pidFile)
	if pidErr == nil {
		c.mu.Lock()
		c.init = c.e.session.Launcher.Adopt(pid)
		c.mu.Unlock()
	}
	if err != nil {
		// What it said last may still be in the pipe, which what it left may hold open.
		drain, cancel := context.WithTimeout(ctx, drainLimit)
		defer cancel()
		_ = c.output.Wait(drain)
		return c.explain(ctx, "create", err)
	}
	if pidErr != nil {
		return fmt.Errorf("create container %q: %s said that it is done, but: %w", c.id, c.e.info.Target, pidErr)
	}
	return nil
}

// makeWritable gives the container a root file system that it can write to.
func (c *container) makeWritable(bundle *specs.Spec) (err error) {
	if c.layer, err = newLayer(c.e.session.Launcher, filepath.Join(c.e.layers, c.id), bundle.Root.Path); err != nil {
		return err
	}
	bundle.Root.Path, bundle.Root.Readonly = c.layer.root(), false
	return nil
}

// connect gives the container a network namespace with an interface in the engine's bridge.
func (c *container) connect(bundle *specs.Spec) error {
	b, err := c.e.network()
	if err != nil {
		return err
	}
	if c.port, err = b.Connect(); err != nil {
		return err
	}
	namespaces := bundle.Linux.Namespaces
	for i := range namespaces {
		if namespaces[i].Type == specs.NetworkNamespace {
			namespaces[i].Path = c.port.Path()
		}
	}
	return nil
}

// Address implements engine.Addressed.
func (c *container) Address(context.Context) (netip.Addr, error) {
	if c.port == nil {
		return netip.Addr{}, fmt.Errorf("address of container %q: it is not bridged", c.id)
	}
	return c.port.Address(), nil
}

func readPid(file string) (int, error) {
	text, err := readSmall(file)
	if err != nil {
		return 0, fmt.Errorf("read the runtime's pid file: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return 0, fmt.Errorf("read the runtime's pid file: %q is no pid", text)
	}
	return pid, nil
}

func (c *container) Start(ctx context.Context) error {
	if err := c.exists("start"); err != nil {
		return err
	}
	if _, err := c.call(ctx, "start", c.id); err != nil {
		return c.explain(ctx, "start", err)
	}
	return nil
}

func (c *container) Kill(ctx context.Context, signal syscall.Signal) error {
	select {
	case <-c.init.Done():
		return nil
	default:
	}
	if _, err := c.call(ctx, "kill", c.id, strconv.Itoa(int(signal))); err != nil {
		select {
		case <-c.init.Done(): // it ended while we were about it
			return nil
		default:
			return c.explain(ctx, "kill", err)
		}
	}
	return nil
}

func (c *container) Wait(ctx context.Context) (engine.Exit, error) {
	// An exit that is known is told even to a caller whose time is up.
	select {
	case <-c.init.Done():
		return exitOf(c.init.Exit().Status), nil
	default:
	}
	select {
	case <-c.init.Done():
		return exitOf(c.init.Exit().Status), nil
	case <-ctx.Done():
		return engine.Exit{}, fmt.Errorf("wait for container %q: %w", c.id, context.Cause(ctx))
	}
}

// exitOf translates a wait status. A sandbox (runsc) reports the end of its
// container by its own exit code, as a shell does, and so does every exec.
func exitOf(s syscall.WaitStatus) engine.Exit {
	if s.Signaled() {
		return engine.Exit{Signal: s.Signal()}
	}
	return engine.ExitOfCode(s.ExitStatus())
}

func (c *container) State(ctx context.Context) (engine.State, error) {
	if err := c.exists("ask for the state of"); err != nil {
		return "", err
	}
	text, err := c.call(ctx, "state", c.id)
	var state struct{ Status engine.State }
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil {
		return "", c.explain(ctx, "ask for the state of", err)
	}
	return state.Status, nil
}

func (c *container) Delete(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deleted {
		return nil
	}
	if c.paused {
		// A frozen process does not die of a signal on cgroup v1. If this does not work
		// the cgroup is emptied below.
		_, _ = c.call(ctx, "resume", c.id)
	}
	if c.init != nil {
		// delete --force of a running container polls in some runtimes; kill and wait do
		// not. A runtime that cannot kill is left to delete --force and the cgroup.
		if err := c.Kill(ctx, syscall.SIGKILL); err == nil {
			if _, err := c.Wait(ctx); err != nil {
				return fmt.Errorf("delete container %q: %w", c.id, err)
			}
		}
	}
	if c.init == nil && c.group != nil {
		// What a create that was given up has left may hang, and delete with it.
		if err := c.group.Kill(ctx); err != nil {
			return fmt.Errorf("delete container %q: %w", c.id, err)
		}
	}
	_, err := c.call(ctx, "delete", "--force", c.id)
	if c.init == nil {
		// The runtime may not know a container that it never finished to create, and says
		// so; what counts is what is left.
		err = nil
	}
	if err != nil {
		err = c.explain(ctx, "delete", err)
	}
	if c.group != nil {
		c.leftGroup = err != nil || c.init == nil || c.groupLeft()
	}
	return errors.Join(err, c.remove(ctx))
}

// groupLeft tells whether the runtime has left the container's cgroup. Of one that is known to remove
// it everywhere a single hierarchy is asked; should it fail to in another one, the group goes
// with the trial's.
func (c *container) groupLeft() bool {
	if c.e.sweeps {
		return c.group.ExistsInOne()
	}
	return c.group.Exists()
}

// remove removes what belongs to the container and is not the runtime's: its cgroup
// with whatever still runs in it, its output, its bundle.
func (c *container) remove(ctx context.Context) error {
	if c.leftGroup {
		if err := c.group.Destroy(ctx); err != nil {
			return fmt.Errorf("remove the cgroup of container %q: %w", c.id, err)
		}
	}
	if err := c.output.Wait(ctx); err != nil {
		return fmt.Errorf("delete container %q: %w", c.id, err)
	}
	if c.port != nil {
		if err := c.port.Close(); err != nil {
			return fmt.Errorf("remove the network of container %q: %w", c.id, err)
		}
	}
	if c.layer != nil {
		if err := c.layer.remove(); err != nil {
			return fmt.Errorf("remove the files of container %q: %w", c.id, err)
		}
	}
	if err := removeBundle(c.bundle); err != nil {
		return fmt.Errorf("remove the bundle of container %q: %w", c.id, err)
	}
	c.deleted = true
	return nil
}

// undo removes a container whose creation failed or was given up.
func (c *container) undo(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
	defer cancel()
	return c.Delete(ctx)
}

func (c *container) Pause(ctx context.Context) error {
	if err := c.exists("pause"); err != nil {
		return err
	}
	if _, err := c.call(ctx, "pause", c.id); err != nil {
		return c.explain(ctx, "pause", err)
	}
	c.setPaused(true)
	if c.e.kind.Isolation != engine.SharedKernel || c.group == nil {
		return nil // it is not the cgroup that holds it
	}
	// crun returns before the processes are frozen. This confirmation is no part of the timed step.
	if err := c.group.AwaitFrozen(ctx); err != nil {
		return fmt.Errorf("pause container %q with %s: %w", c.id, c.e.info.Target, err)
	}
	return nil
}

func (c *container) setPaused(paused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = paused
}

func (c *container) Resume(ctx context.Context) error {
	if err := c.exists("resume"); err != nil {
		return err
	}
	if _, err := c.call(ctx, "resume", c.id); err != nil {
		return c.explain(ctx, "resume", err)
	}
	c.setPaused(false)
	return nil
}

func (c *container) Update(ctx context.Context, r engine.Resources) error {
	if err := c.exists("update"); err != nil {
		return err
	}
	file := filepath.Join(c.bundle, resourcesName)
	data, err := json.Marshal(resources(r))
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("describe the resources of container %q: %w", c.id, err)
	}
	if _, err := c.call(ctx, "update", "--resources", file, c.id); err != nil {
		return c.explain(ctx, "update", err)
	}
	return nil
}

// RuntimeError is what a runtime said when a call went wrong.
type RuntimeError struct {
	Op, ID, Target string
	Message        string // from its log or standard error, or how it ended
	Err            error
}

func (e *RuntimeError) Error() string {
	return fmt.Sprintf("%s container %q with %s: %s", e.Op, e.ID, e.Target, e.Message)
}

func (e *RuntimeError) Unwrap() error { return e.Err }

func (c *container) explain(ctx context.Context, op string, err error) error {
	return c.explainLog(ctx, op, err, c.log, c.output.Tail())
}

func (c *container) explainLog(ctx context.Context, op string, err error, log, stderr string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s container %q with %s: %w", op, c.id, c.e.info.Target, context.Cause(ctx))
	}
	e := &RuntimeError{Op: op, ID: c.id, Target: c.e.info.Target.String(), Err: err, Message: lastError(log)}
	if e.Message == "" {
		e.Message = strings.TrimSpace(err.Error() + "\n" + stderr)
	}
	return e
}

// lastError gives the last error of a runtime's JSON log, empty if it has none. runc, crun and
// runsc call it msg; youki calls it message and adds a stack.
func lastError(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	last := ""
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var entry struct{ Level, Msg, Message string }
		if json.Unmarshal(lines.Bytes(), &entry) != nil {
			continue
		}
		switch strings.ToLower(entry.Level) {
		case "error", "fatal":
			last, _, _ = strings.Cut(cmp.Or(entry.Msg, entry.Message), "\n\nStack backtrace:")
		}
	}
	return last
}
