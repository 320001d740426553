package monitor

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tree is a process of a test's process tree.
type tree struct {
	pid, ppid int
	comm      string
	args      string // the first argument
	want      Component
}

const (
	self   = 10 // Touchstone
	daemon = 20
)

// programs are declarations of the form that engines and runtimes make.
var programs = Programs{
	Daemon:  {"containerd", "dockerd"},
	Engine:  {"podman"},
	Shim:    {"containerd-shim*"},
	Monitor: {"conmon"},
	Runtime: {"runc", "runc:[*", "crun", "runsc"},
	Sentry:  {"runsc-sandbox", "runsc/exe"}, Gofer: {"runsc-gofer"}, Pause: {"pause"},
	Hypervisor: {"qemu-system-x86_64", "cloud-hypervisor"}, FileServer: {"virtiofsd"}, Proxy: {"kata-proxy"},
	Network: {"docker-proxy", "netavark"},
}

// The process trees were recorded with real engines, during a container's life and at its end.
func TestClassify(t *testing.T) {
	for _, tt := range []struct {
		name    string
		runtime string
		trees   []tree // parents first
	}{
		{"bare runc", "runc", []tree{
			{30, self, "runc", "", Runtime},
			{31, 30, "runc:[0:PARENT]", "", Runtime},
			{32, 30, "runc:[1:CHILD]", "", Runtime},
			{33, 30, "exe", "", Runtime}, // before it set its name
			{34, self, "probe", "/probe", Container},
			{35, 34, "runc", "", Container}, // a container may give its programs any name
		}},
		{"bare runtime of another name", "fastrun-with-a-long-name", []tree{
			{30, self, "fastrun-with-a-", "", Runtime},
			{31, 30, "hook", "", Runtime},
			{32, self, "redis-server", "", Container},
		}},
		{"bare gVisor", "runsc", []tree{
			{30, self, "runsc", "", Runtime},
			{31, 30, "exe", "runsc-gofer", Gofer},
			{32, 30, "exe", "", Sentry}, // known only by its exit record
			{33, self, "exe", "runsc-sandbox", Sentry},
			{34, 33, "exe", "", Sentry}, // a process of the container, without a command line
			{35, self, "exe", "", Sentry},
		}},
		{"containerd", "runc", []tree{
			{daemon, self, "containerd", "containerd", Daemon},
			{30, daemon, "containerd-shim", "/usr/bin/containerd-shim-runc-v2", Shim}, // "shim start"
			{31, self, "containerd-shim", "/usr/bin/containerd-shim-runc-v2", Shim},
			{32, 31, "runc", "", Runtime},
			{33, 31, "probe", "/probe", Container},
			{34, 31, "pause", "/probe", Pause},
			{35, 31, "sysbench", "", Container},
			{41, 31, "ip", "", Container}, // as a container's first program
			{36, daemon, "bridge", "", Network},
			{37, 36, "host-local", "", Network},
			{38, 36, "iptables", "", Network},
			{39, 36, "sysctl", "", Network},
			{40, daemon, "unpigz", "", Daemon},
		}},
		{"gVisor's shim", "runsc", []tree{
			{daemon, self, "containerd", "", Daemon},
			{31, 1, "containerd-shim", "", Shim}, // of a daemon that Touchstone did not start
			{32, 31, "exe", "runsc-sandbox", Sentry},
			{33, 32, "exe", "", Sentry},
			{34, 33, "", "", Sentry},
			{35, 31, "runsc", "", Runtime},
		}},
		{"Docker", "runc", []tree{
			{daemon, self, "dockerd", "", Daemon},
			{30, daemon, "containerd", "", Daemon},
			{31, daemon, "exe", "docker-untar", Daemon},
			{32, daemon, "docker-proxy", "", Network},
			{33, self, "containerd-shim", "", Shim},
			{34, 33, "runc:[2:INIT]", "", Runtime},
		}},
		{"Podman", "crun", []tree{
			{30, self, "podman", "", Engine},
			{31, 30, "netavark", "", Network},
			{32, 30, "exe", "", Engine},
			{33, self, "conmon", "", Monitor},
			{34, 33, "crun", "", Runtime},
			{35, 33, "probe", "", Container},
			{36, 33, "podman", "", Engine}, // cleans up
			{37, 35, "ip", "", Container},
		}},
		{"Kata", "", []tree{
			{31, self, "containerd-shim", "containerd-shim-kata-v2", Shim},
			{32, 31, "qemu-system-x86", "", Hypervisor},
			{33, 31, "virtiofsd", "", FileServer},
			{34, 33, "virtiofsd", "", FileServer},
			{35, 31, "cloud-hyperviso", "", Hypervisor},
			{36, 35, "virtiofsd", "", FileServer},
			{37, 35, "worker", "", Hypervisor},
			{38, 31, "kata-proxy", "", Proxy},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &Account{Target: Target{Daemons: []int{daemon}, Programs: programs, Runtimes: []string{tt.runtime}}, self: self, seen: map[int]process{31: {}}}
			var processes []process
			for _, b := range tt.trees {
				p := process{pid: b.pid, ppid: b.ppid, comm: b.comm}
				if b.args != "" {
					p.args = []string{b.args, "--flag"}
				}
				processes = append(processes, p)
			}
			f := a.family(processes)
			for i, b := range tt.trees {
				if got := f.membership(i); !got.ours || got.component != b.want {
					t.Errorf("%d %s below %d is %q (ours: %v), want %q", b.pid, b.comm, b.ppid, got.component, got.ours, b.want)
				}
			}
		})
	}
}

