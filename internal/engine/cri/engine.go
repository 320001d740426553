package cri

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/crilog"
	"github.com/touchstone-bench/touchstone/internal/engine/diagnosis"
	"github.com/touchstone-bench/touchstone/internal/engine/managed"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
)

// Engine drives one runtime handler of a CRI engine.
type Engine struct {
	session engine.Session
	service *service
	release func() error
	handler handler
	info    engine.Info
	engine.Missing
	dir    string // of its containers
	logDir string // of their logs
	logs   *crilog.Watcher
	// exits are nil if an exit is the exit of the container's process on the host.
	exits *exitEvents
	link  engine.Link // once the first container has been tried
	// foreign reports that the engine has other cgroups than this program.
	foreign bool

	mu    sync.Mutex
	group string // parent of the pods' cgroups
}

// The optional interfaces of an Engine depend on the engine: pods have cgroups of the run, the network is a private engine's
// own, or both.
type (
	withCgroups struct{ *Engine }
	withNetwork struct{ *Engine }
	withBoth    struct{ withCgroups }
)

var (
	_ engine.Engine       = (*Engine)(nil)
	_ engine.DaemonBacked = (*Engine)(nil)
	_ engine.Pinger       = (*Engine)(nil)
	_ engine.Installed    = (*Engine)(nil)
	_ engine.Puller       = (*Engine)(nil)
	_ engine.Networker    = (*Engine)(nil)
	_ engine.Outgoing     = (*Engine)(nil)
	_ engine.CgroupPlacer = withCgroups{}
	_ engine.Dialer       = withBoth{}
	_ engine.Execer       = (*container)(nil)
	_ engine.Updater      = (*container)(nil)
	_ engine.Meter        = (*container)(nil)
	_ engine.Addressed    = (*container)(nil)
	_ engine.Limited      = (*container)(nil)
	_ engine.Traced       = (*container)(nil)
)

// Info implements engine.Engine.
func (e *Engine) Info() engine.Info { return e.info }

// SetCgroupParent implements engine.CgroupPlacer. Nothing that the launcher starts belongs to a container here.
func (p withCgroups) SetCgroupParent(group string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.group = group
	return nil
}

// Dial implements engine.Dialer.
func (p withBoth) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return p.service.private.Dial(ctx, network, address)
}

// Dial implements engine.Dialer.
func (d withNetwork) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return d.service.private.Dial(ctx, network, address)
}

// shown returns the engine with the optional interfaces that apply.
func (e *Engine) shown() engine.Engine {
	switch isPrivate := e.service.private != nil; {
	case isPrivate && e.ownsCgroups():
		return withBoth{withCgroups{e}}
	case isPrivate:
		return withNetwork{e}
	case e.ownsCgroups():
		return withCgroups{e}
	default:
		return e
	}
}

// Daemon implements engine.DaemonBacked.
func (e *Engine) Daemon() engine.Daemon { return e.service.processes() }

// Ping implements engine.Pinger.
func (e *Engine) Ping(ctx context.Context) error { return e.service.answers(ctx) }

// Recover implements engine.Recoverer.
func (e *Engine) Recover(ctx context.Context) (isKilled bool, err error) {
	return e.service.recover(ctx)
}

// Programs implements engine.Installed.
func (e *Engine) Programs() ([]string, error) {
	entry, ok := e.service.entries[e.info.Target.String()]
	if !ok {
		return nil, engine.UnknownPrograms(e.info.Target)
	}
	return e.service.programs.installed(entry)
}

// Create implements engine.Engine: it makes a pod with one container.
func (e *Engine) Create(ctx context.Context, spec engine.Spec) (engine.Container, error) {
	fail := func(err error) (engine.Container, error) {
		return nil, fmt.Errorf("create container %q: %w", spec.ID, err)
	}
	err := context.Cause(ctx)
	if err == nil {
		err = e.check(spec)
	}
	if err == nil {
		err = e.service.revive(ctx)
	}
	if err != nil {
		return fail(err)
	}
	var group *cgroup.Group
	if e.ownsCgroups() {
		e.mu.Lock()
		parent := e.group
		e.mu.Unlock()
		if group, err = e.session.ContainerCgroup(parent, spec.ID); err != nil {
			return fail(err)
		}
	}
	c := &container{
		e: e, id: spec.ID, args: spec.Process.Args, group: group, dir: filepath.Join(e.dir, spec.ID), logDir: filepath.Join(e.logDir, spec.ID),
	}
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fail(errors.New("a container of this name exists"))
		}
		return fail(err)
	}
	if err := os.Mkdir(c.logDir, 0o700); err != nil {
		return fail(errors.Join(err, os.Remove(c.dir)))
	}
	if err := c.create(ctx, spec); err != nil {
		err = c.explain(ctx, "create", err)
		if c.log == nil {
			spec.Process.CloseOutput()
		}
		return nil, errors.Join(err, c.undo(ctx))
	}
	return c, nil
}

