package kata

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Config is the effective configuration of a target. The zero value of a field means that the file leaves the choice to Kata.
type Config struct {
	// File is Kata's own file. DropIns are the files of config.d beside it. Their values replace the values of File.
	File    string
	DropIns []string
	// Hypervisor is the name of Kata's table: "qemu", "clh", "firecracker", …. Program is the hypervisor's path.
	Hypervisor, Program string
	// SharedFS is the shared file system, and FileServer is the path of its program on the host.
	SharedFS, FileServer string
	// Kernel, and one of Image and Initrd, are the guest.
	Kernel, Image, Initrd string
	// MemoryMiB is the memory of the guest without the limits of containers, which Kata adds. VCPUs is likewise.
	MemoryMiB int64
	VCPUs     float64
	// Shim is the shim that this configuration needs instead of the usual one; empty if it needs none.
	Shim string
	// Set lists the values that Touchstone sets, like memory=256 and sandbox_cgroup_only=true. If it is empty the shim reads File.
	Set []string

	dialTimeout time.Duration
	values      map[string]any
}

// Load reads the configuration of a target with these options. The shim's installation may have it; the path of the shim may be empty. An error is an
// *engine.UnsupportedError.
func Load(shim string, options []target.Option) (*Config, error) {
	return load(dirsFor(shim), options)
}

func load(dirs []string, options []target.Option) (*Config, error) {
	if err := check(options); err != nil {
		return nil, err
	}
	hypervisor := option(options, optionHypervisor)
	file, err := find(dirs, option(options, optionConfig), hypervisor)
	if err != nil {
		return nil, err
	}
	c := &Config{File: file}
	if c.values, err = read(file); err == nil {
		err = c.readDropIns()
	}
	if err == nil {
		c.Hypervisor, err = hypervisorOf(c.values)
	}
	if err == nil {
		err = checkTypes(c.values, c.Hypervisor)
	}
	if err != nil {
		return nil, refuse(fmt.Sprintf("the configuration %s: %v", file, err), "correct the file, or name another one with the option config=PATH")
	}
	if hypervisor != "" && hypervisors[hypervisor].table != c.Hypervisor {
		return nil, refuse(fmt.Sprintf("the configuration %s is for the hypervisor %s", file, c.Hypervisor), "remove the option hypervisor, or the option config")
	}
	if c.Hypervisor == dragonball {
		// The shim in Go accepts the table and starts no virtual machine.
		if engine.CheckProgram(rustShim) != nil {
			return nil, refuse("the hypervisor dragonball is part of Kata's shim in Rust, which is not at "+rustShim, "install a release of Kata Containers 3 in /opt/kata")
		}
		c.Shim = rustShim
	}
	if err := c.set(options); err != nil {
		return nil, err
	}
	c.describe()
	return c, nil
}

// check refuses options that do not exist, and values that Kata does not accept.
func check(options []target.Option) error {
	for _, o := range options {
		advice := ""
		switch o.Name {
		case optionConfig, optionKernel:
			if !filepath.IsAbs(o.Value) {
				advice = "want an absolute path"
			}
		case optionHypervisor:
			if _, ok := hypervisors[o.Value]; !ok {
				advice = "want one of " + strings.Join(slices.Sorted(maps.Keys(hypervisors)), ", ")
			}
		case optionFS:
			if _, ok := fileSystems[o.Value]; !ok {
				advice = "want one of " + strings.Join(slices.Sorted(maps.Keys(fileSystems)), ", ")
			}
		case optionMemory, optionVCPUs:
			n, err := strconv.ParseUint(o.Value, 10, 31)
			switch {
			case err != nil || n == 0:
				advice = "want a positive integer"
			case o.Name == optionMemory && n < minMemoryMiB:
				advice = fmt.Sprintf("Kata gives a guest with less than %d MiB its default of %d MiB", minMemoryMiB, defaultMemoryMiB)
			case o.Name == optionVCPUs && effectiveVCPUs(float64(n)) != float64(n):
				advice = fmt.Sprintf("Kata gives a guest at most as many processors as the host has, %v", effectiveVCPUs(float64(n)))
			}
		default:
			return refuse("it has no option "+o.Name, "the options are "+strings.Join(optionNames, ", ")+"; set others in a file, and name it with config=PATH")
		}
		if advice != "" {
			return refuse(fmt.Sprintf("the option %s=%s: %s", o.Name, o.Value, advice), "correct the option")
		}
	}
	return nil
}

