// Package native is the engine without a container: bare metal, the baseline of all other engines.
//
// It runs the same program with the same arguments from the same root file system. The process has a cgroup
// of its own beside the cgroups of the containers, because in the caller's cgroup a baseline is wrong by tens of per
// cent on a busy machine. It also has the root directory, the devices and the capabilities of a container, because an image of
// a user is untrusted. For the same reason it has PID and IPC namespaces, and sees no process of the host. It shares the network and the users
// with the host. Create makes the cgroup and a process, which enters the cgroup and the root file system and waits. Start lets the process
// execute the program.
//
// Further parts of a container have plain counterparts. CPU and memory limits are limits of the cgroup. A cpuset is the
// process's CPU affinity, which works on every host. A writable root is a directory on the run's disk at /data. A bridged
// network is a veth pair between two network namespaces, with the second process at the host's end. With the target's
// option network=loopback it is the loopback interface of one namespace.
package native

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/network"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/refusal"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Driver opens the native target.
type Driver struct {
	// Unprivileged makes every process run as the user nobody without capabilities, with only the image and a small /dev, without /proc
	// and a writable directory other than the tmpfs of its mounts, and with limits for memory, processes and files. It is for programs that
	// strangers control, and not for measurements. Without root, the user is the caller.
	Unprivileged bool
}

var _ engine.Driver = Driver{}

// Describe declares processes of the host.
func (Driver) Describe() engine.Description {
	return engine.Description{Name: target.Native, Kind: engine.HostProcess, Programs: monitor.Programs{monitor.Runtime: {enterName}}}
}

// enterName is the first argument of the probe before it becomes the container's program. It separates the work of a runtime from the program's.
const enterName = "touchstone-enter"

// Candidates returns the target without options.
func (d Driver) Candidates(context.Context, engine.Session) []engine.Candidate {
	info := engine.Info{Target: target.Target{Engine: target.Native}, Version: kernel(), Isolation: engine.NoIsolation}
	return []engine.Candidate{{Info: info, Default: true}}
}

// kernel is the kernel's name and release.
func kernel() string {
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return "Linux"
	}
	return "Linux " + unix.ByteSliceToString(uts.Release[:])
}

// Open makes the target live.
func (d Driver) Open(ctx context.Context, t target.Target, s engine.Session) (engine.Engine, error) {
	if err := s.Admits(t); err != nil {
		return nil, err
	}
	newPair, err := pairOf(t)
	if err != nil {
		return nil, err
	}
	info := engine.Info{
		Target: t, Version: kernel(), Isolation: engine.NoIsolation, Rootless: os.Geteuid() != 0, Cgroup: s.CgroupMode(),
		Notes: []string{"shares the host's network; its processes, IPC, root file system, devices and capabilities are a container's, and only /data can be writable"},
	}
	if s.Seccomp != engine.EnginesSeccomp {
		info = info.WithCondition(engine.SeccompCondition, string(engine.Unconfined))
	}
	missing := engine.Missing{
		engine.CanPause: "a bare process has no container to freeze",
		engine.CanPull:  "it takes the root file system as a directory, and pulls nothing",
		engine.CanStats: "no engine reports statistics",
	}
	if s.Cgroups == nil {
		info.Notes = append(info.Notes, "in the caller's cgroup, because this user may not make one: on a busy machine this baseline may be wrong")
		missing[engine.CanUpdate] = noLimits
	}
	if info.Rootless {
		info.Notes = append(info.Notes, "rootless: in a user namespace that maps this user to root")
		missing[engine.NetworkBridge] = "shared network namespaces need root; run as root"
	}
	e := &Engine{Missing: missing, Local: engine.Local{Session: s}, info: info, newPair: newPair, containers: map[string]bool{}}
	if d.Unprivileged {
		if e.unprivileged, err = newUnprivileged(ctx, s, info.Rootless); err != nil {
			return nil, err
		}
		e.info.Notes = e.unprivileged.notes
	}
	return e, nil
}

// The values of the option network, which sets the path between a bridged process and the host's end.
const (
	optionNetwork  = "network"
	throughVeth    = "veth" // the default
	onLoopback     = "loopback"
	networkChoices = throughVeth + " or " + onLoopback
)

// pairOf returns the function that makes the network for a target's options.
func pairOf(t target.Target) (func() (*network.Pair, error), error) {
	kind := throughVeth
	for _, o := range t.Options {
		if o.Name != optionNetwork {
			return nil, &engine.UnsupportedError{
				What: t.String(), Reason: "native has no option " + o.Name,
				Advice: "the only one is " + optionNetwork + ": " + networkChoices,
			}
		}
		kind = o.Value
	}
	switch kind {
	case throughVeth:
		return network.NewPair, nil
	case onLoopback:
		return network.NewLoopback, nil
	}
	return nil, &engine.UnsupportedError{
		What: t.String(), Reason: fmt.Sprintf("native has no network %q", kind), Advice: "write " + networkChoices,
	}
}

// Engine runs processes on the host.
type Engine struct {
	engine.Missing
	engine.Local
	info    engine.Info
	newPair func() (*network.Pair, error)

	unprivileged *unprivileged // nil for a target of a run

	mu         sync.Mutex
	containers map[string]bool
	pair       *network.Pair // nil until it is needed
}

