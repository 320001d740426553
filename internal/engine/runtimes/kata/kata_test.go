package kata

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// example is a file of Kata, shortened.
const example = `# a comment
[hypervisor.qemu]
path = "/opt/kata/bin/qemu-system-x86_64"
kernel = "/opt/kata/vmlinux"
image = "/opt/kata/kata.img"
default_vcpus = 1
default_maxvcpus = 2
default_memory = 2048
shared_fs = "virtio-fs"
virtio_fs_daemon = "/opt/kata/libexec/virtiofsd"
virtio_fs_extra_args = ["--thread-pool-size=1", "--announce-submounts"]
[agent.kata]
dial_timeout = 45
[runtime]
internetworking_model = "tcfilter"
sandbox_cgroup_only = true
`

// installed writes files below a directory, which it returns.
func installed(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return dir
}

func options(t *testing.T, text string) []target.Option {
	t.Helper()
	name := "containerd/kata"
	if text != "" {
		name += "@" + text
	}
	parsed, err := target.Parse(name)
	must.Do(t, err)
	return parsed.Options
}

// decoded reads a file that the shim would read.
func decoded(t *testing.T, file string) map[string]any {
	t.Helper()
	var values map[string]any
	if _, err := toml.DecodeFile(file, &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// Without options the shim reads the user's file.
func TestOwnFileIsUsed(t *testing.T) {
	dir := installed(t, map[string]string{"configuration.toml": example})
	c, err := load([]string{t.TempDir(), dir}, nil)
	must.Do(t, err)
	file, err := c.Write(t.TempDir(), "kata-0")
	if config := filepath.Join(dir, "configuration.toml"); err != nil || file != config || c.File != config {
		t.Errorf("Write() = %s, %v; want %s", file, err, config)
	}
	want := Config{
		File: c.File, Hypervisor: "qemu", Program: "/opt/kata/bin/qemu-system-x86_64", SharedFS: "virtio-fs", FileServer: "/opt/kata/libexec/virtiofsd",
		Kernel: "/opt/kata/vmlinux", Image: "/opt/kata/kata.img", MemoryMiB: 2048, VCPUs: 1,
	}
	got := *c
	got.values, got.dialTimeout = nil, 0
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Config{})); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if c.DialTimeout() != 45*time.Second {
		t.Errorf("DialTimeout() = %v, want 45s", c.DialTimeout())
	}
	notes := strings.Join(c.Notes(), "; ")
	for _, want := range []string{"hypervisor qemu", "shared file system virtio-fs", "guest kernel /opt/kata/vmlinux", "guest memory 2048 MiB", "vCPUs 1"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes %q lack %q", notes, want)
		}
	}
}

// The derived file is complete, and the user's does not change.
func TestDerivedFile(t *testing.T) {
	defer func(was func() int) { hostCPUs = was }(hostCPUs)
	hostCPUs = func() int { return 8 }
	kernel := filepath.Join(t.TempDir(), "vmlinuz")
	must.Do(t, os.WriteFile(kernel, nil, 0o600))
	dir := installed(t, map[string]string{
		"configuration.toml": strings.ReplaceAll(example, "sandbox_cgroup_only = true\n", ""),
		"config.d/10-a.toml": "[hypervisor.qemu]\nshared_fs = \"none\"\nmsize_9p = 1\n",
		"config.d/20-b.toml": "[hypervisor.qemu]\nmsize_9p = 2\n",
	})
	c, err := load([]string{dir}, options(t, "fs=9p,memory=256,vcpus=4,kernel="+kernel))
	must.Do(t, err)
	out := t.TempDir()
	file, err := c.Write(out, "kata-3")
	if err != nil || file != filepath.Join(out, "kata-3.toml") {
		t.Fatalf("Write() = %s, %v", file, err)
	}
	want := decoded(t, filepath.Join(dir, "configuration.toml"))
	vm := section(want, "hypervisor", "qemu")
	vm["shared_fs"], vm["default_memory"], vm["default_vcpus"], vm["default_maxvcpus"] = "virtio-9p", int64(256), int64(4), int64(4)
	vm["kernel"], vm["msize_9p"] = kernel, int64(2)
	section(want, "runtime")["sandbox_cgroup_only"] = true
	if diff := cmp.Diff(want, decoded(t, file)); diff != "" {
		t.Errorf("derived file (-want +got):\n%s", diff)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "configuration.toml")); err != nil || strings.Contains(string(text), "virtio-9p") {
		t.Errorf("the user's file changed: %s, %v", text, err)
	}
	if len(c.DropIns) != 2 || c.SharedFS != "virtio-9p" || c.MemoryMiB != 256 || c.VCPUs != 4 || c.Kernel != kernel {
		t.Errorf("effective values %+v", c)
	}
	if got := c.Files(); !slices.Contains(got, kernel) || !slices.Contains(got, c.DropIns[1]) {
		t.Errorf("Files() = %q", got)
	}
}

