package host

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/host/check"
	"github.com/touchstone-bench/touchstone/internal/host/facts"
	"github.com/touchstone-bench/touchstone/internal/host/hosttest"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
)

var update = flag.Bool("update", false, "write golden files")

func machines(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("fixtures: %v, %v", files, err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".txtar")
	}
	return files
}

func TestFacts(t *testing.T) {
	for _, name := range machines(t) {
		t.Run(name, func(t *testing.T) {
			h := Facts(hosttest.Unpack(t, filepath.Join("testdata", name+".txtar")))
			h.Root, h.PageSize = false, 0 // properties of the test process
			got, err := json.MarshalIndent(h, "", "  ")
			must.Do(t, err)
			got = append(got, '\n')
			golden := filepath.Join("testdata", name+".golden.json")
			if *update {
				must.Do(t, os.WriteFile(golden, got, 0o644))
			}
			want, err := os.ReadFile(golden)
			must.Do(t, err)
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
		})
	}
}

// Results are published, so facts must not contain anything from the fixtures that identifies a machine.
func TestFactsHoldNoSecrets(t *testing.T) {
	private := regexp.MustCompile(`(?i)abcdef|DC:A6|0f2b6c1e|4c0f37a2|738a4d67|web3-root|10\.1\.2|example\.org/|SECRET|secret words`)
	hasPrivate := false
	for _, name := range machines(t) {
		raw, err := os.ReadFile(filepath.Join("testdata", name+".txtar"))
		must.Do(t, err)
		hasPrivate = hasPrivate || private.Match(raw)
		text, err := json.Marshal(Facts(hosttest.Unpack(t, filepath.Join("testdata", name+".txtar"))))
		must.Do(t, err)
		if found := private.FindAll(text, -1); found != nil {
			t.Errorf("%s: facts hold %q", name, found)
		}
	}
	if !hasPrivate {
		t.Error("no fixture holds anything private: the test cannot fail")
	}
}

func TestFactsOfEmptyFileSystem(t *testing.T) {
	got := Facts(t.TempDir())
	got.Root, got.PageSize = false, 0
	want := result.Host{Arch: got.Arch, Cgroup: "none"}
	want.Warnings = got.Warnings
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("facts of an empty file system (-want +got):\n%s", diff)
	}
	if len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "PSI") {
		t.Errorf("warnings = %q, want only one about PSI", got.Warnings)
	}
}

func TestFactsOfThisMachine(t *testing.T) {
	h := Facts("/")
	if h.Kernel == "" || h.CPUs < 1 || h.Memory < 1 || h.Cgroup == "" || h.Arch == "" || h.PageSize < 4096 || h.PageSize&(h.PageSize-1) != 0 {
		t.Errorf("facts of this machine lack values: %+v", h)
	}
}

// machineContainer has the files of a machine around a program, the kind of the container that they show, and a part of the remedy.
type machineContainer struct {
	files  hosttest.Files
	want   string
	remedy string
}

// The parts of the remedies.
const (
	byFlags  = "--privileged --pid=host"
	byPod    = "with hostPID"
	byLinux  = "on Linux without WSL"
	byHost   = "outside of that container"
	byLimits = "no limits"
)

// wantContainer checks the kind, the finding and the warning of each run.
func wantContainer(t *testing.T, name string, links hosttest.Links, tt machineContainer) {
	t.Helper()
	root := t.TempDir()
	hosttest.Write(t, root, tt.files)
	links.Write(t, root)
	if got := facts.Container(root); got != tt.want {
		t.Errorf("%s: %q, want %q", name, got, tt.want)
	}
	findings, err := check.Inspect(t.Context(), root, func(context.Context) error { return nil })
	must.Do(t, err)
	f := findings[slices.IndexFunc(findings, func(f check.Finding) bool { return f.Name == "container" })]
	if isPoor := f.Rating == check.Poor; isPoor != (tt.want != "") || isPoor && (!strings.HasPrefix(f.Now, tt.want) || !strings.Contains(f.Remedy, tt.remedy)) {
		t.Errorf("%s: the finding is %+v", name, f)
	}
	warning := strings.Join(Facts(root).Warnings, "\n")
	if tt.want == "" != !strings.Contains(warning, "runs in a container") || !strings.Contains(warning, f.Remedy) {
		t.Errorf("%s: the warnings are %q", name, warning)
	}
}

