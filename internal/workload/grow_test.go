package workload_test

import (
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

func TestProbeGrow(t *testing.T) {
	got := runProbe(t, workload.Grow(3)...)
	if got.code != 0 || got.stderr != "" {
		t.Fatalf("%+v", got)
	}
	lines := strings.Split(strings.TrimSuffix(got.stdout, "\n"), "\n")
	if len(lines) != 4 {
		t.Fatalf("it says %q, want a line before the first MiB and after each", lines)
	}
	for mib, line := range lines {
		if held, err := workload.ParseHeld(line); err != nil || held != int64(mib)<<20 {
			t.Errorf("ParseHeld(%q) = %d, %v", line, held, err)
		}
	}
}

func TestProbeGrowRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"grow: an option is missing: --mib\n":                                    {workload.Probe, "grow"},
		"grow: --mib must be a whole number from 1 to 1048576, not 0\n":          workload.Grow(0),
		"grow: unexpected argument now\n":                                        append(workload.Grow(1), "now"),
		"grow: --mib must be a whole number from 1 to 1048576, not 2000000000\n": workload.Grow(2_000_000_000),
	} {
		if got := runProbe(t, args...); got.code != 2 || got.stdout != "" || got.stderr != want {
			t.Errorf("%q: %+v, want code 2 and %q", args, got, want)
		}
	}
}

func TestParseHeldRefuses(t *testing.T) {
	for _, line := range []string{"", "held", "held ", "held 1", "held -1048576", "held 1048576 ", "held +1048576", "kept 1048576", "1048576", "held 18446744073709551616"} {
		if got, err := workload.ParseHeld(line); err == nil {
			t.Errorf("ParseHeld(%q) = %d", line, got)
		}
	}
}

// Accepted lines have whole MiB in one format, except for leading zeros.
func FuzzParseHeld(f *testing.F) {
	for _, line := range []string{"held 0", "held 1048576", "held 66060288", "held 0001048576"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got, err := workload.ParseHeld(line)
		if err == nil && (got < 0 || got%(1<<20) != 0 || !strings.HasPrefix(line, "held ")) {
			t.Errorf("ParseHeld(%q) = %d", line, got)
		}
	})
}
