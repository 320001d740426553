package docker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"path"
	"strings"
	"sync"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// cpuPeriod is the accounting period of CPU limits in microseconds, the kernel's default.
const cpuPeriod = 100_000

// Engine drives one runtime through Docker.
type Engine struct {
	*daemon
	target engine.Info
	choice choice
	engine.Missing
	release func() error
	link    engine.Link

	mu    sync.Mutex
	group string // cgroup below which containers are made; empty leaves the daemon's own
}

// placer is an Engine whose daemon lets the client choose the cgroups of containers.
type placer struct{ *Engine }

var (
	_ engine.Engine       = (*Engine)(nil)
	_ engine.CgroupPlacer = placer{}
	_ engine.Puller       = (*Engine)(nil)
	_ engine.DaemonBacked = (*Engine)(nil)
	_ engine.Dialer       = (*Engine)(nil)
	_ engine.Networker    = (*Engine)(nil)
	_ engine.Execer       = (*box)(nil)
	_ engine.Pauser       = (*box)(nil)
	_ engine.Updater      = (*box)(nil)
	_ engine.Meter        = (*box)(nil)
	_ engine.Addressed    = (*box)(nil)
)

// open makes a target live. release is called when it is closed, not if this fails.
func (d *daemon) open(ctx context.Context, t target.Target, release func() error) (engine.Engine, error) {
	c, info, err := d.lookup(ctx, t)
	if err != nil {
		return nil, openError(info, err)
	}
	e := &Engine{daemon: d, target: info, choice: c, Missing: engine.Missing{}, release: release}
	e.adapt(ctx)
	if err := e.meet(ctx); err != nil {
		return nil, err
	}
	var live engine.Engine = e
	if d.session.Cgroups != nil && d.info.CgroupDriver == "cgroupfs" {
		e.group = "/" + engine.Prefix + d.session.RunID
		live = placer{e}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, runtimes.AnswerLimit, runtimes.ErrNoAnswer)
	defer cancel()
	if err := e.tryOut(ctx); err != nil {
		return nil, openError(e.target, &engine.UnsupportedError{
			What: t.String(), Reason: fmt.Sprintf("its first container did not work: %v", err), Advice: "try the runtime with docker run by hand",
		})
	}
	return live, nil
}

func openError(info engine.Info, err error) error {
	var u *engine.UnsupportedError
	if errors.As(err, &u) {
		return &engine.OpenError{Info: info, Err: u}
	}
	return err
}

// adapt takes into account what this daemon and this runtime leave the target.
func (e *Engine) adapt(ctx context.Context) {
	note := func(format string, args ...any) {
		e.target.Notes = append(e.target.Notes, fmt.Sprintf(format, args...))
	}
	if e.choice.kind.Cannot != nil {
		for c, reason := range e.choice.kind.Cannot(ctx, e.session.Launcher, e.target.Binary, e.target.Version) {
			e.Missing[c] = reason
		}
	}
	if e.choice.noHost != "" {
		e.Missing[engine.NetworkHost] = e.choice.noHost
	}
	if e.choice.noBridge != "" {
		e.Missing[engine.NetworkBridge] = e.choice.noBridge
	}
	if e.target.Rootless {
		e.Missing[engine.NetworkHost] = "rootless Docker has a network namespace of its own, which cannot be reached from here"
	}
	if e.info.CgroupDriver != "cgroupfs" {
		note("the daemon uses the cgroup driver %s: containers are where it puts them, and their cost cannot be told by their place", e.info.CgroupDriver)
	}
	if e.info.CgroupDriver == "none" {
		e.Missing[engine.CanPause] = "the daemon has no cgroups, and cannot freeze"
		e.Missing[engine.CanUpdate] = "the daemon has no cgroups, and no limits"
	}
	if e.secured("seccomp") {
		note("containers have Docker's seccomp filter, which costs something at every system call")
	}
	note("the log driver %s also keeps all output", e.info.LoggingDriver)
	if e.private != nil {
		note("a private daemon of this run")
		e.target.Notes = append(e.target.Notes, e.private.Notes()...)
	}
	note("storage driver %s", e.info.Driver)
}

// Info says what Docker and the runtime are.
func (e *Engine) Info() engine.Info { return e.target }

// SetCgroupParent implements engine.CgroupPlacer. It is called between trials, which is when a private daemon that has
// died may be started again.
func (p placer) SetCgroupParent(group string) error {
	if group == "" {
		group = "/" + engine.Prefix + p.session.RunID
	} else if err := p.revive(); err != nil {
		return err
	}
	p.mu.Lock()
	p.group = group
	p.mu.Unlock()
	return nil
}

