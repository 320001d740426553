// Package cri drives engines by the Container Runtime Interface of Kubernetes, in its version 1: containerd, CRI-O,
// and any other at a socket that the user names.
//
// A container is a pod with one container. Each call of the interface is a step: RunPodSandbox and
// CreateContainer make Create, StartContainer is Start, StopContainer is Kill, and RemoveContainer,
// StopPodSandbox and RemovePodSandbox are Delete. The runtime of a target is the engine's runtime handler.
//
// The user's own engine is used as it is: what is made there carries the run's labels, and only that is
// removed. Where there is none, or if the session says so, a private one is started whose configuration has
// a handler for every runtime on the host and every target of the run.
package cri

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/crilog"
	"github.com/touchstone-bench/touchstone/internal/engine/managed"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Driver opens the targets of one CRI engine. They share a connection, and a private engine if there is
// one, which ends with the last of them. It must not be copied.
type Driver struct {
	name  string
	brand *brand // nil if the engine is one that we cannot start

	shared managed.Shared[*service]
}

var _ engine.Driver = (*Driver)(nil)

// NewContainerd drives containerd.
func NewContainerd() *Driver { return &Driver{name: "containerd", brand: &containerd} }

// NewCRIO drives CRI-O.
func NewCRIO() *Driver { return &Driver{name: "crio", brand: &crio} }

// New drives the engine whose socket the session has under this name.
func New(name string) *Driver { return &Driver{name: name} }

// Describe declares the engine.
func (d *Driver) Describe() engine.Description {
	return engine.Description{
		Name: d.name, Kind: engine.FullEngine, Socket: true, CRI: true,
		Programs: monitor.Programs{
			monitor.Daemon: {d.name}, monitor.Shim: {"containerd-shim*"}, monitor.Monitor: {"conmon", "conmonrs"}, monitor.Sandbox: {"pause"},
		},
	}
}

// brand is what is known of an engine beyond CRI.
type brand struct {
	title   string // for messages
	socket  string // where it is by default
	program string // the key of Session.Engines, and what is looked up on PATH
	deb     string // the package that has the program
	// find finds what a private one needs, and its version.
	find func(ctx context.Context, s engine.Session, b *brand) (programs, error)
	// fit describes a handler of a private one for a target.
	fit func(s engine.Session, p programs, r runtimes.Runtime, t target.Target) (entry, error)
	// start starts a private one.
	start func(ctx context.Context, s engine.Session, p programs, entries []entry) (*service, error)
}

// handler is what a target runs on.
type handler struct {
	configured
	runtimes.Kind
	version string // of the runtime, as its binary says it
	notes   []string
}

// address gives the socket of the user's own engine; empty if there is none. must tells that the user wants this
// one and no other.
func (d *Driver) address(s engine.Session) (socket string, must bool) {
	if given := s.Sockets[d.name]; given != "" && !s.Managed {
		return given, true
	}
	if d.brand == nil || s.Managed {
		return "", false
	}
	if _, err := os.Stat(d.brand.socket); err != nil {
		return "", false
	}
	return d.brand.socket, false
}

// refuse says why a target cannot work.
func refuse(what fmt.Stringer, reason, advice string) *engine.UnsupportedError {
	return &engine.UnsupportedError{What: what.String(), Reason: reason, Advice: advice}
}

// Candidates lists the targets of the user's own engine, or those that a private one would have.
func (d *Driver) Candidates(ctx context.Context, s engine.Session) []engine.Candidate {
	if socket, must := d.address(s); socket != "" {
		c, err := connect(ctx, d.name, socket)
		if err == nil {
			defer func() { _ = c.close() }() // nothing is under way
			return d.served(ctx, s, c)
		}
		if must {
			return d.none(ctx, s, err)
		}
	}
	if d.brand == nil {
		return nil
	}
	p, err := d.brand.find(ctx, s, d.brand)
	if err != nil {
		return d.none(ctx, s, err)
	}
	var found []engine.Candidate
	for _, f := range runtimes.Find(ctx, s, d.name) {
		for n, t := range f.Targets(d.name) {
			err := f.Err
			if err == nil {
				_, err = d.brand.fit(s, p, f.Runtime, t)
			}
			info := engine.Info{Target: t, Binary: f.Binary, Version: versions(d.brand.title+" "+p.version, f.Version), Isolation: f.Isolation}
			found = append(found, engine.Candidate{Info: info, Err: err, Default: n == 0})
		}
	}
	return found
}