// A container is recognised by the traces that its kind leaves, without the rights of root.
func TestContainer(t *testing.T) {
	const overlay = "581 500 0:60 / / rw,relatime - overlay overlay rw,lowerdir=/x,upperdir=%,workdir=/y"
	for name, tt := range map[string]machineContainer{
		"a host":                           {hosttest.Files{"proc/1/comm": "systemd", "proc/2/comm": "kthreadd", "proc/self/cgroup": "0::/user.slice/user-0.slice\n", "proc/1/environ": "HOME=/\x00TERM=linux\x00"}, "", ""},
		"a host with containers":           {hosttest.Files{"proc/2/comm": "kthreadd", "proc/1/cgroup": "0::/init.scope\n", hosttest.Mounts: "30 29 0:60 / /var/lib/docker/overlay2/x/merged rw - overlay overlay rw,upperdir=/var/lib/docker/overlay2/x/diff"}, "", ""},
		"no files":                         {hosttest.Files{}, "", ""},
		"Docker":                           {hosttest.Files{".dockerenv": ""}, "docker", byFlags},
		"Docker without its mark":          {hosttest.Files{hosttest.Mounts: strings.Replace(overlay, "%", "/var/lib/docker/overlay2/0a/diff", 1)}, "docker", byFlags},
		"Docker on v1":                     {hosttest.Files{"proc/self/cgroup": "4:memory:/docker/0a1b\n0::/\n"}, "docker", byFlags},
		"Docker with systemd":              {hosttest.Files{"proc/self/cgroup": "0::/system.slice/docker-0a1b.scope\n"}, "docker", byFlags},
		"Docker in WSL":                    {hosttest.Files{".dockerenv": "", hosttest.Release: "6.6.87.2-microsoft-standard-WSL2"}, "docker", byFlags},
		"Podman":                           {hosttest.Files{"run/.containerenv": "engine=\"podman-5.4\""}, "podman", byFlags},
		"Podman, without root":             {hosttest.Files{"proc/self/cgroup": "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-0a.scope/container\n"}, "podman", byFlags},
		"a job of Kubernetes":              {hosttest.Files{"var/run/secrets/kubernetes.io/serviceaccount/": ""}, "kubernetes", byPod},
		"a pod without a token":            {hosttest.Files{"proc/self/cgroup": "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-0a.scope\n"}, "kubernetes", byPod},
		"a pod in a private group":         {hosttest.Files{"proc/self/cgroup": "0::/\n", "proc/1/environ": "PATH=/bin\x00KUBERNETES_SERVICE_HOST=10.96.0.1\x00"}, "kubernetes", byPod},
		"containerd, with a private group": {hosttest.Files{"proc/self/cgroup": "0::/\n", hosttest.Mounts: strings.Replace(overlay, "%", "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/9/fs", 1)}, "containerd", byFlags},
		"LXC":                              {hosttest.Files{"proc/1/environ": "TERM=linux\x00container=lxc\x00"}, "lxc", byHost},
		"Incus":                            {hosttest.Files{"dev/incus/sock": ""}, "incus", byHost},
		"systemd-nspawn":                   {hosttest.Files{"run/host/container-manager": "systemd-nspawn\n"}, "systemd-nspawn", byHost},
		"a container with systemd":         {hosttest.Files{"run/systemd/container": "lxc\n", ".dockerenv": ""}, "lxc", byHost},
		"OpenVZ":                           {hosttest.Files{"proc/vz/": ""}, "openvz", byHost},
		"a host of OpenVZ":                 {hosttest.Files{"proc/vz/": "", "proc/bc/": ""}, "", ""},
		"WSL":                              {hosttest.Files{hosttest.Release: "6.6.87.2-microsoft-standard-WSL2", "proc/1/comm": "init(Debian)", "proc/2/comm": "init"}, "wsl", byLinux},
		"an unknown container":             {hosttest.Files{"proc/1/comm": "init", "proc/2/comm": "sh"}, "of an unknown kind", byHost},
	} {
		wantContainer(t, name, nil, tt)
	}
}

