// Package cri drives engines by version 1 of the Container Runtime Interface of Kubernetes: containerd, CRI-O, and any
// engine at a socket that the user names.
//
// A container is a pod with one container. Each request of the interface is a step: RunPodSandbox and CreateContainer
// are Create, StartContainer is Start, StopContainer is Kill, and RemoveContainer, StopPodSandbox and
// RemovePodSandbox are Delete. Wait makes no request if the engine has exit events. The runtime of a target is the
// engine's runtime handler.
//
// The user's own engine is used as it is. Objects there carry the run's labels, and only labelled objects are removed.
// Without such an engine, or if the session requires it, the package starts a private one. Its configuration has a
// handler for every runtime on the host and every target of the run.
package cri

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/crilog"
	"github.com/touchstone-bench/touchstone/internal/engine/diagnosis"
	"github.com/touchstone-bench/touchstone/internal/engine/locality"
	"github.com/touchstone-bench/touchstone/internal/engine/managed"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes/kata"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Driver opens the targets of one CRI engine. They share a connection, and a private engine if there is
// one, which ends with the last of them. It must not be copied.
type Driver struct {
	name    string
	product *product // nil for an engine that this package cannot start

	shared managed.Shared[*service]
}

var _ engine.Driver = (*Driver)(nil)

// NewContainerd drives containerd.
func NewContainerd() *Driver { return &Driver{name: "containerd", product: &containerd} }

// NewCRIO drives CRI-O.
func NewCRIO() *Driver { return &Driver{name: "crio", product: &crio} }

// New drives an engine whose name and socket the session has.
func New(name string) *Driver { return &Driver{name: name} }

// Describe declares the engine.
func (d *Driver) Describe() engine.Description {
	var commands map[string][]string
	var binaries []string
	if d.product != nil {
		commands, binaries = d.product.commands, d.product.binaries
	}
	return engine.Description{
		Name: d.name, Kind: engine.FullEngine, Socket: true, CRI: true, Commands: commands, Binaries: binaries,
		Programs: monitor.Programs{
			monitor.Daemon: {d.name}, monitor.Shim: {"containerd-shim*"}, monitor.Monitor: {"conmon", "conmonrs"}, monitor.Pause: {"pause"},
		},
	}
}

// product is the knowledge about an engine beyond CRI.
type product struct {
	title   string // for messages
	socket  string // default path
	program string // the key of Session.Engines, and the name on PATH
	// binaries are for engine.Description.
	binaries []string
	// commands are for engine.Description.
	commands map[string][]string
	// find finds the programs of a private engine, and its version.
	find func(ctx context.Context, s engine.Session, b *product) (programs, error)
	// fit describes a private engine's handler for a target.
	fit func(s engine.Session, p programs, r runtimes.Runtime, t target.Target) (entry, error)
	// start starts a private engine.
	start func(ctx context.Context, s engine.Session, p programs, entries []entry) (*service, error)
}

// handler is the runtime handler of a target.
type handler struct {
	configured
	runtimes.Kind
	version string // of the runtime, from its binary
	kvm     bool   // the target's sandboxes must run on KVM
	notes   []string
	guest   *kata.Config // of a virtual machine; nil for other runtimes
}

// address returns the socket of the user's own engine, or an empty string. must reports that the user has named this
// socket.
func (d *Driver) address(s engine.Session) (socket string, must bool) {
	if path := s.Sockets[d.name]; path != "" && !s.Managed {
		return path, true
	}
	if d.product == nil || s.Managed {
		return "", false
	}
	if _, err := os.Stat(d.product.socket); err != nil {
		return "", false
	}
	return d.product.socket, false
}

// refuse is the error of a target that cannot work.
func refuse(what fmt.Stringer, reason, advice string) *engine.UnsupportedError {
	return &engine.UnsupportedError{What: what.String(), Reason: reason, Advice: advice}
}

