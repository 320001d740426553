package oci

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/network"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// drainLimit bounds the wait for the last output of a runtime that has failed.
const drainLimit = time.Second

// freezeLimit bounds the time between the success of the runtime's pause and the freeze of the container's processes.
const freezeLimit = 10 * time.Second

var errNotFrozen = fmt.Errorf("the runtime returned success: want all processes frozen within %v, got running ones", freezeLimit)

// container is a container of a bare runtime: a bundle, and a process that the runtime has left behind.
type container struct {
	e       *Engine
	id      string
	bundle  string
	logName string        // of the runtime's error log in the scratch directory
	network []string      // global flags for the container's network
	group   *cgroup.Group // nil without cgroups
	layer   *layer        // nil unless the root is writable
	port    *network.Port // nil unless it is bridged
	output  process.Output
	paused  atomic.Bool

	mu      sync.Mutex
	init    *process.Process // nil until the runtime has named it
	created bool             // the runtime's create has returned success
	deleted bool
	// leftGroup is set if the runtime's delete has left the cgroup in some hierarchy.
	leftGroup bool
	left      []string // found at the deletion: see Traces
	ran       bool     // Start has returned success
	frozen    bool     // it was paused at some time
	execs     int
}

func (c *container) ID() string { return c.id }

// exists refuses calls for a container that was deleted. A runtime would fail too, but some runtimes would first make the
// directory of their log again.
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
	if err := c.fill(spec); err != nil {
		return fmt.Errorf("create container %q: %w", c.id, err)
	}
	pidFile := filepath.Join(c.bundle, pidName)
	stdout, stderr := c.output.Files()
	err := c.run(ctx, stdout, stderr, "create", "--bundle", c.bundle, "--pid-file", pidFile, c.id)
	_ = c.output.Close() // also when the runtime did not even start
	pid, pidErr := engine.ReadPID(pidFile)
	if pidErr == nil {
		c.mu.Lock()
		c.init = c.e.Session.Launcher.Adopt(pid)
		c.mu.Unlock()
	}
	if err != nil {
		// The last output may still be in the pipe. A process that the runtime has left may hold the pipe open.
		drain, cancel := context.WithTimeout(ctx, drainLimit)
		defer cancel()
		_ = c.output.Wait(drain)
		return c.explain(ctx, "create", err)
	}
	if pidErr != nil {
		return fmt.Errorf("create container %q: %s returned success: %w", c.id, c.e.info.Target, pidErr)
	}
	c.mu.Lock()
	c.created = true
	c.mu.Unlock()
	return nil
}

// fill writes the bundle and opens the output, after it has made the parts that a bare runtime lacks.
func (c *container) fill(spec engine.Spec) (err error) {
	cgroupsPath := ""
	if c.group != nil {
		cgroupsPath = c.group.Path()
	}
	bundle := bundleSpec(spec, cgroupsPath, c.e.info.Rootless)
	if spec.Writable {
		if c.layer, err = newLayer(c.e.Session.Launcher, filepath.Join(c.e.layers, c.id), spec.Rootfs); err != nil {
			return err
		}
		bundle.Root.Path, bundle.Root.Readonly = c.layer.root(), false
	}
	if spec.Network == engine.Bridged {
		if err := c.connect(bundle); err != nil {
			return err
		}
	}
	if c.e.Session.Seccomp == engine.DefaultSeccomp {
		if bundle.Linux.Seccomp, err = defaultFilter(bundle); err != nil {
			return err
		}
	}
	if err := writeJSON(filepath.Join(c.bundle, configName), bundle); err != nil {
		return err
	}
	return c.output.Open(spec.Process.Stdout, spec.Process.Stderr)
}

// connect makes a network namespace for the container, with an interface in the engine's bridge.
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

func (c *container) Start(ctx context.Context) error {
	_, err := c.command(ctx, "start", "start", c.id)
	c.mu.Lock()
	c.ran = err == nil
	c.mu.Unlock()
	if err == nil && c.e.kvm {
		if kvmErr := runtimes.ProveKVM(c.init.Pid()); kvmErr != nil {
			err = fmt.Errorf("start container %q with %s: %w", c.id, c.e.info.Target, kvmErr)
		}
	}
	return err
}

// command calls the runtime for an operation on a container that exists.
func (c *container) command(ctx context.Context, op string, args ...string) ([]byte, error) {
	if err := c.exists(op); err != nil {
		return nil, err
	}
	text, err := c.call(ctx, args...)
	if err != nil {
		return nil, c.explain(ctx, op, err)
	}
	return text, nil
}

func (c *container) Kill(ctx context.Context, signal syscall.Signal) error {
	if engine.Ended(c.init.Done()) {
		return nil
	}
	_, err := c.call(ctx, "kill", c.id, strconv.Itoa(int(signal)))
	if err != nil && !engine.Ended(c.init.Done()) { // it may have exited meanwhile
		return c.explain(ctx, "kill", err)
	}
	return nil
}

