package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"

	api "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/diagnosis"
	"github.com/touchstone-bench/touchstone/internal/engine/managed"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Engine drives one runtime through Docker.
type Engine struct {
	*daemon
	target engine.Info
	choice choice
	engine.Missing
	release func() error
	link    engine.Link
	cgroups bool // the daemon and this program have the same cgroups

	mu    sync.Mutex
	group string // cgroup parent of containers; empty is the daemon's own
}

// placer is an Engine whose daemon accepts a cgroup parent.
type placer struct{ *Engine }

var (
	_ engine.Engine       = (*Engine)(nil)
	_ engine.CgroupPlacer = placer{}
	_ engine.Puller       = (*Engine)(nil)
	_ engine.DaemonBacked = (*Engine)(nil)
	_ engine.Pinger       = (*Engine)(nil)
	_ engine.Recoverer    = (*Engine)(nil)
	_ engine.Installed    = (*Engine)(nil)
	_ engine.Dialer       = (*Engine)(nil)
	_ engine.Networker    = (*Engine)(nil)
	_ engine.Outgoing     = (*Engine)(nil)
	_ engine.Execer       = (*container)(nil)
	_ engine.Pauser       = (*container)(nil)
	_ engine.Updater      = (*container)(nil)
	_ engine.Meter        = (*container)(nil)
	_ engine.Addressed    = (*container)(nil)
	_ engine.Limited      = (*container)(nil)
	_ engine.Traced       = (*container)(nil)
)

// open opens a target. The engine's Close calls release; a failed open does not.
func (d *daemon) open(ctx context.Context, t target.Target, release func() error) (engine.Engine, error) {
	c, info, err := d.lookup(ctx, t)
	if err != nil {
		return nil, openError(info, err)
	}
	if d.session.Seccomp == engine.DefaultSeccomp && !d.secured("seccomp") {
		return nil, openError(info, &engine.UnsupportedError{
			What: t.String(), Reason: "the plan selects the default seccomp filter, and the daemon has none", Advice: "leave seccomp out of the plan, or use a kernel and a daemon with seccomp",
		})
	}
	info = info.WithCondition(engine.SeccompCondition, c.kind.Seccomp(d.session.Seccomp, t))
	e := &Engine{daemon: d, target: info, choice: c, Missing: maps.Clone(c.missing), release: release}
	e.adapt(ctx)
	if err := e.findBridge(ctx); err != nil {
		return nil, err
	}
	live, err := e.tryOut(ctx)
	if err != nil {
		return nil, diagnosis.Refuse(err, d.facts(e.target), "its test container failed", d.tryByHand(c, t))
	}
	return live, nil
}

// tryByHand is the advice for an unknown error of the runtime.
func (d *daemon) tryByHand(c choice, t target.Target) string {
	if d.private != nil {
		return diagnosis.Alone(t.Runtime)
	}
	return "try the runtime by hand: docker run --rm --runtime " + c.names[engine.NoNetwork] + " hello-world"
}

// tryOut runs the test containers, and returns the engine with the optional interfaces that apply.
func (e *Engine) tryOut(ctx context.Context) (engine.Engine, error) {
	withLimit := runtimes.Runtime{Guest: e.choice.guest}.WithTryLimit
	if err := e.locate(ctx, withLimit); err != nil {
		return nil, err
	}
	var live engine.Engine = e
	if e.cgroups && e.info.CgroupDriver == "cgroupfs" {
		e.group = e.session.Cgroup()
		live = placer{e}
	}
	ctx, cancel := withLimit(ctx)
	defer cancel()
	_, err := e.session.Try(ctx, e, "", engine.NoNetwork)
	if err == nil && e.choice.kvm {
		err = e.session.TryRunning(ctx, e, "-kvm")
	}
	return live, err
}

func openError(info engine.Info, err error) error {
	var u *engine.UnsupportedError
	if errors.As(err, &u) {
		return &engine.OpenError{Info: info, Err: u}
	}
	return err
}