// A hypervisor has a file of its own, or is that of the default file.
func TestHypervisors(t *testing.T) {
	dir := installed(t, map[string]string{
		"configuration.toml":     example,
		"configuration-clh.toml": strings.ReplaceAll(example, "hypervisor.qemu", "hypervisor.clh"),
		"configuration-fc.toml":  strings.ReplaceAll(example, "hypervisor.qemu", "hypervisor.firecracker"),
	})
	for spelling, want := range map[string]string{
		"": "configuration.toml", "hypervisor=qemu": "configuration.toml", "hypervisor=clh": "configuration-clh.toml",
		"hypervisor=fc": "configuration-fc.toml", "hypervisor=firecracker": "configuration-fc.toml",
		"hypervisor=clh,config=" + dir + "/configuration-clh.toml": "configuration-clh.toml",
	} {
		c, err := load([]string{dir}, options(t, spelling))
		if err != nil || filepath.Base(c.File) != want {
			t.Errorf("%s: %+v, %v; want %s", spelling, c, err, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	dir := installed(t, map[string]string{
		"configuration.toml":            example,
		"broken.toml":                   "[hypervisor.qemu\n",
		"none.toml":                     "[runtime]\n",
		"two.toml":                      "[hypervisor.qemu]\n[hypervisor.clh]\n",
		"value.toml":                    "[hypervisor]\nqemu = 1\n",
		"drop-in/configuration.toml":    example,
		"drop-in/config.d/bad.toml":     "=",
		"configuration-stratovirt.toml": example,
		"memory.toml":                   "[hypervisor.qemu]\ndefault_memory = \"256\"\n",
		"negative.toml":                 "[hypervisor.qemu]\ndefault_memory = -256\n",
		"kernel.toml":                   "[hypervisor.qemu]\nkernel = 5\n",
		"huge.toml":                     "[hypervisor.qemu]\nenable_hugepages = \"yes\"\n",
		"dial.toml":                     "[hypervisor.qemu]\n[agent.kata]\ndial_timeout = 1.5\n",
		"agent.toml":                    "[hypervisor.qemu]\n[agent]\nkata = 1\n",
		"agents.toml":                   "agent = 1\n[hypervisor.qemu]\n",
		"runtime.toml":                  "runtime = 1\n[hypervisor.qemu]\n",
		"cgroup.toml":                   "[hypervisor.qemu]\n[runtime]\nsandbox_cgroup_only = \"no\"\n",
	})
	option := func(name string) string { return "config=" + filepath.Join(dir, name) }
	for spelling, want := range map[string]string{
		"colour=red":                           "no option colour",
		"hypervisor=xen":                       "want one of clh, dragonball, fc, firecracker, qemu, stratovirt",
		"hypervisor=clh":                       "configuration-clh.toml for the hypervisor clh is in none of " + dir,
		"hypervisor=stratovirt":                "is for the hypervisor qemu",
		"hypervisor=dragonball":                "configuration-dragonball.toml",
		"hypervisor=clh," + option("two.toml"): "it has the hypervisors clh, qemu",
		"fs=nfs":                               "want one of 9p, none, virtio-9p, virtio-fs, virtio-fs-nydus",
		"memory=0":                             "want a positive integer",
		"vcpus=half":                           "want a positive integer",
		"kernel=vmlinux":                       "want an absolute path",
		"kernel=/no/such/kernel":               "does not exist",
		"config=here.toml":                     "want an absolute path",
		option("missing.toml"):                 "missing.toml: no such file",
		option("broken.toml"):                  "broken.toml",
		option("none.toml"):                    "no table [hypervisor.NAME]",
		option("value.toml"):                   "hypervisor.qemu is not a table",
		option("drop-in/configuration.toml"):   "bad.toml",
		option("memory.toml"):                  `memory.toml: hypervisor.qemu.default_memory is "256", want a whole number`,
		option("negative.toml"):                "default_memory is -256, want a whole number, not negative",
		option("kernel.toml"):                  "hypervisor.qemu.kernel is 5, want a string",
		option("huge.toml"):                    `enable_hugepages is "yes", want true or false`,
		option("dial.toml"):                    "agent.kata.dial_timeout is 1.5, want a whole number",
		option("agent.toml"):                   "agent.kata is 1, want a table",
		option("agents.toml"):                  "agent is 1, want a table",
		option("runtime.toml"):                 "runtime is 1, want a table",
		option("cgroup.toml"):                  `runtime.sandbox_cgroup_only is "no", want true or false`,
		"hypervisor=clh," + option("configuration.toml"): "is for the hypervisor qemu",
	} {
		c, err := load([]string{dir}, options(t, spelling))
		if !engine.Unsupported(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want a refusal with %q", spelling, c, err, want)
		}
	}
	if _, err := load([]string{t.TempDir()}, nil); !engine.Unsupported(err) || !strings.Contains(err.Error(), "install Kata Containers 3") {
		t.Errorf("without an installation: %v", err)
	}
}

func TestDialTimeout(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": defaultDial, "[agent.kata]\n": defaultDial, "[agent.kata]\ndial_timeout = 0\n": defaultDial,
		"[agent.kata]\ndial_timeout = 120\n": 2 * time.Minute, "[agent.kata]\ndial_timeout = 99999999\n": maxDial,
	} {
		dir := installed(t, map[string]string{"configuration.toml": "[hypervisor.qemu]\n" + text})
		c, err := load([]string{dir}, nil)
		if err != nil || c.DialTimeout() != want {
			t.Errorf("%q: %+v, %v; want %v", text, c, err, want)
		}
	}
}

// The shim is on PATH, or beside a program of its engine.
func TestFindShim(t *testing.T) {
	dir := installed(t, map[string]string{"a/" + Shim: "", "b/" + Shim: ""})
	for _, name := range []string{"a", "b"} {
		must.Do(t, os.Chmod(filepath.Join(dir, name, Shim), 0o700))
	}
	t.Setenv("PATH", filepath.Join(dir, "a"))
	if got, want := FindShim(Type, filepath.Join(dir, "b/containerd")), filepath.Join(dir, "a", Shim); got != want {
		t.Errorf("on PATH: %q, want %q", got, want)
	}
	t.Setenv("PATH", "/nowhere")
	if got, want := FindShim(Type, "", filepath.Join(dir, "b/containerd")), filepath.Join(dir, "b", Shim); got != want {
		t.Errorf("beside containerd: %q, want %q", got, want)
	}
	for runtimeType, want := range map[string]string{
		Type: Shim, "io.containerd.kata-qemu.v2": "containerd-shim-kata-qemu-v2", "odd": Shim,
	} {
		if got := ShimProgram(runtimeType); got != want {
			t.Errorf("ShimProgram(%s) = %s, want %s", runtimeType, got, want)
		}
	}
}

// No file makes load panic, and the derived configuration of an accepted file has the effective values.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte("[hypervisor.qemu]\n[agent]\nkata = 1\n[runtime]\nsandbox_cgroup_only = \"no\"\n"))
	f.Add([]byte("runtime = 1\n[hypervisor.clh]\ndefault_vcpus = 0.5\ndefault_memory = 1e9\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := installed(t, map[string]string{"configuration.toml": string(text)})
		c, err := load([]string{dir}, options(t, "memory=300"))
		if err != nil {
			if !engine.Unsupported(err) {
				t.Errorf("%v", err)
			}
			return
		}
		out, err := c.Write(t.TempDir(), "x")
		must.Do(t, err)
		echo, err := load([]string{dir}, []target.Option{{Name: "config", Value: out}})
		if err != nil || echo.MemoryMiB != 300 || echo.Hypervisor != c.Hypervisor || len(echo.Set) > 0 {
			t.Errorf("the derived file of %q: %+v, %v", text, echo, err)
		}
	})
}
