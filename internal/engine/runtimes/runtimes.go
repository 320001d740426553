// Package runtimes finds low-level runtimes on the host, and describes their kinds beyond the OCI specification. All engines
// use it, so that oci/crun and containerd/crun have the same binary.
package runtimes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes/kata"
	"github.com/touchstone-bench/touchstone/internal/parts"
	"github.com/touchstone-bench/touchstone/internal/refusal"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// AnswerLimit is the deadline for a runtime's version and for a test container. A runtime that exceeds it hangs, as gVisor's kvm
// platform does on hosts with an emulated KVM. On a busy machine with two CPUs the first container of Podman took more than 20 s.
// TryLimit adds the time that a guest may take to boot.
const AnswerLimit = time.Minute

// ErrNoAnswer is the cause when AnswerLimit, or the TryLimit of a runtime, has passed.
var ErrNoAnswer = fmt.Errorf("no answer within %.0fs", AnswerLimit.Seconds())

// limitError is ErrNoAnswer with another limit.
type limitError time.Duration

func (e limitError) Error() string { return fmt.Sprintf("no answer within %v", time.Duration(e)) }

func (limitError) Is(target error) bool { return target == ErrNoAnswer }

// Runtime is a runtime of this host.
type Runtime struct {
	Kind
	// Name is the runtime's name in targets, which may differ from the name of its kind.
	Name string
	// Binary is the path of an OCI runtime; empty for a containerd shim.
	Binary string
	// Type is the runtime type of a containerd shim, such as io.containerd.kata.v2;
	// empty for an OCI runtime.
	Type string
	// Shim is the path of a containerd shim; empty if it is not known.
	Shim string
	// Guest is the configuration of a virtual machine for the target; nil for other runtimes.
	Guest   *kata.Config
	Version string // as the binary prints it, on one line
	// Options are the defaults of the options in the runtime's targets.
	Options []target.Option
}

// Found is a runtime. Err is an *engine.UnsupportedError with the reason if it cannot be used.
type Found struct {
	Runtime
	Err error
}

// Find lists the known runtimes and the runtimes that the session names, for an engine. Found.Check has the requirements of single
// targets.
func Find(ctx context.Context, s engine.Session, engineName string) []Found {
	var names []string
	for _, k := range kinds {
		if !k.onlyNamed {
			names = append(names, k.Name)
		}
	}
	names = append(names, kata.Name) // a shim, so not one of the kinds that are found by their command line
	for _, name := range slices.Sorted(maps.Keys(s.Runtimes)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var found []Found
	for _, name := range names {
		r, err := get(ctx, s, target.Target{Engine: engineName, Runtime: name})
		found = append(found, Found{r, err})
	}
	return found
}

// Candidates lists an engine's targets with the runtimes of the host. refuse returns the reason why the target cannot work.
func Candidates(ctx context.Context, s engine.Session, engineName string, refuse func(Found, target.Target) error) []engine.Candidate {
	var candidates []engine.Candidate
	for _, f := range Find(ctx, s, engineName) {
		for n, t := range f.Targets(engineName) {
			c := engine.Candidate{Info: f.Info(t), Err: refuse(f, t), Default: n == 0}
			if c.Err == nil {
				c.Err = f.Check(ctx, s, t)
			}
			candidates = append(candidates, c)
		}
	}
	return candidates
}

// Info returns the facts about a target that the runtime determines.
func (r Runtime) Info(t target.Target) engine.Info {
	return engine.Info{Target: t, Binary: r.Binary, Version: r.Version, Isolation: r.Isolation, SmallGuest: r.SmallGuest}
}

// Get finds the runtime of a target, queries its version, and checks the target's requirements. If the runtime cannot be used the
// error is an *engine.UnsupportedError, and the Runtime holds the known facts.
func Get(ctx context.Context, s engine.Session, t target.Target) (Runtime, error) {
	r, err := get(ctx, s, t)
	if err == nil {
		err = r.Check(ctx, s, t)
	}
	return r, err
}

func get(ctx context.Context, s engine.Session, t target.Target) (Runtime, error) {
	name := t.Runtime
	settings := s.Runtimes[name]
	r := Runtime{Name: name, Kind: other, Type: settings.Type, Options: settings.Options}
	if name == kata.Name && settings.Path == "" && settings.Type == "" {
		r.Type = kata.Type
	}
	if kata.IsType(r.Type) {
		return getKata(ctx, s, t, r, settings.Type == "")
	}
	if r.Type != "" {
		r.Kind, r.Version = shimKind(r.Type), r.Type
		return r, nil
	}
	var err error
	if r.Binary, err = lookup(r.With(t), settings.Path); err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, AnswerLimit, ErrNoAnswer)
	defer cancel()
	if r.Kind, r.Version, err = identify(ctx, s.Launcher, s.State, r.Binary); err != nil {
		err = &engine.UnsupportedError{
			What: t.String(), Reason: err.Error(),
			Advice: cmp.Or(refusal.Suspect(err.Error(), s.Launcher.Refusals()), "give a working OCI runtime with --runtime "+name+"=PATH"),
		}
	}
	return r, err
}

// Targets lists an engine's targets with the runtime: the plain runtime and its variants. Only the first is a default.
func (r Runtime) Targets(engineName string) []target.Target {
	base := target.Target{Engine: engineName, Runtime: r.Name}
	targets := []target.Target{base}
	for _, variant := range r.Variants {
		targets = append(targets, base.With(r.Option, variant))
	}
	return targets
}

