package cri

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"google.golang.org/grpc"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/managed"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes/kata"
	"github.com/touchstone-bench/touchstone/internal/refusal"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Runtime types of containerd.
const (
	shimRunc  = "io.containerd.runc.v2"
	shimRunsc = "io.containerd.runsc.v1"
)

// shimOption is an option of Touchstone: shim=runc runs gVisor behind runc's shim although its own shim is found.
const shimOption = "shim"

// criAnnotations is the prefix of the annotations that describe a pod's containers to gVisor. Behind runc's shim they make
// gVisor wait for a sandbox that never starts. Without them each container is a sandbox.
const criAnnotations = "io.kubernetes.cri"

// programs are the paths of a private engine's programs.
type programs struct {
	version string // of the engine
	engine  string
	runc    string // runc's shim
	runsc   string // gVisor's shim, may be empty
	conmon  string
	pinns   string
	cni     string // the directory of the network plug-ins
}

// entry is a handler of a private engine's configuration.
type entry struct {
	target  target.Target
	runtime runtimes.Runtime
	handler string
	shim    string // containerd's runtime type; empty with CRI-O
	// flags of the runtime, and prefixes of annotations to hide from it. Both need an adapter between engine and runtime.
	flags, hide []string
	// score replaces the negative OOM score of CRI-O's pause container, where the runtime may not set one. It needs an adapter too.
	score string
	// settings go into the configuration of gVisor's shim. config is the path of any shim's configuration. Kata's file follows from
	// the runtime's Guest.
	settings []target.Option
	config   string
}

// notes describe the call of the runtime.
func (e entry) notes() []string {
	note := "private engine, handler " + e.handler
	if e.shim != "" {
		note += ", shim " + e.shim
	}
	switch {
	case len(e.settings) > 0:
		note += " configured with " + target.Target{Options: e.settings}.String()
	case len(e.flags) > 0:
		note += ", called with " + strings.Join(e.flags, " ")
	case e.config != "":
		note += " with " + e.config
	}
	notes := []string{note}
	if slices.Contains(e.flags, overlayInMemory) {
		notes = append(notes, "writes of containers to their root file system stay in memory")
	}
	if e.score != "" {
		notes = append(notes, "the pause container has the OOM score "+e.score+" in place of CRI-O's, which needs CAP_SYS_RESOURCE; an adapter before the runtime sets it")
	}
	if len(e.hide) > 0 {
		notes = append(notes, "each container, the pod's pause container too, is a sandbox of its own")
	}
	return notes
}

// binary returns the path that the engine calls: the runtime, or an adapter in dir.
func (e entry) binary(dir string) (string, error) {
	if len(e.flags) == 0 && len(e.hide) == 0 && e.score == "" {
		return e.runtime.Binary, nil
	}
	a := runtimes.Adapter{Binary: e.runtime.Binary, Flags: e.flags, Hide: e.hide, OOMScore: e.score}
	if len(e.hide) > 0 {
		a.Over = gvisorNotRunning
	}
	return a.Write(filepath.Join(dir, "adapters"), e.handler)
}

// overlayInMemory is gVisor's flag for an overlay without a file in the root file system.
const overlayInMemory = "--overlay2=root:memory"

// gvisorNotRunning is part of runsc's message about a kill that comes too late.
const gvisorNotRunning = "is not running"

// fitBinary describes a handler that calls an OCI runtime.
func fitBinary(r runtimes.Runtime, t target.Target) (entry, error) {
	e := entry{target: t, runtime: r}
	var err error
	if e.flags, err = runtimes.Flags(r.With(t)); err != nil {
		return entry{}, err
	}
	if r.Kind.Name == "runsc" {
		e.hide = []string{criAnnotations}
	}
	return e, nil
}

// without returns a target without one of its options, and that option's value.
func without(t target.Target, option string) (target.Target, string) {
	value, _ := t.Option(option)
	t.Options = slices.DeleteFunc(slices.Clone(t.Options), func(o target.Option) bool { return o.Name == option })
	return t, value
}

// helper finds a program among the engine's helpers or on PATH. title is the name of the engine in an error.
func (p programs) helper(s engine.Session, title, name string) (string, error) {
	path, err := s.Program(name, engine.Helpers(p.engine)...)
	if err == nil {
		return path, nil
	}
	u := &engine.UnsupportedError{What: title, Reason: name + ", which it needs: " + err.Error(), Advice: "correct --engine-bin " + name + "=PATH"}
	if errors.Is(err, exec.ErrNotFound) {
		u.Reason, u.Advice = name+", which it needs, is neither beside "+p.engine+" nor on PATH", "install it, or name it with --engine-bin "+name+"=PATH"
	}
	return "", u
}

// optional is helper for a program that an engine can do without. It is empty if it is not found.
func (p programs) optional(s engine.Session, title, name string) (string, error) {
	path, err := p.helper(s, title, name)
	if err != nil && s.Engines[name] == "" {
		return "", nil
	}
	return path, err
}

