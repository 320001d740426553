package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/test/lab/job"
)

const kataTarget = "containerd/kata"

// kataVariable names an installation of Kata Containers for amd64: the directory with an unpacked release. The lab
// takes the shim and the configuration from it, and the guest's kernel and image, which the configuration names.
const kataVariable = "TOUCHSTONE_KATA"

// Paths in an installation, and in the machine.
const (
	kataDir    = "/opt/kata"
	kataShim   = kataDir + "/bin/containerd-shim-kata-v2"
	kataConfig = kataDir + "/share/defaults/kata-containers/configuration.toml"
)

// kataPlan runs a benchmark on Kata. Its guests boot for longer than the usual limit of a call.
const kataPlan = `version: 1
name: kata
targets: [containerd/kata]
engines: {managed: true}
benchmarks: [operations.container.lifecycle]
blocks: 1
warmup: 0
timeout: {trial: 5m, call: 150s}
`

// kataTests are the subtests of the conformance suite for Kata. A container is a virtual machine in an emulated one and takes 20 s, so
// tests of the engine rather than of the runtime are not among them.
const kataTests = "Info|Supports|Lifecycle|Exec|Close"

// containerdFiles are the programs of a newer containerd than Debian's. scripts/test-lab.sh builds them.
var containerdFiles = []string{"containerd", "containerd-shim-runc-v2"}

func installContainerd() []job.Step {
	args := []string{"install", "-D", "-t", "/usr/local/bin"}
	for _, file := range containerdFiles {
		args = append(args, job.Dir+"/"+file)
	}
	return []job.Step{{Name: "install-containerd", Args: args, Limit: time.Minute}}
}

func addContainerd(programs string, files map[string]string) {
	for _, file := range containerdFiles {
		files[file] = filepath.Join(programs, file)
	}
}

// kataParts are the parts of an installation that the machine needs.
type kataParts struct {
	built string // the directory with containerd
	root  string // the installation
	// kernel and guest are paths in the machine. guest is an image or an initrd, with Kata's agent.
	kernel, guest string
	values        map[string]any // the configuration for the machine
}

// findKata returns the installation that kataVariable names. The error is an *engine.UnsupportedError if Kata cannot be tested, and another one
// if the installation is not complete.
func findKata(programs string) (kataParts, error) {
	refuse := func(reason, advice string) (kataParts, error) {
		return kataParts{}, &engine.UnsupportedError{What: kataTarget, Reason: reason, Advice: advice}
	}
	root := os.Getenv(kataVariable)
	switch {
	case root == "":
		return refuse(kataVariable+" names no installation of Kata Containers", "unpack a release, and name its directory: see CONTRIBUTING.md")
	case runtime.GOARCH != "amd64":
		return refuse("the machine with KVM needs containerd for amd64, and this host builds it for "+runtime.GOARCH, "use an amd64 host")
	}
	k, err := readKata(root)
	if err != nil {
		return kataParts{}, fmt.Errorf("read the installation of Kata Containers in %s=%s: %w", kataVariable, root, err)
	}
	k.built = programs
	return k, nil
}

// readKata reads an installation, and merges the lab's values into its configuration.
func readKata(root string) (kataParts, error) {
	k := kataParts{root: root}
	if _, err := toml.DecodeFile(filepath.Join(root, kataConfig), &k.values); err != nil {
		return k, err
	}
	vm, ok := tableOf(k.values, "hypervisor", "qemu")
	if !ok {
		return k, fmt.Errorf("%s has no table hypervisor.qemu: want the configuration for QEMU", kataConfig)
	}
	text := func(key string) string {
		path, _ := vm[key].(string)
		return path
	}
	k.kernel = text("kernel")
	image, initrd := text("image"), text("initrd")
	if (image == "") == (initrd == "") {
		return k, fmt.Errorf("%s has the image %q and the initrd %q: want one of them", kataConfig, image, initrd)
	}
	k.guest = image + initrd
	for _, path := range []string{kataShim, k.kernel, k.guest} {
		if path != filepath.Clean(path) || !strings.HasPrefix(path, kataDir+"/") {
			return k, fmt.Errorf("%s names %q: want a path below %s, as in a release", kataConfig, path, kataDir)
		}
		if info, err := os.Stat(filepath.Join(root, path)); err != nil {
			return k, err
		} else if !info.Mode().IsRegular() {
			return k, fmt.Errorf("%s is not a file", filepath.Join(root, path))
		}
	}
	var overlay map[string]any
	if _, err := toml.DecodeFile(filepath.Join("testdata", "kata.toml"), &overlay); err != nil {
		return k, err
	}
	mergeTables(k.values, overlay)
	return k, nil
}