func (c *container) Wait(ctx context.Context) (engine.Exit, error) {
	if err := engine.Await(ctx, c.init.Done()); err != nil {
		return engine.Exit{}, fmt.Errorf("wait for container %q: %w", c.id, err)
	}
	return exitOf(c.init.Exit().Status), nil
}

// exitOf translates a wait status. A sandbox (runsc) and every exec report a signal by their exit code, as a shell does.
func exitOf(s syscall.WaitStatus) engine.Exit {
	if s.Signaled() {
		return engine.Exit{Signal: s.Signal()}
	}
	return engine.ExitOfCode(s.ExitStatus())
}

func (c *container) State(ctx context.Context) (engine.State, error) {
	const op = "get the state of"
	text, err := c.command(ctx, op, "state", c.id)
	if err != nil {
		return "", err
	}
	var state struct{ Status engine.State }
	if err := json.Unmarshal(text, &state); err != nil {
		return "", c.explain(ctx, op, err)
	}
	return state.Status, nil
}

func (c *container) Delete(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deleted {
		return nil
	}
	if c.paused.Load() {
		// On cgroup v1 a signal does not kill a frozen process. If resume fails, the cgroup is emptied below.
		_, _ = c.call(ctx, "resume", c.id)
	}
	if !c.created && c.group != nil {
		// The processes of a cancelled create may hang, and delete with them.
		if err := c.group.Kill(ctx); err != nil {
			return fmt.Errorf("delete container %q: %w", c.id, err)
		}
	}
	if c.init != nil {
		// In some runtimes delete --force polls for the exit of a running container; kill and wait do not. If kill fails,
		// delete --force and the cgroup end the process.
		if err := c.Kill(ctx, syscall.SIGKILL); err == nil {
			if _, err := c.Wait(ctx); err != nil {
				return fmt.Errorf("delete container %q: %w", c.id, err)
			}
		}
	}
	_, err := c.call(ctx, "delete", "--force", c.id)
	if !c.created {
		// The runtime may report an unknown container if it did not finish create. Its cgroup and files are removed below: youki leaves the
		// directory and runsc the lock of a container whose state it had not written. youki also writes the pid file before the state is whole.
		err = nil
	}
	if err != nil {
		err = c.explain(ctx, "delete", err)
	}
	if c.group != nil {
		c.leftGroup = err != nil || !c.created || c.groupLeft()
		if c.leftGroup && err == nil && c.created {
			c.inspectGroup(ctx)
		}
	}
	return errors.Join(err, c.remove(ctx))
}

// groupLeft reports whether the runtime has left the container's cgroup. If the runtime is known to remove it from all
// hierarchies, groupLeft looks in one only. A cgroup that is left in another one is removed with the trial's.
func (c *container) groupLeft() bool {
	if c.e.sweeps {
		return c.group.ExistsInOne()
	}
	return c.group.Exists()
}