// With adds the runtime's options to the target's.
func (r Runtime) With(t target.Target) target.Target {
	for _, o := range r.Options {
		if _, set := t.Option(o.Name); !set {
			t = t.With(o.Name, o.Value)
		}
	}
	return t
}

// NetworkFlags returns the global flags for a container's network. An option network of the target is the user's choice and
// needs none. A sandbox takes over the interface of a bridged container by default.
func (r Runtime) NetworkFlags(t target.Target, n engine.Network) []string {
	_, isSet := r.With(t).Option("network")
	switch {
	case n == engine.NoNetwork && !isSet:
		return r.NoNetwork
	case n == engine.HostNet && !isSet:
		return r.HostNetwork
	}
	return nil
}

// RuledOut returns the networks that an option network of the target rules out in an engine with network namespaces of its
// own, with the reasons.
func (r Runtime) RuledOut(t target.Target) map[engine.Capability]string {
	reasons := map[engine.Capability]string{}
	network, isSet := r.With(t).Option("network")
	if !isSet || r.HostNetwork == nil {
		return reasons
	}
	reason := "the target's option network=" + network + " rules it out"
	if network != string(engine.HostNet) {
		reasons[engine.NetworkHost] = reason
	}
	if slices.Contains(r.NoNetwork, "--network="+network) {
		reasons[engine.NetworkBridge] = reason
	}
	return reasons
}

// Path returns the absolute path of a target's runtime: override, or found on PATH if that is empty. The error is an
// *engine.UnsupportedError.
func Path(t target.Target, override string) (string, error) { return lookup(t, override) }

// CopyOption is an option of Touchstone: copy=system is the system's copy of a runtime, also if touchstone setup has installed another one.
const CopyOption = "copy"

// bundlers are the programs of engines that may bring runtimes beside their other helpers, outside of PATH: Podman and Docker of NixOS, and the packages
// of CRI-O.
var bundlers = []string{"podman", "crio", "dockerd"}

// find finds a runtime's binary by its name: by engine.LookPath, or else among the helpers of an engine.
func find(name string) (string, error) {
	path, err := engine.LookPath(name)
	if !errors.Is(err, exec.ErrNotFound) {
		return path, err
	}
	for _, bundler := range bundlers {
		program, lookErr := engine.LookPath(bundler)
		if lookErr != nil {
			continue
		}
		if path, ok := engine.FindIn(name, engine.Helpers(program)); ok {
			return path, nil
		}
	}
	return "", err
}

// SystemCopy returns the path of the system's copy of a program. Daemons of the user call it, because only this program looks into the store of
// touchstone setup.
func SystemCopy(name string) (path string, ok bool) {
	return engine.FindIn(name, engine.ProgramDirs(parts.SystemPath()))
}

// lookup finds a runtime's binary: at the path, or by its name if that is empty.
func lookup(t target.Target, path string) (string, error) {
	name := t.Runtime
	refuse := func(reason, advice string) (string, error) {
		return "", &engine.UnsupportedError{What: t.String(), Reason: reason, Advice: advice}
	}
	if value, isSet := t.Option(CopyOption); isSet {
		system, ok := SystemCopy(name)
		switch {
		case value != "system":
			return refuse("unknown value "+CopyOption+"="+value, "remove the option, or set "+CopyOption+"=system")
		case path != "":
			return refuse("the path "+path+" is given for "+name+", and the option "+CopyOption+" names another copy", "remove the option, or do not give the path")
		case !ok:
			return refuse("the system has no copy of "+name+" on PATH", "install its package, or remove the option "+CopyOption)
		}
		return system, nil
	}
	if path == "" {
		path, err := find(name)
		if err != nil {
			return refuse(name+" is not on PATH", fmt.Sprintf("%s, or name it with --runtime %s=PATH", howToInstall(name), name))
		}
		return path, nil
	}
	stat, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuse("the file "+path+" does not exist", "correct the path given for "+name)
	case err != nil:
		return refuse(err.Error(), "correct the path given for "+name)
	case stat.IsDir() || stat.Mode()&0o111 == 0:
		return refuse(path+" is not executable", "make it executable, or correct the path given for "+name)
	}
	return filepath.Abs(path)
}

// howToInstall is the advice for a missing runtime. touchstone setup has those that Touchstone searches for.
func howToInstall(name string) string {
	if slices.ContainsFunc(kinds, func(k Kind) bool { return k.Name == name && !k.onlyNamed }) {
		return "run touchstone setup " + name
	}
	return "install it"
}

// ownFlags are the global flags that engines set themselves.
var ownFlags = []string{"root", "log", "log-format", "rootless", "debug", "debug-log"}

// Flags turns a target's options into global flags of its runtime. The option copy is Touchstone's own.
func Flags(t target.Target) ([]string, error) {
	var flags []string
	for _, o := range t.Options {
		if o.Name == CopyOption {
			continue
		}
		if slices.Contains(ownFlags, o.Name) {
			return nil, &engine.UnsupportedError{What: t.String(), Reason: fmt.Sprintf("the option %s is set by Touchstone itself", o.Name), Advice: "leave it out"}
		}
		flags = append(flags, "--"+o.Name+"="+o.Value)
	}
	return flags, nil
}

// shimKind returns the kind of a containerd shim by its runtime type.
func shimKind(runtimeType string) Kind {
	k := other
	k.Name = runtimeType
	switch {
	case kata.IsType(runtimeType):
		return KindOf(kata.Name)
	case strings.HasPrefix(runtimeType, "io.containerd.runsc."):
		k.Isolation = engine.UserKernel
	case strings.HasPrefix(runtimeType, "io.containerd.runc."):
		k.Isolation = engine.SharedKernel
	}
	return k
}