// versionWord finds the version in a line of an engine's --version, such as "crio version 1.34.0" or
// "containerd github.com/containerd/containerd/v2 v2.4.2 REVISION". A wrapper may print other lines first.
var versionWord = regexp.MustCompile(`\sv?([0-9]\S*)`)

// findEngine finds the engine's own program and its version.
func findEngine(ctx context.Context, s engine.Session, b *product) (programs, error) {
	refuse := func(reason, advice string) error {
		return &engine.UnsupportedError{What: b.program, Reason: reason, Advice: advice}
	}
	if os.Geteuid() != 0 {
		return programs{}, refuse("a private "+b.title+" needs root", "run as root")
	}
	path, err := s.Program(b.program)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return programs{}, refuse(b.program+" is not on PATH, and no engine listens at "+b.socket,
			fmt.Sprintf("run touchstone setup %s, or name it with --engine-bin %s=PATH", b.program, b.program))
	case err != nil:
		return programs{}, refuse(err.Error(), "name a working one with --engine-bin "+b.program+"=PATH")
	}
	p := programs{engine: path}
	ctx, cancel := context.WithTimeoutCause(ctx, runtimes.AnswerLimit, runtimes.ErrNoAnswer)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.engine, "--version")
	var out runtimes.Answer
	cmd.Stdout = &out
	if err := s.Launcher.Run(ctx, cmd); err != nil {
		return programs{}, refuse(fmt.Sprintf("get the version of %s: %v", p.engine, err),
			cmp.Or(refusal.Suspect(err.Error(), s.Launcher.Refusals()), "name a working one with --engine-bin "+b.program+"=PATH"))
	}
	if found := versionWord.FindStringSubmatch(out.String()); found != nil {
		p.version = word(found[1])
	}
	if p.version == "" {
		return programs{}, refuse(fmt.Sprintf("%s --version prints no version", p.engine), "name a working one with --engine-bin "+b.program+"=PATH")
	}
	if p.cni, err = networkPlugins(s, p.engine); err != nil {
		return programs{}, refuse(err.Error(), "install the package containernetworking-plugins (cni-plugins on Alpine, Arch, NixOS and openSUSE), or name their folder with --engine-bin "+engine.CNI+"=DIR")
	}
	return p, nil
}

// cniDirs are the usual directories of network plug-ins: of Kubernetes, of distributions, and of Bottlerocket, k3s, RKE2 and MicroK8s. A profile of NixOS
// or Guix has them beside the engine.
var cniDirs = []string{
	"/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni", "/usr/local/lib/cni", "/usr/local/libexec/cni", "/usr/libexec/cni/bin",
	"/var/lib/rancher/k3s/data/cni", "/var/lib/rancher/k3s/data/current/bin", "/var/lib/rancher/rke2/bin", "/var/snap/microk8s/current/opt/cni/bin",
}

// crioFiles are the patterns of CRI-O's configuration.
var crioFiles = []string{"/etc/crio/crio.conf", "/etc/crio/crio.conf.d/*"}

// configuredPlugins lists the directories of network plug-ins that CRI-O's configuration names. On NixOS no other place names them. A file that
// cannot be read names none.
func configuredPlugins() (dirs []string) {
	for _, pattern := range crioFiles {
		files, _ := filepath.Glob(pattern) // the patterns are valid
		for _, file := range files {
			var config struct {
				CRIO struct {
					Network struct {
						PluginDirs []string `toml:"plugin_dirs"`
					}
				}
			}
			if _, err := toml.DecodeFile(file, &config); err == nil {
				dirs = append(dirs, config.CRIO.Network.PluginDirs...)
			}
		}
	}
	return dirs
}

// networkPlugins finds the directory of CNI's plug-ins: the session's, one of cniDirs, beside the engine, on PATH, or in CRI-O's configuration.
func networkPlugins(s engine.Session, program string) (string, error) {
	dirs := slices.Concat(cniDirs, engine.Beside(program), filepath.SplitList(os.Getenv("PATH")), configuredPlugins())
	places := cniDirs
	if override := s.Engines[engine.CNI]; override != "" {
		dirs = []string{override}
		places = dirs
	}
	lacks := func(dir string) bool {
		return slices.ContainsFunc(pluginNames, func(plugin string) bool { return engine.CheckProgram(filepath.Join(dir, plugin)) != nil })
	}
	if i := slices.IndexFunc(dirs, func(dir string) bool { return filepath.IsAbs(dir) && !lacks(dir) }); i >= 0 {
		return filepath.Clean(dirs[i]), nil
	}
	return "", fmt.Errorf("the network plug-ins %s are not together in %s", strings.Join(pluginNames, ", "), strings.Join(places, ", "))
}

