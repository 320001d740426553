package trace

import (
	"fmt"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// list spells a kernel's list of functions, each 0x20 bytes after the one before. Modules are in brackets.
func list(names ...string) string {
	var b strings.Builder
	for i, name := range names {
		fmt.Fprintf(&b, "%x %s\n", uint64(0xffffffff81000004)+uint64(0x20*i), name)
	}
	return b.String()
}

// The place of a function between the first functions of directories shows its directory. A module has its own name.
func TestSubsystems(t *testing.T) {
	symbols := []string{"do_syscall_64", "get_task_mm", "copy_process", "filemap_read", "do_mmap", "stream_open", "vfs_read", "sock_from_file", "tcp_sendmsg", "schedule", "ovl_open [overlay]"}
	for name, tt := range map[string]struct {
		names []string
		want  string
	}{
		"usual":     {symbols, "arch kernel kernel mm mm fs fs net net kernel overlay"},
		"unusual":   {[]string{"stream_open", "get_task_mm", "filemap_read", "ovl_open [overlay]"}, "unclear unclear unclear overlay"},
		"no begins": {[]string{"a", "ovl_open [overlay]"}, "unclear overlay"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := parseSites(list(tt.names...))
			must.Do(t, err)
			var got []string
			for _, f := range s.list {
				got = append(got, f.subsystem)
			}
			expect.Equal(t, "the subsystems", tt.want, strings.Join(got, " "))
		})
	}
}

// The tracer's own functions and those without a safe probe are not observed, and the begin and the end of interrupts are known.
func TestObservedFunctions(t *testing.T) {
	s, err := parseSites(list("bpf_trace_run2", "vfs_read", "rcu_read_unlock_strict", "__ftrace_invalid_address___7", "irq_enter_rcu", "irq_exit_rcu"))
	must.Do(t, err)
	expect.Equal(t, "the observed functions", 1, len(s.addresses))
	expect.Equal(t, "the begin of interrupts", []uintptr{s.list[4].address}, s.interruptBegin)
	expect.Equal(t, "the end of interrupts", []uintptr{s.list[5].address}, s.interruptEnd)
}

// The address of a function's first instruction and the address of its patch name it, and no address before them or after them.
func TestSiteAtAddress(t *testing.T) {
	s, err := parseSites(list("vfs_read", "vfs_write"))
	must.Do(t, err)
	const patch = uintptr(0xffffffff81000024)
	for address, want := range map[uintptr]string{patch: "vfs_write", patch - 4: "vfs_write", patch - entrySize: "", patch + 1: "", patch - 0x20: "vfs_read"} {
		f, ok := s.at(address)
		if f.name != want || ok != (want != "") {
			t.Errorf("the function at %#x is %q, want %q", address, f.name, want)
		}
	}
}

// A list of an unknown form has no sites.
func TestBrokenSites(t *testing.T) {
	for _, text := range []string{"vfs_read\n", "x vfs_read\n", "1 a [b] c\n", "\n"} {
		if s, err := parseSites(text); err == nil {
			t.Errorf("%q has the sites %v", text, s.list)
		}
	}
}