// check refuses specs that CRI cannot express.
func (e *Engine) check(spec engine.Spec) error {
	if len(spec.Process.Args) == 0 {
		return errors.New("the spec has no program")
	}
	if spec.Join != "" {
		return errors.New("a container of an engine cannot join an existing network namespace")
	}
	if spec.Resources.PIDs > 0 && e.handler.NoProcessLimit != "" {
		return &engine.UnsupportedError{What: "a process limit", Reason: e.handler.NoProcessLimit}
	}
	if spec.Resources.PIDs > 0 && !e.ownsCgroups() {
		return &engine.UnsupportedError{
			What: "a process limit", Reason: "CRI has none for a container, and the engine chooses the cgroup of the pod by itself",
			Advice: "run the engine with the cgroup driver cgroupfs, or with --managed",
		}
	}
	if spec.Network == engine.Bridged {
		if err := e.Supports(engine.NetworkBridge); err != nil {
			return err
		}
	}
	for _, m := range spec.Mounts {
		if m.Source == "" {
			return e.Supports(engine.CanTmpfs)
		}
	}
	return nil
}

// ownsCgroups reports whether pods have cgroups of the run.
func (e *Engine) ownsCgroups() bool {
	return e.session.Cgroups != nil && !e.foreign && !e.service.systemd && !e.handler.systemd
}

// isGuestOfCRIO reports whether the engine is CRI-O and its pods are virtual machines.
func (e *Engine) isGuestOfCRIO() bool { return e.handler.guest != nil && e.service.exitsDir != "" }

// makeGroup makes the cgroup of a pod, and enables the controllers down to it.
func (e *Engine) makeGroup(g *cgroup.Group) error {
	name, err := filepath.Rel(filepath.Join("/", e.session.Cgroups.Base()), g.Path())
	if err != nil {
		return err
	}
	_, err = e.session.Cgroups.Create("/" + name)
	return err
}

// Close releases the engine. The last target of an engine stops it, or removes the image if the run has pulled it.
func (e *Engine) Close() error {
	err := e.logs.Close()
	if rm := errors.Join(os.RemoveAll(e.dir), os.RemoveAll(e.logDir)); rm != nil {
		err = errors.Join(err, fmt.Errorf("remove the state of %s: %w", e.info.Target, rm))
	}
	return errors.Join(err, e.release())
}

// Pull implements engine.Puller.
func (e *Engine) Pull(ctx context.Context, ref string) error {
	if err := e.service.pull(ctx, ref); err != nil {
		return e.explain(ctx, "pull image "+ref, err)
	}
	return nil
}

// RemoveImage implements engine.Puller.
func (e *Engine) RemoveImage(ctx context.Context, ref string) error {
	if err := e.service.removeImage(ctx, ref); err != nil {
		return e.explain(ctx, "remove image "+ref, err)
	}
	return nil
}

// requestError shows an engine's error without gRPC's prefix.
type requestError struct{ error }

func (e requestError) Error() string { return message(e.error) }

func (e requestError) Unwrap() error { return e.error }

// explain wraps an error of the engine in the error of a call.
func (e *Engine) explain(ctx context.Context, op string, err error) error {
	complaints := ""
	if e.handler.guest != nil && e.service.private != nil {
		complaints = e.service.private.Complaints()
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s with %s: %w%s", op, e.info.Target, context.Cause(ctx), complaints)
	}
	failed := fmt.Errorf("%s with %s: %w%s", op, e.info.Target, requestError{err}, complaints)
	if cause := e.service.lost(ctx, err); cause != nil {
		return fmt.Errorf("%w; %w", failed, cause)
	}
	return failed
}

// tryOut runs one container, and checks that its exit code and its output arrive.
func (e *Engine) tryOut(ctx context.Context) error {
	ctx, cancel := runtimes.Runtime{Guest: e.handler.guest}.WithTryLimit(ctx)
	defer cancel()
	// The status of a private engine is from before it was ready. It waits for that by itself.
	if err := e.service.ready; err != nil && e.service.private == nil {
		return err
	}
	if err := e.locate(ctx); err != nil {
		return err
	}
	e.describeCgroups()
	var stderr runtimes.Answer
	const nonsense = "no-such-command"
	c, err := e.Create(ctx, engine.Spec{
		ID:    e.service.tryID(e.session.RunID),
		Image: e.service.image, Process: engine.Process{Args: []string{"/probe", nonsense}, Stderr: &stderr},
	})
	if err != nil {
		return err
	}
	err = e.meet(ctx, c.(*container))
	if err == nil {
		err = engine.RunToExit(ctx, c, usageCode)
	}
	if undo := c.(*container).undo(ctx); err != nil || undo != nil {
		return errors.Join(err, undo)
	}
	if !strings.Contains(stderr.String(), nonsense) {
		return fmt.Errorf("its output %q did not arrive in the log in %s: %s", stderr.String(), e.logDir,
			cmp.Or(e.Missing[engine.CanBind], "the engine must have the same file system as this program"))
	}
	if e.handler.kvm {
		return e.session.TryRunning(ctx, e, "-"+e.service.name+"-kvm-"+filepath.Base(e.dir))
	}
	return nil
}