// read reads a file of TOML, with the parser that Kata's shim uses too.
func read(file string) (map[string]any, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, cause(err)
	}
	values := map[string]any{}
	if _, err := toml.Decode(string(text), &values); err != nil {
		return nil, err
	}
	return values, nil
}

// dropInDir is the directory beside Kata's file with further files.
const dropInDir = "config.d"

// readDropIns merges the further files in the order of their names, as Kata does.
func (c *Config) readDropIns() error {
	dir := filepath.Join(filepath.Dir(c.File), dropInDir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		file := filepath.Join(dir, e.Name())
		values, err := read(file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		merge(c.values, values)
		c.DropIns = append(c.DropIns, file)
	}
	return nil
}

// merge replaces the values of base by the values of overlay, table by table.
func merge(base, overlay map[string]any) {
	for key, value := range overlay {
		old, wasTable := base[key].(map[string]any)
		table, isTable := value.(map[string]any)
		if wasTable && isTable {
			merge(old, table)
		} else {
			base[key] = value
		}
	}
}

// hypervisorOf returns the one hypervisor of a configuration.
func hypervisorOf(values map[string]any) (string, error) {
	tables, _ := values["hypervisor"].(map[string]any)
	names := slices.Sorted(maps.Keys(tables))
	for _, name := range names {
		if _, ok := tables[name].(map[string]any); !ok {
			return "", fmt.Errorf("hypervisor.%s is not a table", name)
		}
	}
	switch len(names) {
	case 0:
		return "", errors.New("it has no table [hypervisor.NAME]")
	case 1:
		return names[0], nil
	default:
		return "", fmt.Errorf("it has the hypervisors %s, and Kata would use any of them", strings.Join(names, ", "))
	}
}

// The types of the values that this package reads, by their tables. Kata's shim refuses other types too, but only for a container.
var (
	hypervisorTypes = map[string]kind{
		"path": textKind, "shared_fs": textKind, "virtio_fs_daemon": textKind, "kernel": textKind, "image": textKind, "initrd": textKind, "file_mem_backend": textKind,
		"default_memory": countKind, "default_maxvcpus": countKind, "default_vcpus": decimalKind, "enable_hugepages": truthKind,
	}
	agentTypes   = map[string]kind{"dial_timeout": countKind}
	runtimeTypes = map[string]kind{podCgroup: truthKind}
)

// kind is the type of a value, in the words of an error.
type kind string

const (
	textKind    kind = "a string"
	countKind   kind = "a whole number, not negative"
	decimalKind kind = "a number"
	truthKind   kind = "true or false"
	tableKind   kind = "a table"
)

// accepts reports whether a value of TOML has the type.
func (k kind) accepts(value any) bool {
	switch v := value.(type) {
	case string:
		return k == textKind
	case int64:
		return k == decimalKind || k == countKind && v >= 0
	case float64:
		return k == decimalKind
	case bool:
		return k == truthKind
	case map[string]any:
		return k == tableKind
	}
	return false
}

// checkTypes checks the values of a configuration that this package reads.
func checkTypes(values map[string]any, hypervisor string) error {
	check := func(name string, value any, types map[string]kind) error {
		if !tableKind.accepts(value) {
			return fmt.Errorf("%s is %v, want %s", name, value, tableKind)
		}
		values := value.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(types)) {
			if v, has := values[key]; has && !types[key].accepts(v) {
				return fmt.Errorf("%s.%s is %#v, want %s", name, key, v, types[key])
			}
		}
		return nil
	}
	err := check("hypervisor."+hypervisor, values["hypervisor"].(map[string]any)[hypervisor], hypervisorTypes)
	for name, types := range map[string]map[string]kind{"agent": nil, "runtime": runtimeTypes} {
		if value, has := values[name]; has && err == nil {
			err = check(name, value, types)
		}
	}
	agents, _ := values["agent"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		if err == nil {
			err = check("agent."+name, agents[name], agentTypes)
		}
	}
	return err
}

// section returns a table below one of the tables of the configuration, which it makes if it is missing.
func section(values map[string]any, names ...string) map[string]any {
	for _, name := range names {
		next, ok := values[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			values[name] = next
		}
		values = next
	}
	return values
}

// podCgroup is Kata's option that keeps all processes of a pod in the pod's cgroup. By default the shim and its helpers are in a
// cgroup /kata_overhead of the host, where neither the limits nor the accounts of the pod include them, and whose parents are
// left behind.
const podCgroup = "sandbox_cgroup_only"

