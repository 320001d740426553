package monitor

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tree is a process with those below it, to be read from the test.
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

// The trees are those of real engines, seen while a container runs and at its end.
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
			{33, 30, "exe", "", Runtime}, // before it had a name
			{34, self, "probe", "/probe", Container},
			{35, 34, "runc", "", Container}, // a container may call its programs what it likes
		}},
		{"bare runtime of another name", "fastrun-with-a-long-name", []tree{
			{30, self, "fastrun-with-a-", "", Runtime},
			{31, 30, "hook", "", Runtime},
			{32, self, "redis-server", "", Container},
		}},
		{"bare gVisor", "runsc", []tree{
			{30, self, "runsc", "", Runtime},
			{31, 30, "exe", "runsc-gofer", Sandbox},
			{32, 30, "exe", "", Sandbox}, // known by its end alone
			{33, self, "exe", "runsc-sandbox", Sandbox},
			{34, 33, "exe", "", Sandbox}, // a process of the container, without a command line
			{35, self, "exe", "", Sandbox},
		}},
		{"containerd", "runc", []tree{
			{daemon, self, "containerd", "containerd", Daemon},
			{30, daemon, "containerd-shim", "/usr/bin/containerd-shim-runc-v2", Shim}, // "shim start"
			{31, self, "containerd-shim", "/usr/bin/containerd-shim-runc-v2", Shim},
			{32, 31, "runc", "", Runtime},
			{33, 31, "probe", "/probe", Container},
			{34, 31, "pause", "/probe", Sandbox},
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
			{31, 1, "containerd-shim", "", Shim}, // of a daemon that is not Touchstone's own
			{32, 31, "exe", "runsc-sandbox", Sandbox},
			{33, 32, "exe", "", Sandbox},
			{34, 33, "", "", Sandbox},
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
			{32, 31, "qemu-system-x86", "", Sandbox},
			{33, 31, "virtiofsd", "", Sandbox},
			{34, 33, "virtiofsd", "", Sandbox},
			{35, 31, "cloud-hyperviso", "", Sandbox},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &Account{Target: Target{Daemons: []int{daemon}, Runtimes: []string{tt.runtime}}, self: self, seen: map[int]process{31: {}}}
			var processes []process
			for _, b := range tt.trees {
				p := process{pid: b.pid, ppid: b.ppid, comm: b.comm}
				if b.args != "" {
					p.args = []string{b.args, "--flag"}
				}
				processes = append(processes, p)
			}
			f := a.family(nil, processes)
			for i, b := range tt.trees {
				if got := f.place(i); !got.ours || got.component != b.want {
					t.Errorf("%d %s below %d is %q (ours: %v), want %q", b.pid, b.comm, b.ppid, got.component, got.ours, b.want)
				}
			}
		})
	}
}

// Every component has a place in the list by which it is shown, and is there once.
func TestComponents(t *testing.T) {
	listed := map[Component]int{}
	for _, c := range Components() {
		listed[c]++
	}
	for c := range names {
		if listed[c] != 1 {
			t.Errorf("%s is listed %d times", c, listed[c])
		}
	}
	for _, n := range plugins {
		if c, ok := component(n); ok {
			t.Errorf("%s is a plug-in, and a program of %s", n, c)
		}
	}
	owner := map[string]Component{}
	for c, all := range names {
		for _, n := range all {
			if other, ok := owner[cut(n)]; ok && other != c {
				t.Errorf("%s is a program of %s and of %s", n, c, other)
			}
			owner[cut(n)] = c
		}
	}
}