// remove removes the parts of the container that the runtime does not know: its cgroup with all processes in it, its
// output, its network, its layer and its bundle.
func (c *container) remove(ctx context.Context) error {
	if c.leftGroup {
		if err := c.group.Destroy(ctx); err != nil {
			return fmt.Errorf("remove the cgroup of container %q: %w", c.id, err)
		}
	}
	if err := c.awaitOutput(ctx); err != nil {
		return fmt.Errorf("delete container %q: %w", c.id, err)
	}
	if !c.created {
		if err := c.removeState(); err != nil {
			return fmt.Errorf("remove the state of container %q: %w", c.id, err)
		}
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
	if err := os.Remove(c.e.scratch.Path(c.logName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the log of container %q: %w", c.id, err)
	}
	if err := os.RemoveAll(c.bundle); err != nil {
		return fmt.Errorf("remove the bundle of container %q: %w", c.id, err)
	}
	c.deleted = true
	return nil
}

// removeState removes what the runtime has left of a container that it did not finish.
func (c *container) removeState() error {
	files, err := c.stateFiles()
	for _, f := range files {
		err = errors.Join(err, os.RemoveAll(f))
	}
	return err
}

// awaitOutput waits for the end of the output. A stuck process may hold it open for good.
func (c *container) awaitOutput(ctx context.Context) error {
	if c.e.Broken() == nil {
		return c.output.Wait(ctx)
	}
	drain, cancel := context.WithTimeout(ctx, drainLimit)
	defer cancel()
	_ = c.output.Wait(drain)
	return nil
}

func (c *container) Pause(ctx context.Context) error {
	if _, err := c.command(ctx, "pause", "pause", c.id); err != nil {
		return err
	}
	c.paused.Store(true)
	c.mu.Lock()
	c.frozen = true
	c.mu.Unlock()
	if c.e.runtime.Isolation != engine.SharedKernel || c.group == nil {
		return nil // the runtime does not freeze the cgroup
	}
	// crun returns before the processes are frozen. This confirmation is no part of the timed step.
	limitCtx, cancel := context.WithTimeoutCause(ctx, freezeLimit, errNotFrozen)
	defer cancel()
	if err := c.group.AwaitFrozen(limitCtx); err != nil {
		return fmt.Errorf("pause container %q with %s: %w", c.id, c.e.info.Target, err)
	}
	return nil
}

func (c *container) Resume(ctx context.Context) error {
	if _, err := c.command(ctx, "resume", "resume", c.id); err != nil {
		return err
	}
	c.paused.Store(false)
	return nil
}

func (c *container) Update(ctx context.Context, r engine.Resources) error {
	if err := c.exists("update"); err != nil {
		return err
	}
	file := filepath.Join(c.bundle, resourcesName)
	if err := writeJSON(file, resources(r)); err != nil {
		return fmt.Errorf("describe the resources of container %q: %w", c.id, err)
	}
	_, err := c.command(ctx, "update", "update", "--resources", file, c.id)
	return err
}

// Exec runs a further process.
func (c *container) Exec(ctx context.Context, p engine.Process) (engine.Exit, error) {
	fail := func(err error) error { return fmt.Errorf("execute in container %q: %w", c.id, err) }
	if engine.Ended(c.init.Done()) { // the runtime's own exit code would look like a program's
		return engine.Exit{}, fail(errors.New("its process has exited"))
	}
	c.mu.Lock()
	c.execs++
	name := "exec" + strconv.Itoa(c.execs)
	c.mu.Unlock()
	file, log := filepath.Join(c.bundle, name+".json"), c.id+"-"+name+".log"
	if err := writeJSON(file, processSpec(p)); err != nil {
		return engine.Exit{}, fail(fmt.Errorf("describe a process: %w", err))
	}
	var out process.Output
	if err := out.Open(p.Stdout, p.Stderr); err != nil {
		return engine.Exit{}, fail(err)
	}
	stdout, stderr := out.Files()
	result, err := c.launch(ctx, process.Program{
		Args: c.argv(log, "exec", "--process", file, c.id), Env: c.e.env, Stdout: stdout, Stderr: stderr,
	})
	_ = out.Close()
	if err != nil {
		return engine.Exit{}, fail(err)
	}
	exit := exitOf(result.Status)
	if err := out.Wait(ctx); err != nil {
		return engine.Exit{}, fail(err)
	}
	defer func() { _ = os.Remove(c.e.scratch.Path(log)) }() // most runtimes make it only for an error
	if !exit.OK() && lastError(c.e.scratch.Path(log)) != "" {
		return engine.Exit{}, c.explainLog(ctx, "execute in", fmt.Errorf("%s exec ended with %v", c.e.info.Target, exit), log, out.Tail())
	}
	return exit, nil // of the program: the runtime's log has no error
}

func (c *container) explain(ctx context.Context, op string, err error) error {
	return c.explainLog(ctx, op, err, c.logName, c.output.Tail())
}

func (c *container) explainLog(ctx context.Context, op string, err error, log, stderr string) error {
	if engine.Stuck(err) {
		// The runtime has said nothing about it.
	} else if ctx.Err() != nil {
		err = context.Cause(ctx)
	} else if text := lastError(c.e.scratch.Path(log)); text != "" {
		err = errors.New(text)
	} else if stderr = strings.TrimSpace(stderr); stderr != "" {
		err = fmt.Errorf("%w\n%s", err, stderr)
	}
	return fmt.Errorf("%s container %q with %s: %w", op, c.id, c.e.info.Target, err)
}

// longestLog bounds the end of a log that is searched for an error, in bytes.
const longestLog = 2 << 20

// lastError returns the last error in a runtime's JSON log, or an empty string. The field is msg with runc, crun and runsc.
// With youki it is message, and has a stack appended.
func lastError(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // it is only read from
	if info, err := f.Stat(); err == nil && info.Size() > longestLog {
		_, _ = f.Seek(-longestLog, io.SeekEnd) // at worst the beginning is read
	}
	last := ""
	for lines := bufio.NewScanner(io.LimitReader(f, longestLog)); lines.Scan(); {
		var entry struct{ Level, Msg, Message string }
		if json.Unmarshal(lines.Bytes(), &entry) != nil {
			continue
		}
		switch strings.ToLower(entry.Level) {
		case "error", "fatal":
			last, _, _ = strings.Cut(cmp.Or(entry.Msg, entry.Message), "\n\nStack backtrace:")
			last = strings.ToValidUTF8(last[:min(len(last), longestMessage)], "")
		}
	}
	return last
}
