package oci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/network"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
)

// Engine drives one OCI runtime by its command line.
type Engine struct {
	session engine.Session
	info    engine.Info
	kind    runtimes.Kind
	engine.Missing
	dir    string   // bundles and the runtime's own state
	root   string   // the runtime's state
	layers string   // writable root file systems, on disk
	flags  []string // global flags of every call
	env    []string // of every call
	// The first container shows these properties of the runtime:
	tidy   bool // it leaves no processes behind except the container's
	sweeps bool // its delete removes the container's cgroup from all hierarchies

	mu     sync.Mutex
	group  string          // parent of the containers' cgroups
	bridge *network.Bridge // nil until it is needed

	linking sync.Mutex
	linked  bool  // a container has been tried on the bridge
	noLink  error // the reason why that container failed
}

var (
	_ engine.Engine       = (*Engine)(nil)
	_ engine.CgroupPlacer = (*Engine)(nil)
	_ engine.Accountant   = (*Engine)(nil)
	_ engine.Networker    = (*Engine)(nil)
	_ engine.Execer       = (*container)(nil)
	_ engine.Pauser       = (*container)(nil)
	_ engine.Updater      = (*container)(nil)
	_ engine.Addressed    = (*container)(nil)
)

// Info implements engine.Engine.
func (e *Engine) Info() engine.Info { return e.info }

// SetCgroupParent implements engine.CgroupPlacer.
func (e *Engine) SetCgroupParent(group string) error {
	e.session.Launcher.IgnoreStrays(e.tidy && group != "")
	if err := e.session.SetCgroupParent(group); err != nil {
		return err
	}
	e.mu.Lock()
	e.group = group
	e.mu.Unlock()
	return nil
}

// Usage implements engine.Accountant.
func (e *Engine) Usage() engine.Usage { return engine.Usage{CPU: e.session.Launcher.CPU()} }

// Create implements engine.Engine.
func (e *Engine) Create(ctx context.Context, spec engine.Spec) (engine.Container, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("create container %q: %w", spec.ID, context.Cause(ctx))
	}
	e.mu.Lock()
	parent := e.group
	e.mu.Unlock()
	group, err := e.session.ContainerCgroup(parent, spec.ID)
	if err != nil {
		return nil, fmt.Errorf("create container %q: %w", spec.ID, err)
	}
	if err := e.check(spec); err != nil {
		return nil, fmt.Errorf("create container %q: %w", spec.ID, err)
	}
	if group != nil && spec.Resources.CPUSet != "" {
		// gVisor does not pass the CPUs down on v1.
		if err := group.PassCPUs(); err != nil {
			return nil, fmt.Errorf("create container %q: %w", spec.ID, err)
		}
	}
	bundle := filepath.Join(e.dir, "bundles", spec.ID)
	c := &container{
		e: e, id: spec.ID, group: group, network: e.networkFlags(spec.Network), bundle: bundle, log: filepath.Join(bundle, logName),
	}
	if err := os.Mkdir(c.bundle, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("create container %q: a container of this name exists", c.id)
		}
		return nil, fmt.Errorf("make the bundle of container %q: %w", c.id, err)
	}
	if err := c.create(ctx, spec); err != nil {
		return nil, errors.Join(err, c.undo(ctx))
	}
	return c, nil
}

// check refuses specs that the runtime would silently ignore.
func (e *Engine) check(spec engine.Spec) error {
	if (e.info.Rootless || e.session.Cgroups == nil) && spec.Resources != (engine.Resources{}) {
		return &engine.UnsupportedError{
			What: "limits", Reason: "they need cgroups, and a bare runtime gets none without root", Advice: "run as root",
		}
	}
	if spec.Join != "" {
		return &engine.UnsupportedError{What: "joining a network namespace", Reason: "only native processes at the host's end can do it"}
	}
	switch spec.Network {
	case engine.NoNetwork:
	case engine.HostNet:
		if err := e.Supports(engine.NetworkHost); err != nil {
			return err
		}
	case engine.Bridged:
		if err := e.Supports(engine.NetworkBridge); err != nil {
			return err
		}
	}
	if spec.Writable {
		return e.Supports(engine.CanWrite)
	}
	return nil
}

// networkFlags are the runtime's global flags for a network. An option network of the target is the user's choice and needs
// none. By default a sandbox takes over the interface.
func (e *Engine) networkFlags(n engine.Network) []string {
	if _, chosen := e.info.Target.Option("network"); chosen {
		return nil
	}
	switch n {
	case engine.Bridged:
		return nil
	case engine.HostNet:
		return e.kind.HostNetwork
	default:
		return e.kind.NoNetwork
	}
}

// Link implements engine.Networker. It tries one container with the network, as Open does without it: an older gVisor
// cannot take over an interface on a newer kernel.
func (e *Engine) Link(ctx context.Context) (engine.Link, error) {
	b, err := e.network()
	if err != nil {
		return engine.Link{}, err
	}
	e.linking.Lock()
	defer e.linking.Unlock()
	if !e.linked {
		_, err := e.runOne(ctx, engine.Bridged)
		if ctx.Err() != nil {
			return engine.Link{}, err
		}
		e.linked = true
		if err != nil {
			e.noLink = &engine.UnsupportedError{
				What: string(engine.NetworkBridge), Reason: fmt.Sprintf("its first container with a network did not work: %v", err),
			}
		}
	}
	return b.Link(), e.noLink
}

// network returns the bridge. The first call makes it.
func (e *Engine) network() (*network.Bridge, error) {
	if err := e.Supports(engine.NetworkBridge); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.bridge == nil {
		b, err := network.NewBridge()
		if err != nil {
			return nil, err
		}
		e.bridge = b
	}
	return e.bridge, nil
}

// Close removes the runtime's state directory, with mounts that the runtime has left there.
func (e *Engine) Close() error {
	err := unmountBelow(e.dir)
	if err == nil {
		err = errors.Join(os.RemoveAll(e.dir), os.RemoveAll(e.layers))
	}
	e.mu.Lock()
	if e.bridge != nil {
		err = errors.Join(err, e.bridge.Close())
	}
	e.mu.Unlock()
	if err != nil {
		return fmt.Errorf("remove the state of %s: %w", e.info.Target, err)
	}
	return nil
}