// Only the target's processes count, and of those that were there before only what they used since.
func TestWhoCounts(t *testing.T) {
	const ms = time.Millisecond
	a := &Account{
		Target: Target{Daemons: []int{daemon}, Runtimes: []string{"runc"}}, self: self, born: 100,
		before: map[int]time.Duration{daemon: 70 * ms, 50: 5 * ms}, seen: map[int]process{daemon: {}, 50: {}},
	}
	records := []record{
		{pid: 101, tgid: 101, ppid: 1, comm: "cron", last: true, cpu: 1000 * ms},           // a stranger's
		{pid: 102, tgid: 102, ppid: 101, comm: "runc", last: true, cpu: 1000 * ms},         // a stranger's child
		{pid: 60, tgid: 60, ppid: self, comm: "containerd-shim", last: true, cpu: 50 * ms}, // of the trial before
		{pid: 103, tgid: 103, ppid: 60, comm: "runc", last: true, cpu: 1000 * ms},          // which it called
		{pid: 105, tgid: 104, ppid: self, comm: "runc", cpu: 3 * ms},                       // a thread that others outlived
		{pid: 106, tgid: 104, ppid: self, comm: "runc", last: true, cpu: 1 * ms, whole: 12 * ms},
		{pid: 107, tgid: 107, ppid: 108, comm: "host-local", last: true, cpu: 2 * ms},
		{pid: 108, tgid: 108, ppid: daemon, comm: "bridge", last: true, cpu: 4 * ms},
		{pid: 110, tgid: 110, ppid: self, comm: "exe", last: true, cpu: 20 * ms}, // the first of a PID namespace
		{pid: 111, tgid: 111, ppid: 110, comm: "exe", last: true, cpu: 6 * ms},   // which took this one with it
		{pid: 112, tgid: 112, ppid: self, comm: "thread-of-it", cpu: 1 * ms},     // the first thread ends first
		{pid: 50, tgid: 50, ppid: self, comm: "containerd-shim", last: true, cpu: 9 * ms},
	}
	ended := a.ended(records)
	living := []process{{pid: daemon, ppid: self, comm: "containerd", cpu: 100 * ms}, {pid: 120, ppid: 50, comm: "probe", cpu: 8 * ms}}
	got := a.sum(ended, living, 150)
	want := map[Component]time.Duration{
		Daemon: 30 * ms, Shim: 4 * ms, Runtime: 12 * ms, Network: 6 * ms, Sandbox: 26 * ms, Container: 8 * ms,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("CPU time (-want +got):\n%s", diff)
	}
}

