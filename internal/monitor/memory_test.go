package monitor

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// captured is /proc/meminfo of a machine without swap.
func captured(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("testdata/meminfo-6.18")
	must.Do(t, err)
	return string(text)
}

// without removes lines of a capture, like a kernel that does not have them.
func without(text string, names ...string) string {
	return regexp.MustCompile(`(?m)^(`+strings.Join(names, "|")+`): .*\n`).ReplaceAllString(text, "")
}

// Invariant sampling-cost.
func TestMemoryOfHost(t *testing.T) {
	const kib = 1 << 10
	text := captured(t)
	sizes := map[HostPart]int64{
		Used: (24684084 - 10774140) * kib, Available: 10774140 * kib, Free: 8797496 * kib,
		BuffCache: (30320 + 1606656 + 932468) * kib, Shared: 89052 * kib,
	}
	modify := func(change map[HostPart]int64, missing ...HostPart) map[HostPart]int64 {
		parts := map[HostPart]int64{}
		for _, values := range []map[HostPart]int64{sizes, change} {
			for name, bytes := range values {
				parts[name] = bytes
			}
		}
		for _, name := range missing {
			delete(parts, name)
		}
		return parts
	}
	swap := regexp.MustCompile(`(SwapTotal: *)0`).ReplaceAllString(text, "${1}1000")
	for _, tt := range []struct {
		name, text string
		want       map[HostPart]int64
	}{
		{"without swap", text, sizes},
		{"with swap", regexp.MustCompile(`(SwapFree: *)0`).ReplaceAllString(swap, "${1}990"), modify(map[HostPart]int64{SwapUsed: 10 * kib})},
		{"before Linux 3.14, without MemAvailable", without(text, "MemAvailable"), modify(map[HostPart]int64{Used: (24684084 - 8797496 - 30320 - 1606656 - 932468) * kib}, Available)},
		{"MemAvailable of a container is more than its MemTotal", strings.Replace(text, "10774140", "34684084", 1), modify(map[HostPart]int64{Used: (24684084 - 8797496 - 30320 - 1606656 - 932468) * kib}, Available)},
		{"without Shmem", without(text, "Shmem"), modify(nil, Shared)},
		{"before Linux 2.6.19, without SReclaimable", without(text, "SReclaimable"), modify(map[HostPart]int64{BuffCache: (30320 + 1606656) * kib})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseMeminfo([]byte(tt.text))
			must.Do(t, err)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMeminfoIsRefused(t *testing.T) {
	content := captured(t)
	for name, text := range map[string]string{
		"empty":           "",
		"cut off":         content[:40],
		"without MemFree": without(content, "MemFree"),
		"no number":       strings.Replace(content, "8797496 kB", "many kB", 1),
		"another unit":    strings.Replace(content, "8797496 kB", "8797496 MB", 1),
		"negative":        strings.Replace(content, "8797496 kB", "-8797496 kB", 1),
		"too large":       strings.Replace(content, "8797496 kB", "99999999999999999 kB", 1),
	} {
		if got, err := parseMeminfo([]byte(text)); err == nil {
			t.Errorf("%s: parseMeminfo() = %v, want an error", name, got)
		}
	}
}

func FuzzParseMeminfo(f *testing.F) {
	f.Add(captured(f))
	f.Fuzz(func(t *testing.T, text string) {
		parts, err := parseMeminfo([]byte(text))
		for name, bytes := range parts {
			if err != nil || bytes < 0 {
				t.Errorf("%s is %d with the error %v", name, bytes, err)
			}
		}
	})
}

// Invariant shared-memory: An address space counts once, however many processes share it.
func TestSpacesAreCountedOnce(t *testing.T) {
	self, child, set := os.Getpid(), sleepers(t, 1)[0], spaces{}
	if _, extent, err := rollup("/proc", self); err != nil || len(extent) < len("0-1") {
		t.Errorf("rollup() gives the extent %q, %v", extent, err)
	}
	for _, step := range []struct {
		what   string
		pid    int
		extent string
		want   bool
	}{
		{"the first process", self, "a", false},
		{"another process with the same extent", child, "a", false},
		{"the first process again, in the place of one that shares its space", self, "a", true},
		{"a process with another extent", self, "b", false},
	} {
		t.Run(step.what, func(t *testing.T) {
			if got := set.counted(step.pid, step.extent); got != step.want {
				t.Errorf("counted = %t, want %t", got, step.want)
			}
		})
	}
}
