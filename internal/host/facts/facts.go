// Package facts reads the facts of a machine. A reader of results needs them to decide whether two runs can be compared.
//
// It reads only /proc, /sys and /etc below a root directory. The exception is the hypervisor's signature, which only the CPU has. A missing value is
// empty and not an error, because a fingerprint with a gap is better than no run.
//
// Results are published. So the facts have the host name, but nothing else that identifies a machine or its owner: no
// machine ID, serial number, hardware or network address. Keyed digests of these tell machines of one name apart, and do not reveal the
// values. The package removes such values from the kernel command line.
package facts

import (
	"os"
	"path"
	"regexp"
	"runtime"
	"strings"

	"github.com/klauspost/cpuid/v2"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/host/machine"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// signature returns the hypervisor's name for itself, such as "KVMKVMKVM" or "TCGTCGTCGTCG". It is empty on other CPUs than x86. Without
// a hypervisor it has no meaning.
func signature() string { return cpuid.CPU.HypervisorVendorString }

// reader reads the facts.
type reader struct{ machine.Tree }

// Read describes a machine, without its warnings and its tuning. root is the root of its file system: "/", or a copy in tests. Root and PageSize are
// properties of the calling process. With the root "/" the hypervisor's signature is the CPU's.
func Read(root string) result.Host {
	t := reader{machine.At(root)}
	memory, hypervisor := t.Meminfo(), ""
	if root == "/" {
		hypervisor = signature()
	}
	cpuinfo := t.CPUInfo()
	h := result.Host{
		Hostname:   t.Text("proc/sys/kernel/hostname"),
		OS:         t.osName(),
		Kernel:     strings.TrimSpace(t.Text("proc/sys/kernel/osrelease") + " " + t.Text("proc/sys/kernel/version")),
		Arch:       t.arch(),
		CPU:        t.CPUModel(cpuinfo),
		CPUs:       len(t.OnlineCPUs()),
		Governor:   t.Governor(),
		Turbo:      t.Turbo(),
		SMT:        t.Text(machine.SMT),
		Memory:     memory["MemTotal"],
		Swap:       memory["SwapTotal"],
		PageSize:   int64(os.Getpagesize()),
		Virtual:    t.virtual(cpuinfo, hypervisor),
		Container:  t.container(),
		LSM:        t.Text("sys/kernel/security/lsm"),
		Mitigation: t.mitigations(),
		Cmdline:    redact(t.Text("proc/cmdline")),
		Root:       os.Geteuid() == 0,
		Reclaim:    t.reclaim(memory),
		Settings:   t.settings(cpuinfo),
		Identity:   t.identity(),
	}
	if groups, err := cgroup.Detect(root); err == nil {
		h.Cgroup = string(groups.Mode)
	}
	return h
}

// osName returns the name of the distribution with its version.
func (t reader) osName() string {
	for _, file := range []string{"etc/os-release", "usr/lib/os-release"} {
		for _, line := range t.Lines(file) {
			if value, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
				return unquote(value)
			}
		}
	}
	return ""
}

// unquote removes the shell quotes of a value in os-release.
func unquote(s string) string {
	s = strings.TrimSpace(s)
	if len(s) < 2 || s[0] != s[len(s)-1] || s[0] != '"' && s[0] != '\'' {
		return s
	}
	quote, s := s[0], s[1:len(s)-1]
	if quote == '\'' {
		return s
	}
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\$`, `$`, "\\`", "`").Replace(s)
}

// goArch maps the kernel's names of architectures to Go's names.
var goArch = map[string]string{
	"x86_64": "amd64", "i686": "386", "aarch64": "arm64", "armv6l": "arm", "armv7l": "arm", "armv8l": "arm",
	"riscv64": "riscv64", "ppc64le": "ppc64le", "s390x": "s390x", "loongarch64": "loong64",
}

// arch returns the architecture of the kernel. Before Linux 6.1 it returns the architecture of this program.
func (t reader) arch() string {
	if arch, ok := goArch[t.Text("proc/sys/kernel/arch")]; ok {
		return arch
	}
	return runtime.GOARCH
}

// mitigations lists the vulnerabilities of the CPU with their mitigation by the kernel. It omits vulnerabilities that do not affect the
// CPU.
func (t reader) mitigations() string {
	var items []string
	for _, file := range t.Glob("sys/devices/system/cpu/vulnerabilities/*") {
		state := t.Text(file)
		if state == "" || strings.HasPrefix(state, "Not affected") {
			continue
		}
		items = append(items, path.Base(file)+": "+strings.TrimPrefix(state, "Mitigation: "))
	}
	return strings.Join(items, " | ")
}

// redacted replaces a private value.
const redacted = "…"

var (
	// privateName matches names of kernel parameters whose values identify a machine or give access to it. Boot loaders of small
	// boards pass serial numbers and hardware addresses this way. Installers and network boots pass passwords and keys.
	privateName = regexp.MustCompile(`(?i)serial|\bmac\b|machine_?id|uuid|guid|\buid|token|secret|passw|pwd|key|cred|user(name)?\b|auth|luks|crypt|iscsi|nfs|nbd|cifs|smb|url|hostn|hostid|\bip\b|addr|dns|domain|label|^root$|^resume$`)
	// privateValue matches such values: hardware and network addresses, UUIDs, URLs, which may contain a password, and long
	// hexadecimal numbers.
	privateValue = regexp.MustCompile(`(?i)([0-9a-f]{2}[:-]){5}[0-9a-f]{2}|[0-9a-f]{8}-[0-9a-f]{4}-|\b\d{1,3}(\.\d{1,3}){3}\b|://|[0-9a-f]{16}`)
)

// redact returns the kernel command line without values that identify the machine or its owner. It keeps the names of all
// parameters. It drops the arguments after "--", because they are meant for the init process and not for the kernel.
func redact(cmdline string) string {
	var items []string
	for _, item := range fields(cmdline) {
		if item == "--" {
			break
		}
		name, value, hasValue := strings.Cut(item, "=")
		switch {
		case !hasValue && privateValue.MatchString(name):
			item = redacted
		case hasValue && (privateName.MatchString(name) || privateValue.MatchString(value)):
			item = name + "=" + redacted
		}
		items = append(items, item)
	}
	return strings.Join(items, " ")
}

// fields splits a command line at blanks outside double quotes, like the kernel.
func fields(s string) []string {
	quoted := false
	return strings.FieldsFunc(s, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return !quoted && r <= ' '
	})
}
