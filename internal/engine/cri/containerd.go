package cri

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/managed"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes/kata"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// containerd has a runtime type for each kind of shim. The shim of runc calls OCI runtimes.
var containerd = product{
	title: "containerd", socket: "/run/containerd/containerd.sock", program: "containerd",
	binaries: []string{"containerd", runcShim, runscShim, kata.Shim, engine.CNI},
	find:     findContainerd, fit: fitContainerd, start: startContainerd,
	// RunPodSandbox runs a pause container. CreateContainer makes only a record. containerd and the shim both delete each of the two
	// containers.
	commands: map[string][]string{"create": {"create", "start"}, "start": {"create", "start"}, "delete": {"delete", "delete", "delete", "delete"}},
}

// The shims of containerd.
const (
	runcShim  = "containerd-shim-runc-v2"
	runscShim = "containerd-shim-runsc-v1"
)

// findContainerd finds containerd and its shims.
func findContainerd(ctx context.Context, s engine.Session, b *product) (programs, error) {
	p, err := findEngine(ctx, s, b)
	if err != nil {
		return p, err
	}
	if p.runc, err = p.helper(s, b.title, runcShim); err != nil {
		return p, err
	}
	p.runsc, err = p.optional(s, b.title, runscShim)
	return p, err
}

// fitContainerd chooses the shim of a runtime.
func fitContainerd(_ engine.Session, p programs, r runtimes.Runtime, t target.Target) (entry, error) {
	options, shim := without(r.With(t), shimOption)
	if shim != "" && (shim != "runc" || r.Kind.Name != "runsc") {
		return entry{}, refuse(t, "unknown value "+shimOption+"="+shim, "remove the option; shim=runc is for gVisor")
	}
	switch {
	case r.Guest != nil:
		return entry{target: t, runtime: r, shim: r.Type}, nil
	case r.Type != "":
		e := entry{target: t, runtime: r, shim: r.Type}
		options, e.config = without(options, "config")
		if len(options.Options) > 0 {
			return entry{}, refuse(t, fmt.Sprintf("containerd passes no option %s to the shim %s, only the path of its configuration", options.Options[0].Name, r.Type),
				"set it in a file, and name the file with the option config=PATH")
		}
		return e, nil
	case r.Kind.Name == "runsc" && shim == "" && p.runsc != "":
		if _, err := runtimes.Flags(options); err != nil {
			return entry{}, err
		}
		options, _ = without(options, runtimes.CopyOption)
		return entry{target: t, runtime: r, shim: shimRunsc, settings: options.Options}, nil
	}
	rest := r
	rest.Options = nil // options contains them
	e, err := fitBinary(rest, options)
	e.target, e.runtime, e.shim = t, r, shimRunc
	return e, err
}

// startContainerd starts a private containerd.
func startContainerd(ctx context.Context, s engine.Session, p programs, entries []entry) (*service, error) {
	dirs, err := managed.DirsOf(s, "containerd")
	if err != nil {
		return nil, err
	}
	network, err := writeNetwork(dirs.State)
	if err != nil {
		return nil, fmt.Errorf("configure containerd: %w", err)
	}
	var handlers []containerdHandler
	for _, e := range entries {
		h := containerdHandler{name: e.handler, shim: e.shim, config: e.config}
		switch {
		case e.runtime.Guest != nil:
			h.path = e.runtime.Shim
			h.config, err = e.runtime.Guest.Write(dirs.State, e.handler)
		case e.shim == shimRunc:
			h.binary, err = e.binary(dirs.State)
		case e.shim == shimRunsc:
			h.config = filepath.Join(dirs.State, e.handler+".toml")
			err = os.WriteFile(h.config, []byte(runscConfig(e)), 0o600)
		}
		if err != nil {
			return nil, fmt.Errorf("configure containerd: %w", err)
		}
		handlers = append(handlers, h)
	}
	c := containerdConfig{
		root: filepath.Join(dirs.Data, "root"), state: filepath.Join(dirs.State, "state"), opt: filepath.Join(dirs.Data, "opt"),
		socket: filepath.Join(dirs.State, "c.sock"), pause: s.Registry.Probe(), plugins: p.cni, network: network, handlers: handlers,
	}
	file := filepath.Join(dirs.State, "config.toml")
	if err := os.WriteFile(file, []byte(c.text(p.version)), 0o600); err != nil {
		return nil, fmt.Errorf("configure containerd: %w", err)
	}
	path, err := shimPath(filepath.Join(dirs.State, "bin"), p, entries)
	if err != nil {
		return nil, fmt.Errorf("configure containerd: %w", err)
	}
	return startPrivate(ctx, s, managed.Config{
		Name: "containerd", Args: []string{p.engine, "--config", file}, Env: []string{"PATH=" + path}, Needs: needs(p, entries),
		Memory: []string{c.state},
	}, entries, c.socket)
}