// adapt records the capabilities that this daemon and this runtime lack, and notes about them.
func (e *Engine) adapt(ctx context.Context) {
	note := func(format string, args ...any) {
		e.target.Notes = append(e.target.Notes, fmt.Sprintf(format, args...))
	}
	if e.choice.kind.Cannot != nil {
		maps.Copy(e.Missing, e.choice.kind.Cannot(ctx, e.session.Launcher, e.target.Binary, e.target.Version))
	}
	if e.target.Rootless {
		e.Missing[engine.NetworkHost] = "rootless Docker has its own network namespace, which cannot be reached from here"
	}
	if e.info.CgroupDriver != "cgroupfs" {
		note("the daemon uses the cgroup driver %s and chooses the cgroups of containers, so their cost cannot be separated by cgroup", e.info.CgroupDriver)
	}
	if e.info.CgroupDriver == "none" {
		e.Missing[engine.CanPause] = "the daemon has no cgroups, and cannot freeze containers"
		e.Missing[engine.CanUpdate] = "the daemon has no cgroups, and cannot limit containers"
	}
	if e.choice.kvm {
		note(runtimes.NoteKVM)
	}
	if e.session.Seccomp != engine.Unconfined && e.secured("seccomp") {
		note("containers have Docker's seccomp filter, which adds cost to every system call")
	}
	note("the log driver %s also stores all output", e.info.LoggingDriver)
	switch {
	case e.private == nil && e.source != "":
		note("your daemon at %s", e.place())
	case e.private != nil:
		reason := ""
		if e.unused != "" {
			reason = ", since the user's own cannot be used: " + e.unused
			e.target.Caveat = "Docker was measured with a private daemon of this run, and not with yours: " + e.unused
		}
		note("a private daemon of this run%s", reason)
		e.target.Notes = append(e.target.Notes, e.private.Notes()...)
	}
	note("storage driver %s", e.info.Driver)
}

// Info implements engine.Engine.
func (e *Engine) Info() engine.Info { return e.target }