func (d *daemon) revive() error {
	if d.private == nil {
		return nil
	}
	return d.private.Revive(context.Background()) // which has a time limit of its own
}

// Daemon implements engine.DaemonBacked. The user's daemon may serve others too.
func (e *Engine) Daemon() engine.Daemon {
	if e.private == nil {
		return engine.Daemon{}
	}
	return e.private.Daemon()
}

// Dial implements engine.Dialer.
func (e *Engine) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if e.private != nil {
		return e.private.Dial(ctx, network, address)
	}
	var host net.Dialer
	return host.DialContext(ctx, network, address)
}

// Pull implements engine.Puller.
func (e *Engine) Pull(ctx context.Context, ref string) error { return e.pull(ctx, ref) }

// RemoveImage implements engine.Puller.
func (e *Engine) RemoveImage(ctx context.Context, ref string) error { return e.removeImage(ctx, ref) }

// Close gives up the daemon, and ends it if it is a private one that nobody else uses.
func (e *Engine) Close() error { return e.release() }

// Create has the daemon create a container, and attaches to it.
func (e *Engine) Create(ctx context.Context, spec engine.Spec) (engine.Container, error) {
	what := fmt.Sprintf("create container %q with %s", spec.ID, e.target.Target)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, context.Cause(ctx))
	}
	if spec.Join != "" {
		return nil, fmt.Errorf("%s: a container of Docker cannot run in a network namespace that is there already", what)
	}
	e.mu.Lock()
	parent := e.group
	e.mu.Unlock()
	b := newBox(ctx, e, spec)
	err := engine.Step(ctx, "ContainerCreate", func() error { return b.create(ctx, e.options(spec, parent)) })
	if err == nil && parent != "" {
		b.group, err = e.session.Cgroups.Open(path.Join(parent, b.id))
	}
	if err == nil {
		err = b.attach(ctx, spec.Process)
	}
	if err == nil {
		return b, nil
	}
	err = e.explain(ctx, what, err)
	return nil, errors.Join(err, b.undo(ctx))
}

// options describe a container to the daemon, with the cgroup below which it is to be.
func (e *Engine) options(spec engine.Spec, parent string) client.ContainerCreateOptions {
	network := container.NetworkMode("none")
	if spec.Network != engine.NoNetwork {
		network = container.NetworkMode(spec.Network) // by Docker's own names
	}
	host := &container.HostConfig{
		Runtime: e.choice.of(spec.Network), NetworkMode: network, ReadonlyRootfs: !spec.Writable,
		Tmpfs: map[string]string{"/tmp": "rw,exec,nosuid,nodev,mode=1777"}, Resources: *resources(spec.Resources),
	}
	if parent != "" {
		host.CgroupParent = path.Join(e.session.Cgroups.Base(), parent)
	}
	for _, m := range spec.Mounts {
		kind := mount.TypeBind
		if m.Source == "" {
			kind = mount.TypeTmpfs
		}
		host.Mounts = append(host.Mounts, mount.Mount{Type: kind, Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly})
	}
	return client.ContainerCreateOptions{
		Name: spec.ID,
		Config: &container.Config{
			Image: spec.Image, Entrypoint: spec.Process.Args, Env: spec.Process.Env, User: "0:0", WorkingDir: "/",
			AttachStdout: true, AttachStderr: true, Labels: map[string]string{engine.Label: e.session.RunID},
		},
		HostConfig: host,
	}
}

// resources are limits as Docker has them. Swap is left to the group above, as with the bare runtimes; by
// itself Docker would allow as much of it as of memory, and refuse to raise the one without the other.
func resources(r engine.Resources) *container.Resources {
	s := &container.Resources{CpusetCpus: r.CPUSet}
	if r.CPU > 0 {
		s.CPUPeriod, s.CPUQuota = cpuPeriod, int64(math.Round(r.CPU*cpuPeriod))
	}
	if r.Memory > 0 {
		s.Memory, s.MemorySwap = r.Memory, -1
	}
	return s
}

// ignored turns the daemon's warning that it leaves out a limit into an error: the container would not be what
// was asked for.
func ignored(warnings []string) error {
	for _, w := range warnings {
		if strings.Contains(strings.ToLower(w), "discarded") {
			return errors.New(w)
		}
	}
	return nil
}

// tryOut runs one container through its life.
func (e *Engine) tryOut(ctx context.Context) error {
	c, err := e.Create(ctx, engine.Spec{
		ID: fmt.Sprintf("%s%s-try", engine.Prefix, e.session.RunID), Image: e.session.Registry.Probe(),
		Process: engine.Process{Args: []string{"/probe", "exit", "42"}},
	})
	if err != nil {
		return err
	}
	return errors.Join(engine.RunToExit(ctx, c, 42), c.(*box).undo(ctx))
}