func tableOf(values map[string]any, names ...string) (map[string]any, bool) {
	for _, name := range names {
		next, ok := values[name].(map[string]any)
		if !ok {
			return nil, false
		}
		values = next
	}
	return values, true
}

// mergeTables replaces the values of base by those of overlay, table by table.
func mergeTables(base, overlay map[string]any) {
	for key, value := range overlay {
		old, wasTable := base[key].(map[string]any)
		table, isTable := value.(map[string]any)
		if wasTable && isTable {
			mergeTables(old, table)
		} else {
			base[key] = value
		}
	}
}

// install returns the steps that install Kata like a release, and containerd.
func (k kataParts) install() []job.Step {
	steps := installContainerd()
	for _, file := range []struct{ name, to string }{
		{"kata-shim", kataShim}, {"kata-kernel", k.kernel}, {"kata-guest", k.guest}, {"kata-config", kataConfig},
	} {
		steps = append(steps, job.Step{Name: "install-" + file.name, Args: []string{"install", "-D", "-T", job.Dir + "/" + file.name, file.to}, Limit: time.Minute})
	}
	return steps
}

func (k kataParts) add(t *testing.T, files map[string]string) {
	t.Helper()
	addContainerd(k.built, files)
	files["kata-shim"], files["kata-kernel"], files["kata-guest"] = filepath.Join(k.root, kataShim), filepath.Join(k.root, k.kernel), filepath.Join(k.root, k.guest)
	files["kata-config"] = filepath.Join(t.TempDir(), "configuration.toml")
	var text bytes.Buffer
	encoder := toml.NewEncoder(&text)
	encoder.Indent = "" // a test of package cri finds kernel_params at the beginning of its line
	must.Do(t, errors.Join(encoder.Encode(k.values), os.WriteFile(files["kata-config"], text.Bytes(), 0o644)))
}

// steps install Kata Containers and test it. Two processes of a virtual machine are killed while its container runs, and Touchstone
// while a virtual machine boots. TestSoak has the other faults.
func (k kataParts) steps() []job.Step {
	// In an emulated machine about one guest of thirty stops or crashes at boot.
	guests := func(step job.Step) job.Step {
		step.Repeat = true
		return step
	}
	const limit = 8 * time.Minute
	suite := conformance("kata", "cri", "^TestContainerd$/^on_PATH$/^containerd_kata$/^("+kataTests+")$", "", kataTarget)
	runs := exported("kata-runs", limit, "-f", job.Dir+"/kata.yaml")
	runs[0] = guests(runs[0])
	return slices.Concat(
		k.install(),
		[]job.Step{
			guests(nestedSuite(suite, limit)),
			guests(nestedSuite(conformance("kata-faults", "cri", "^TestGuestFaults$", "", kataTarget), limit)),
			touchstone("killed", bootTime, "benchmark", "-d", "/root/killed", "--managed", "--targets", kataTarget, "--filter", "operations.container.lifecycle"),
			touchstone("sweep", time.Minute, "cleanup"),
		},
		runs,
	)
}

// bootTime is the time after which the first guest of a run boots in an emulated machine. The daemon starts in 6 to 10 s, and the guest boots
// for 15 s or more.
const bootTime = 16 * time.Second

// withKata returns the installation of Kata. Without one it skips the test, or fails it if Kata's target may not be skipped.
func withKata(t *testing.T, programs string) kataParts {
	t.Helper()
	k, err := findKata(programs)
	enginetest.Require(t, kataTarget, err)
	return k
}

