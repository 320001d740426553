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

// crio calls OCI runtimes through conmon.
var crio = product{
	title: "CRI-O", socket: "/run/crio/crio.sock", program: "crio", deb: "cri-o", find: findCRIO, fit: fitCRIO, start: startCRIO,
}

// crioDirs are the directories of CRI-O's helpers in distributions.
var crioDirs = []string{"/usr/libexec/crio", "/usr/lib/crio", "/usr/libexec/podman"}

func findCRIO(ctx context.Context, s engine.Session, b *product) (programs, error) {
	p, err := findEngine(ctx, s, b)
	if err != nil {
		return p, err
	}
	for name, path := range map[string]*string{"conmon": &p.conmon, "pinns": &p.pinns} {
		if *path = lookUp(s, name, p.engine, crioDirs...); *path == "" {
			return p, &engine.UnsupportedError{
				What: "crio", Reason: name + ", which CRI-O needs, is neither beside " + p.engine + " nor on PATH",
				Advice: "install it, or name it with --engine-bin " + name + "=PATH",
			}
		}
	}
	return p, nil
}

func fitCRIO(_ engine.Session, _ programs, r runtimes.Runtime, t target.Target) (entry, error) {
	if kata.IsType(r.Type) {
		return entry{}, refuse(t, noExitOfGuest, "measure it as containerd/"+r.Name)
	}
	if r.Type != "" {
		return entry{}, refuse(t, "CRI-O calls OCI runtimes, not shims such as "+r.Type, "measure it as containerd/"+r.Name)
	}
	e, err := fitBinary(r, t)
	if _, set := r.With(t).Option("overlay2"); r.Kind.Name == "runsc" && !set {
		// CRI-O unmounts the root file system before it deletes the container, and gVisor keeps a file there.
		e.flags = append(e.flags, overlayInMemory)
	}
	return e, err
}

// noExitOfGuest is the reason why a virtual machine cannot be measured with CRI-O, in its runtime type vm.
const noExitOfGuest = "CRI-O reports the hypervisor as the process of each container in a virtual machine, so the exit of the container is not known"

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
		binary, err := e.binary(dirs.State)
		if err != nil {
			return fail(err)
		}
		c.handlers = append(c.handlers, crioHandler{e.handler, binary})
	}
	if err := managed.WriteFiles(dirs.State, map[string]string{
		"crio.conf": c.text(), "policy.json": `{"default": [{"type": "insecureAcceptAnything"}]}` + "\n",
		"registries.conf": "unqualified-search-registries = []\n", "containers.conf": "", "storage.conf": c.storage(),
	}); err != nil {
		return fail(err)
	}
	empty := filepath.Join(dirs.State, "conf.d")
	if err := os.MkdirAll(empty, 0o700); err != nil {
		return fail(err)
	}
	return startPrivate(ctx, s, managed.Config{
		Name: "crio",
		Args: []string{p.engine, "--config", filepath.Join(dirs.State, "crio.conf"), "--config-dir", empty},
		Env: []string{
			"CONTAINERS_REGISTRIES_CONF=" + filepath.Join(dirs.State, "registries.conf"),
			"CONTAINERS_STORAGE_CONF=" + filepath.Join(dirs.State, "storage.conf"),
			"CONTAINERS_CONF=" + filepath.Join(dirs.State, "containers.conf"),
		},
		Needs: needs(p, entries),
	}, entries, c.socket)
}

// crioConfig is the configuration of a private CRI-O.
type crioConfig struct {
	state, data, socket      string
	network, registry, pause string
	programs                 programs
	handlers                 []crioHandler
}

type crioHandler struct{ name, binary string }

// text writes crio.conf.
func (c crioConfig) text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	state := func(name string) string { return quote(filepath.Join(c.state, name)) }
	line("[crio]")
	line("root = %s", quote(filepath.Join(c.data, "root")))
	line("runroot = %s", state("run"))
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
	line("container_exits_dir = %s", state("exits"))
	line("container_attach_socket_dir = %s", state("attach"))
	line("enable_criu_support = false")
	for _, h := range c.handlers {
		line("[crio.runtime.runtimes.%s]", quote(h.name))
		line("runtime_path = %s", quote(h.binary))
		line(`runtime_type = "oci"`)
		line("runtime_root = %s", state(filepath.Join("runtimes", h.name)))
		line("monitor_path = %s", quote(c.programs.conmon))
		line(`monitor_cgroup = "pod"`)
	}
	line("[crio.image]")
	line("pause_image = %s", quote(c.pause))
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
	return fmt.Sprintf("[storage]\ndriver = \"overlay\"\ngraphroot = %s\nrunroot = %s\n",
		quote(filepath.Join(c.data, "root")), quote(filepath.Join(c.state, "run")))
}
