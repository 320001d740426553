package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/managed"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes/kata"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// entries are the runtimes in a private daemon's configuration, by name. The names begin with Touchstone's prefix, because
// the daemon reserves "runc" and looks it up on PATH.
type entries map[string]entry

// entry is a runtime in the configuration: a binary with flags, or a shim with the path of its configuration.
type entry struct {
	Path    string       `json:"path,omitempty"`
	Args    []string     `json:"runtimeArgs,omitempty"`
	Type    string       `json:"runtimeType,omitempty"`
	Options *shimOptions `json:"options,omitempty"`

	target string // of a shim
}

// shimOptions are the options of a shim without options of its own.
type shimOptions struct {
	TypeURL    string `json:"TypeUrl"`
	ConfigPath string
}

// add adds an entry for a runtime with these flags, unless it exists.
func (e entries) add(r runtimes.Runtime, flags []string) {
	if _, ok := e.find(r.Binary, flags); !ok {
		e[e.newName(r)] = entry{Path: r.Binary, Args: flags}
	}
}

func (e entries) newName(r runtimes.Runtime) string {
	return engine.Prefix + r.Name + "-" + strconv.Itoa(len(e))
}

// addGuest adds an entry for a target with a virtual machine, whose configuration it writes to dir.
func (e entries) addGuest(r runtimes.Runtime, t target.Target, dir string) error {
	name := e.newName(r)
	file, err := r.Guest.Write(dir, name)
	if err == nil {
		e[name] = entry{Type: r.Type, Options: &shimOptions{TypeURL: r.Type + ".options", ConfigPath: file}, target: t.String()}
	}
	return err
}

// findGuest finds the entry of a target with a virtual machine.
func (e entries) findGuest(t target.Target) (string, bool) {
	for name, entry := range e {
		if entry.target == t.String() {
			return name, true
		}
	}
	return "", false
}

func (e entries) find(binary string, flags []string) (string, bool) {
	for name, entry := range e {
		if entry.Path == binary && slices.Equal(entry.Args, flags) {
			return name, true
		}
	}
	return "", false
}

// networks are the networks of containers, each with an entry for a target.
var networks = []engine.Network{engine.NoNetwork, engine.HostNet, engine.Bridged}

// choose finds the entries for a target.
func (e entries) choose(c choice, r runtimes.Runtime, t target.Target, flags []string) error {
	errUnknown := &engine.UnsupportedError{What: t.String(), Reason: "the private Docker daemon was started without this target"}
	if r.Guest != nil {
		name, ok := e.findGuest(t)
		if !ok {
			return errUnknown
		}
		c.useForAll(name)
		return nil
	}
	if r.Type != "" && len(flags) == 0 {
		c.useForAll(r.Type) // the daemon looks shims up by their type
		return nil
	}
	if r.Type != "" {
		return &engine.UnsupportedError{
			What: t.String(), Reason: "Docker cannot pass options to a containerd shim that is given by its type", Advice: "measure it through containerd",
		}
	}
	for _, n := range networks {
		var ok bool
		if c.names[n], ok = e.find(r.Binary, slices.Concat(flags, r.NetworkFlags(t, n))); !ok {
			return errUnknown
		}
	}
	maps.Copy(c.missing, r.RuledOut(t))
	return nil
}