// Candidates lists the targets of the user's own engine, or of a private one.
func (d *Driver) Candidates(ctx context.Context, s engine.Session) []engine.Candidate {
	if socket, must := d.address(s); socket != "" {
		c, err := connectToMeasure(ctx, d.name, socket)
		if err == nil {
			defer func() { _ = c.close() }() // no request is under way
			return d.served(ctx, s, c)
		}
		if must {
			return d.none(ctx, s, err)
		}
	}
	if d.product == nil {
		return nil
	}
	p, err := d.product.find(ctx, s, d.product)
	if err != nil {
		return d.none(ctx, s, err)
	}
	found := runtimes.Candidates(ctx, s, d.name, func(f runtimes.Found, t target.Target) error {
		_, err := d.product.fit(s, p, f.Runtime, t)
		return cmp.Or(err, f.Err) // the installation of a runtime does not help an engine that cannot use it
	})
	for i := range found {
		found[i].Version = versions(d.product.title+" "+p.version, found[i].Version)
	}
	return found
}

// none lists the targets of an engine that does not work.
func (d *Driver) none(ctx context.Context, s engine.Session, err error) []engine.Candidate {
	var found []engine.Candidate
	for _, f := range runtimes.Find(ctx, s, d.name) {
		if f.Err != nil && d.product != nil {
			continue // a target has one reason
		}
		found = append(found, engine.Candidate{Info: f.Info(target.Target{Engine: d.name, Runtime: f.Name}), Err: err, Default: true})
	}
	return found
}

// served lists the handlers of an engine, and the host's runtimes without a handler.
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
		info := f.Info(target.Target{Engine: d.name, Runtime: f.Name})
		info.Version = versions(c.title(), f.Version)
		found = append(found, engine.Candidate{Info: info, Err: d.noHandler(info.Target, c), Default: true})
	}
	return found
}

func (c *client) title() string { return c.engine + " " + c.version }

func (d *Driver) noHandler(t target.Target, c *client) error {
	advice := "name one that it has, or configure one"
	if d.product != nil {
		advice += ", or use --managed for a private " + d.product.title + " that has a handler for every runtime of this host"
	}
	return refuse(t, fmt.Sprintf("%s at %s has no runtime handler %s, only %s", c.title(), c.socket, t.Runtime, c.names()), advice)
}

func versions(engineVersion, runtimeVersion string) string {
	if runtimeVersion == "" {
		return engineVersion
	}
	return engineVersion + ", " + runtimeVersion
}

// Open connects to the engine, or starts a private one, and runs one container on the handler.
func (d *Driver) Open(ctx context.Context, t target.Target, s engine.Session) (engine.Engine, error) {
	svc, release, err := d.shared.Acquire(ctx, func(ctx context.Context) (*service, error) { return d.connect(ctx, s) },
		func(svc *service) error { return svc.close(context.Background()) })
	if err != nil {
		return nil, d.refusal(ctx, t, err)
	}
	e, err := d.open(ctx, t, s, svc)
	if err != nil {
		return nil, errors.Join(err, release())
	}
	e.release = release
	if err := e.tryOut(ctx); err != nil {
		f := e.facts() // before the end of a private engine and of its log
		err = errors.Join(err, e.Close())
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, diagnosis.Refuse(err, f, "its first container did not work", e.advice())
	}
	return e.shown(), nil
}

// refusal turns the error of an engine into the error of a target.
func (d *Driver) refusal(ctx context.Context, t target.Target, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("open %s: %w", t, context.Cause(ctx))
	}
	var u *engine.UnsupportedError
	if errors.As(err, &u) {
		return refuse(t, u.Reason, u.Advice)
	}
	f := diagnosis.Facts{Info: engine.Info{Target: t}, Engine: d.name, Private: true}
	return d.explain(err, f, logAdvice(f))
}