// A container with the PIDs and the name of the host has the namespaces of the kernel itself. The mounts of Docker are copies from a container of Docker
// 20.10.24 with --pid=host --uts=host. The files of a pod follow from the code of kubectl, containerd and the kubelet: a pod of kubectl debug node has
// hostPID and hostNetwork, and so the host's name. Its cgroup namespace is private on v2, unless it is privileged. Each container of a pod has the
// variable KUBERNETES_SERVICE_HOST.
func TestContainerInNamespacesOfTheHost(t *testing.T) {
	const (
		docker = "93 69 0:39 / / rw,relatime master:2 - overlay overlay rw,lowerdir=/srv/data/overlay2/l/2OTB:/srv/data/overlay2/l/SMNT," +
			"upperdir=/srv/data/overlay2/16cc/diff,workdir=/srv/data/overlay2/16cc/work"
		pod     = "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1.slice/cri-containerd-0a.scope"
		podEnv  = "PATH=/bin\x00KUBERNETES_SERVICE_HOST=10.96.0.1\x00"
		subtree = "40 39 0:29 %s /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw"
	)
	private := maps.Clone(hosttest.InitialNamespaces)
	private["proc/self/ns/cgroup"] = "cgroup:[4026532300]"
	host := hosttest.RootMount + "\n" + hosttest.MountV2
	for name, tt := range map[string]struct {
		links hosttest.Links
		machineContainer
	}{
		"a host":                         {hosttest.InitialNamespaces, machineContainer{hosttest.Files{hosttest.Mounts: host, "proc/1/mountinfo": host, "proc/self/cgroup": "0::/user.slice\n"}, "", ""}},
		"a service with a private root":  {hosttest.InitialNamespaces, machineContainer{hosttest.Files{hosttest.Mounts: "300 20 0:50 / / ro - tmpfs tmpfs rw", "proc/1/mountinfo": host, "proc/self/cgroup": "0::/system.slice/ci.service\n"}, "", ""}},
		"a private cgroup namespace":     {private, machineContainer{hosttest.Files{hosttest.Mounts: host, "proc/1/mountinfo": host, "proc/self/cgroup": "0::/\n", "proc/self/environ": "PATH=/bin\x00"}, "", ""}},
		"variables of Kubernetes":        {hosttest.InitialNamespaces, machineContainer{hosttest.Files{hosttest.Mounts: host, "proc/1/mountinfo": host, "proc/self/environ": podEnv}, "", ""}},
		"Docker":                         {hosttest.InitialNamespaces, machineContainer{hosttest.Files{".dockerenv": "", hosttest.Mounts: docker, "proc/1/mountinfo": host}, "docker", byFlags}},
		"Docker, privileged":             {hosttest.InitialNamespaces, machineContainer{hosttest.Files{".dockerenv": "", hosttest.Mounts: docker + "\n" + hosttest.MountV2, "proc/1/mountinfo": host}, "docker", byLimits}},
		"Docker with one cgroup":         {hosttest.InitialNamespaces, machineContainer{hosttest.Files{".dockerenv": "", hosttest.Mounts: docker + "\n" + fmt.Sprintf(subtree, "/docker/0a"), "proc/1/mountinfo": host}, "docker", byFlags}},
		"kubectl debug node":             {private, machineContainer{hosttest.Files{"proc/self/cgroup": "0::/\n", "proc/self/environ": podEnv, hosttest.Mounts: host, "proc/1/mountinfo": host}, "kubernetes", byPod}},
		"kubectl debug node, sysadmin":   {hosttest.InitialNamespaces, machineContainer{hosttest.Files{"proc/self/cgroup": "0::" + pod + "\n", hosttest.Mounts: host, "proc/1/mountinfo": host}, "kubernetes", byLimits}},
		"Podman in a chroot to the host": {private, machineContainer{hosttest.Files{"proc/self/environ": "PATH=/bin\x00container=podman\x00", hosttest.Mounts: host, "proc/1/mountinfo": host}, "podman", byFlags}},
	} {
		t.Run(name, func(t *testing.T) { wantContainer(t, name, tt.links, tt.machineContainer) })
	}
}