// none lists what there would be if the engine worked.
func (d *Driver) none(ctx context.Context, s engine.Session, err error) []engine.Candidate {
	var found []engine.Candidate
	for _, f := range runtimes.Find(ctx, s, d.name) {
		if f.Err != nil && d.brand != nil {
			continue // two reasons for one target help nobody
		}
		info := engine.Info{Target: target.Target{Engine: d.name, Runtime: f.Name}, Binary: f.Binary, Version: f.Version, Isolation: f.Isolation}
		found = append(found, engine.Candidate{Info: info, Err: err, Default: true})
	}
	return found
}

// served lists the handlers of an engine, and the host's runtimes that it has none for.
func (d *Driver) served(ctx context.Context, s engine.Session, c *client) []engine.Candidate {
	var found []engine.Candidate
	for _, configured := range c.handlers {
		t := target.Target{Engine: d.name, Runtime: configured.name}
		h := identify(ctx, s, t, configured)
		info := engine.Info{Target: t, Binary: h.binary, Version: versions(c.title(), h.version), Isolation: h.Isolation}
		found = append(found, engine.Candidate{Info: info, Default: true})
	}
	for _, f := range runtimes.Find(ctx, s, d.name) {
		if _, has := c.handler(f.Name); has || f.Err != nil {
			continue
		}
		t := target.Target{Engine: d.name, Runtime: f.Name}
		found = append(found, engine.Candidate{
			Info: engine.Info{Target: t, Binary: f.Binary, Version: versions(c.title(), f.Version), Isolation: f.Isolation},
			Err:  d.noHandler(t, c), Default: true,
		})
	}
	return found
}

func (c *client) title() string { return c.engine + " " + c.version }

func (d *Driver) noHandler(t target.Target, c *client) error {
	advice := "name one that it has, or configure one"
	if d.brand != nil {
		advice += ", or use --managed for a private " + d.brand.title + " that has a handler for every runtime of this host"
	}
	return refuse(t, fmt.Sprintf("%s at %s has no runtime handler %s, it has %s", c.title(), c.socket, t.Runtime, c.names()), advice)
}

func versions(engineVersion, runtimeVersion string) string {
	if runtimeVersion == "" {
		return engineVersion
	}
	return engineVersion + ", " + runtimeVersion
}

// Open connects to the engine, or starts a private one, and lets the handler run one container.
func (d *Driver) Open(ctx context.Context, t target.Target, s engine.Session) (engine.Engine, error) {
	shared, release, err := d.shared.Acquire(ctx, func(ctx context.Context) (*service, error) { return d.connect(ctx, s) },
		func(shared *service) error { return shared.close(context.Background()) })
	if err != nil {
		return nil, d.refusal(ctx, t, err)
	}
	e, err := d.open(ctx, t, s, shared)
	if err != nil {
		return nil, errors.Join(err, release())
	}
	e.release = release
	if err := e.tryOut(ctx); err != nil {
		err = errors.Join(err, e.Close())
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, &engine.OpenError{Info: e.info, Err: refuse(t, fmt.Sprintf("its first container did not work: %v", err), advise(err, e.handler))}
	}
	return e.shown(), nil
}

// refusal makes the error of an engine that does not work that of a target.
func (d *Driver) refusal(ctx context.Context, t target.Target, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("open %s: %w", t, context.Cause(ctx))
	}
	var u *engine.UnsupportedError
	if errors.As(err, &u) {
		return refuse(t, u.Reason, u.Advice)
	}
	return refuse(t, message(err), "look at the engine's log")
}

