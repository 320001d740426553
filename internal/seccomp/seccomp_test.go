package seccomp_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/seccomp"
)

const (
	loadNumber   = "0020000000000000"
	loadArch     = "0020000000000004"
	loadArgument = "0020000000000010"
	allow        = "000600007fff0000"
	refuse       = "0006000000050001"
)

// equal is a jump: by the number of instructions if the accumulator has the value, and if not.
func equal(k uint32, isTrue, isFalse int) string {
	return fmt.Sprintf("0015%02x%02x%08x", isTrue, isFalse, k)
}

func filter(t *testing.T, instructions ...string) seccomp.Filter {
	t.Helper()
	f, err := seccomp.Parse(strings.Join(instructions, ""))
	must.Do(t, err)
	return f
}

func TestDecide(t *testing.T) {
	arch := uint32(unix.AUDIT_ARCH_X86_64)
	list := filter(t, loadArch, equal(arch, 1, 0), refuse, loadNumber, equal(1, 2, 0), equal(2, 1, 0), refuse, allow)
	argument := filter(t, loadNumber, equal(5, 0, 3), loadArgument, equal(7, 0, 1), allow, refuse)
	for _, tt := range []struct {
		name    string
		filters []seccomp.Filter
		arch    uint32
		number  uint32
		want    seccomp.Verdict
	}{
		{"no filter", nil, arch, 1, seccomp.Allowed},
		{"allowed by a list", []seccomp.Filter{list}, arch, 2, seccomp.Allowed},
		{"not in the list", []seccomp.Filter{list}, arch, 3, seccomp.Refused},
		{"another architecture", []seccomp.Filter{list}, unix.AUDIT_ARCH_AARCH64, 2, seccomp.Refused},
		{"with one argument", []seccomp.Filter{argument}, arch, 5, seccomp.ByArgument},
		{"with no argument", []seccomp.Filter{argument}, arch, 6, seccomp.Refused},
		{"the strictest filter", []seccomp.Filter{list, argument}, arch, 5, seccomp.Refused},
		{"logged", []seccomp.Filter{filter(t, "000600007ffc0000")}, arch, 5, seccomp.Allowed},
		{"traced", []seccomp.Filter{filter(t, "000600007ff00000")}, arch, 5, seccomp.Refused},
		{"asks a supervisor", []seccomp.Filter{filter(t, "000600007fc00000")}, arch, 5, seccomp.ByArgument},
		{"killed", []seccomp.Filter{filter(t, "0006000080000000")}, arch, 5, seccomp.Refused},
		// (number & 0xff) + 1 == 3, by X and by memory.
		{"arithmetic", []seccomp.Filter{filter(t, loadNumber, "00540000000000ff", "0007000000000000", "0000000000000001", "000c000000000000", "0002000000000003",
			"0000000000000000", "0060000000000003", equal(3, 0, 1), allow, refuse)}, arch, 0x102, seccomp.Allowed},
		{"the answer is a register", []seccomp.Filter{filter(t, "000000007fff0000", "0016000000000000")}, arch, 1, seccomp.Allowed},
		{"the answer is an argument", []seccomp.Filter{filter(t, loadArgument, "0016000000000000")}, arch, 1, seccomp.ByArgument},
	} {
		got, err := seccomp.Decide(tt.filters, tt.arch, tt.number)
		if err != nil || got != tt.want {
			t.Errorf("%s: %v, %v; want %v", tt.name, got, err, tt.want)
		}
	}
}

// A program that no kernel accepts is an error, and not a refusal.
func TestBadFilters(t *testing.T) {
	for name, instructions := range map[string][]string{
		"no end":          {loadNumber},
		"jump behind it":  {equal(0, 9, 9)},
		"another load":    {"0030000000000000", allow},
		"memory too high": {"0002000000000010", allow},
	} {
		if v, err := seccomp.Decide([]seccomp.Filter{filter(t, instructions...)}, unix.AUDIT_ARCH_X86_64, 1); err == nil {
			t.Errorf("%s: %v, want an error", name, v)
		}
	}
	for _, text := range []string{"", "00", "zz20000000000000", strings.Repeat(allow, 4097)} {
		if _, err := seccomp.Parse(text); err == nil {
			t.Errorf("Parse of %d digits works, want an error", len(text))
		}
	}
}

func FuzzDecide(f *testing.F) {
	f.Add(loadArch+equal(1, 1, 0)+refuse+allow, uint32(1))
	f.Fuzz(func(t *testing.T, text string, number uint32) {
		program, err := seccomp.Parse(text)
		if err != nil {
			return
		}
		_, _ = seccomp.Decide([]seccomp.Filter{program}, unix.AUDIT_ARCH_X86_64, number) // it ends
	})
}
