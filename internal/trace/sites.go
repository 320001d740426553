package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// site is a function of the kernel.
type site struct {
	address   uintptr // of the patch at its begin
	name      string
	subsystem string
}

// sites are the functions to observe.
type sites struct {
	list                         []site // by address
	addresses                    []uintptr
	interruptBegin, interruptEnd []uintptr
}

// unobserved are the beginnings of the names of functions without a probe:
//
//   - functions of the tracer's own programs, which run when a process begins, ends or executes a program
//   - RCU and idle functions, which run where no program may: the kernel's own tests leave them out
//   - places without a name, which the kernel does not patch
func unobserved() []string {
	return []string{
		"bpf_", "__bpf_", "htab_", "__htab_", "__traceiter_sched_process_", "__pcpu_freelist_", "alloc_htab_elem", "lookup_elem_raw", "lookup_nulls_elem_raw", "copy_from_kernel_nofault", "strncpy_from_user_nofault", "ktime_get_mono_fast_ns",
		"rcu_", "arch_cpu_idle", "default_idle", "ftrace_", "__ftrace_", "fprobe_", "kprobe_multi_",
	}
}

// parseSites reads the kernel's list of its functions: the address, the name, and perhaps a module in brackets.
func parseSites(text string) (*sites, error) {
	s := &sites{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 || len(fields) > 3 {
			return nil, fmt.Errorf("the line %q has %d fields instead of an address, a name and perhaps a module", line, len(fields))
		}
		address, err := strconv.ParseUint(fields[0], 16, 64)
		if err != nil {
			return nil, fmt.Errorf("the line %q does not begin with an address: %w", line, err)
		}
		f := site{address: uintptr(address), name: fields[1]}
		if len(fields) == 3 {
			f.subsystem = strings.Trim(fields[2], "[]")
		}
		s.list = append(s.list, f)
	}
	slices.SortFunc(s.list, func(a, b site) int { return cmp.Compare(a.address, b.address) })
	s.classify()
	names := unobserved()
	for _, f := range s.list {
		switch f.name {
		case "irq_enter", "irq_enter_rcu":
			s.interruptBegin = append(s.interruptBegin, f.address)
			continue
		case "irq_exit", "irq_exit_rcu":
			s.interruptEnd = append(s.interruptEnd, f.address)
			continue
		}
		if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(f.name, name) }) {
			s.addresses = append(s.addresses, f.address)
		}
	}
	return s, nil
}

// entrySize is the largest distance from a function's first instruction to its patch. Functions are at least as far from each other.
const entrySize = 16

// at returns the function with an address, which is the address of its first instruction or of its patch: it depends on the kernel.
func (s *sites) at(address uintptr) (f site, ok bool) {
	i, _ := slices.BinarySearchFunc(s.list, address, func(f site, address uintptr) int { return cmp.Compare(f.address, address) })
	if i == len(s.list) || s.list[i].address-address >= entrySize {
		return site{}, false
	}
	return s.list[i], true
}

// Unclear is the subsystem of functions of a kernel with an unusual layout.
const Unclear = "unclear"

// region is a directory of the kernel's sources, by functions of its first object.
type region struct {
	directory string
	names     []string
}

// regions are the directories in the order of the kernel's makefile. The linker keeps this order, so each function up to the first one
// of the next directory belongs to a directory. A few objects of the architecture stand elsewhere: its library before the drivers, and its PCI code at the end of the
// network. Rarely executed functions of all directories follow the network. The last region is the scheduler's section, which belongs to directory kernel.
func regions() []region {
	return []region{
		{"kernel", []string{"get_task_mm", "mm_release", "mmput", "free_task", "__put_task_struct"}},
		{"mm", []string{"filemap_check_errors", "filemap_range_has_page", "filemap_read", "folio_unlock"}},
		{"fs", []string{"generic_file_open", "nonseekable_open", "stream_open", "file_path", "filp_close"}},
		{"ipc", []string{"to_compat_ipc64_perm", "ipc_init_ids", "ipc_addid", "ipc_rmid"}},
		{"security", []string{"key_gc_unused_keys", "key_schedule_gc", "key_payload_reserve", "key_put", "cap_capable"}},
		{"crypto", []string{"crypto_req_done", "crypto_mod_get", "crypto_destroy_tfm"}},
		{"block", []string{"I_BDEV", "file_bdev", "invalidate_bdev", "sync_blockdev"}},
		{"io_uring", []string{"io_match_task_safe", "io_req_queue_iowq", "io_issue_sqe"}},
		{"lib", []string{"lockref_get_not_zero", "iter_div_u64_rem", "gcd", "lcm", "int_pow"}},
		{"drivers", []string{"phy_create", "gpiod_get_direction", "led_set_brightness_sync", "pci_bus_read_config_byte", "pci_generic_config_read"}},
		{"net", []string{"sock_show_fdinfo", "sock_from_file", "kernel_bind", "sock_alloc"}},
		{"kernel", []string{"io_schedule_timeout", "schedule", "io_schedule"}},
	}
}

// classify sets the subsystem of functions outside of modules: their directory in the sources. The kernel does not name it, and their address shows it.
// All are unclear if the directories are not in the usual order.
func (s *sites) classify() {
	addresses := map[string]uintptr{}
	for _, f := range s.list {
		if f.subsystem == "" {
			addresses[f.name] = f.address
		}
	}
	type begin struct {
		address   uintptr
		directory string
	}
	begins := []begin{{0, "arch"}}
	for _, r := range regions() {
		first := uintptr(0)
		for _, name := range r.names {
			if address, ok := addresses[name]; ok && (first == 0 || address < first) {
				first = address
			}
		}
		if first != 0 { // the kernel has the directory
			begins = append(begins, begin{first, r.directory})
		}
	}
	isUsual := len(begins) > 1 && slices.IsSortedFunc(begins, func(a, b begin) int { return cmp.Compare(a.address, b.address) })
	i := 0
	for n := range s.list {
		f := &s.list[n]
		for i+1 < len(begins) && begins[i+1].address <= f.address {
			i++
		}
		switch {
		case f.subsystem != "":
		case isUsual:
			f.subsystem = begins[i].directory
		default:
			f.subsystem = Unclear
		}
	}
}
