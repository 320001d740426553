// Package oci is the engine without a daemon: it writes a bundle and calls the
// binary of an OCI runtime itself.
//
// Any binary that follows the command line of runc will do; what is known of the
// families of runtimes beyond that is in flavours. Options of a target are global flags
// of the runtime: oci/runsc@platform=ptrace calls runsc --platform=ptrace. go-runc
// makes the calls, and a [process.Launcher] starts them, so that the container's
// process, which every create leaves behind, is ours to wait for.
//
// On a hybrid cgroup host the unified hierarchy is hidden from the runtimes: crun
// refuses to work while it has controllers, and all runtimes are to see the same.
package oci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	runc "github.com/containerd/go-runc"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// trialLimit is how long a runtime may take for its first container before it
// counts as hanging: gVisor's kvm platform does on hosts whose KVM is not a real one.
const trialLimit = 20 * time.Second

var errNoAnswer = fmt.Errorf("no answer within %v", trialLimit)

// ownFlags are the global flags that Touchstone sets itself.
var ownFlags = []string{"root", "log", "log-format", "rootless", "debug", "debug-log"}

// Driver finds and opens OCI runtimes.
type Driver struct{}

var _ engine.Driver = Driver{}

// Name is "oci".
func (Driver) Name() string { return "oci" }

// Candidates lists the known runtimes and those named in the session, each also with the
// options that make another target of it.
func (d Driver) Candidates(ctx context.Context, s engine.Session) []engine.Candidate {
	var names []string
	for _, f := range flavours {
		names = append(names, f.name)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Runtimes)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var found []engine.Candidate
	for _, name := range names {
		c := engine.Candidate{Info: engine.Info{Target: target.Target{Engine: d.Name(), Runtime: name}}, Default: true}
		if c.Binary, c.Err = lookup(s, name); c.Err != nil {
			found = append(found, c)
			continue
		}
		var kind flavour
		kind, c.Version, c.Err = d.identify(ctx, s, c.Target, c.Binary)
		c.Isolation = kind.isolation
		found = append(found, c)
		for _, variant := range kind.variants {
			v := c
			v.Target, v.Default = c.Target.With(kind.option, variant), false
			found = append(found, v)
		}
	}
	return found
}

// identify asks a binary what it is, and not for long.
func (Driver) identify(ctx context.Context, s engine.Session, t target.Target, binary string) (flavour, string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, trialLimit, errNoAnswer)
	defer cancel()
	kind, version, err := identify(ctx, s.Launcher, s.State, binary)
	if err != nil {
		return other, "", &engine.UnsupportedError{
			What: t.String(), Reason: err.Error(), Advice: "give a working OCI runtime with --runtime " + t.Runtime + "=PATH",
		}
	}
	return kind, version, nil
}

// Open finds the runtime, asks what it is and lets it run one container.
func (d Driver) Open(ctx context.Context, t target.Target, s engine.Session) (engine.Engine, error) {
	binary, err := lookup(s, t.Runtime)
	if err != nil {
		return nil, err
	}
	flags, err := flagsOf(t)
	if err != nil {
		return nil, err
	}
	kind, version, err := d.identify(ctx, s, t, binary)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		session: s, flavour: kind, flags: flags, cannot: map[engine.Capability]string{},
		info: engine.Info{
			Target: t, Binary: binary, Version: version, Isolation: kind.isolation, Cgroup: string(cgroup.None),
			Rootless: os.Geteuid() != 0, Notes: slices.Clone(kind.notes),
		},
	}
	refuse := func(reason, advice string) error {
		return &engine.OpenError{Info: e.info, Err: &engine.UnsupportedError{What: t.String(), Reason: reason, Advice: advice}}
	}
	if e.info.Rootless && kind.rootless == nil {
		return nil, refuse(kind.noRootless, "run as root")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, trialLimit, errNoAnswer)
	defer cancel()
	runc.Monitor = monitor{s.Launcher}
	e.adapt(ctx)
	if err := e.prepare(); err != nil {
		return nil, err
	}
	if err := e.tryOut(ctx); err != nil {
		err = errors.Join(err, e.Close())
		return nil, refuse(fmt.Sprintf("its first container did not work: %v", err), advise(err))
	}
	return e, nil
}

// adapt takes into account what this host and this user leave the runtime.
func (e *Engine) adapt(ctx context.Context) {
	info := &e.info
	if e.flavour.cannot != nil {
		maps.Copy(e.cannot, e.flavour.cannot(ctx, e.session.Launcher, info.Binary, info.Version))
	}
	if info.Rootless {
		maps.Copy(e.cannot, e.flavour.rootlessCannot)
	}
	if network, chosen := info.Target.Option("network"); chosen && e.flavour.hostNetwork != nil && network != "host" {
		e.cannot[engine.NetworkHost] = fmt.Sprintf("the target's option network=%s rules it out", network)
	}
	for _, h := range e.session.Hidden {
		info.Notes = append(info.Notes, h+" is hidden from the runtime, which then sees cgroup v1 only")
	}
	if e.session.Cgroups != nil {
		info.Cgroup = string(e.session.Cgroups.Mode)
	} else {
		info.Notes = append(info.Notes, "no cgroups: limits are not set, and cost is known from ended processes only")
		e.cannot[engine.CanPause] = "freezing needs cgroups, which this user may not make"
		e.cannot[engine.CanUpdate] = "limits need cgroups, which this user may not make"
	}
	if info.Rootless {
		e.flags = slices.Concat(e.flavour.rootless, e.flags)
		info.Notes = append(info.Notes, "rootless: in a user namespace that maps this user to root")
	}
}