// A runtime is known by the file that it executes, whatever its name is. Names that engines declare come first: gVisor's sandbox executes
// the runtime's file too.
func TestClassifyByFile(t *testing.T) {
	runtime, stranger := executed{8, 100}, executed{8, 200}
	memfd := executed{memoryDevice(), 7}
	a := &Account{Target: Target{Programs: programs, Runtimes: []string{"fastrun"}}, executable: runtime, self: self, seen: map[int]process{}}
	for _, tt := range []struct {
		name, comm string
		exe        executed
		parent     Component
		want       Component
	}{
		{"a copy in memory", "6", memfd, "", Runtime},
		{"a copy in memory below a shim", "6", memfd, Shim, Runtime},
		{"a copy in memory below conmon", "memfd:clone", memfd, Monitor, Runtime},
		{"a multiplexer with a name of its own", "applet", runtime, "", Runtime},
		{"a runtime that renames itself below a shim", "worker", runtime, Shim, Runtime},
		{"the container's program", "6", stranger, "", Container},
		{"the container's program below a shim", "probe", stranger, Shim, Container},
		{"an unknown file", "6", executed{}, "", Container},
		{"a copy in a container", "6", memfd, Container, Container},
		{"gVisor's sandbox", "runsc-sandbox", runtime, "", Sentry},
		{"a shim", "containerd-shim", runtime, "", Shim},
	} {
		if got := a.classify(process{comm: tt.comm, exe: tt.exe}, tt.parent, nil); got != tt.want {
			t.Errorf("%s is %q, want %q", tt.name, got, tt.want)
		}
	}
	if a.executable = (executed{}); a.classify(process{comm: "x"}, "", nil) != Container {
		t.Error("a process of an unknown file is taken for a runtime of an unknown file")
	}
}

