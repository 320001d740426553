// Package kata finds Kata Containers on the host, and derives Kata's configuration for a target.
//
// Kata is a containerd shim. It reads one file of configuration, with the files of the directory config.d beside it, and takes no
// other options. So the options of a target become a complete file of the run, and the user's file does not change. Without
// options the shim reads the user's file, if that keeps all processes of a pod in the pod's cgroup.
//
// The package refuses options that Kata does not have, a file that names several hypervisors, and a file that is missing or
// is not TOML. It checks neither the host nor the files that the configuration names.
package kata

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/target"
)

const (
	// Name is the name of the runtime in targets, unless the user chooses another one.
	Name = "kata"
	// Type is the runtime type of Kata's shim.
	Type = "io.containerd.kata.v2"
	// Shim is the name of the shim's program.
	Shim = "containerd-shim-kata-v2"
	// Cgroup is an empty top-level cgroup that the shim's command "delete" makes for each sandbox without a specification, and leaves behind.
	Cgroup = "vc"
)

// IsType reports whether a runtime type is a shim of Kata.
func IsType(runtimeType string) bool { return strings.HasPrefix(runtimeType, "io.containerd.kata") }

// shimDirs are the directories of the shim in Kata's releases, in distributions and in the snap.
var shimDirs = []string{
	"/opt/kata/bin", "/usr/local/bin", "/usr/bin", "/usr/libexec/kata-containers",
	"/snap/kata-containers/current/usr/bin",
}

// rustShim is the shim in Rust of Kata's releases. Only this shim has Dragonball.
const rustShim = "/opt/kata/runtime-rs/bin/" + Shim

// FindShim finds the program of a runtime type: by engine.LookPath, beside one of the given programs, or in the directories of Kata. It
// returns an empty string if the shim is not found.
func FindShim(runtimeType string, programs ...string) string {
	name := ShimProgram(runtimeType)
	if path, err := engine.LookPath(name); err == nil {
		return path
	}
	var dirs []string
	for _, program := range programs {
		if program != "" {
			dirs = append(dirs, engine.Beside(program)...)
		}
	}
	path, _ := engine.FindIn(name, slices.Concat(dirs, shimDirs))
	return path
}

// ShimProgram returns the name of a shim's program, as containerd derives it from the last two parts of the type.
func ShimProgram(runtimeType string) string {
	parts := strings.Split(runtimeType, ".")
	if len(parts) < 2 {
		return Shim
	}
	return "containerd-shim-" + strings.Join(parts[len(parts)-2:], "-")
}

// configDirs are the directories of Kata's configuration. The first one with a file counts, as in Kata's packages.
var configDirs = []string{
	"/etc/kata-containers", "/opt/kata/share/defaults/kata-containers", "/usr/share/defaults/kata-containers",
	"/usr/share/kata-containers/defaults",
}

// dirsFor lists the directories of the configuration for a shim. The administrator's directory comes first. The directories in the installation of the shim
// follow, which are the shim's defaults: a snap and a store are no usual places.
func dirsFor(shim string) []string {
	dirs := slices.Clone(configDirs[:1])
	if shim != "" {
		for _, dir := range engine.Beside(shim) {
			dirs = append(dirs, filepath.Join(dir, "../share/defaults/kata-containers"), filepath.Join(dir, "../share/kata-containers/defaults"))
		}
	}
	return append(dirs, slices.DeleteFunc(slices.Clone(configDirs[1:]), func(dir string) bool { return slices.Contains(dirs, dir) })...)
}

// rustDir is the directory in one of configDirs with the configuration of the shim in Rust.
const rustDir = "runtime-rs"

// defaultFile is the configuration of Kata's default hypervisor. The other hypervisors have files configuration-NAME.toml.
const defaultFile = "configuration.toml"

// hypervisors maps the values of the option to the table of the configuration and the name in its file.
var hypervisors = map[string]struct{ table, file string }{
	"qemu":        {"qemu", "qemu"},
	"clh":         {"clh", "clh"},
	"firecracker": {"firecracker", "fc"},
	"fc":          {"firecracker", "fc"},
	"dragonball":  {dragonball, dragonball},
	"stratovirt":  {"stratovirt", "stratovirt"},
}

const dragonball = "dragonball"

// fileSystems maps the values of the option to Kata's values.
var fileSystems = map[string]string{
	"virtio-fs": "virtio-fs", "virtio-9p": "virtio-9p", "9p": "virtio-9p", "virtio-fs-nydus": "virtio-fs-nydus", "none": "none",
}

// advice is for an installation without a configuration.
const advice = "install Kata Containers 3 as its release lies, in /opt/kata, or name the file with the option config=PATH"

// find finds the file of a target's configuration.
func find(dirs []string, override, hypervisor string) (string, error) {
	if override != "" {
		if _, err := os.Stat(override); err != nil {
			return "", refuse(fmt.Sprintf("the configuration %s: %v", override, cause(err)), "correct the option config")
		}
		return filepath.Abs(override)
	}
	if hypervisor == "" {
		for _, dir := range dirs {
			if file := filepath.Join(dir, defaultFile); exists(file) {
				return file, nil
			}
		}
		return "", refuse(fmt.Sprintf("its configuration %s is in none of %s", defaultFile, strings.Join(dirs, ", ")), advice)
	}
	entry := hypervisors[hypervisor]
	name := "configuration-" + entry.file + ".toml"
	for _, dir := range dirs {
		if entry.table == dragonball {
			dir = filepath.Join(dir, rustDir)
		}
		if file := filepath.Join(dir, name); exists(file) {
			return file, nil
		}
		if values, err := read(filepath.Join(dir, defaultFile)); err == nil {
			if table, err := hypervisorOf(values); err == nil && table == entry.table {
				return filepath.Join(dir, defaultFile), nil
			}
		}
	}
	return "", refuse(fmt.Sprintf("its configuration %s for the hypervisor %s is in none of %s", name, hypervisor, strings.Join(dirs, ", ")), advice)
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// cause drops the path from an error about a file.
func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

func refuse(reason, advice string) *engine.UnsupportedError {
	return &engine.UnsupportedError{What: "Kata Containers", Reason: reason, Advice: advice}
}

// The options of targets.
const (
	optionConfig     = "config"     // the path of Kata's file
	optionHypervisor = "hypervisor" // one of hypervisors
	optionFS         = "fs"         // one of fileSystems
	optionKernel     = "kernel"     // the path of the guest's kernel
	optionMemory     = "memory"     // of the guest, in MiB
	optionVCPUs      = "vcpus"
)

var optionNames = []string{optionConfig, optionFS, optionHypervisor, optionKernel, optionMemory, optionVCPUs}

// option returns the value of an option; empty if it is not set.
func option(options []target.Option, name string) string {
	for _, o := range options {
		if o.Name == name {
			return o.Value
		}
	}
	return ""
}