// connect gives the user's own engine if there is one, and starts a private one if not.
func (d *Driver) connect(ctx context.Context, s engine.Session) (*service, error) {
	if s.Registry == nil {
		return nil, errors.New("the session has no registry to pull images from")
	}
	socket, must := d.address(s)
	var c *client
	var err error
	if socket != "" {
		c, err = connect(ctx, d.name, socket)
		if err != nil && must {
			return nil, err
		}
	}
	var shared *service
	switch {
	case c != nil:
		shared = &service{client: c, name: d.name}
		if err := s.RecordDaemon(d.name, socket); err != nil {
			return nil, errors.Join(err, c.close())
		}
	case d.brand == nil:
		return nil, &engine.UnsupportedError{What: d.name, Reason: "it is not known where its socket is", Advice: "give it with --cri " + d.name + "=SOCKET"}
	default:
		if shared, err = d.start(ctx, s); err != nil {
			return nil, err
		}
		if socket != "" {
			shared.notes = append(shared.notes, fmt.Sprintf("a private %s, since the one at %s does not serve CRI", d.brand.title, socket))
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, runtimes.AnswerLimit, runtimes.ErrNoAnswer)
	defer cancel()
	err = shared.open(ctx, s.Registry)
	if err == nil {
		return shared, nil
	}
	reason, advice := message(err), "look at the engine's log"
	if strings.Contains(reason, "server gave HTTP response to HTTPS client") {
		advice = "let it pull from " + s.Registry.Addr() + " without TLS: a [[registry]] with location = \"127.0.0.1\" and insecure = true in /etc/containers/registries.conf.d"
	}
	return nil, errors.Join(&engine.UnsupportedError{What: d.name, Reason: reason, Advice: advice}, shared.close(ctx))
}

// start starts a private engine.
func (d *Driver) start(ctx context.Context, s engine.Session) (*service, error) {
	p, err := d.brand.find(ctx, s, d.brand)
	if err != nil {
		return nil, err
	}
	var entries []entry
	for _, t := range d.targets(ctx, s) {
		e, err := d.brand.fit(s, p, t.Runtime, t.target)
		if err != nil {
			continue // which Open says when it is asked for it
		}
		e.handler = t.Name + "-" + strconv.Itoa(len(entries))
		entries = append(entries, e)
	}
	shared, err := d.brand.start(ctx, s, p, entries)
	if err != nil {
		return nil, err
	}
	shared.name = d.name
	shared.entries = map[string]entry{}
	for _, e := range entries {
		shared.entries[e.target.String()] = e
	}
	return shared, nil
}

// wanted is a target with its runtime.
type wanted struct {
	runtimes.Runtime
	target target.Target
}

// targets lists the targets of all runtimes of the host, and those that are about to be opened.
func (d *Driver) targets(ctx context.Context, s engine.Session) []wanted {
	var all []wanted
	found := runtimes.Find(ctx, s, d.name)
	for _, f := range found {
		if f.Err != nil {
			continue
		}
		for _, t := range f.Targets(d.name) {
			all = append(all, wanted{f.Runtime, t})
		}
	}
	for _, t := range s.Targets {
		if t.Engine != d.name || slices.ContainsFunc(all, func(w wanted) bool { return w.target.String() == t.String() }) {
			continue
		}
		if r, err := runtimes.Get(ctx, s, t); err == nil {
			all = append(all, wanted{r, t})
		}
	}
	return all
}

// open makes an engine for a target, without trying it.
func (d *Driver) open(ctx context.Context, t target.Target, s engine.Session, shared *service) (*Engine, error) {
	e := &Engine{session: s, service: shared}
	var err error
	if shared.private != nil {
		e.handler, err = d.privateHandler(ctx, t, s, shared)
	} else {
		e.handler, err = d.userHandler(ctx, t, s, shared)
	}
	if err != nil {
		return nil, err
	}
	e.info = engine.Info{
		Target: t, Binary: e.handler.binary, Version: versions(shared.title(), e.handler.version), Isolation: e.handler.Isolation,
		Cgroup: string(cgroup.None), Rootless: false, Notes: slices.Concat(shared.notes, e.handler.notes, e.handler.Notes),
	}
	if s.Cgroups != nil {
		e.info.Cgroup = string(s.Cgroups.Mode)
	}
	if !e.places() {
		e.info.Notes = append(e.info.Notes, "its cgroups are made by systemd, not below the run's: what containers cost the host is not known")
	}
	exits := "an exit is containerd's exit event, without a request in the phase"
	if shared.exits == nil {
		exits = "an exit is the exit of the process on the host: the engine has no exit event in use, and the phase holds ContainerStatus as a step"
	}
	e.info.Notes = append(e.info.Notes, exits)
	if shared.engine == "cri-o" {
		e.info.Notes = append(e.info.Notes, "CRI-O sends SIGTERM before SIGKILL, and looks for the end of a container that it stops every 100 ms")
	}
	e.info.Notes = append(e.info.Notes, "/tmp is a directory of the host: CRI has no tmpfs")
	if shared.private != nil {
		e.info.Notes = append(e.info.Notes, shared.private.Notes()...)
	}
	if shared.storage != "" {
		e.info.Notes = append(e.info.Notes, "the root file system is of "+shared.storage)
	}
	e.adapt()
	if err := e.prepare(); err != nil {
		return nil, err
	}
	return e, nil
}

// userHandler finds a handler of the user's own engine.
func (d *Driver) userHandler(ctx context.Context, t target.Target, s engine.Session, shared *service) (handler, error) {
	if len(t.Options) > 0 {
		return handler{}, refuse(t, fmt.Sprintf("the options of its handlers are set in the configuration of %s at %s", shared.title(), shared.socket),
			"leave them out, and name a handler that has them")
	}
	configured, has := shared.handler(t.Runtime)
	if !has {
		return handler{}, d.noHandler(t, shared.client)
	}
	return identify(ctx, s, t, configured), nil
}

// privateHandler finds a handler of a private engine.
func (d *Driver) privateHandler(ctx context.Context, t target.Target, s engine.Session, shared *service) (handler, error) {
	e, has := shared.entries[t.String()]
	if has {
		return handler{
			configured: configured{name: e.handler, shim: e.shim, binary: e.runtime.Binary}, Kind: e.runtime.Kind, version: e.runtime.Version,
			notes: e.notes(),
		}, nil
	}
	r, err := runtimes.Get(ctx, s, t)
	if err == nil {
		var p programs
		if p, err = d.brand.find(ctx, s, d.brand); err == nil {
			_, err = d.brand.fit(s, p, r, t)
		}
	}
	if err == nil {
		err = refuse(t, "the private "+d.brand.title+" was started without a handler for it", "name it among the targets of the run")
	}
	return handler{}, err
}

// identify finds out what a handler of the user's own engine runs.
func identify(ctx context.Context, s engine.Session, t target.Target, c configured) handler {
	h := handler{configured: c, Kind: runtimes.KindOf("")}
	var given target.Runtime
	switch {
	case c.shim != "" && c.shim != shimRunc:
		given.Type = c.shim
	case c.binary != "":
		given.Path = c.binary
	case c.shim == shimRunc:
		t.Runtime = "runc" // which the shim looks up on PATH
	}
	if c.shim != "" || c.binary != "" {
		s.Runtimes = map[string]target.Runtime{t.Runtime: given}
		r, err := runtimes.Get(ctx, s, t)
		h.Kind = r.Kind // not known if it is not to be found from here
		if err == nil {
			h.version, h.binary = r.Version, r.Binary
		}
	}
	h.notes = []string{"runtime handler " + c.name}
	if c.shim != "" {
		h.notes[0] += ", shim " + c.shim
	}
	if c.config != "" {
		h.notes[0] += " with " + c.config
	}
	return h
}

// adapt takes into account what the interface and the runtime leave.
func (e *Engine) adapt() {
	e.Missing = engine.Missing{
		engine.CanPause: "CRI has no call that pauses a container",
		engine.CanTmpfs: "CRI has no tmpfs mount: a kubelet binds a directory of a tmpfs of the host instead; measure bind-tmpfs, which does the same",
	}
	if network, _ := e.info.Target.Option("network"); e.handler.isGVisor() && network != "host" {
		e.Missing[engine.NetworkHost] = "gVisor has its own network stack, which has no addresses in the host's network namespace; use the option network=host"
	}
	switch network, _ := e.info.Target.Option("network"); {
	case e.handler.isGVisor() && network == "none":
		e.Missing[engine.NetworkBridge] = "the target's option network=none rules it out"
	case e.handler.isGVisor() && e.handler.shim == shimRunc && network != "host":
		e.Missing[engine.NetworkBridge] = "the pod's pause container is a sandbox too, and takes the address away from the pod's network interface; leave out the option shim=runc, or set network=host"
	}
	if e.places() {
		e.info.Notes = append(e.info.Notes, "limits are set in the cgroup of the pod too, as a kubelet does")
	}
	switch {
	case !e.handler.hasGVisorShim():
	case e.places():
		e.info.Notes = append(e.info.Notes, "a container's own limits do nothing: all processes of a sandbox are in the pod's cgroup, whose limits are what holds")
	default:
		e.info.Notes = append(e.info.Notes, "a container's limits do not hold, at creation or by an update that returns success: all processes of a sandbox are in the pod's cgroup")
	}
	if e.service.engine == "cri-o" && e.handler.isGVisor() && e.info.Cgroup != string(cgroup.V2) {
		e.Missing[engine.CanUpdate] = "CRI-O limits memory and swap together, and runsc raises the two in an order that cgroup v1 refuses"
	}
	if e.handler.hasGVisorShim() {
		e.Missing[engine.CanStats] = "gVisor's shim sometimes reports a CPU time of 0 for a container that has used some"
	}
}

// isGVisor tells whether the handler runs gVisor.
func (h handler) isGVisor() bool {
	return h.Name == "runsc" || h.hasGVisorShim()
}

// hasGVisorShim tells whether gVisor's own shim runs it.
func (h handler) hasGVisorShim() bool { return strings.HasPrefix(h.shim, "io.containerd.runsc.") }

// prepare makes the engine's directory and its watcher.
func (e *Engine) prepare() (err error) {
	parent := filepath.Join(e.session.State, "cri")
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return fmt.Errorf("make the state directory of %s: %w", e.info.Target, err)
	}
	for n := 0; ; n++ {
		e.dir = filepath.Join(parent, strconv.Itoa(n))
		err := os.Mkdir(e.dir, 0o700)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make the state directory of %s: %w", e.info.Target, err)
		}
	}
	if e.logs, err = crilog.New(); err != nil {
		return errors.Join(err, os.Remove(e.dir))
	}
	return nil
}