// findEntries returns an entry for every runtime of the host, with the options of all targets of the run. It writes the
// configurations of shims to dir. The second result lists the files that the daemon must see, and the third the shims of
// virtual machines by name.
func findEntries(ctx context.Context, s engine.Session, dir string) (e entries, needs []string, shims map[string]string, err error) {
	e, shims = entries{}, map[string]string{}
	for _, r := range runtimes.Find(ctx, s, name) {
		targets := r.Targets(name)
		for _, t := range s.Targets {
			if t.Engine == name && t.Runtime == r.Name {
				targets = append(targets, t)
			}
		}
		for _, t := range targets {
			switch {
			case kata.IsType(r.Type):
				guest, err := runtimes.Get(ctx, s, t)
				if _, ok := e.findGuest(t); err != nil || ok {
					continue // Open returns the error
				}
				if err := e.addGuest(guest, t, dir); err != nil {
					return nil, nil, nil, err
				}
				needs = append(needs, guest.Guest.Files()...)
				shims[kata.ShimProgram(guest.Type)] = guest.Shim
			case r.Err != nil || r.Binary == "":
			default:
				found := r.Runtime
				flags, err := runtimes.Flags(r.With(t))
				if _, isCopy := t.Option(runtimes.CopyOption); isCopy && err == nil {
					found, err = runtimes.Get(ctx, s, t)
				}
				if err != nil {
					continue // likewise
				}
				needs = append(needs, found.Binary)
				for _, n := range networks {
					e.add(found, slices.Concat(flags, found.NetworkFlags(t, n)))
				}
			}
		}
	}
	return e, needs, shims, nil
}

// programs are the programs that a private daemon needs. It looks up all but the first by their names.
var programs = []string{"dockerd", "containerd", "containerd-shim-runc-v2"}

// found are the paths of a private daemon's programs, by name.
type found map[string]string

// binaries finds the programs of a private daemon. The error is an *engine.UnsupportedError.
func binaries(s engine.Session) (found, error) {
	if os.Geteuid() != 0 {
		return nil, &engine.UnsupportedError{
			What: name, Reason: "no Docker daemon can be reached, and a private one needs root",
			Advice: "start Docker and become a member of its group, or run as root",
		}
	}
	return locate(s)
}

// locate finds each program among the helpers of the programs before it, or on PATH. NixOS has Docker's containerd only there, and its shim beside that.
func locate(s engine.Session) (found, error) {
	paths := found{}
	var neighbours []string
	for _, program := range programs {
		path, err := s.Program(program, neighbours...)
		if err != nil {
			return nil, &engine.UnsupportedError{
				What: name, Reason: fmt.Sprintf("no Docker daemon can be reached, and a private one cannot start because %s is missing: %v", program, err),
				Advice: fmt.Sprintf("start Docker, install its packages (docker.io, or docker-ce and containerd.io), or give --engine-bin %s=PATH", program),
			}
		}
		paths[program] = path
		neighbours = append(neighbours, engine.Helpers(path)...)
	}
	return paths, nil
}

// link makes a directory with links to the programs that the daemon looks up by their names, and returns a PATH that begins with it and goes on
// with the directories of dockerd: a bundle has runc and docker-init there. shims has the paths of shims by name.
func (f found) link(dir string, shims map[string]string) (path string, err error) {
	links := maps.Clone(shims)
	for _, program := range programs[1:] {
		links[program] = f[program]
	}
	return engine.ProgramPath(dir, f[programs[0]], links)
}

