// Package podman is the engine that drives Podman by its command line, which is Podman's usual interface. Podman has no
// daemon: each command is a process that opens the storage, does its work and exits. Only conmon stays, one for each
// container.
//
// Podman runs on directories of the run, with a configuration for them, and in a mount namespace of its own with an
// empty /run and /var/lib. The images, containers and locks of the user are not touched, and no state of a runtime is
// left behind. --runtime is the path of the runtime's binary, and --runtime-flag passes the options of a target.
// Containers keep Podman's defaults (its seccomp filter, conmon, a log file). Commands for a bridged container also run
// in a network namespace of the target, so the bridge is not on the host. Other commands run in the host's network.
//
// The command that starts a container leaves conmon behind as an orphan, which Touchstone reaps. The exit code of a
// container comes from the exit file that conmon writes, and its output from the log file. The engine waits for both by
// inotify, because "podman wait" and "podman logs --follow" poll.
package podman

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/diagnosis"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes/kata"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// name is the engine's name in targets and in messages.
const name = "podman"

// Driver finds Podman and opens its targets.
type Driver struct{}

var _ engine.Driver = Driver{}

// Describe declares Podman, which has no daemon. A socket of Podman's service in a plan only selects its targets.
func (Driver) Describe() engine.Description {
	return engine.Description{
		Name: name, Kind: engine.FullEngine, Socket: true, Launches: true, Binaries: []string{name, conmon},
		Commands: map[string][]string{"create": {}, "start": {"create", "start"}}, // podman create makes only a record
		Programs: monitor.Programs{
			monitor.Engine: {"podman"}, monitor.Monitor: {"conmon", "conmonrs"}, monitor.Pause: {"catatonit"},
			monitor.Network: {"aardvark-dns", "netavark", "pasta", "pasta.avx2", "slirp4netns"},
		},
	}
}

// Candidates lists the runtimes of the host.
func (Driver) Candidates(ctx context.Context, s engine.Session) []engine.Candidate {
	_, err := programs(s)
	return runtimes.Candidates(ctx, s, name, func(f runtimes.Found, _ target.Target) error {
		return cmp.Or(err, callable(f.Runtime), f.Err)
	})
}

// callable refuses a runtime that has no binary to call.
func callable(r runtimes.Runtime) error {
	if r.Binary != "" || r.Type == "" {
		return nil
	}
	reason := "Podman calls the binaries of OCI runtimes, and " + r.Type + " is a containerd shim"
	if kata.IsType(r.Type) {
		reason += ": Kata Containers has no OCI binary since version 2"
	}
	return &engine.UnsupportedError{
		What: name + "/" + r.Name, Reason: reason,
		Advice: "measure it as containerd/" + r.Name,
	}
}

// paths are the paths of Podman's programs.
type paths struct{ podman, conmon string }

// programs finds Podman. The error is an *engine.UnsupportedError.
func programs(s engine.Session) (p paths, err error) {
	if os.Geteuid() != 0 {
		return p, &engine.UnsupportedError{What: name, Reason: "rootless Podman is not measured", Advice: "run as root"}
	}
	return locate(s)
}

// locate finds Podman and conmon.
func locate(s engine.Session) (p paths, err error) {
	missing := func(program string, err error) error {
		return &engine.UnsupportedError{
			What: name, Reason: program + " is missing: " + err.Error(),
			Advice: fmt.Sprintf("install podman, or give --engine-bin %s=PATH", program),
		}
	}
	if p.podman, err = s.Program(name); err != nil {
		return p, missing(name, err)
	}
	if p.conmon, err = s.Program(conmon, slices.Concat(conmonDirs, engine.Helpers(p.podman))...); err != nil && s.Engines[conmon] != "" {
		return p, missing(conmon, err)
	}
	return p, nil // Podman may be built with another directory of conmon
}

// conmon is the program that stays with a container.
const conmon = "conmon"

// conmonDirs are the directories that Podman searches for conmon before PATH.
var conmonDirs = []string{
	"/usr/libexec/podman", "/usr/local/libexec/podman", "/usr/local/lib/podman", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin",
	"/run/current-system/sw/bin",
}