// flagsOf turns a target's options into global flags.
func flagsOf(t target.Target) ([]string, error) {
	var flags []string
	for _, o := range t.Options {
		if slices.Contains(ownFlags, o.Name) {
			return nil, &engine.UnsupportedError{What: t.String(), Reason: fmt.Sprintf("the option %s is set by Touchstone itself", o.Name), Advice: "leave it out"}
		}
		flags = append(flags, "--"+o.Name+"="+o.Value)
	}
	return flags, nil
}

// lookup finds a runtime's binary.
func lookup(s engine.Session, name string) (string, error) {
	refuse := func(reason, advice string) (string, error) {
		return "", &engine.UnsupportedError{What: "oci/" + name, Reason: reason, Advice: advice}
	}
	path, named := s.Runtimes[name]
	if !named {
		path, err := exec.LookPath(name)
		if err != nil {
			return refuse(name+" is not on PATH", fmt.Sprintf("install it, or name it with --runtime %s=PATH", name))
		}
		return filepath.Abs(path)
	}
	stat, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuse("there is no file "+path, "mend the path given for "+name)
	case err != nil:
		return refuse(err.Error(), "mend the path given for "+name)
	case stat.IsDir() || stat.Mode()&0o111 == 0:
		return refuse(path+" is not executable", "make it executable, or mend the path given for "+name)
	}
	return filepath.Abs(path)
}

// prepare makes the engine's directory. Its name is short, because runtimes put
// sockets below it, whose paths may have 107 bytes.
func (e *Engine) prepare() error {
	parent := filepath.Join(e.session.State, "oci")
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
	for _, sub := range []string{"root", "bundles"} {
		if err := os.Mkdir(filepath.Join(e.dir, sub), 0o700); err != nil {
			return fmt.Errorf("make the state directory of %s: %w", e.info.Target, err)
		}
	}
	return nil
}

// tryOut runs one container through its life, in a cgroup by which all of it can be
// ended if it hangs. The caller's context bounds it.
func (e *Engine) tryOut(ctx context.Context) (err error) {
	if e.session.Cgroups != nil {
		name := fmt.Sprintf("/%s%s/try%s", engine.Prefix, e.session.RunID, filepath.Base(e.dir))
		group, err := e.session.Cgroups.Open(name)
		if err != nil {
			return err
		}
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
			defer cancel()
			err = errors.Join(err, e.Place(""), group.Destroy(ctx))
		}()
		if err := e.Place(name); err != nil {
			return err
		}
	}
	id := fmt.Sprintf("%s%s-try-%s", engine.Prefix, e.session.RunID, filepath.Base(e.dir))
	c, err := e.Create(ctx, engine.Spec{
		ID: id, Rootfs: e.session.Rootfs, Process: engine.Process{Args: []string{"/probe", "exit", "42"}},
	})
	if err != nil {
		return err
	}
	run := func() error {
		if err := c.Start(ctx); err != nil {
			return err
		}
		exit, err := c.Wait(ctx)
		if err != nil {
			return err
		}
		if exit.Code != 42 {
			return fmt.Errorf("the probe ended with %v instead of exit code 42", exit)
		}
		return nil
	}
	return errors.Join(run(), c.(*container).undo(ctx))
}

// advise says what may help against an error that is known.
func advise(err error) string {
	text := err.Error()
	switch {
	case strings.Contains(text, "no answer within"):
		return "choose another platform if this is runsc (systrap works nearly everywhere), or look whether the runtime works by hand"
	case strings.Contains(text, "hybrid mode"):
		return "run as root, so that the unified hierarchy can be hidden from the runtime"
	case errors.Is(err, syscall.EPERM) || strings.Contains(text, "ermission denied") || strings.Contains(text, "not permitted"):
		return "run as root, or allow user namespaces and delegate a cgroup to this user"
	case strings.Contains(text, "KVM") || strings.Contains(text, "kvm"):
		return "the kvm platform needs a working /dev/kvm"
	}
	return "try the runtime by hand"
}

// Surroundings are the launcher options under which OCI runtimes work on a host
// with these cgroups: on hybrid hosts the unified hierarchy is hidden.
func Surroundings(groups *cgroup.Hierarchy) process.Options {
	if groups == nil || groups.Mode != cgroup.Hybrid || os.Geteuid() != 0 {
		return process.Options{}
	}
	var hide []string
	for _, m := range groups.Mounts {
		if m.V2 {
			hide = append(hide, m.Dir)
		}
	}
	return process.Options{Hide: hide}
}
