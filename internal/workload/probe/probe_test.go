package probe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/image"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// These tests run the host's own probe.

func binary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "probe")
	if err := image.WriteProbe(path); err != nil {
		t.Fatal(err) // the error has the command that builds it
	}
	return path
}

// result is how a program ended.
type result struct {
	code           int // -1 if a signal ended it
	stdout, stderr string
}

func run(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &stdout
	}
	cmd.Stderr = &stderr
	err := cmd.Run()
	if _, isExit := errors.AsType[*exec.ExitError](err); err != nil && !isExit {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// runProbe runs the probe with the arguments of a vector but its first.
func runProbe(t *testing.T, argv ...string) result {
	t.Helper()
	return run(t, exec.CommandContext(t.Context(), binary(t), argv[1:]...))
}

// measure runs a measuring command and parses its output.
func measure(t *testing.T, p workload.Program) probe.Output {
	t.Helper()
	argv := p.Args
	got := runProbe(t, argv...)
	if got.code != 0 || got.stderr != "" {
		t.Fatalf("%q ended with %d: %s", argv, got.code, got.stderr)
	}
	output, err := probe.Parse([]byte(got.stdout))
	if err != nil {
		t.Fatalf("output of %q: %v", argv, err)
	}
	return output
}

func TestProbeVersion(t *testing.T) {
	got := runProbe(t, probe.Path, "version")
	want := regexp.MustCompile(`^touchstone-probe [0-9]+ ` + runtime.GOARCH + "\n$")
	if got.code != 0 || !want.MatchString(got.stdout) {
		t.Errorf("version: %+v, want code 0 and %v", got, want)
	}
}

func TestProbeExit(t *testing.T) {
	for _, code := range []int{0, 1, 42, 255} {
		if got := runProbe(t, probe.Exit(code)...); got != (result{code: code}) {
			t.Errorf("exit %d: %+v", code, got)
		}
	}
	if got := runProbe(t, probe.Path, "exit"); got != (result{}) {
		t.Errorf("exit: %+v", got)
	}
}

func TestProbeWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if got := runProbe(t, probe.Write(file)...); got != (result{}) {
		t.Errorf("write: %+v", got)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "touchstone\n" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if got := runProbe(t, probe.Write(file)...); got.code != 1 || got.stderr != "write: make the file "+file+": EEXIST (17)\n" {
		t.Errorf("write over a file: %+v", got)
	}
}

func TestProbeCPUs(t *testing.T) {
	text, err := os.ReadFile("/proc/self/status")
	must.Do(t, err)
	_, rest, _ := strings.Cut(string(text), "Cpus_allowed_list:\t")
	want, _, _ := strings.Cut(rest, "\n")
	if got := runProbe(t, probe.CPUs()...); got != (result{stdout: want + "\n"}) {
		t.Errorf("cpus: %+v, want %s", got, want)
	}
}

func TestProbeUsage(t *testing.T) {
	tests := []struct{ args, want string }{
		{"", "usage: probe COMMAND"},
		{"nonsense", "unknown command nonsense"},
		{"exit 256", "CODE must be a whole number from 0 to 255, not 256"},
		{"exit 1 2", "unexpected argument 2"},
		{"syscall --copies", "a value is missing after --copies"},
		{"syscall --copies 257", "--copies must be a whole number from 1 to 256, not 257"},
		{"syscall --ms 1s", "--ms must be a whole number from 1 to 3600000, not 1s"},
		{"syscall --ms 18446744073709551617", "--ms must be a whole number"},
		{"latency --mib 1", "unknown option --mib"},
		{"latency --call getpod", "unknown call getpod"},
		{"latency --call getpid --samples 9", "--samples must be a whole number from 10 to 1000000, not 9"},
		{"files", "--dir is missing"},
		{"files --dir /tmp --writers 0", "--writers must be a whole number from 1 to 64, not 0"},
		{"serve --port 65536", "--port must be a whole number from 0 to 65535"},
		{"reach --address 127.0.0.1", "--port is missing"},
		{"reach --address 127.0.0.256 --port 1", "--address must be an IPv4 address, not 127.0.0.256"},
		{"reach --address 127.0.0.0001 --port 1", "--address must be an IPv4 address, not 127.0.0.0001"},
		{"reach --address 127.0.0.1. --port 1", "--address must be an IPv4 address, not 127.0.0.1."},
		{"write", "the file is missing"},
		{"grow", "grow: an option is missing: --mib\n"},
		{"grow --mib 2000000000", "grow: --mib must be a whole number from 1 to 1048576, not 2000000000\n"},
		{"tick", "tick: an option is missing: --ms\n"},
		{"stream --lines --copies 2", ""},
		{"sequence --", "a program is missing"},
		{"sequence -- /bin/true --then", "a program is missing"},
		{"sequence -- /bin/true --then --then /bin/true", "a program is missing"},
		{"enter -- /probe", "--root is missing"},
		{"enter --root /", "the program is missing"},
	}
	for _, test := range tests {
		t.Run(test.args, func(t *testing.T) {
			got := runProbe(t, append([]string{probe.Path}, strings.Fields(test.args)...)...)
			if got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, test.want) {
				t.Errorf("%+v, want code 2 and %q", got, test.want)
			}
		})
	}
}