func TestAddKeepsNamesUnique(t *testing.T) {
	programs := Programs{}
	programs.Add(Programs{Daemon: {"containerd"}, Shim: {"containerd-shim*"}})
	programs.Add(Programs{Daemon: {"dockerd", "containerd"}})
	if diff := cmp.Diff(Programs{Daemon: {"containerd", "dockerd"}, Shim: {"containerd-shim*"}}, programs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Only the target's processes count. Processes that are older than the account count with the time used since.
//
// Invariant cost-components: The components of a cost belong to the target, count once each, and add up to the whole.
func TestWhoCounts(t *testing.T) {
	const ms = time.Millisecond
	a := &Account{
		Target: Target{Daemons: []int{daemon}, Programs: programs}, self: self, last: 100,
		before: map[int]time.Duration{daemon: 70 * ms, 50: 5 * ms}, seen: map[int]process{daemon: {}, 50: {}},
	}
	records := []record{
		{pid: 101, tgid: 101, ppid: 1, comm: "cron", last: true, cpu: 1000 * ms},           // of another program
		{pid: 102, tgid: 102, ppid: 101, comm: "runc", last: true, cpu: 1000 * ms},         // a child of another program
		{pid: 60, tgid: 60, ppid: self, comm: "containerd-shim", last: true, cpu: 50 * ms}, // of the trial before
		{pid: 103, tgid: 103, ppid: 60, comm: "runc", last: true, cpu: 1000 * ms},          // a child of that shim
		{pid: 105, tgid: 104, ppid: self, comm: "runc", cpu: 3 * ms},                       // a thread that exits before others
		{pid: 106, tgid: 104, ppid: self, comm: "runc", last: true, cpu: 1 * ms, whole: 12 * ms},
		{pid: 107, tgid: 107, ppid: 108, comm: "host-local", last: true, cpu: 2 * ms},
		{pid: 108, tgid: 108, ppid: daemon, comm: "bridge", last: true, cpu: 4 * ms},
		{pid: 110, tgid: 110, ppid: self, comm: "exe", last: true, cpu: 20 * ms}, // the first of a PID namespace
		{pid: 111, tgid: 111, ppid: 110, comm: "exe", last: true, cpu: 6 * ms},   // a process of that namespace
		{pid: 112, tgid: 112, ppid: self, comm: "thread-of-it", cpu: 1 * ms},     // the first thread ends first
		{pid: 50, tgid: 50, ppid: self, comm: "containerd-shim", last: true, cpu: 9 * ms},
	}
	lives := a.ended(records)
	processes := []process{{pid: daemon, ppid: self, comm: "containerd", cpu: 100 * ms}, {pid: 120, ppid: 50, comm: "probe", cpu: 8 * ms}}
	got := a.sum(slices.Concat(lives, processes), 150)
	want := map[Component]time.Duration{
		Daemon: 30 * ms, Shim: 4 * ms, Runtime: 12 * ms, Network: 6 * ms, Sentry: 26 * ms, Container: 8 * ms,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("CPU time (-want +got):\n%s", diff)
	}
}

// A process has the name of its first thread and the CPU time of all threads, in whatever order the records arrive.
func TestEnded(t *testing.T) {
	for _, tt := range []struct {
		name    string
		records []record
		want    []process
	}{
		{
			"the first thread exits first, and the ID is reused",
			[]record{
				{pid: 5, tgid: 5, ppid: 1, comm: "qemu-system-x86", cpu: 2},
				{pid: 6, tgid: 5, ppid: 1, comm: "CPU 0/KVM", last: true, cpu: 1, whole: 3},
				{pid: 5, tgid: 5, ppid: 1, comm: "cat", last: true, cpu: 4},
			},
			[]process{{pid: 5, ppid: 1, comm: "qemu-system-x86", cpu: 3}, {pid: 5, ppid: 1, comm: "cat", cpu: 4}},
		},
		{
			"the record of another thread follows the last one",
			[]record{
				{pid: 7, tgid: 5, ppid: 1, comm: "worker", cpu: 1},
				{pid: 6, tgid: 5, ppid: 1, comm: "worker", last: true, cpu: 2, whole: 3},
				{pid: 5, tgid: 5, ppid: 1, comm: "runc", cpu: 10},
			},
			[]process{{pid: 5, ppid: 1, comm: "runc", cpu: 13}},
		},
		{
			"the record of another thread follows the last one, which includes it",
			[]record{
				{pid: 6, tgid: 5, ppid: 1, comm: "worker", last: true, cpu: 2, whole: 12},
				{pid: 5, tgid: 5, ppid: 1, comm: "runc", cpu: 10},
			},
			[]process{{pid: 5, ppid: 1, comm: "runc", cpu: 12}},
		},
		{
			"threads exited before the account began",
			[]record{
				{pid: 6, tgid: 5, ppid: 1, comm: "containerd", cpu: 1},
				{pid: 5, tgid: 5, ppid: 1, comm: "containerd", last: true, cpu: 2, whole: 50},
			},
			[]process{{pid: 5, ppid: 1, comm: "containerd", cpu: 50}},
		},
		{
			"the ID is reused for a process with several threads",
			[]record{
				{pid: 5, tgid: 5, ppid: 1, comm: "true", last: true, cpu: 1},
				{pid: 5, tgid: 5, ppid: 2, comm: "runc", cpu: 3},
				{pid: 6, tgid: 5, ppid: 2, comm: "worker", last: true, cpu: 1, whole: 4},
			},
			[]process{{pid: 5, ppid: 1, comm: "true", cpu: 1}, {pid: 5, ppid: 2, comm: "runc", cpu: 4}},
		},
		{"the process is alive", []record{{pid: 6, tgid: 5, ppid: 1, comm: "containerd", cpu: 1}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lives := (&Account{}).ended(tt.records)
			if diff := cmp.Diff(tt.want, lives, cmp.AllowUnexported(process{}, executed{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Reused IDs may form a cycle of parents.
func TestCycleOfParents(t *testing.T) {
	a := &Account{self: self, last: 100, seen: map[int]process{}}
	processes := []process{{pid: 101, ppid: 102, cpu: 1}, {pid: 102, ppid: 101, cpu: 1}, {pid: 103, ppid: 103, cpu: 1}}
	if got := a.sum(processes, 150); len(got) > 0 {
		t.Errorf("processes of others count: %v", got)
	}
}

func TestSince(t *testing.T) {
	for _, tt := range []struct {
		before, now, pid int
		want             bool
	}{
		{100, 200, 100, false},
		{100, 200, 101, true},
		{100, 200, 50, false},
		{32000, 400, 32001, true}, // the kernel has wrapped around
		{32000, 400, 399, true},
		{32000, 400, 401, false},
	} {
		if got := (&Account{last: tt.before}).since(tt.pid, tt.now); got != tt.want {
			t.Errorf("with newest IDs %d before and %d now, since(%d) = %v", tt.before, tt.now, tt.pid, got)
		}
	}
}

// The shims of a daemon that shares its cgroup with others are found as the parents of its containers.
func TestRelatives(t *testing.T) {
	processes := []process{
		{pid: 1, comm: "systemd"},
		{pid: 5, ppid: 1, comm: "containerd-shim"}, // of another program
		{pid: 6, ppid: 5, comm: "nginx"},
		{pid: daemon, ppid: 1, comm: "containerd"},
		{pid: 30, ppid: 1, comm: "containerd-shim"},
		{pid: 31, ppid: 30, comm: "exe"},
		{pid: 32, ppid: 30, comm: "runsc"},
		{pid: 33, ppid: 32, comm: "exe"},
		{pid: 40, ppid: self, comm: "crun"},
		{pid: 41, ppid: 1, comm: "bash"},
		{pid: 42, ppid: 41, comm: "probe"}, // started by hand
	}
	members := []process{processes[3], processes[5]}
	var pids []int
	for _, p := range (Target{Programs: programs}).relatives(members, processes, func(p process) bool { return p.ppid == self }) {
		pids = append(pids, p.pid)
	}
	want := []int{daemon, 31, 30, 32, 33, 40}
	if diff := cmp.Diff(want, pids); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