// installation makes an installation like a release, and changes its configuration.
func installation(t *testing.T, change func(config string) string) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range map[string]string{
		kataShim: "shim", kataDir + "/share/kata-containers/vmlinux-1": "kernel", kataDir + "/share/kata-containers/rootfs-1.img": "image",
		filepath.Dir(kataConfig) + "/configuration-qemu.toml": change(`[hypervisor.qemu]
path = "/opt/kata/bin/qemu-system-x86_64"
kernel = "/opt/kata/share/kata-containers/vmlinux"
image = "/opt/kata/share/kata-containers/rootfs.img"
rootfs_type = "ext4"
kernel_params = ""
default_memory = 2048

[agent.kata]
dial_timeout = 45
`),
	} {
		file := filepath.Join(root, path)
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o755)))
	}
	// A release has links to the versions of its parts.
	for link, destination := range map[string]string{
		kataDir + "/share/kata-containers/vmlinux": "vmlinux-1", kataDir + "/share/kata-containers/rootfs.img": "rootfs-1.img", kataConfig: "configuration-qemu.toml",
	} {
		must.Do(t, os.Symlink(destination, filepath.Join(root, link)))
	}
	return root
}

// The configuration in the machine is the installation's with the lab's values, and the files are the ones that it names.
func TestKataInstallation(t *testing.T) {
	k, err := readKata(installation(t, func(config string) string { return config }))
	must.Do(t, err)
	files := map[string]string{}
	k.add(t, files)
	for name, want := range map[string]string{"kata-shim": "shim", "kata-kernel": "kernel", "kata-guest": "image"} {
		if got := string(read(t, files[name])); got != want {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
	config := "\n" + string(read(t, files["kata-config"]))
	for _, want := range []string{
		"\n[hypervisor.qemu]\n", "\npath = \"/usr/bin/qemu-system-x86_64\"\n", "\ndefault_memory = 256\n", "\ndial_timeout = 120\n", "\nkernel_params = \"mitigations=off ",
		"\nimage = \"/opt/kata/share/kata-containers/rootfs.img\"\n", "\nrootfs_type = \"ext4\"\n",
	} {
		if !strings.Contains(config, want) {
			t.Errorf("the configuration does not contain %q:\n%s", want, config)
		}
	}
	var destinations []string
	for _, step := range k.install() {
		destinations = append(destinations, step.Args[len(step.Args)-1])
	}
	want := []string{
		job.Dir + "/containerd-shim-runc-v2", kataShim, "/opt/kata/share/kata-containers/vmlinux", "/opt/kata/share/kata-containers/rootfs.img", kataConfig,
	}
	if !slices.Equal(destinations, want) {
		t.Errorf("the steps install %q, want %q", destinations, want)
	}
}

// Without the variable Kata is skipped. An installation that lacks a part is an error and not a reason to skip.
func TestKataInstallationIsWhole(t *testing.T) {
	t.Setenv(kataVariable, "")
	if _, err := findKata(""); !engine.Unsupported(err) || !strings.Contains(err.Error(), kataVariable) {
		t.Errorf("without an installation: %v", err)
	}
	change := func(old, new string) func(string) string {
		return func(config string) string { return strings.Replace(config, old, new, 1) }
	}
	for name, test := range map[string]struct {
		change func(string) string
		remove string
		want   string
	}{
		"no shim":            {remove: kataShim, want: "containerd-shim-kata-v2"},
		"no kernel":          {remove: kataDir + "/share/kata-containers/vmlinux-1", want: "vmlinux"},
		"no configuration":   {remove: kataConfig, want: "configuration.toml"},
		"another hypervisor": {change: change("hypervisor.qemu", "hypervisor.clh"), want: "hypervisor.qemu"},
		"image and initrd":   {change: change("image =", "initrd = \"/opt/kata/initrd\"\nimage ="), want: "want one of them"},
		"neither":            {change: change("image =", "other ="), want: "want one of them"},
		"a foreign kernel":   {change: change("/opt/kata/share/kata-containers/vmlinux", "/boot/vmlinuz"), want: "want a path below /opt/kata"},
		"a way out":          {change: change("/opt/kata/share/kata-containers/vmlinux", "/opt/kata/../../boot/vmlinuz"), want: "want a path below /opt/kata"},
		"no TOML":            {change: change("[agent.kata]", "[agent"), want: "toml"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.change == nil {
				test.change = func(config string) string { return config }
			}
			root := installation(t, test.change)
			if test.remove != "" {
				must.Do(t, os.Remove(filepath.Join(root, test.remove)))
			}
			if _, err := readKata(root); err == nil || engine.Unsupported(err) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want one with %q", err, test.want)
			}
		})
	}
}