func TestProbeSyscall(t *testing.T) {
	for _, copies := range []int{1, 3} {
		m := measure(t, probe.Syscall(copies, 50*time.Millisecond)).Metrics
		loops, index := m["LoopsPerSecond"], m["Index"]
		if len(m) != 2 || loops.Unit != workload.PerSecond || index.Unit != workload.Score || loops.Value <= 0 {
			t.Errorf("%d copies: %v", copies, m)
		}
		if math.Abs(index.Value-loops.Value/1500) > 0.001 {
			t.Errorf("%d copies: index %v is not %v loops/s over 1500", copies, index.Value, loops.Value)
		}
	}
}

// The duplicated descriptor is the same on all targets: it is not standard input or /dev/null.
func TestProbeSyscallTakesNoFile(t *testing.T) {
	needRoot(t, "change the root directory")
	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	must.Do(t, err)
	path := binary(t)
	p, err := os.StartProcess("/"+filepath.Base(path), append([]string{path}, probe.Syscall(1, 10*time.Millisecond).Args[1:]...), &os.ProcAttr{
		Files: []*os.File{nil, output, output}, Dir: "/", Sys: &syscall.SysProcAttr{Chroot: filepath.Dir(path)},
	})
	must.Do(t, err)
	state, err := p.Wait()
	must.Do(t, err)
	got, err := os.ReadFile(output.Name())
	must.Do(t, errors.Join(err, output.Close()))
	if _, err := probe.Parse(got); err != nil || !state.Success() {
		t.Errorf("%v, %v: %s", state, err, got)
	}
}

// The standard input is duplicated, so the load fails without one. os/exec cannot close it.
func TestProbeSyscallStdin(t *testing.T) {
	m := measure(t, probe.SyscallStdin(1, 20*time.Millisecond)).Metrics
	if m["LoopsPerSecond"].Value <= 0 || m["Index"].Value <= 0 {
		t.Errorf("the results are %v", m)
	}
	for input, want := range map[string]int{"closed": 1, "open": 0} {
		script := `exec "$@" <&-`
		if input == "open" {
			script = `exec "$@" </dev/null`
		}
		argv := append([]string{"-c", script, "sh", binary(t)}, probe.SyscallStdin(1, 10*time.Millisecond).Args[1:]...)
		got := run(t, exec.CommandContext(t.Context(), "sh", argv...))
		if got.code != want || want == 1 && !strings.Contains(got.stderr, "dup: EBADF") {
			t.Errorf("with %s input: exit code %d, %s", input, got.code, got.stderr)
		}
	}
}

// The times of single calls are counted once each, and the largest 4000 follow with their numbers.
func TestProbeSingleCall(t *testing.T) {
	for samples, limit := range map[int]int{100: 100, 20_000: 4000} {
		p := probe.SingleCall("stat", samples)
		output := measure(t, p)
		c := output.Calls[0]
		if len(output.Calls) != 1 || c.Name != "stat" || c.Count != uint64(samples) || c.Batch != 1 || len(c.Tail) != limit {
			t.Fatalf("%d calls of %s with a tail of %d, want %d of stat with %d", c.Count, c.Name, len(c.Tail), samples, limit)
		}
		var minimum, maximum uint64 = math.MaxUint64, 0
		for _, v := range c.Tail {
			minimum, maximum = min(minimum, v[1]), max(maximum, v[1])
		}
		var sum uint64
		for _, bucket := range c.Histogram {
			if bucket[0] > minimum {
				sum += bucket[1]
			}
		}
		if float64(maximum) != c.Max || sum > uint64(limit) || limit == samples && float64(minimum) != c.Min {
			t.Errorf("the tail is from %d to %d, of %v to %v, and %d calls are in buckets above it", minimum, maximum, c.Min, c.Max, sum)
		}
	}
}