// shimPath makes a directory with the shims that were found, and returns a PATH for containerd that begins with it: containerd looks up a shim
// by the name of its type.
func shimPath(dir string, p programs, entries []entry) (string, error) {
	shims := map[string]string{runcShim: p.runc, runscShim: p.runsc}
	var dirs []string
	for _, e := range entries {
		if e.runtime.Shim != "" {
			shims[kata.ShimProgram(e.runtime.Type)] = e.runtime.Shim
			dirs = append(dirs, filepath.Dir(e.runtime.Shim))
		}
	}
	return engine.ProgramPath(dir, p.engine, shims, dirs...)
}

// containerdConfig is the configuration of a private containerd.
type containerdConfig struct {
	root, state, opt, socket, pause, plugins, network string
	handlers                                          []containerdHandler
}

type containerdHandler struct {
	name, shim     string
	path           string // of the shim; empty if containerd finds it
	binary, config string // one of them, or none
}

// text writes config.toml, whose form depends on the version.
func (c containerdConfig) text(version string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	old := strings.HasPrefix(version, "1.")
	runtime := `plugins."io.containerd.cri.v1.runtime"`
	if old {
		runtime = `plugins."io.containerd.grpc.v1.cri"`
		line("version = 2")
	} else {
		line("version = 3")
	}
	line("root = %s", quote(c.root))
	line("state = %s", quote(c.state))
	line("imports = []")
	line("[grpc]")
	line("  address = %s", quote(c.socket))
	// By default a shim that does not answer for two seconds, on a busy machine, fails the deletion of its container, and after five seconds of cleaning up
	// the container's files are left.
	line("[timeouts]")
	line(`  "io.containerd.timeout.task.state" = "1m"`)
	line(`  "io.containerd.timeout.shim.cleanup" = "1m"`)
	line(`[plugins."io.containerd.internal.v1.opt"]`)
	line("  path = %s", quote(c.opt)) // by default it makes /opt/containerd
	if !old {
		line(`[plugins."io.containerd.cri.v1.images".pinned_images]`)
		line("  sandbox = %s", quote(c.pause))
	}
	line("[%s]", runtime)
	if old {
		line("  sandbox_image = %s", quote(c.pause))
		line(`  stream_server_port = "0"`)
	}
	line("  disable_apparmor = true")
	// Without it no container starts as root without CAP_SYS_RESOURCE.
	line("  restrict_oom_score_adj = true")
	line("  [%s.cni]", runtime)
	if old {
		line("    bin_dir = %s", quote(c.plugins))
	} else {
		line("    bin_dirs = [%s]", quote(c.plugins))
	}
	line("    conf_dir = %s", quote(c.network))
	if len(c.handlers) > 0 {
		line("  [%s.containerd]", runtime)
		line("    default_runtime_name = %s", quote(c.handlers[0].name))
	}
	for _, h := range c.handlers {
		line("  [%s.containerd.runtimes.%s]", runtime, quote(h.name))
		line("    runtime_type = %s", quote(h.shim))
		if h.path != "" && !strings.HasPrefix(version, "1.6.") { // 1.6 finds shims on PATH only
			line("    runtime_path = %s", quote(h.path))
		}
		switch {
		case h.binary != "":
			line("    options = { BinaryName = %s }", quote(h.binary))
		case h.config != "":
			line("    options = { TypeUrl = %s, ConfigPath = %s }", quote(typeURL(h.shim)), quote(h.config))
		}
	}
	return b.String()
}

// typeURL is the type of a shim's options in the shim's own spelling: io.containerd.runsc.v1.options.
func typeURL(shim string) string { return shim + ".options" }

// runscConfig is the configuration of gVisor's shim: the runtime's flags.
func runscConfig(e entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "binary_name = %s\n[runsc_config]\n", quote(e.runtime.Binary))
	for _, o := range e.settings {
		fmt.Fprintf(&b, "  %s = %s\n", quote(o.Name), quote(o.Value))
	}
	return b.String()
}
