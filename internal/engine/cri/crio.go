package cri

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/managed"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes/kata"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// crio calls OCI runtimes through conmon.
var crio = product{
	title: "CRI-O", socket: "/run/crio/crio.sock", program: "crio",
	binaries: []string{"crio", "conmon", "pinns", kata.Shim, engine.CNI}, find: findCRIO, fit: fitCRIO, start: startCRIO,
}

func findCRIO(ctx context.Context, s engine.Session, b *product) (programs, error) {
	p, err := findEngine(ctx, s, b)
	if err != nil {
		return p, err
	}
	for name, path := range map[string]*string{"conmon": &p.conmon, "pinns": &p.pinns} {
		if *path, err = p.helper(s, b.title, name); err != nil {
			return p, err
		}
	}
	return p, nil
}

func fitCRIO(s engine.Session, _ programs, r runtimes.Runtime, t target.Target) (entry, error) {
	switch {
	case kata.IsType(r.Type):
		return entry{target: t, runtime: r}, nil
	case r.Type != "":
		return entry{}, refuse(t, "CRI-O calls OCI runtimes and Kata's shim, not shims such as "+r.Type, "measure it as containerd/"+r.Name)
	}
	e, err := fitBinary(r, t)
	if _, set := r.With(t).Option("overlay2"); r.Kind.Name == "runsc" && !set {
		// CRI-O unmounts the root file system before it deletes the container, and gVisor keeps a file there.
		e.flags = append(e.flags, overlayInMemory)
	}
	if s.Pods.SharePIDs && !maySetScores() {
		e.score = strconv.Itoa(s.Launcher.OOMScore())
	}
	return e, err
}

// maySetScores reports whether the processes of this program may set a negative OOM score, as CRI-O's pause container has it.
func maySetScores() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err := unix.Capget(&header, &data[0])
	return err == nil && data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}

// startCRIO starts a private CRI-O.
func startCRIO(ctx context.Context, s engine.Session, p programs, entries []entry) (*service, error) {
	dirs, err := managed.DirsOf(s, "crio")
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*service, error) { return nil, fmt.Errorf("configure CRI-O: %w", err) }
	network, err := writeNetwork(dirs.State)
	if err != nil {
		return fail(err)
	}
	c := crioConfig{state: dirs.State, data: dirs.Data, socket: filepath.Join(dirs.State, "c.sock"), programs: p, network: network, registry: s.Registry.Addr(), pause: s.Registry.Probe()}
	for _, e := range entries {
		h := crioHandler{name: e.handler}
		if e.runtime.Guest != nil {
			c.guests, h.binary = true, e.runtime.Shim
			h.config, err = e.runtime.Guest.Write(dirs.State, e.handler)
		} else {
			h.binary, err = e.binary(dirs.State)
		}
		if err != nil {
			return fail(err)
		}
		c.handlers = append(c.handlers, h)
	}
	if err := managed.WriteFiles(dirs.State, map[string]string{
		"crio.conf": c.text(), "policy.json": `{"default": [{"type": "insecureAcceptAnything"}]}` + "\n",
		"registries.conf": "unqualified-search-registries = []\n", "containers.conf": "", "storage.conf": c.storage(),
	}); err != nil {
		return fail(err)
	}
	empty := filepath.Join(dirs.State, "conf.d")
	for _, dir := range []string{empty, c.exits()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fail(err)
		}
	}
	svc, err := startPrivate(ctx, s, managed.Config{
		Name: "crio", SharedMounts: c.guests,
		Args: []string{p.engine, "--config", filepath.Join(dirs.State, "crio.conf"), "--config-dir", empty},
		Env: []string{
			"CONTAINERS_REGISTRIES_CONF=" + filepath.Join(dirs.State, "registries.conf"),
			"CONTAINERS_STORAGE_CONF=" + filepath.Join(dirs.State, "storage.conf"),
			"CONTAINERS_CONF=" + filepath.Join(dirs.State, "containers.conf"),
		},
		Needs: needs(p, entries),
	}, entries, c.socket)
	if err == nil && c.guests {
		svc.exitsDir, svc.bundles = c.exits(), filepath.Join(c.state, runRoot, "overlay-containers")
	}
	return svc, err
}