var (
	_ engine.Engine       = (*Engine)(nil)
	_ engine.CgroupPlacer = (*Engine)(nil)
	_ engine.Accountant   = (*Engine)(nil)
	_ engine.Installed    = (*Engine)(nil)
	_ engine.Networker    = (*Engine)(nil)
	_ engine.Outgoing     = (*Engine)(nil)
	_ engine.Execer       = (*container)(nil)
	_ engine.Updater      = (*container)(nil)
	_ engine.Limited      = (*container)(nil)
	_ engine.Addressed    = (*container)(nil)
)

// Info implements engine.Engine.
func (e *Engine) Info() engine.Info { return e.info }

// Programs implements engine.Installed: a process of the host needs no engine and no runtime.
func (e *Engine) Programs() ([]string, error) { return nil, nil }

// noLimits is the reason why a process has none without cgroups.
var noLimits = "limits need cgroups, which this user may not make; " + refusal.Rights("run as root, or in a delegated cgroup")

// Link implements engine.Networker.
func (e *Engine) Link(context.Context) (engine.Link, error) {
	p, err := e.network()
	if err != nil {
		return engine.Link{}, err
	}
	return p.Link(), nil
}

// Outward implements engine.Outgoing.
func (*Engine) Outward() (engine.Outward, error) {
	return engine.Outward{Network: engine.HostNet, About: "the host's own"}, nil
}

// network returns the network of bridged processes. The first call makes it.
func (e *Engine) network() (*network.Pair, error) {
	if err := e.Supports(engine.NetworkBridge); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var err error
	if e.pair == nil {
		e.pair, err = e.newPair()
	}
	return e.pair, err
}

// Close closes the network.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pair == nil {
		return nil
	}
	return e.pair.Close()
}

// Create makes a process that waits in its cgroup and root file system.
func (e *Engine) Create(ctx context.Context, spec engine.Spec) (engine.Container, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("create %q: %w", spec.ID, context.Cause(ctx))
	}
	e.mu.Lock()
	exists := e.containers[spec.ID]
	e.containers[spec.ID] = true
	e.mu.Unlock()
	if exists {
		return nil, fmt.Errorf("create %q: a process of this name exists", spec.ID)
	}
	c := &container{e: e, spec: spec, ended: make(chan struct{})}
	err := c.prepare()
	if err == nil {
		err = c.create(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create %q: %w", spec.ID, err), engine.Undo(ctx, c))
	}
	return c, nil
}

// enter returns the command of the probe that runs a program in the container's cgroup, network and root file system. The
// probe joins them itself, because a process cannot be created in a v1 cgroup.
func (c *container) enter(ctx context.Context, argv, env []string, gate bool) *exec.Cmd {
	args := []string{"enter", "--root", c.spec.Rootfs}
	if gate {
		args = append(args, "--gate")
	}
	if c.e.info.Rootless {
		args = append(args, "--userns")
	}
	if c.spec.Resources.CPUSet != "" {
		args = append(args, "--cpus", c.spec.Resources.CPUSet)
	}
	if c.netns != "" {
		args = append(args, "--netns", c.netns)
	}
	args = append(args, c.confinement()...)
	if c.layer != "" {
		args = append(args, "--bind", c.layer+":"+writableDir)
	}
	for _, m := range c.spec.Mounts {
		if m.Source == "" {
			args = append(args, "--tmpfs", m.Target)
			continue
		}
		bind := m.Source + ":" + m.Target
		if m.ReadOnly {
			bind += ":ro"
		}
		args = append(args, "--bind", bind)
	}
	if c.group != nil {
		for _, file := range c.group.ProcsFiles() {
			if !c.e.Session.Hides(file) { // in a hidden hierarchy it stays in the trial's cgroup
				args = append(args, "--cgroup", file)
			}
		}
	}
	args = append(args, "--")
	args = append(args, argv...)
	cmd := exec.CommandContext(ctx, c.e.Session.Probe, args...)
	cmd.Args[0] = enterName
	cmd.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, env...)
	return cmd
}

// Control implements engine.Controller.
func (e *Engine) Control(ctx context.Context, args []string) (_ []byte, err error) {
	var stdout bytes.Buffer
	var out process.Output
	if err := out.Open(&stdout, nil); err != nil {
		return nil, err
	}
	file, complaints := out.Files()
	exit, err := e.Session.Launcher.Call(ctx, process.Program{Args: append([]string{e.Session.Probe}, args...), Stdout: file, Stderr: complaints})
	if err = errors.Join(err, out.Close(), out.Wait(ctx)); err != nil {
		return nil, fmt.Errorf("run the probe on the host: %w", err)
	}
	if exit.Status != 0 {
		return nil, fmt.Errorf("%w: %s", &process.ExitError{Command: "the probe on the host", Exit: exit}, strings.TrimSpace(out.Tail()))
	}
	return stdout.Bytes(), nil
}

// namespaces are the attributes of a process with PID and IPC namespaces of its own. The launcher makes them with the fork, because a process
// cannot enter a new PID namespace itself. Without root a user namespace gives the right to make them.
func (e *Engine) namespaces() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWIPC}
	if e.info.Rootless {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	return attr
}

// refused adds the usual reason to the kernel's refusal of the namespaces.
func (e *Engine) refused(err error) error {
	switch {
	case errors.Is(err, unix.EPERM) && e.info.Rootless:
		return fmt.Errorf("%w: this host does not let users make user namespaces; allow them, or run as root", err)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w: a process needs PID and IPC namespaces, and so CAP_SYS_ADMIN", err)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EUSERS):
		return fmt.Errorf("%w: the host's limit of namespaces is reached; see /proc/sys/user", err)
	}
	return err
}

// complaint returns the probe's own error message, or an empty string.
func complaint(stderr string) string {
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "enter: ") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
