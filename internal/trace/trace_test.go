package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/test/record"
)

// tracesVariable makes the test program a tracer that waits for its end.
const tracesVariable = "TOUCHSTONE_TEST_TRACES"

func TestMain(m *testing.M) {
	if os.Getenv(tracesVariable) == "" {
		os.Exit(m.Run())
	}
	tracer, err := Start(monitor.Target{})
	if err != nil {
		panic(err)
	}
	for _, p := range tracer.loaded() {
		info, err := p.Info()
		if err != nil {
			panic(err)
		}
		id, _ := info.ID()
		fmt.Println(id)
	}
	fmt.Println("loaded")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// start begins a trace, or skips the test on a machine that cannot trace. A kernel that refuses the programs for no known cause fails it.
func start(t *testing.T, target monitor.Target) *Tracer {
	t.Helper()
	tracer, err := Start(target)
	if reason, ok := errors.AsType[*Error](err); ok && reason.Reason != Verifier && reason.Reason != Unexplained {
		record.Skip(t, "no trace: "+reason.Error())
	}
	must.Do(t, err)
	t.Cleanup(func() { _ = tracer.close() })
	return tracer
}

// run runs a script in a mount namespace of its own.
func run(t *testing.T, script string) {
	t.Helper()
	if output, err := exec.CommandContext(t.Context(), "unshare", "-m", "sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, output)
	}
}

// total are the counts of a trace in one sum.
func total(counts []result.TraceCounts) map[string]int64 {
	sum := map[string]int64{}
	for _, c := range counts {
		sum["new process"] += c.Processes
		sum["new thread"] += c.Threads
		for name, n := range c.Calls {
			sum[name] += n
		}
		for name, n := range c.Programs {
			sum["program "+name] += n
		}
		for name, n := range c.Opens {
			sum["open "+name] += n
		}
		sum["bytes read"] += c.BytesRead
		sum["bytes written"] += c.BytesWritten
		sum["cgroup write"] += c.CgroupWrites
		sum["netlink message"] += c.NetlinkMessages
	}
	return sum
}

// traced returns the counts of a script.
func traced(t *testing.T, script string) map[string]int64 {
	t.Helper()
	tracer := start(t, monitor.Target{})
	run(t, script)
	counts, err := tracer.Stop()
	must.Do(t, err)
	return total(counts)
}

// TestOneMore: a script with one mount, fsync or program more has exactly one more.
//
// Invariant trace-counts: A trace counts each system call, new process and program of a target exactly once, or gives no counts.
func TestOneMore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	const script = "true; "
	base := traced(t, script)
	if base["program sh"] != 1 || base["program true"] != 0 { // true is a part of the shell
		t.Errorf("the script has %v", base)
	}
	for _, tt := range []struct {
		more string
		want map[string]int64
	}{
		{"/bin/true; ", map[string]int64{"program true": 1, "execve": 1, "new process": 1}},
		{"mount -t tmpfs trace /mnt; ", map[string]int64{"program mount": 1, "execve": 1, "new process": 1, "mount": 1}},
		{"sync " + file + "; ", map[string]int64{"program sync": 1, "execve": 1, "new process": 1, "fsync": 1}},
	} {
		got := traced(t, script+tt.more+":")
		for name, n := range tt.want {
			if got[name]-base[name] != n {
				t.Errorf("%q: %d more of %s, want %d", tt.more, got[name]-base[name], name, n)
			}
		}
	}
}

// Equal scripts have equal counts.
//
// Invariant trace-counts.
func TestRepeatedTraces(t *testing.T) {
	const script = "/bin/true; mount -t tmpfs trace /mnt; ls /mnt; :"
	counts := traced(t, script)
	if diff := cmp.Diff(counts, traced(t, script)); diff != "" {
		t.Errorf("two traces of one script differ:\n%s", diff)
	}
	opens := int64(0)
	for directory := range relativeDirectory + 1 {
		opens += counts["open "+directoryName(directory)]
	}
	if calls := counts["open"] + counts["openat"]; opens != calls {
		t.Errorf("%d paths of %d opened files", opens, calls)
	}
}

