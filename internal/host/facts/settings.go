package facts

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/host/machine"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// settings returns the facts that change the times of starts and that no other field has. An unknown one is empty.
func (t reader) settings(cpuinfo map[string]string) *result.Settings {
	s := result.Settings{
		Microcode:     microcode(t, cpuinfo),
		Scaling:       t.joined("sys/devices/system/cpu/cpufreq/policy*", "scaling_driver", "energy_performance_preference"),
		Idle:          t.joined("sys/devices/system/cpu/cpuidle", "current_driver", "current_governor"),
		Clock:         t.Text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
		Preemption:    preemption(t.Text("sys/kernel/debug/sched/preempt")),
		NUMABalancing: t.Text("proc/sys/kernel/numa_balancing"),
		BPFJIT:        t.Text("proc/sys/net/core/bpf_jit_enable"),
	}
	if s == (result.Settings{}) {
		return nil
	}
	return &s
}

// preemption returns the selected model, which the kernel puts in brackets: "none voluntary (full)". Only root can read it.
func preemption(models string) string {
	_, rest, _ := strings.Cut(models, "(")
	model, _, _ := strings.Cut(rest, ")")
	return model
}

func microcode(t reader, cpuinfo map[string]string) string {
	if version := cpuinfo["microcode"]; version != "" {
		return version
	}
	return t.Text("sys/devices/system/cpu/cpu0/microcode/version")
}

// joined returns the different values of files in the directories that match a pattern: "intel_pstate balance_performance".
func (t reader) joined(pattern string, files ...string) string {
	var entries []string
	for _, dir := range t.Glob(pattern) {
		var values []string
		for _, file := range files {
			if value := t.Text(path.Join(dir, file)); value != "" {
				values = append(values, value)
			}
		}
		if values != nil {
			entries = append(entries, strings.Join(values, " "))
		}
	}
	slices.Sort(entries)
	return strings.Join(slices.Compact(entries), ", ")
}

// FileSystem describes the file system of a directory of this machine: "ext4", "overlay". It is empty if it is
// unknown. The directory need not exist: its nearest parent counts.
func FileSystem(dir string) string {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	real, err := filepath.EvalSymlinks(dir)
	for err != nil && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		real, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return ""
	}
	return reader{machine.At("/")}.fileSystem(real)
}

// fileSystem finds the mount of a path: the last one with the longest mount point.
func (t reader) fileSystem(dir string) (kind string) {
	length := -1
	for _, line := range t.Lines("proc/self/mountinfo") {
		mount, source, ok := strings.Cut(line, " - ")
		fields, types := strings.Fields(mount), strings.Fields(source)
		if !ok || len(fields) < 5 || len(types) == 0 {
			continue
		}
		point := unescape(fields[4])
		if contains := point == "/" || dir == point || strings.HasPrefix(dir, point+"/"); contains && len(point) >= length {
			kind, length = types[0], len(point)
		}
	}
	return kind
}

// unescape replaces the octal codes of blanks in a mount table.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