// privatePlugin is the CNI plug-in of a private engine.
const privatePlugin = "bridge"

// pluginNames are the programs of a private engine's network.
var pluginNames = []string{privatePlugin, "host-local", "loopback"}

// writeNetwork writes the network of the pods: a bridge in the engine's own network namespace. Nothing is
// masqueraded: there is nowhere to go to.
func writeNetwork(dir string) (string, error) {
	conf := filepath.Join(dir, "cni")
	text := fmt.Sprintf(`{
  "cniVersion": "0.4.0",
  "name": "touchstone",
  "plugins": [{
    "type": %s, "bridge": %s, "isGateway": true, "ipMasq": false,
    "ipam": {"type": "host-local", "dataDir": %s, "ranges": [[{"subnet": %s}]], "routes": [{"dst": "0.0.0.0/0"}]}
  }]
}
`, quote(privatePlugin), quote(managed.BridgeName), quote(filepath.Join(dir, "addresses")), quote(managed.BridgeSubnet))
	return conf, managed.WriteFiles(conf, map[string]string{"10-touchstone.conflist": text})
}

// quote returns a string in JSON, which is a string in TOML too.
func quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string has no encoding error
	return strings.TrimSpace(b.String())
}

// needs lists the files that a private engine must see besides its own program.
func needs(p programs, entries []entry) []string {
	files := []string{p.runc, p.runsc, p.conmon, p.pinns}
	for _, plugin := range pluginNames {
		files = append(files, filepath.Join(p.cni, plugin))
	}
	for _, e := range entries {
		files = append(files, e.runtime.Binary, e.config, e.runtime.Shim)
		if e.runtime.Guest != nil {
			files = append(files, e.runtime.Guest.Files()...)
		}
	}
	return slices.DeleteFunc(files, func(file string) bool { return file == "" })
}

// installed lists the programs of a private engine that one of its targets needs.
func (p programs) installed(e entry) ([]string, error) {
	files := []string{p.engine, p.conmon, p.pinns, e.runtime.Binary}
	for _, plugin := range pluginNames {
		files = append(files, filepath.Join(p.cni, plugin))
	}
	switch {
	case e.runtime.Guest != nil:
		files = append(files, e.runtime.Shim, e.runtime.Guest.Program, e.runtime.Guest.FileServer)
	case e.shim == "":
	case e.shim == shimRunc:
		files = append(files, p.runc)
	case e.shim == shimRunsc:
		files = append(files, p.runsc)
	default:
		return nil, engine.UnknownShim(e.target, e.shim)
	}
	return slices.DeleteFunc(files, func(file string) bool { return file == "" }), nil
}

// startPrivate starts an engine with these handlers and connects to it.
func startPrivate(ctx context.Context, s engine.Session, c managed.Config, entries []entry, socket string) (*service, error) {
	dirs, err := managed.DirsOf(s, c.Name)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(entries, func(e entry) bool { return e.runtime.Guest != nil }) {
		c.Syslog, c.Cgroups = true, []string{kata.Cgroup} // Kata's shim does not start without syslog
	}
	svc := &service{}
	if svc.notify, err = newNotifySocket(filepath.Join(dirs.State, "notify")); err != nil {
		return nil, err
	}
	if svc.client, err = dial(socket); err != nil {
		return nil, errors.Join(err, svc.notify.close())
	}
	c.Env = append(c.Env, "NOTIFY_SOCKET="+svc.notify.path)
	c.Ready = func(ctx context.Context) error {
		if err := svc.notify.wait(ctx); err != nil {
			return err
		}
		for {
			err := svc.ask(ctx, grpc.WaitForReady(true))
			// containerd 1.6 reports readiness some milliseconds before its CRI is ready, and has no event for that.
			if ctx.Err() != nil || err == nil || !strings.Contains(message(err), "not initialized yet") {
				return svc.explainLack(ctx, err)
			}
		}
	}
	c.Answers = svc.answers
	if svc.private, err = managed.Start(ctx, s, c); err != nil {
		return nil, errors.Join(err, svc.client.close(), svc.notify.close())
	}
	return svc, nil
}

// notifySocket receives a service's message of readiness, by systemd's protocol (sd_notify).
type notifySocket struct {
	path string
	conn *net.UnixConn
}

func newNotifySocket(path string) (*notifySocket, error) {
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, err
	}
	return &notifySocket{path, conn}, nil
}

// wait returns when the service has reported readiness.
func (n *notifySocket) wait(ctx context.Context) error {
	if err := n.conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = n.conn.SetReadDeadline(time.Unix(1, 0)) }) // long ago
	defer stop()
	message := make([]byte, 4<<10)
	for {
		size, err := n.conn.Read(message)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(message[:size])) {
			if strings.TrimSpace(line) == "READY=1" {
				return nil
			}
		}
	}
}

func (n *notifySocket) close() error { return n.conn.Close() }