// connect returns the user's own engine, or starts a private one.
func (d *Driver) connect(ctx context.Context, s engine.Session) (*service, error) {
	if s.Registry == nil {
		return nil, errors.New("the session has no registry to pull images from")
	}
	socket, must := d.address(s)
	var c *client
	var unusable error
	if socket != "" {
		c, unusable = connectToMeasure(ctx, d.name, socket)
		if unusable != nil && (must || ctx.Err() != nil) {
			return nil, unusable
		}
	}
	var svc *service
	var err error
	switch {
	case c != nil:
		svc = &service{client: c, name: d.name}
		if err := errors.Join(s.RecordDaemon(d.name, socket), s.Registry.ServeHost()); err != nil {
			return nil, errors.Join(err, c.close())
		}
	case d.product == nil:
		return nil, &engine.UnsupportedError{What: d.name, Reason: "its socket is not known", Advice: "name it with --cri " + d.name + "=SOCKET"}
	default:
		if svc, err = d.start(ctx, s); err != nil {
			return nil, err
		}
		if socket != "" {
			svc.unused = reasonOf(unusable)
			svc.notes = append(svc.notes, fmt.Sprintf("a private %s in place of the user's: %s", d.product.title, svc.unused))
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, runtimes.AnswerLimit, runtimes.ErrNoAnswer)
	defer cancel()
	err = svc.open(ctx, s.Registry)
	if err == nil {
		return svc, nil
	}
	f := diagnosis.Facts{
		Info: engine.Info{Target: target.Target{Engine: d.name}}, Engine: svc.engine, Private: svc.private != nil, Registry: s.Registry.Addr(),
	}
	advice := logAdvice(f)
	if !f.Private && strings.Contains(message(err), "connection refused") {
		advice = locality.PullAdvice(s, locality.Machine{})
	}
	explanation := d.explain(err, f, advice)
	return nil, errors.Join(explanation, svc.close(ctx))
}

// reasonOf is an error without the name of the engine and without advice.
func reasonOf(err error) string {
	var u *engine.UnsupportedError
	if errors.As(err, &u) {
		return u.Reason
	}
	return err.Error()
}

// explain is the refusal of an engine before its first container. The advice is for an unknown error.
func (d *Driver) explain(err error, f diagnosis.Facts, advice string) *engine.UnsupportedError {
	explanation := diagnosis.Explain(requestError{err}, f.Here(), "", advice)
	return &explanation
}

// logAdvice is the advice for an unknown error. The log of a private engine ends with the engine.
func logAdvice(f diagnosis.Facts) string {
	if f.Private {
		return diagnosis.Alone(f.Target.Runtime)
	}
	unit := map[string]string{"cri-o": "crio", "docker": "cri-docker"}[f.Engine]
	return "look at the log of the engine: " + diagnosis.ServiceLog(cmp.Or(unit, f.Engine)) + " | tail -n 50"
}

// start starts a private engine.
func (d *Driver) start(ctx context.Context, s engine.Session) (*service, error) {
	p, err := d.product.find(ctx, s, d.product)
	if err == nil {
		err = s.Admits(target.Target{Engine: d.name})
	}
	if err != nil {
		return nil, err
	}
	var entries []entry
	for _, t := range d.targets(ctx, s) {
		e, err := d.product.fit(s, p, t.Runtime, t.target)
		if err != nil {
			continue // Open reports it
		}
		e.handler = t.Name + "-" + strconv.Itoa(len(entries))
		entries = append(entries, e)
	}
	svc, err := d.product.start(ctx, s, p, entries)
	if err != nil {
		return nil, err
	}
	svc.name, svc.programs = d.name, p
	svc.entries = map[string]entry{}
	for _, e := range entries {
		svc.entries[e.target.String()] = e
	}
	return svc, nil
}

// wanted is a target with its runtime.
type wanted struct {
	runtimes.Runtime
	target target.Target
}

// targets lists the targets of all runtimes of the host, and the session's targets.
func (d *Driver) targets(ctx context.Context, s engine.Session) []wanted {
	var targets []wanted
	for _, f := range runtimes.Find(ctx, s, d.name) {
		if f.Err != nil {
			continue
		}
		for _, t := range f.Targets(d.name) {
			targets = append(targets, wanted{f.Runtime, t})
		}
	}
	for _, t := range s.Targets {
		if t.Engine != d.name || slices.ContainsFunc(targets, func(w wanted) bool { return w.target.String() == t.String() }) {
			continue
		}
		if r, err := runtimes.Get(ctx, s, t); err == nil {
			targets = append(targets, wanted{r, t})
		}
	}
	return targets
}

// open makes an engine for a target, without trying it.
func (d *Driver) open(ctx context.Context, t target.Target, s engine.Session, svc *service) (*Engine, error) {
	e := &Engine{session: s, service: svc}
	var err error
	if svc.private != nil {
		e.handler, err = d.privateHandler(ctx, t, s, svc)
	} else {
		e.handler, err = d.userHandler(ctx, t, s, svc)
		if err == nil {
			err = runtimes.Runtime{Guest: e.handler.guest}.CheckUser(ctx, s, t)
		}
	}
	if err != nil {
		return nil, err
	}
	e.info = engine.Info{
		Target: t, Binary: e.handler.binary, Version: versions(svc.title(), e.handler.version), Isolation: e.handler.Isolation,
		SmallGuest: e.handler.SmallGuest,
		Cgroup:     s.CgroupMode(), Notes: slices.Concat(svc.notes, e.handler.notes, e.handler.Notes),
	}
	if svc.unused != "" {
		e.info.Caveat = fmt.Sprintf("%s was measured with a private daemon of this run, and not with yours: %s", d.product.title, svc.unused)
	}
	e.info = e.info.WithCondition(engine.SeccompCondition, e.handler.Seccomp(s.Seccomp, t)).WithPods(s.Pods)
	exits := "an exit is the exit of the process on the host: the engine has no exit event in use, and the phase holds ContainerStatus as a step"
	switch {
	case svc.isContainerd():
		e.exits, exits = svc.exits, "an exit is containerd's exit event, without a request in the phase"
	case e.isGuestOfCRIO() && !e.ownsCgroups():
		return nil, refuse(t, "CRI-O cannot remove a container in a virtual machine that never started, and without cgroups nothing else can", "let this program make cgroups")
	case e.isGuestOfCRIO():
		e.exits, exits = svc.exits, "an exit is CRI-O's exit file of the container, without a request in the phase"
	case e.handler.Isolation == engine.VM:
		return nil, refuse(t, noExitOfGuest, "use --managed for a private engine, or measure it with containerd")
	}
	e.info.Notes = append(e.info.Notes, exits)
	if e.isGuestOfCRIO() {
		e.info.Notes = append(e.info.Notes, "CRI-O cannot remove a virtual machine whose container never started or whose shim was killed: its processes are killed, and CRI-O's record of the pod stays until the end of the run")
	}
	if svc.engine == "cri-o" {
		e.info.Notes = append(e.info.Notes, "CRI-O sends SIGTERM before SIGKILL, and checks every 100 ms whether a container that it stops has exited")
	}
	e.info.Notes = append(e.info.Notes, "/tmp is a directory of the host: CRI has no tmpfs")
	if svc.private != nil {
		e.info.Notes = append(e.info.Notes, svc.private.Notes()...)
	}
	if svc.storage != "" {
		e.info.Notes = append(e.info.Notes, "the root file system is of "+svc.storage)
	}
	e.adapt()
	if err := e.prepare(); err != nil {
		return nil, diagnosis.Recognise(err, e.facts())
	}
	return e, nil
}

// noExitOfGuest is the reason why a virtual machine cannot be measured with the user's CRI-O.
const noExitOfGuest = "CRI-O reports the hypervisor as the process of each container in a virtual machine, and cannot remove such a container that never started"

// userHandler finds a handler of the user's own engine.
func (d *Driver) userHandler(ctx context.Context, t target.Target, s engine.Session, svc *service) (handler, error) {
	if len(t.Options) > 0 {
		return handler{}, refuse(t, fmt.Sprintf("the options of its handlers are set in the configuration of %s at %s", svc.title(), svc.socket),
			"remove them, and name a handler with these options")
	}
	configured, has := svc.handler(t.Runtime)
	if !has {
		return handler{}, d.noHandler(t, svc.client)
	}
	return identify(ctx, s, t, configured), nil
}

// privateHandler finds a handler of a private engine.
func (d *Driver) privateHandler(ctx context.Context, t target.Target, s engine.Session, svc *service) (handler, error) {
	e, has := svc.entries[t.String()]
	if has {
		if err := e.runtime.Check(ctx, s, t); err != nil {
			return handler{}, err
		}
		return handler{
			configured: configured{name: e.handler, shim: e.shim, binary: e.runtime.Binary}, Kind: e.runtime.Kind, version: e.runtime.Version,
			kvm: e.runtime.UsesKVM(t), notes: e.notes(), guest: e.runtime.Guest,
		}, nil
	}
	r, err := runtimes.Get(ctx, s, t)
	if err == nil {
		var p programs
		if p, err = d.product.find(ctx, s, d.product); err == nil {
			_, err = d.product.fit(s, p, r, t)
		}
	}
	if err == nil {
		err = refuse(t, "the private "+d.product.title+" was started without a handler for it", "name it among the targets of the run")
	}
	return handler{}, err
}

// identify finds the runtime behind a handler of the user's own engine.
func identify(ctx context.Context, s engine.Session, t target.Target, c configured) handler {
	h := handler{configured: c, Kind: runtimes.KindOf("")}
	var rt target.Runtime
	switch {
	case c.shim != "" && c.shim != shimRunc:
		rt.Type = c.shim
	case c.binary != "":
		rt.Path = c.binary
		if path, ok := runtimes.SystemCopy(c.binary); ok && !strings.Contains(c.binary, "/") {
			rt.Path = path // a shim finds a name without a directory on its PATH
		}
	case c.shim == shimRunc:
		t.Runtime = "runc" // the shim finds it on its PATH
		rt.Options = []target.Option{{Name: runtimes.CopyOption, Value: "system"}}
	}
	if c.shim != "" || c.binary != "" {
		if kata.IsType(rt.Type) && c.config != "" {
			rt.Options = []target.Option{{Name: "config", Value: c.config}}
		}
		s.Runtimes = map[string]target.Runtime{t.Runtime: rt}
		r, err := runtimes.Get(ctx, s, t)
		h.Kind, h.guest = r.Kind, r.Guest // unknown if the runtime is not found
		h.version = r.Version             // a shim has one although its configuration is not found
		if err == nil {
			h.binary = r.Binary
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

// adapt applies the limits of CRI and of the runtime.
func (e *Engine) adapt() {
	e.Missing = engine.Missing{
		engine.CanPause: "CRI has no call that pauses a container",
		engine.CanTmpfs: "CRI has no tmpfs mount: a kubelet binds a directory of a tmpfs of the host instead; measure bind-tmpfs, which does the same",
	}
	maps.Copy(e.Missing, e.handler.Missing)
	if network, _ := e.info.Target.Option("network"); e.handler.isGVisor() && network != "host" {
		e.Missing[engine.NetworkHost] = "gVisor has its own network stack, which has no addresses in the host's network namespace; use the option network=host"
	}
	switch network, _ := e.info.Target.Option("network"); {
	case e.handler.isGVisor() && network == "none":
		e.Missing[engine.NetworkBridge] = "the target's option network=none rules it out"
	case e.handler.isGVisor() && e.handler.shim == shimRunc && network != "host":
		e.Missing[engine.NetworkBridge] = "the pod's pause container is a sandbox too, and takes the address away from the pod's network interface; leave out the option shim=runc, or set network=host"
	}
	if e.handler.kvm {
		e.info.Notes = append(e.info.Notes, runtimes.NoteKVM)
	}
	if e.service.engine == "cri-o" && e.handler.isGVisor() && e.info.Cgroup != string(cgroup.V2) {
		e.Missing[engine.CanUpdate] = "CRI-O limits memory and swap together, and runsc raises the two in an order that cgroup v1 refuses"
	}
	if e.handler.hasGVisorShim() {
		e.Missing[engine.CanStats] = "gVisor's shim sometimes reports a CPU time of 0 for a container that has used some"
	}
}

// isGVisor reports whether the handler runs gVisor.
func (h handler) isGVisor() bool {
	return h.Name == "runsc" || h.hasGVisorShim()
}

// hasGVisorShim reports whether the handler uses gVisor's own shim.
func (h handler) hasGVisorShim() bool { return strings.HasPrefix(h.shim, "io.containerd.runsc.") }

// prepare makes the engine's directories and its watcher. Logs are on disk, as a kubelet has them: the engine does not limit them, and they
// must not fill the memory.
func (e *Engine) prepare() (err error) {
	if e.dir, err = e.session.MakeStateDir("cri"); err != nil {
		return err
	}
	e.logDir = filepath.Join(e.session.Data, "cri", filepath.Base(e.dir))
	if err = os.MkdirAll(e.logDir, 0o700); err == nil {
		e.logs, err = crilog.New()
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(e.logDir), os.Remove(e.dir))
	}
	return nil
}
