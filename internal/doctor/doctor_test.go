package doctor

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// sample is a report with names and secrets.
func sample() Report {
	return Report{
		Touchstone: result.Tool{Version: "1.2.3", Go: "go1.26.8"}, Platform: "linux/amd64",
		Host: result.Host{
			Hostname: "node7", Identity: &result.Identity{}, OS: "Debian 12", Kernel: "6.18.44", Arch: "amd64", CPU: "A CPU", CPUs: 2, Memory: 25275129856,
			Cgroup: "v2", Root: true, Warnings: []string{"it is hot"},
		},
		Configuration: []File{
			{Path: "/etc/docker/daemon.json", Settings: []Setting{{"runtimes / crun / path", "/srv/people/bob/crun"}}},
			{Path: "/etc/crio/crio.conf", Problem: "it cannot be parsed"},
		},
		Targets: []Target{
			{Target: "native", Works: true, Version: "Linux 6.18.44"},
			{Target: "oci/runc", Works: true, Version: "runc 1.1"},
			{Target: "docker/runc", Version: "Docker 28, runc 1.1", Binary: "/usr/bin/runc", Reason: "it fails (10.0.0.7)", Advice: "try by hand:\n(cd / && runc)", Output: "line 1 of alice\nhttps://u:hunter2@r.example"},
			{Target: "oci/crun", Reason: "crun is not on PATH", Advice: "install it"},
			{Target: "docker/crun", Binary: "/x", Reason: "crun is not on PATH", Advice: "install it"},
		},
		Logs: []Log{{"docker", "error on node7\nthe end\n"}},
	}
}

func TestReport(t *testing.T) {
	r, err := sample().Redacted(redactor)
	must.Do(t, err)
	const want = `Versions
  touchstone     1.2.3
  Go             go1.26.8 linux/amd64
  programs       Linux 6.18.44
                 runc 1.1
                 Docker 28

Machine
  system         Debian 12
  kernel         6.18.44
  architecture   amd64
  CPU            2 × A CPU
  memory         24104 MiB
  cgroups        v2
  root           true
  warning        it is hot

Configuration /etc/docker/daemon.json
  runtimes / crun / path = (home)/crun

Configuration /etc/crio/crio.conf
  problem        it cannot be parsed

Works: native, oci/runc

Does not work: docker/runc
  it fails ((address))
  binary: /usr/bin/runc
  remedy: try by hand:
  (cd / && runc)
  the failing call:
    line 1 of (user)
    https://(redacted)@r.example

Does not work: oci/crun, docker/crun
  crun is not on PATH
  remedy: install it

The end of the log of docker
  error on (host)
  the end
`
	if diff := cmp.Diff(want, r.Text()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if text := (Report{Problem: "no rights\nat all"}).Text(); !bytes.Contains([]byte(text), []byte("\nNo target could be tried\n  no rights\n  at all\n")) {
		t.Errorf("a report without targets is\n%s", text)
	}
}

// unpack returns the files of a bundle.
func unpack(t *testing.T, bundle []byte) map[string]string {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(bundle))
	must.Do(t, err)
	files := map[string]string{}
	archive := tar.NewReader(unzipped)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		must.Do(t, err)
		if header.Mode != 0o600 || header.Uname != "" {
			t.Errorf("%s has the mode %o and the owner %q", header.Name, header.Mode, header.Uname)
		}
		text, err := io.ReadAll(archive)
		must.Do(t, err)
		files[header.Name] = string(text)
	}
}

// A bundle has what was shown, as text and as JSON.
func TestBundle(t *testing.T) {
	r := sample()
	bundle, err := r.Bundle()
	must.Do(t, err)
	files := unpack(t, bundle)
	var back Report
	must.Do(t, json.Unmarshal([]byte(files["touchstone-doctor/report.json"]), &back))
	if diff := cmp.Diff(r, back); diff != "" || len(files) != 2 || files["touchstone-doctor/report.txt"] != r.Text() {
		t.Errorf("%d files; (-want +got):\n%s", len(files), diff)
	}
}

// A report has only the keys that matter, and no text of a file that cannot be parsed.
func TestConfiguration(t *testing.T) {
	root := t.TempDir()
	for file, text := range map[string]string{
		"etc/containerd/config.toml": `version = 2
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".registry.configs."r.example".auth]
    username = "alice"
    password = "hunter2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.crun.options]
    BinaryName = "/usr/bin/crun"
`,
		"etc/docker/daemon.json":           `{"runtimes": {"crun": {"path": "/usr/bin/crun", "runtimeArgs": ["--debug"]}}, "proxies": {"http-proxy": "http://u:hunter2@p"}, "registry-mirrors": ["https://m"]}`,
		"etc/crio/crio.conf.d/10-own.conf": "hunter2 = [",
		"etc/containers/containers.conf":   "[engine]\nruntime = \"crun\"\nenv = [\"TOKEN=hunter2\"]\n[engine.runtimes]\nmine = [\"/opt/mine\"]\n",
	} {
		path := filepath.Join(root, file)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	must.Do(t, os.MkdirAll(filepath.Join(root, "etc/containers/storage.conf"), 0o755))
	want := []File{
		{Path: "/etc/containerd/config.toml", Settings: []Setting{
			{"plugins / io.containerd.grpc.v1.cri / containerd / runtimes / crun / options / BinaryName", "/usr/bin/crun"},
			{"plugins / io.containerd.grpc.v1.cri / restrict_oom_score_adj", "true"},
			{"version", "2"},
		}},
		{Path: "/etc/docker/daemon.json", Settings: []Setting{{"runtimes / crun / path", "/usr/bin/crun"}, {"runtimes / crun / runtimeArgs", "[--debug]"}}},
		{Path: "/etc/crio/crio.conf.d/10-own.conf", Problem: "it cannot be parsed"},
		{Path: "/etc/containers/containers.conf", Settings: []Setting{{"engine / runtime", "crun"}, {"engine / runtimes / mine", "[/opt/mine]"}}},
		{Path: "/etc/containers/storage.conf", Problem: "read " + root + "/etc/containers/storage.conf: is a directory"},
	}
	if diff := cmp.Diff(want, Configuration(root)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