func TestProbeLatency(t *testing.T) {
	output := measure(t, probe.Latency(50*time.Millisecond))
	var names []string
	for _, c := range output.Calls {
		names = append(names, c.Name)
	}
	if want := probe.Calls(); len(output.Metrics) != 0 || !slices.Equal(names, want) {
		t.Fatalf("%d metrics and the calls %q, want none and %q", len(output.Metrics), names, want)
	}
	for _, c := range output.Calls {
		if c.Min <= 0 {
			t.Errorf("%s takes %v ns", c.Name, c.Min)
		}
		// Percentiles match the batches in the histogram.
		low, high := float64(c.Histogram[0][0]), float64(c.Histogram[len(c.Histogram)-1][0])
		if low > c.Min || low*17/16+1 <= c.Min || high > c.Max || high*17/16+1 <= c.Max {
			t.Errorf("%s: histogram from %v to %v for times from %v to %v", c.Name, low, high, c.Min, c.Max)
		}
	}
}

// Copies execute each kernel together, and the rates count all of them. A copy that is killed ends the others.
func TestProbeStream(t *testing.T) {
	for _, p := range []workload.Program{probe.Stream(1, 20*time.Millisecond), probe.StreamCopies(3, 1, 20*time.Millisecond)} {
		m := measure(t, p).Metrics
		for _, kernel := range []string{"Copy", "Scale", "Add", "Triad"} {
			best, median := m[kernel], m[kernel+"Median"]
			if best.Unit != workload.BytesPerSecond || median.Unit != workload.BytesPerSecond || best.Value < median.Value || median.Value <= 0 {
				t.Errorf("%q: %s: best %v, median %v", p.Args, kernel, best, median)
			}
		}
		if m["Repetitions"].Value < 2 {
			t.Errorf("%q: %v repetitions, want at least 2", p.Args, m["Repetitions"].Value)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(t), probe.StreamCopies(3, 1, time.Hour).Args[1:]...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	must.Do(t, cmd.Start())
	workers := waitForChildren(t, cmd.Process.Pid, 3)
	must.Do(t, syscall.Kill(workers[2], syscall.SIGKILL))
	if err := cmd.Wait(); err == nil || ctx.Err() != nil || !strings.Contains(stderr.String(), "a worker was killed") {
		t.Errorf("after the end of a copy: %v, %s", err, &stderr)
	}
}

func TestProbeFiles(t *testing.T) {
	dir := t.TempDir()
	m := measure(t, probe.Files(probe.PaperFilesLoad(dir, 7), 500*time.Millisecond)).Metrics
	value := func(name string) float64 { return m[name].Value }
	for _, name := range []string{"ReadScore", "WriteScore"} {
		if m[name].Unit != workload.Score || value(name) <= 0 {
			t.Errorf("%s = %v, want a score above 0", name, m[name])
		}
	}
	for _, unwanted := range []struct {
		what string
		is   bool
	}{
		{"blogs were read and not all their articles", value("ArticlesRead") < 8*value("BlogsRead")},
		{"blogs were written and not all their articles", value("ArticlesWritten") < 8*value("BlogsWritten")},
		{"there are too few bytes for the articles read", value("BytesRead") < 1024*value("ArticlesRead")},
		{"there are too few bytes for the articles written", value("BytesWritten") < 1024*value("ArticlesWritten")},
		{"too many bytes for the written files", value("BytesWritten") > 32768*(value("ArticlesWritten")+value("ArticlesRewritten")+24)+512*(value("CommentsWritten"))},
		{"nobody commented", value("CommentsWritten") == 0},
		{"nobody rewrote", value("ArticlesRewritten") == 0},
	} {
		if unwanted.is {
			t.Errorf("%s: %v", unwanted.what, m)
		}
	}
	wantEmpty(t, dir)
}

// Blogbench's own mixture has up to 100 articles, pictures and comments a blog, and stays in its space.
func TestProbeBlogbench(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes for seconds")
	}
	dir := t.TempDir()
	load := probe.PaperFilesLoad(dir, 7)
	load.BlogbenchMiB = 128
	m := measure(t, probe.Files(load, 3*time.Second)).Metrics
	value := func(name string) float64 { return m[name].Value }
	for _, name := range []string{
		"BlogsWritten", "ArticlesWritten", "PicturesWritten", "CommentsWritten", "ArticlesRewritten", "BlogsRead", "ArticlesRead", "PicturesRead", "CommentsRead",
	} {
		if !(value(name) > 0) {
			t.Errorf("%s is %v", name, value(name))
		}
	}
	for _, unwanted := range []struct {
		what string
		is   bool
	}{
		{"there are too few bytes for the files written", value("BytesWritten") < 1024*value("ArticlesWritten")+8192*value("PicturesWritten")+2048*value("CommentsWritten")},
		{"there are too many bytes for the files written", value("BytesWritten") > 32768*(value("ArticlesWritten")+value("ArticlesRewritten")+10)+65536*(value("PicturesWritten")+10)+10240*(value("CommentsWritten")+10)},
		{"there are too few bytes for the files read", value("BytesRead") < 1024*value("ArticlesRead")+8192*value("PicturesRead")+2048*value("CommentsRead")},
	} {
		if unwanted.is {
			t.Errorf("%s: %v", unwanted.what, m)
		}
	}
	wantEmpty(t, dir)
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
}

func TestProbeFilesFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "touchstone-files", "kept")
	must.Do(t, os.Mkdir(filepath.Dir(file), 0o755))
	must.Do(t, os.WriteFile(file, nil, 0o644))
	tests := []struct{ dir, want string }{
		{filepath.Join(dir, "missing"), "missing: ENOENT (2)"},
		{file, "kept: ENOTDIR (20)"},
		{dir, "touchstone-files: EEXIST (17)"},
	}
	for _, test := range tests {
		got := runProbe(t, probe.Files(probe.PaperFilesLoad(test.dir, 1), time.Millisecond).Args...)
		if got.code != 1 || got.stdout != "" || !strings.Contains(got.stderr, test.want) {
			t.Errorf("files in %s: %+v, want code 1 and %q", test.dir, got, test.want)
		}
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("a file that the probe did not make was removed: %v", err)
	}
}