// The counts of a command belong to the step of its time, and to the component of its name.
func TestStepsAndComponents(t *testing.T) {
	dir := t.TempDir()
	const script = "#!/bin/sh\n/bin/true\nunshare -p -f /bin/echo container >/dev/null\n"
	runtime := filepath.Join(dir, "runtime")
	must.Do(t, os.WriteFile(runtime, []byte(script), 0o700)) //nolint:gosec // a program
	tracer := start(t, monitor.Target{Programs: monitor.Programs{monitor.Runtime: {"runtime"}, monitor.Shim: {"sleep"}}})
	for _, step := range []string{"create", "create/Pod", "", "create"} {
		must.Do(t, tracer.Step(step))
		switch step {
		case "create":
			must.Do(t, exec.CommandContext(t.Context(), runtime).Run())
		case "create/Pod":
			must.Do(t, exec.CommandContext(t.Context(), "sleep", "0").Run())
		case "":
			must.Do(t, exec.CommandContext(t.Context(), "ls", "/").Run())
		}
	}
	counts, err := tracer.Stop()
	must.Do(t, err)
	type programs map[string]int64
	got := map[string]programs{}
	for _, c := range counts {
		got[c.Step+" "+c.Component] = c.Programs
		if c.Calls["exit_group"] == 0 {
			t.Errorf("step %q, %s: no exit among %v", c.Step, c.Component, c.Calls)
		}
	}
	want := map[string]programs{
		" container": {"ls": 1}, "create runtime": {"runtime": 2, "true": 2, "unshare": 2}, "create container": {"echo": 2}, "create/Pod shim": {"sleep": 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the programs by step and component (-want +got):\n%s", diff)
	}
}

// The processes of a daemon that runs already are observed, and other processes of the machine are not.
func TestDaemonAndStranger(t *testing.T) {
	shell := func() (*exec.Cmd, io.WriteCloser) {
		cmd := exec.CommandContext(t.Context(), "sh")
		in, err := cmd.StdinPipe()
		must.Do(t, err, cmd.Start())
		return cmd, in
	}
	daemon, orders := shell()
	stranger, idle := shell()
	tracer := start(t, monitor.Target{Daemons: []int{daemon.Process.Pid}})
	for _, in := range []io.WriteCloser{orders, idle} {
		_, err := io.WriteString(in, "/bin/true; exit\n")
		must.Do(t, err)
	}
	must.Do(t, daemon.Wait(), stranger.Wait())
	counts, err := tracer.Stop()
	must.Do(t, err)
	if len(counts) != 1 || counts[0].Component != string(monitor.Daemon) || counts[0].Programs["true"] != 1 || counts[0].Calls["exit_group"] != 2 {
		t.Errorf("the counts of a daemon that runs one program: %+v", counts)
	}
}

// An event without a place in a table makes the counts void.
//
// Invariant trace-counts.
func TestLostEvents(t *testing.T) {
	tracer := start(t, monitor.Target{})
	run(t, ":")
	must.Do(t, tracer.objects.Lost.Set(uint64(2)))
	counts, err := tracer.Stop()
	if counts != nil || err == nil || !strings.Contains(err.Error(), "2 events are missing") {
		t.Errorf("after lost events: %v, %v", counts, err)
	}
}

// After Stop, and after the death of the tracer, no program stays in the kernel.
//
// Invariant trace-removed: The programs of a trace leave the kernel when the trace stops and when Touchstone dies, however it dies.
func TestProgramsLeaveTheKernel(t *testing.T) {
	tracer := start(t, monitor.Target{})
	var ids []ebpf.ProgramID
	for _, p := range tracer.loaded() {
		info, err := p.Info()
		must.Do(t, err)
		id, _ := info.ID()
		ids = append(ids, id)
	}
	_, err := tracer.Stop()
	must.Do(t, err)

	self, err := os.Executable()
	must.Do(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), tracesVariable+"=1")
	in, err := cmd.StdinPipe()
	must.Do(t, err)
	defer func() { _ = in.Close() }()
	out, err := cmd.StdoutPipe()
	must.Do(t, err, cmd.Start())
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "loaded"; {
		id, err := strconv.ParseUint(lines.Text(), 10, 32)
		must.Do(t, err)
		ids = append(ids, ebpf.ProgramID(id))
	}
	must.Do(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	if len(ids) != 2*len(tracer.loaded()) {
		t.Fatalf("two tracers have the programs %v", ids)
	}
	awaitRemoval(ids)
}

// awaitRemoval returns when the kernel has removed all of these programs, a moment after the death of their process.
func awaitRemoval(ids []ebpf.ProgramID) {
	for len(ids) > 0 {
		ids = slices.DeleteFunc(ids, func(id ebpf.ProgramID) bool {
			p, err := ebpf.NewProgramFromID(id)
			if err == nil {
				err = p.Close()
			}
			return errors.Is(err, fs.ErrNotExist)
		})
	}
}

// Two tracers at once count the same.
func TestTwoTracers(t *testing.T) {
	first, second := start(t, monitor.Target{}), start(t, monitor.Target{})
	run(t, "/bin/true; :")
	counts, err := first.Stop()
	must.Do(t, err)
	repeated, err := second.Stop()
	must.Do(t, err)
	withoutTimes := cmpopts.IgnoreFields(result.TraceCounts{}, "Running", "Queued", "Blocked", "Wall", "Switches", "Preemptions")
	if diff := cmp.Diff(counts, repeated, withoutTimes); diff != "" || total(counts)["program true"] != 1 {
		t.Errorf("two tracers of one command differ:\n%s\n%v", diff, counts)
	}
}