// A process is called what its first thread is, and has used what all its threads did, whichever way their records come.
func TestEnded(t *testing.T) {
	for _, tt := range []struct {
		name    string
		records []record
		want    []process
	}{
		{
			"the first thread ends first, and the ID comes again",
			[]record{
				{pid: 5, tgid: 5, ppid: 1, comm: "qemu-system-x86", cpu: 2},
				{pid: 6, tgid: 5, ppid: 1, comm: "CPU 0/KVM", last: true, cpu: 1, whole: 3},
				{pid: 5, tgid: 5, ppid: 1, comm: "cat", last: true, cpu: 4},
			},
			[]process{{pid: 5, ppid: 1, comm: "qemu-system-x86", cpu: 3}, {pid: 5, ppid: 1, comm: "cat", cpu: 4}},
		},
		{
			"a thread that ended with the last one comes after it",
			[]record{
				{pid: 7, tgid: 5, ppid: 1, comm: "worker", cpu: 1},
				{pid: 6, tgid: 5, ppid: 1, comm: "worker", last: true, cpu: 2, whole: 3},
				{pid: 5, tgid: 5, ppid: 1, comm: "runc", cpu: 10},
			},
			[]process{{pid: 5, ppid: 1, comm: "runc", cpu: 13}},
		},
		{
			"it comes after it, and was counted with it",
			[]record{
				{pid: 6, tgid: 5, ppid: 1, comm: "worker", last: true, cpu: 2, whole: 12},
				{pid: 5, tgid: 5, ppid: 1, comm: "runc", cpu: 10},
			},
			[]process{{pid: 5, ppid: 1, comm: "runc", cpu: 12}},
		},
		{
			"threads ended before there were records",
			[]record{
				{pid: 6, tgid: 5, ppid: 1, comm: "containerd", cpu: 1},
				{pid: 5, tgid: 5, ppid: 1, comm: "containerd", last: true, cpu: 2, whole: 50},
			},
			[]process{{pid: 5, ppid: 1, comm: "containerd", cpu: 50}},
		},
		{
			"the ID comes again for a process of several threads",
			[]record{
				{pid: 5, tgid: 5, ppid: 1, comm: "true", last: true, cpu: 1},
				{pid: 5, tgid: 5, ppid: 2, comm: "runc", cpu: 3},
				{pid: 6, tgid: 5, ppid: 2, comm: "worker", last: true, cpu: 1, whole: 4},
			},
			[]process{{pid: 5, ppid: 1, comm: "true", cpu: 1}, {pid: 5, ppid: 2, comm: "runc", cpu: 4}},
		},
		{"it lives on", []record{{pid: 6, tgid: 5, ppid: 1, comm: "containerd", cpu: 1}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ended := (&Account{}).ended(tt.records)
			if diff := cmp.Diff(tt.want, ended, cmp.AllowUnexported(process{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A process whose first thread, which had used most, was overtaken by the last one at the end: the records as an arm64
// kernel (Linux 6.12, two CPUs) sent them.
func TestOvertaken(t *testing.T) {
	var records []record
	for _, name := range []string{"overtaken-1", "overtaken-2", "overtaken-3", "overtaken-4"} {
		r, err := parseThread(body(t, name))
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	if last := records[2]; !last.last || last.whole != 109068160 || records[3].cpu != 761642704 {
		t.Fatalf("the records are %+v", records)
	}
	ended := (&Account{}).ended(records)
	if len(ended) != 1 || ended[0].cpu != 109068160+761642704 || ended[0].pid != 169 {
		t.Errorf("ended = %+v, want one process that used what all its threads did", ended)
	}
}

// IDs that were given out again may lead in a circle.
func TestCircleOfParents(t *testing.T) {
	a := &Account{self: self, born: 100, seen: map[int]process{}}
	ended := []process{{pid: 101, ppid: 102, cpu: 1}, {pid: 102, ppid: 101, cpu: 1}, {pid: 103, ppid: 103, cpu: 1}}
	if got := a.sum(ended, nil, 150); len(got) > 0 {
		t.Errorf("strangers count: %v", got)
	}
}

func TestSince(t *testing.T) {
	for _, tt := range []struct {
		born, last, pid int
		want            bool
	}{
		{100, 200, 100, false},
		{100, 200, 101, true},
		{100, 200, 50, false},
		{32000, 400, 32001, true}, // the IDs began again
		{32000, 400, 399, true},
		{32000, 400, 401, false},
	} {
		if got := (&Account{born: tt.born}).since(tt.pid, tt.last); got != tt.want {
			t.Errorf("with %d as the last one before and %d now, %d is new: %v", tt.born, tt.last, tt.pid, got)
		}
	}
}

// Where a daemon shares its cgroup with others, its shims are found by the containers they keep.
func TestRelatives(t *testing.T) {
	all := []process{
		{pid: 1, comm: "systemd"},
		{pid: 5, ppid: 1, comm: "containerd-shim"}, // a stranger's
		{pid: 6, ppid: 5, comm: "nginx"},
		{pid: daemon, ppid: 1, comm: "containerd"},
		{pid: 30, ppid: 1, comm: "containerd-shim"},
		{pid: 31, ppid: 30, comm: "exe"},
		{pid: 32, ppid: 30, comm: "runsc"},
		{pid: 33, ppid: 32, comm: "exe"},
		{pid: 40, ppid: self, comm: "crun"},
		{pid: 41, ppid: 1, comm: "bash"},
		{pid: 42, ppid: 41, comm: "probe"}, // which someone runs by hand
	}
	known := []process{all[3], all[5]}
	var pids []int
	for _, p := range relatives(known, all, func(p process) bool { return p.ppid == self }) {
		pids = append(pids, p.pid)
	}
	want := []int{daemon, 31, 30, 32, 33, 40}
	if diff := cmp.Diff(want, pids); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
