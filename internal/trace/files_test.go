package trace

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// A file counts at the directory that begins its path, whether it exists or not.
//
// Invariant trace-counts.
func TestOpens(t *testing.T) {
	const script = "cd /; "
	base := traced(t, script+":")
	for path, name := range map[string]string{
		"/proc/version": "/proc", "/sys/fs/cgroup/none": "/sys/fs/cgroup", "/sys/fs/none": "/sys", "/sys": "/sys", "/dev/null": "/dev", "/etc/passwd": "/etc",
		"/lib64/none": "/usr", "/library": "(other)", "/var/run/none": "/run", "/run/touchstone/none": "(touchstone)", "/var/lib/touchstone": "(touchstone)",
		"/var/lib/touchstones": "/var/lib", "/var/libs": "(other)", "/": "(other)", "etc/passwd": "(relative)",
	} {
		got := traced(t, script+"true <"+path+"; :")
		for directory := range relativeDirectory + 1 {
			directory := directoryName(directory)
			want := int64(0)
			if directory == name {
				want = 1
			}
			if n := got["open "+directory] - base["open "+directory]; n != want {
				t.Errorf("a file %s: %d more of %s, want %d", path, n, directory, want)
			}
		}
	}
}

// The bytes of a copy, and a write to a file of a cgroup, are counted exactly.
//
// Invariant trace-counts.
func TestBytesAndCgroupWrites(t *testing.T) {
	const copying = "dd if=/dev/zero of=/dev/null bs=1000 status=none "
	base, copies := traced(t, copying+"count=2; :"), traced(t, copying+"count=9; :")
	for _, name := range []string{"bytes read", "bytes written"} {
		if n := copies[name] - base[name]; n != 7000 {
			t.Errorf("%d more %s, want 7000", n, name)
		}
	}
	files, err := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs") // with hierarchies of v1, or with any group of v2
	must.Do(t, err)
	if len(files) == 0 {
		t.Fatal("no cgroup has a file cgroup.procs")
	}
	got := traced(t, "exec >"+files[0]+"; echo none || echo none || :")
	if got["cgroup write"] != 2 || base["cgroup write"] != 0 || got["netlink message"] != 0 {
		t.Errorf("two writes to %s: %v", files[0], got)
	}
}

// A message to the kernel by a netlink socket is counted, and one to another process is not.
//
// Invariant trace-counts.
func TestNetlinkMessages(t *testing.T) {
	tracer := start(t, monitor.Target{Daemons: []int{os.Getpid()}})
	sockets, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	must.Do(t, err, unix.Sendto(sockets[0], []byte("message"), 0, nil))
	netlink, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	must.Do(t, err)
	message := make([]byte, unix.SizeofNlMsghdr)
	message[0], message[4] = unix.SizeofNlMsghdr, unix.NLMSG_NOOP
	must.Do(t, unix.Sendto(netlink, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}), unix.Close(netlink), unix.Close(sockets[0]), unix.Close(sockets[1]))
	must.Do(t, exec.CommandContext(t.Context(), "true").Run())
	counts, err := tracer.Stop()
	must.Do(t, err)
	if got := total(counts); got["netlink message"] != 1 || got["sendto"] != 2 || got["program true"] != 1 {
		t.Errorf("one message to the kernel: %v", got)
	}
}

// The paths of opened files are in a trace that wants them, and in no other one.
//
// Invariant trace-paths: A trace has the paths of opened files only if the user asks for them.
func TestPaths(t *testing.T) {
	const script = "true </etc/none; true </etc/none; true <./none; true <''; :"
	for hasPaths, want := range map[bool]map[string]int64{
		true: {"/etc/none": 2, "./none": 1, noPath: 1}, false: {"/etc/none": 0, "./none": 0, noPath: 0},
	} {
		tracer := start(t, monitor.Target{})
		if hasPaths {
			must.Do(t, tracer.close())
			var err error
			tracer, err = StartWithPaths(monitor.Target{})
			must.Do(t, err)
			t.Cleanup(func() { _ = tracer.close() })
		}
		run(t, script)
		counts, err := tracer.Stop()
		must.Do(t, err)
		if len(counts) != 1 || !hasPaths && counts[0].Paths != nil {
			t.Fatalf("with paths: %v, counts %+v", hasPaths, counts)
		}
		for path, number := range want {
			if counts[0].Paths[path] != number {
				t.Errorf("with paths: %v, %d of %q, want %d of %v", hasPaths, counts[0].Paths[path], path, number, counts[0].Paths)
			}
		}
	}
}

// A trace whose buffer of paths was too small has its counts, and no paths.
func TestLostPaths(t *testing.T) {
	_ = start(t, monitor.Target{}).close() // skips the test on a machine that cannot trace
	tracer, err := StartWithPaths(monitor.Target{})
	must.Do(t, err)
	run(t, ":")
	must.Do(t, tracer.objects.LostPaths.Set(uint64(1)))
	counts, err := tracer.Stop()
	must.Do(t, err)
	if len(counts) != 1 || counts[0].Paths != nil || len(counts[0].Opens) == 0 {
		t.Errorf("after a lost path: %+v", counts)
	}
}
