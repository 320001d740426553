// Package host says what machine a run was made on and what disturbed it.
//
// [Facts] is the fingerprint: what a reader must know to tell whether two runs can be
// compared, with warnings about what makes results less stable here. A [Sampler]
// brackets each trial and says what the machine did meanwhile beside the trial.
//
// Everything is read from /proc, /sys and /etc below a root directory, so that tests
// use copies of real machines. What a machine does not offer is left empty; nothing
// that is missing is an error, because a fingerprint with a gap is better than no
// run.
//
// Results are published. The package therefore never reads what identifies a
// machine or its owner beyond the host name: no machine ID, serial number, hardware
// or network address; the kernel command line is recorded without values of that
// kind.
package host

import (
	"io/fs"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"unicode"

	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// Facts describes the machine whose file system begins at root ("/", or a copy for
// tests). Root and PageSize are what the calling process sees.
func Facts(root string) result.Host {
	t := tree{os.DirFS(root)}
	cpuinfo := t.cpuinfo()
	memory := t.meminfo()
	h := result.Host{
		Hostname:   t.text("proc/sys/kernel/hostname"),
		OS:         t.osName(),
		Kernel:     strings.TrimSpace(t.text("proc/sys/kernel/osrelease") + " " + t.text("proc/sys/kernel/version")),
		Arch:       t.arch(),
		CPU:        t.cpuModel(cpuinfo),
		CPUs:       len(t.onlineCPUs()),
		Governor:   t.governor(),
		Turbo:      t.turbo(),
		SMT:        t.text("sys/devices/system/cpu/smt/control"),
		Memory:     memory["MemTotal"],
		Swap:       memory["SwapTotal"],
		PageSize:   int64(os.Getpagesize()),
		Virtual:    t.virtual(cpuinfo),
		LSM:        t.text("sys/kernel/security/lsm"),
		Mitigation: t.mitigations(),
		Cmdline:    redact(t.text("proc/cmdline")),
		Root:       os.Geteuid() == 0,
	}
	groups, err := cgroup.Detect(root)
	if err == nil {
		h.Cgroup = string(groups.Mode)
	}
	h.Warnings = t.warnings(h, memory, groups)
	return h
}

// tree is a machine's file system.
type tree struct{ fs.FS }

// text gives the content of a file on one line, without what surrounds it: blanks,
// line ends, and the zero byte at the end of device-tree strings. It is empty if the
// file cannot be read.
func (t tree) text(name string) string {
	b, err := fs.ReadFile(t.FS, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(blank(string(b)))
}

// blank puts blanks in place of control characters: what is known of a machine is shown on one line.
func blank(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// lines gives the lines of a file.
func (t tree) lines(name string) []string {
	b, err := fs.ReadFile(t.FS, name)
	if err != nil {
		return nil
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	for i, line := range lines {
		lines[i] = blank(line)
	}
	return lines
}

// glob gives the files that match a pattern, in alphabetical order.
func (t tree) glob(pattern string) []string {
	names, err := fs.Glob(t.FS, pattern)
	if err != nil {
		return nil
	}
	return names
}

// osName gives the name of the distribution with its version.
func (t tree) osName() string {
	for _, file := range []string{"etc/os-release", "usr/lib/os-release"} {
		for _, line := range t.lines(file) {
			if value, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
				return unquote(value)
			}
		}
	}
	return ""
}

// unquote takes the quotes off a value of os-release, which are those of the shell.
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

// goArch gives Go's names for the kernel's.
var goArch = map[string]string{
	"x86_64": "amd64", "i686": "386", "aarch64": "arm64", "armv6l": "arm", "armv7l": "arm", "armv8l": "arm",
	"riscv64": "riscv64", "ppc64le": "ppc64le", "s390x": "s390x", "loongarch64": "loong64",
}

// arch gives the architecture of the kernel, which Linux tells since 6.1, else that of
// this program.
func (t tree) arch() string {
	if arch, ok := goArch[t.text("proc/sys/kernel/arch")]; ok {
		return arch
	}
	return runtime.GOARCH
}

// meminfo gives /proc/meminfo in bytes.
func (t tree) meminfo() map[string]int64 {
	info := map[string]int64{}
	for _, line := range t.lines("proc/meminfo") {
		name, value, _ := strings.Cut(line, ":")
		number, isKiB := strings.CutSuffix(strings.TrimSpace(value), " kB")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			continue
		}
		if isKiB {
			n <<= 10
		}
		info[name] = n
	}
	return info
}

// mitigations says which vulnerabilities of the CPU the kernel mitigates, and how,
// and which it leaves open. Those that the CPU does not have are left out.
func (t tree) mitigations() string {
	var items []string
	for _, file := range t.glob("sys/devices/system/cpu/vulnerabilities/*") {
		state := t.text(file)
		if state == "" || strings.HasPrefix(state, "Not affected") {
			continue
		}
		items = append(items, path.Base(file)+": "+strings.TrimPrefix(state, "Mitigation: "))
	}
	return strings.Join(items, " | ")
}