// usageCode is the probe's exit code for wrong arguments.
const usageCode = 2

// facts are the facts for the diagnosis of an error of this target.
func (e *Engine) facts() diagnosis.Facts {
	f := diagnosis.Facts{Info: e.info, Engine: e.service.engine, Private: e.service.private != nil}
	if e.service.private != nil {
		f.Log = e.service.private.Log()
	}
	if e.session.Registry != nil {
		f.Registry = e.session.Registry.Addr()
	}
	if e.handler.guest != nil {
		f.Guest = e.handler.guest.File
	}
	return f.Here()
}

// advice is the advice for an unknown error of this target.
func (e *Engine) advice() string {
	if e.handler.shim == shimRunsc {
		return "try the option shim=runc, which avoids gVisor's own shim"
	}
	return logAdvice(e.facts())
}

// Link implements engine.Networker. Every pod outside of the host's network is in the network of the engine's CNI plug-ins,
// whether it is Bridged or not: the engine has no other network.
func (e *Engine) Link(context.Context) (engine.Link, error) {
	return e.link, e.Supports(engine.NetworkBridge)
}

// Outward implements engine.Outgoing.
func (e *Engine) Outward() (engine.Outward, error) {
	if e.service.private != nil {
		return engine.Outward{}, engine.NoWayOut("use a daemon of your own: start it, or name its socket with --cri NAME=SOCKET")
	}
	return engine.Outward{Network: engine.Bridged, About: cmp.Or(e.link.About["network"], "the CNI network of the engine")}, e.Supports(engine.NetworkBridge)
}

// Address implements engine.Addressed.
func (c *container) Address(ctx context.Context) (netip.Addr, error) {
	const op = "get the address of"
	if err := c.check(op); err != nil {
		return netip.Addr{}, err
	}
	answer, err := c.e.service.PodSandboxStatus(ctx, &api.PodSandboxStatusRequest{PodSandboxId: c.pod})
	if err != nil {
		return netip.Addr{}, c.explain(ctx, op, err)
	}
	address, err := netip.ParseAddr(answer.GetStatus().GetNetwork().GetIp())
	if err != nil {
		return netip.Addr{}, c.explain(ctx, op, fmt.Errorf("its pod has none: %w", err))
	}
	return address.Unmap(), nil
}

// meet finds the network path to pods from the address of a created container. An engine with unreachable pods can be used,
// without bridged networks.
func (e *Engine) meet(ctx context.Context, c *container) error {
	if _, isMissing := e.Missing[engine.NetworkBridge]; isMissing {
		return nil
	}
	link, err := e.findLink(ctx, c)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		e.Missing[engine.NetworkBridge] = diagnosis.Lack(err, e.facts(), "the network of its pods", "look at the engine's network configuration (CNI)")
	}
	e.link = link
	return nil
}

func (e *Engine) findLink(ctx context.Context, c *container) (engine.Link, error) {
	address, err := c.Address(ctx)
	if err != nil {
		return engine.Link{}, err
	}
	find, names := managed.HostLink, e.service.plugins
	if e.service.private != nil { // it may not report its plug-ins
		find, names = e.service.private.Link, cmp.Or(names, privatePlugin)
	}
	link, err := find(address)
	if err != nil {
		return engine.Link{}, err
	}
	if names != "" {
		link.About["network"] = "CNI " + names
	}
	return link, nil
}

// plugins reads the CNI plug-ins from containerd's verbose status, in their order. It returns an empty string for other
// engines.
func plugins(config string) string {
	var network struct {
		Networks []struct {
			Config struct {
				Plugins []struct{ Network struct{ Type string } }
			}
		}
	}
	if err := json.Unmarshal([]byte(config), &network); err != nil {
		return ""
	}
	var names []string
	for _, n := range network.Networks {
		for _, p := range n.Config.Plugins {
			if name := word(p.Network.Type); name != "" && name != "loopback" {
				names = append(names, name)
			}
		}
	}
	return strings.Join(names, ", ")
}