// set changes the values that the options name.
func (c *Config) set(options []target.Option) error {
	vm := section(c.values, "hypervisor", c.Hypervisor)
	change := func(table map[string]any, key string, value any) {
		if table[key] != value {
			table[key] = value
			c.Set = append(c.Set, fmt.Sprintf("%s=%v", key, value))
		}
	}
	for _, o := range options {
		switch o.Name {
		case optionFS:
			change(vm, "shared_fs", fileSystems[o.Value])
		case optionKernel:
			if !exists(o.Value) {
				return refuse("the guest's kernel "+o.Value+" does not exist", "correct the option kernel")
			}
			change(vm, "kernel", o.Value)
		case optionMemory:
			n, _ := strconv.ParseInt(o.Value, 10, 64) // check has accepted it
			change(vm, "default_memory", n)
		case optionVCPUs:
			n, _ := strconv.ParseInt(o.Value, 10, 64) // likewise
			change(vm, "default_vcpus", n)
			if limit, ok := number(vm["default_maxvcpus"]); ok && limit > 0 && limit < float64(n) {
				change(vm, "default_maxvcpus", n)
			}
		}
	}
	change(section(c.values, "runtime"), podCgroup, true)
	return nil
}

// number reads a number of TOML.
func number(value any) (float64, bool) {
	switch n := value.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// describe reads the fields of c from its values.
func (c *Config) describe() {
	vm := section(c.values, "hypervisor", c.Hypervisor)
	for key, field := range map[string]*string{
		"path": &c.Program, "shared_fs": &c.SharedFS, "virtio_fs_daemon": &c.FileServer, "kernel": &c.Kernel, "image": &c.Image, "initrd": &c.Initrd,
	} {
		*field, _ = vm[key].(string)
	}
	memory, _ := number(vm["default_memory"])
	if memory > 0 {
		c.MemoryMiB = effectiveMemory(int64(memory))
	}
	vcpus, _ := number(vm["default_vcpus"])
	c.VCPUs = effectiveVCPUs(vcpus)
	agents, _ := c.values["agent"].(map[string]any)
	for _, a := range agents { // there is one
		table, _ := a.(map[string]any)
		seconds, _ := number(table["dial_timeout"])
		c.dialTimeout = max(c.dialTimeout, time.Duration(seconds*float64(time.Second)))
	}
}

const (
	// defaultDial is Kata's dial_timeout if its file has none.
	defaultDial = 30 * time.Second
	// maxDial bounds the time that a file can make Touchstone wait.
	maxDial = 10 * time.Minute
)

// DialTimeout is the time that Kata waits for the agent in a guest that boots, at most ten minutes.
func (c *Config) DialTimeout() time.Duration {
	if c.dialTimeout <= 0 {
		return defaultDial
	}
	return min(c.dialTimeout, maxDial)
}

// Files lists the files that the shim opens: its configuration, its programs and the guest.
func (c *Config) Files() []string {
	files := append([]string{c.File, c.Shim, c.Program, c.FileServer, c.Kernel, c.Image, c.Initrd}, c.DropIns...)
	return slices.DeleteFunc(files, func(file string) bool { return file == "" })
}

// Write returns the path of the configuration for the shim: Kata's own file, or a complete file in dir if a value differs.
// The directory must have no config.d, which Kata would read too.
func (c *Config) Write(dir, name string) (string, error) {
	if len(c.Set) == 0 {
		return c.File, nil
	}
	var text bytes.Buffer
	err := toml.NewEncoder(&text).Encode(c.values)
	file := filepath.Join(dir, name+".toml")
	if err == nil {
		err = os.WriteFile(file, text.Bytes(), 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("write a configuration of Kata Containers: %w", err)
	}
	return file, nil
}

// Notes describe the effective values for a record.
func (c *Config) Notes() []string {
	note := "configuration " + c.File
	if len(c.DropIns) > 0 {
		note = wording.Listed(append([]string{note}, c.DropIns...))
	}
	if len(c.Set) > 0 {
		note += ", with " + strings.Join(c.Set, ", ")
	}
	guest := fmt.Sprintf("hypervisor %s, shared file system %s, guest kernel %s, guest memory %s, vCPUs %s",
		c.Hypervisor, orDefault(c.SharedFS), orDefault(c.Kernel), orDefaultNumber(float64(c.MemoryMiB), " MiB"), orDefaultNumber(c.VCPUs, ""))
	return []string{note, guest, "the memory of the guest, with its kernel and Kata's agent, is part of the hypervisor's"}
}

func orDefault(value string) string {
	if value == "" {
		return "by Kata's default"
	}
	return value
}

func orDefaultNumber(value float64, unit string) string {
	if value <= 0 {
		return "by Kata's default"
	}
	return strconv.FormatFloat(value, 'g', -1, 64) + unit
}