// SetCgroupParent implements engine.CgroupPlacer. It is called between trials, when a private daemon that has exited may be
// restarted.
func (p placer) SetCgroupParent(group string) error {
	if group == "" {
		group = p.session.Cgroup()
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
	return d.private.Revive(context.Background()) // the daemon has its own time limit
}

// Ping implements engine.Pinger.
func (e *Engine) Ping(ctx context.Context) error {
	_, err := e.client.Ping(ctx, client.PingOptions{})
	return err
}

// Recover implements engine.Recoverer.
func (e *Engine) Recover(ctx context.Context) (isKilled bool, err error) {
	if e.private == nil {
		return false, nil
	}
	return e.private.Recover(ctx)
}

// Daemon implements engine.DaemonBacked. It is empty for the user's daemon, which other programs may use too.
func (e *Engine) Daemon() engine.Daemon {
	if e.private == nil {
		return engine.Daemon{}
	}
	return e.private.Daemon()
}

// Programs implements engine.Installed.
func (e *Engine) Programs() ([]string, error) {
	switch {
	case e.private == nil:
		return nil, engine.UnknownPrograms(e.target.Target)
	case e.choice.guest != nil:
		files := append(slices.Clone(e.programs), e.choice.guest.Program, e.choice.guest.FileServer, e.choice.shim)
		return slices.DeleteFunc(files, func(file string) bool { return file == "" }), nil
	case e.target.Binary == "":
		return nil, engine.UnknownShim(e.target.Target, e.choice.names[engine.NoNetwork])
	}
	return append(slices.Clone(e.programs), e.target.Binary), nil
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

// Close ends the use of the daemon. The last target to be closed stops a private one.
func (e *Engine) Close() error { return e.release() }

// Create creates a container through the daemon, and attaches to it.
func (e *Engine) Create(ctx context.Context, spec engine.Spec) (engine.Container, error) {
	what := fmt.Sprintf("create container %q with %s", spec.ID, e.target.Target)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, context.Cause(ctx))
	}
	if spec.Resources.PIDs > 0 && e.choice.kind.NoProcessLimit != "" {
		return nil, fmt.Errorf("%s: %w", what, &engine.UnsupportedError{What: "a process limit", Reason: e.choice.kind.NoProcessLimit})
	}
	if spec.Join != "" {
		return nil, fmt.Errorf("%s: Docker cannot run a container in an existing network namespace", what)
	}
	e.mu.Lock()
	parent := e.group
	e.mu.Unlock()
	b := newContainer(ctx, e, spec)
	err := engine.Step(ctx, "ContainerCreate", func() error { return b.create(ctx, e.options(spec, parent)) })
	if err == nil && parent != "" {
		b.group, err = e.session.Cgroups.Open(path.Join(parent, e.choice.groupName(b.id)))
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

// securityOptions are the profiles of a container. It has none of AppArmor and SELinux, like the containers of the other engines. SELinux would
// also refuse it the directories of the run, which have no label of a container. A daemon without them ignores the options.
func securityOptions(seccomp engine.Seccomp) []string {
	options := []string{"apparmor=unconfined", "label=disable"}
	if seccomp == engine.Unconfined {
		options = append(options, "seccomp=unconfined")
	}
	return options
}

// options encodes a container for the daemon, below a cgroup parent.
func (e *Engine) options(spec engine.Spec, parent string) client.ContainerCreateOptions {
	network := api.NetworkMode("none")
	if spec.Network != engine.NoNetwork {
		network = api.NetworkMode(spec.Network) // the names are Docker's too
	}
	host := &api.HostConfig{
		Runtime: e.choice.names[spec.Network], NetworkMode: network, ReadonlyRootfs: !spec.Writable,
		Tmpfs: map[string]string{"/tmp": "rw,exec,nosuid,nodev,mode=1777"}, Resources: *resources(spec.Resources),
		OomScoreAdj: e.session.Launcher.OOMScore(),
	}
	host.SecurityOpt = securityOptions(e.session.Seccomp)
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
		Config: &api.Config{
			Image: spec.Image, Entrypoint: spec.Process.Args, Env: spec.Process.Env, User: "0:0", WorkingDir: "/",
			AttachStdout: true, AttachStderr: true, Labels: map[string]string{engine.Label: e.session.RunID},
		},
		HostConfig: host,
	}
}

// resources encodes limits for the daemon. The parent cgroup limits swap, as with bare runtimes. By default Docker would
// allow as much swap as memory, and refuse to raise one without the other.
func resources(r engine.Resources) *api.Resources {
	s := &api.Resources{CpusetCpus: r.CPUSet}
	if r.CPU > 0 {
		s.CPUPeriod, s.CPUQuota = engine.CPUPeriod, r.CPUQuota()
	}
	if r.Memory > 0 {
		s.Memory, s.MemorySwap = r.Memory, -1
	}
	if r.PIDs > 0 {
		s.PidsLimit = &r.PIDs
	}
	return s
}

// ignored turns the daemon's warning about a discarded limit into an error, because the container would differ from its
// Spec.
func ignored(warnings []string) error {
	for _, w := range warnings {
		if strings.Contains(strings.ToLower(w), "discarded") {
			return errors.New(w)
		}
	}
	return nil
}

// bridge is the daemon's default network.
const bridge = "bridge"

// findBridge finds the daemon's bridge. A daemon without a bridge only lacks the capability.
func (e *Engine) findBridge(ctx context.Context) error {
	switch {
	case e.Missing[engine.NetworkBridge] != "":
		return nil
	case e.target.Rootless:
		e.Missing[engine.NetworkBridge] = "rootless Docker has its bridge in its own network namespace, which cannot be reached from here"
		return nil
	}
	link, err := e.inspectBridge(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		e.Missing[engine.NetworkBridge] = diagnosis.Lack(&saidError{err}, e.facts(e.target), "the daemon's network "+bridge, "")
	}
	e.link = link
	return nil
}

func (d *daemon) inspectBridge(ctx context.Context) (engine.Link, error) {
	answer, err := d.client.NetworkInspect(ctx, bridge, client.NetworkInspectOptions{})
	if err != nil {
		return engine.Link{}, err
	}
	var member netip.Addr // an address of the network, assigned or not
	for _, c := range answer.Network.IPAM.Config {
		if c.Subnet.IsValid() && (c.Subnet.Addr().Is4() || !member.IsValid()) {
			member = c.Subnet.Masked().Addr().Next()
		}
	}
	if !member.IsValid() {
		return engine.Link{}, errors.New("it has no subnet")
	}
	find := managed.HostLink
	if d.private != nil {
		find = d.private.Link
	}
	link, err := find(member)
	if err != nil {
		return engine.Link{}, err
	}
	link.About["network"] = "Docker " + answer.Network.Driver
	return link, nil
}

// Link implements engine.Networker.
func (e *Engine) Link(context.Context) (engine.Link, error) {
	return e.link, e.Supports(engine.NetworkBridge)
}

// Outward implements engine.Outgoing.
func (e *Engine) Outward() (engine.Outward, error) {
	if e.private != nil {
		return engine.Outward{}, engine.NoWayOut("use a Docker daemon of your own: start it, or name its socket in DOCKER_HOST")
	}
	return engine.Outward{Network: engine.Bridged, About: e.link.About["network"]}, e.Supports(engine.NetworkBridge)
}

// Address implements engine.Addressed.
func (b *container) Address(ctx context.Context) (netip.Addr, error) {
	const op = "query the address of"
	answer, err := request(ctx, b, op, b.e.client.ContainerInspect, client.ContainerInspectOptions{})
	if err != nil {
		return netip.Addr{}, err
	}
	if settings := answer.Container.NetworkSettings; settings != nil {
		if end := settings.Networks[bridge]; end != nil && end.IPAddress.IsValid() {
			return end.IPAddress, nil
		}
	}
	return netip.Addr{}, b.explain(ctx, op, errors.New("it has no address in the network "+bridge))
}
