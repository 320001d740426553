package host

import (
	"context"
	"encoding/json"
	"flag"
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

// A container is recognised by the traces that its kind leaves, without the rights of root.
func TestContainer(t *testing.T) {
	const overlay = "581 500 0:60 / / rw,relatime - overlay overlay rw,lowerdir=/x,upperdir=%,workdir=/y"
	for name, tt := range map[string]struct {
		files hosttest.Files
		want  string
	}{
		"a host":                           {hosttest.Files{"proc/1/comm": "systemd", "proc/2/comm": "kthreadd", "proc/self/cgroup": "0::/user.slice/user-0.slice\n", "proc/1/environ": "HOME=/\x00TERM=linux\x00"}, ""},
		"a host with containers":           {hosttest.Files{"proc/2/comm": "kthreadd", "proc/1/cgroup": "0::/init.scope\n", hosttest.Mounts: "30 29 0:60 / /var/lib/docker/overlay2/x/merged rw - overlay overlay rw,upperdir=/var/lib/docker/overlay2/x/diff"}, ""},
		"no files":                         {hosttest.Files{}, ""},
		"Docker":                           {hosttest.Files{".dockerenv": ""}, "docker"},
		"Docker without its mark":          {hosttest.Files{hosttest.Mounts: strings.Replace(overlay, "%", "/var/lib/docker/overlay2/0a/diff", 1)}, "docker"},
		"Docker on v1":                     {hosttest.Files{"proc/self/cgroup": "4:memory:/docker/0a1b\n0::/\n"}, "docker"},
		"Docker with systemd":              {hosttest.Files{"proc/self/cgroup": "0::/system.slice/docker-0a1b.scope\n"}, "docker"},
		"Podman":                           {hosttest.Files{"run/.containerenv": "engine=\"podman-5.4\""}, "podman"},
		"Podman, without root":             {hosttest.Files{"proc/self/cgroup": "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-0a.scope/container\n"}, "podman"},
		"a job of Kubernetes":              {hosttest.Files{"var/run/secrets/kubernetes.io/serviceaccount/": ""}, "kubernetes"},
		"a pod without a token":            {hosttest.Files{"proc/self/cgroup": "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-0a.scope\n"}, "kubernetes"},
		"containerd, with a private group": {hosttest.Files{"proc/self/cgroup": "0::/\n", hosttest.Mounts: strings.Replace(overlay, "%", "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/9/fs", 1)}, "containerd"},
		"LXC":                              {hosttest.Files{"proc/1/environ": "TERM=linux\x00container=lxc\x00"}, "lxc"},
		"Incus":                            {hosttest.Files{"dev/incus/sock": ""}, "incus"},
		"systemd-nspawn":                   {hosttest.Files{"run/host/container-manager": "systemd-nspawn\n"}, "systemd-nspawn"},
		"a container with systemd":         {hosttest.Files{"run/systemd/container": "lxc\n", ".dockerenv": ""}, "lxc"},
		"OpenVZ":                           {hosttest.Files{"proc/vz/": ""}, "openvz"},
		"a host of OpenVZ":                 {hosttest.Files{"proc/vz/": "", "proc/bc/": ""}, ""},
		"an unknown container":             {hosttest.Files{"proc/1/comm": "init", "proc/2/comm": "sh"}, "of an unknown kind"},
	} {
		root := t.TempDir()
		hosttest.Write(t, root, tt.files)
		if got := facts.Container(root); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		findings, err := check.Inspect(t.Context(), root, func(context.Context) error { return nil })
		must.Do(t, err)
		f := findings[slices.IndexFunc(findings, func(f check.Finding) bool { return f.Name == "container" })]
		if isPoor := f.Rating == check.Poor; isPoor != (tt.want != "") || isPoor && (f.Now != tt.want || !strings.Contains(f.Remedy, "--privileged --pid=host")) {
			t.Errorf("%s: the finding is %+v", name, f)
		}
		if facts := Facts(root); facts.Container != tt.want || strings.Contains(strings.Join(facts.Warnings, "\n"), "is no bare metal") != (tt.want != "") {
			t.Errorf("%s: the facts have the container %q and the warnings %q", name, facts.Container, facts.Warnings)
		}
	}
}