// startPrivate starts a daemon for the run.
func startPrivate(ctx context.Context, s engine.Session) (*daemon, error) {
	found, err := binaries(s)
	if err == nil {
		err = s.Admits(target.Target{Engine: name})
	}
	if err != nil {
		return nil, err
	}
	dirs, err := managed.DirsOf(s, name)
	if err != nil {
		return nil, err
	}
	d := &daemon{session: s, endpoint: endpoint{host: "unix://" + filepath.Join(dirs.State, "sock")}}
	for _, program := range programs {
		d.programs = append(d.programs, found[program])
	}
	var needs []string
	var shims map[string]string
	if d.entries, needs, shims, err = findEntries(ctx, s, dirs.State); err != nil {
		return nil, fmt.Errorf("configure a private Docker daemon: %w", err)
	}
	path, err := found.link(filepath.Join(dirs.State, "bin"), shims)
	if err != nil {
		return nil, fmt.Errorf("configure a private Docker daemon: %w", err)
	}
	needs = slices.AppendSeq(append(needs, d.programs...), maps.Values(shims))
	file := filepath.Join(dirs.State, "daemon.json")
	if err := d.configure(file, dirs); err != nil {
		return nil, err
	}
	if d.client, err = client.New(client.WithHost(d.host)); err != nil {
		return nil, fmt.Errorf("start a private Docker daemon: %w", err)
	}
	var cgroups []string
	if len(shims) > 0 {
		cgroups = []string{kata.Cgroup}
	}
	d.private, err = managed.Start(ctx, s, managed.Config{
		Name: name,
		Args: []string{found[programs[0]], "--config-file", file},
		Env:  []string{"PATH=" + path}, Needs: needs, Memory: []string{execRoot(dirs)}, Syslog: len(shims) > 0, Cgroups: cgroups, Dirs: optDirs,
		Ready: func(ctx context.Context) error {
			if err := listening(ctx, filepath.Join(dirs.State, "sock")); err != nil {
				return err
			}
			_, err := d.client.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true})
			return err
		},
		Answers: func(ctx context.Context) error {
			_, err := d.client.Ping(ctx, client.PingOptions{})
			return err
		},
	})
	if err == nil {
		if err = d.query(ctx); err == nil {
			return d, nil
		}
		err = errors.Join(err, d.private.Stop(ctx))
	}
	if ctx.Err() == nil {
		err = d.refuse(err, true, "start Docker as a service, and name its socket in DOCKER_HOST")
	}
	return nil, err
}

// optDirs are for additional programs of containerd. The containerd of dockerd makes them on the host, because dockerd has no option for
// their path.
var optDirs = []string{"/opt/containerd/bin", "/opt/containerd/lib", "/opt/containerd", "/opt"}

// execRoot is the directory for the state of dockerd's containerd, shims and runtimes.
func execRoot(dirs managed.Dirs) string { return filepath.Join(dirs.State, "exec") }

// configure writes the daemon's configuration. The bridge is in a network namespace of its own. It has no packet filter rules,
// because the namespace has no way out.
func (d *daemon) configure(file string, dirs managed.Dirs) error {
	config := map[string]any{
		"data-root":  filepath.Join(dirs.Data, "root"),
		"exec-root":  execRoot(dirs),
		"pidfile":    filepath.Join(dirs.State, "pid"),
		"hosts":      []string{d.host},
		"exec-opts":  []string{"native.cgroupdriver=cgroupfs"},
		"bip":        managed.BridgeHost + "/16",
		"iptables":   false,
		"ip6tables":  false,
		"ip-forward": false,
		"ip-masq":    false,

		"userland-proxy": false,
		"raw-logs":       true,
		"runtimes":       d.entries,
		// Versions up to 23 would make a key in /etc/docker. Later ones ignore this field.
		"deprecated-key-path": filepath.Join(dirs.Data, "key.json"),
	}
	text, err := json.Marshal(config)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("configure a private Docker daemon: %w", err)
	}
	return nil
}

// listening returns when a process listens on a socket. It waits for changes in the socket's directory, which must exist. The
// bind call creates the socket, and the daemon sets its owner after listen.
func listening(ctx context.Context, socket string) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("wait for socket %s: %w", socket, os.NewSyscallError("inotify_init1", err))
	}
	events := os.NewFile(uintptr(fd), "inotify")
	defer func() { _ = events.Close() }() // it is only read from
	defer context.AfterFunc(ctx, func() { _ = events.Close() })()
	if _, err := unix.InotifyAddWatch(fd, filepath.Dir(socket), unix.IN_CREATE|unix.IN_ATTRIB|unix.IN_MOVED_TO); err != nil {
		return fmt.Errorf("wait for socket %s: %w", socket, os.NewSyscallError("inotify_add_watch", err))
	}
	buffer := make([]byte, 4<<10)
	for {
		err := managed.Reach(ctx, socket)
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ECONNREFUSED) {
			return err
		}
		if _, err := events.Read(buffer); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return fmt.Errorf("wait for socket %s: %w", socket, err)
		}
	}
}