// Open prepares storage for the target, pulls the probe's image, and runs a test container, and another one on a bridge.
func (Driver) Open(ctx context.Context, t target.Target, s engine.Session) (engine.Engine, error) {
	if s.Registry == nil {
		return nil, errors.New("use Podman: the session has no registry to pull images from")
	}
	p, err := programs(s)
	if err != nil {
		return nil, err
	}
	r, err := runtimes.Get(ctx, s, t)
	if err = cmp.Or(callable(r), err, s.Admits(t)); err != nil {
		return nil, err
	}
	flags, err := runtimes.Flags(r.With(t))
	if err != nil {
		return nil, err
	}
	e := &Engine{
		Local: engine.Local{Session: s}, paths: p, runtime: r, flags: flags, Missing: engine.Missing{
			engine.CanStats: "podman stats watches for some seconds before it prints a value",
		}, containers: map[string]*container{}, info: r.Info(t),
	}
	e.info.Cgroup, e.info.Notes = s.CgroupMode(), slices.Clone(r.Notes)
	e.info = e.info.WithCondition(engine.SeccompCondition, r.Seccomp(s.Seccomp, t))
	if err := e.open(ctx); err != nil {
		if err = errors.Join(err, e.close(ctx)); ctx.Err() != nil {
			return nil, err
		}
		openErr := diagnosis.Refuse(err, e.facts(), "", diagnosis.ByPodman(p.podman, e.info.Binary, flags))
		openErr.Transient = openErr.Transient && errors.Is(err, errFirst)
		return nil, openErr
	}
	return e, nil
}

// facts are the facts for the diagnosis of an error of this target.
func (e *Engine) facts() diagnosis.Facts {
	return diagnosis.Facts{Info: e.info, Engine: name, Private: true, Registry: e.Session.Registry.Addr()}.Here()
}

var errFirst = errors.New("its test container failed")

func (e *Engine) open(ctx context.Context) error {
	if err := e.prepare(ctx); err != nil {
		return err
	}
	if err := e.queryVersion(ctx); err != nil {
		return err
	}
	e.adapt(ctx)
	if err := e.Pull(ctx, e.Session.Registry.Probe()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, runtimes.AnswerLimit, runtimes.ErrNoAnswer)
	defer cancel()
	// All processes of the test containers are in a cgroup, so that they can be killed.
	err := e.Session.InCgroup(ctx, e, "try-podman-"+filepath.Base(e.state), func() error {
		if _, err := e.Session.Try(ctx, e, "", engine.NoNetwork); err != nil {
			return err
		}
		if e.runtime.UsesKVM(e.info.Target) {
			if err := e.Session.TryRunning(ctx, e, "-kvm"); err != nil {
				return err
			}
		}
		return e.tryBridge(ctx)
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errFirst, err)
	}
	return nil
}

// queryVersion queries Podman's version.
func (e *Engine) queryVersion(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, runtimes.AnswerLimit, runtimes.ErrNoAnswer)
	defer cancel()
	answer, err := e.run(ctx, e.command(ctx, invocation{}, "version", "--format", "{{.Client.Version}}"))
	if err != nil {
		return fmt.Errorf("query Podman's version: %w", err)
	}
	e.version = strings.TrimSpace(answer)
	e.info.Version = fmt.Sprintf("Podman %s, %s", e.version, e.info.Version)
	return nil
}

// adapt records the capabilities that the target lacks with this version on this host, and notes about it.
func (e *Engine) adapt(ctx context.Context) {
	info := &e.info
	if e.runtime.Cannot != nil {
		maps.Copy(e.Missing, e.runtime.Cannot(ctx, e.Session.Launcher, info.Binary, info.Version))
	}
	if older(e.version, 4, 3) {
		e.Missing[engine.CanUpdate] = fmt.Sprintf("Podman %s has no update; version 4.3 added it", e.version)
	}
	maps.Copy(e.Missing, e.runtime.RuledOut(info.Target))
	if e.runtime.UsesKVM(info.Target) {
		info.Notes = append(info.Notes, runtimes.NoteKVM)
	}
	for _, h := range e.Session.Hidden {
		info.Notes = append(info.Notes, h+" is hidden from Podman and the runtime, which then see only cgroup v1")
	}
	if e.Session.Seccomp != engine.Unconfined {
		info.Notes = append(info.Notes, "containers have Podman's seccomp filter, which adds cost to every system call")
	}
	info.Notes = append(info.Notes, "conmon also writes all output to a log file", "storage driver "+storageDriver)
}

// older reports whether a version is older than major.minor. It is false for a malformed version.
func older(version string, major, minor int) bool {
	var has [2]int
	if n, _ := fmt.Sscanf(version, "%d.%d", &has[0], &has[1]); n < len(has) {
		return false
	}
	return slices.Compare(has[:], []int{major, minor}) < 0
}