// crioConfig is the configuration of a private CRI-O.
type crioConfig struct {
	state, data, socket      string
	network, registry, pause string
	programs                 programs
	handlers                 []crioHandler
	// guests means that a handler makes virtual machines. Kata's shim makes a mount namespace with a pod, and must see the root file
	// systems of containers that CRI-O mounts later.
	guests bool
}

// crioHandler calls an OCI runtime, or Kata's shim if it has a configuration.
type crioHandler struct{ name, binary, config string }

// runRoot is the directory of CRI-O's bundles in its state.
const runRoot = "run"

// exits is the directory of CRI-O's exit files.
func (c crioConfig) exits() string { return filepath.Join(c.state, "exits") }

// text writes crio.conf.
func (c crioConfig) text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	state := func(name string) string { return quote(filepath.Join(c.state, name)) }
	line("[crio]")
	line("root = %s", quote(filepath.Join(c.data, "root")))
	line("runroot = %s", state(runRoot))
	line(`storage_driver = "overlay"`)
	line("log_dir = %s", state("logs"))
	line("version_file = %s", state("version"))
	line("version_file_persist = %s", state("version-persist"))
	line("clean_shutdown_file = %s", state("clean-shutdown"))
	line("[crio.api]")
	line("listen = %s", quote(c.socket))
	line(`stream_address = "127.0.0.1"`)
	line(`stream_port = "0"`)
	line("[crio.runtime]")
	if len(c.handlers) > 0 {
		line("default_runtime = %s", quote(c.handlers[0].name))
	}
	line(`cgroup_manager = "cgroupfs"`)
	line(`conmon_cgroup = "pod"`)
	line("pinns_path = %s", quote(c.programs.pinns))
	// A pause container has a negative oom_score_adj, which root may not set without CAP_SYS_RESOURCE.
	line("drop_infra_ctr = true")
	line(`apparmor_profile = "unconfined"`)
	line("hooks_dir = []")
	line("namespaces_dir = %s", state("ns"))
	line("container_exits_dir = %s", quote(c.exits()))
	line("container_attach_socket_dir = %s", state("attach"))
	line("enable_criu_support = false")
	for _, h := range c.handlers {
		line("[crio.runtime.runtimes.%s]", quote(h.name))
		line("runtime_path = %s", quote(h.binary))
		if h.config == "" {
			line(`runtime_type = "oci"`)
		} else {
			line(`runtime_type = "vm"`)
			line("runtime_config_path = %s", quote(h.config))
			line("privileged_without_host_devices = true") // Kata cannot pass all devices of the host
		}
		line("runtime_root = %s", state(filepath.Join("runtimes", h.name)))
		line("monitor_path = %s", quote(c.programs.conmon))
		line(`monitor_cgroup = "pod"`)
	}
	line("[crio.image]")
	line("pause_image = %s", quote(c.pause))
	line(`pause_command = ""`) // the image's own
	line("signature_policy = %s", state("policy.json"))
	line("signature_policy_dir = %s", state("policies")) // by default it makes /etc/crio/policies
	line("insecure_registries = [%s]", quote(c.registry))
	line("[crio.network]")
	line("network_dir = %s", quote(c.network))
	line("plugin_dirs = [%s]", quote(c.programs.cni))
	line("[crio.nri]")
	line("enable_nri = false")
	return b.String()
}

// storage writes storage.conf. Without it the libraries of CRI-O read the host's.
func (c crioConfig) storage() string {
	text := fmt.Sprintf("[storage]\ndriver = \"overlay\"\ngraphroot = %s\nrunroot = %s\n",
		quote(filepath.Join(c.data, "root")), quote(filepath.Join(c.state, runRoot)))
	if c.guests {
		// By default the driver mounts its directory once more as private, so that no mount in it reaches another namespace.
		text += "[storage.options.overlay]\nskip_mount_home = \"true\"\n"
	}
	return text
}