// Out of space, it fails in all its workers and removes what it has made.
func TestProbeFilesOutOfSpace(t *testing.T) {
	needRoot(t, "mount a small file system")
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() { must.Do(t, unix.Unmount(dir, 0)) })
	got := runProbe(t, probe.Files(probe.PaperFilesLoad(dir, 1), time.Hour).Args...)
	if got.code != 1 || got.stdout != "" || got.stderr != "files: write an article: ENOSPC (28)\n" {
		t.Errorf("%+v, want code 1 and ENOSPC", got)
	}
	wantEmpty(t, dir)
}

// A limit of processes, as containers have, ends it as orderly.
func TestProbeFilesWithoutProcesses(t *testing.T) {
	needRoot(t, "become a user without processes")
	const user = 4_000_000_001 // that has no processes but those below
	dir, path := t.TempDir(), binary(t)
	for _, d := range []string{filepath.Dir(dir), filepath.Dir(path), dir} {
		must.Do(t, os.Chmod(d, 0o777))
	}
	argv := probe.Files(probe.PaperFilesLoad(dir, 1), time.Hour).Args
	cmd := exec.CommandContext(t.Context(), "prlimit", append([]string{"--nproc=4", path}, argv[1:]...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	if got := run(t, cmd); got.code != 1 || got.stdout != "" || got.stderr != "files: fork a worker: EAGAIN (11)\n" {
		t.Errorf("%+v, want code 1 and EAGAIN", got)
	}
	wantEmpty(t, dir)
}

// A result that cannot be written is a failure.
func TestProbeOutputFails(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	must.Do(t, err)
	defer func() { _ = full.Close() }()
	for _, argv := range [][]string{probe.Syscall(1, time.Millisecond).Args, probe.Ready(), probe.Serve(0)} {
		cmd := exec.CommandContext(t.Context(), binary(t), argv[1:]...)
		cmd.Stdout = full
		if got := run(t, cmd); got.code != 1 || !strings.Contains(got.stderr, "ENOSPC (28)") {
			t.Errorf("%q to a full device: %+v, want code 1 and ENOSPC", argv, got)
		}
	}
}

// No worker outlives the probe, however it ends.
func TestProbeKilledTakesItsWorkers(t *testing.T) {
	ctx, kill := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, binary(t), probe.Syscall(2, time.Hour).Args[1:]...)
	// Workers inherit the pipe's writing end: it ends with the last of them.
	stderr, err := cmd.StderrPipe()
	must.Do(t, err)
	must.Do(t, cmd.Start())
	waitForChildren(t, cmd.Process.Pid, 2)
	kill()
	var rest bytes.Buffer
	if _, err := rest.ReadFrom(stderr); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the probe ended well although it was killed")
	}
}

// waitForChildren returns the n children of a process when it has them. The kernel has no event for this.
func waitForChildren(t *testing.T, pid, n int) (pids []int) {
	t.Helper()
	path := fmt.Sprintf("/proc/%d/task/%[1]d/children", pid)
	for {
		children, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			t.Skipf("this kernel does not list the children of processes: %v", err)
		}
		must.Do(t, err)
		if fields := strings.Fields(string(children)); len(fields) == n {
			for _, field := range fields {
				pid, err := strconv.Atoi(field)
				must.Do(t, err)
				pids = append(pids, pid)
			}
			return pids
		}
	}
}
