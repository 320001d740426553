// Package probe calls the probe, the program of this project that runs in containers, and reads its output.
//
// The probe (folder probe at the top) writes a line of JSON for each result and a last line with their number. [Parse] trusts
// nothing: it refuses output that was cut off, fields that are missing, duplicate or unknown, and impossible numbers. A failure
// must never look like a result.
package probe

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

// Path is the path of the probe in the image.
const Path = "/probe"

// ReadyLine is the first line of the program that Ready calls. Its first byte is the program's first action. After the complete
// line, SIGTERM ends the program.
const ReadyLine = "ready"

// Ready calls a program that writes ReadyLine and waits. It exits with code 0 on SIGTERM.
func Ready() []string { return []string{Path, "ready"} }

// SignalLine is the last line of the program that ReadySignal calls. It is the program's last action, when SIGTERM arrives.
const SignalLine = "signal"

// ReadySignal calls the program of Ready, which also writes SignalLine before its exit.
func ReadySignal() []string { return append(Ready(), "--signal") }

// Tick calls a program that writes a line for ParseTick at once and then at an interval, and sleeps in between. It exits with code 0 on
// SIGTERM.
func Tick(interval time.Duration) []string {
	return []string{Path, "tick", "--ms", workload.Milliseconds(interval)}
}

// ParseTick reads a line of the program that Tick calls, without its end, and returns its number, from 1.
func ParseTick(line string) (int, error) { return ReadCount(line, "tick ") }

// PauseName is the kernel's name of the process that Pause calls.
const PauseName = "pause"

// Pause calls a program that waits and writes nothing, for a pod's sandbox. It exits with code 0 on SIGTERM.
func Pause() []string { return []string{Path, "pause"} }

// Exit calls a program that exits at once with a code from 0 to 255.
func Exit(code int) []string { return []string{Path, "exit", strconv.Itoa(code)} }

// Rights calls a program that writes its rights and its view of the machine. Parse returns the facts and metrics that probe/rights.c lists.
func Rights() []string { return []string{Path, "rights"} }

// Drills calls a program that tries calls that a container should not be able to make, without an effect. Parse returns a fact for each of DrillNames: its text
// is Permitted, the kernel's error, or the signal that killed the process.
func Drills() []string { return []string{Path, "drills"} }

// Confinement calls a program on the host that writes the rights of other processes. Parse returns the facts that probe/confinement.c lists.
func Confinement(pids []int) []string {
	argv := []string{Path, "confinement"}
	for _, pid := range pids {
		argv = append(argv, strconv.Itoa(pid))
	}
	return argv
}

// Permitted is the text of a drill that the kernel permits.
const Permitted = "permitted"

// DrillNames lists the drills in the order of the program.
func DrillNames() []string {
	return []string{
		"mount", "ptrace", "raw socket", "packet socket", "load a module", "keys", "bpf", "perf", "sysrq", "root of another", "mount namespace",
		"user namespace",
	}
}

// load calls a load of the probe. Its values are the metrics with these units. All of them must exist and be above 0: otherwise the
// load completed no operation in its time.
func load(units map[string]workload.Unit, args ...string) workload.Program {
	return workload.Program{Args: append([]string{Path}, args...), Parse: func(stdout []byte) (workload.Values, error) {
		out, err := Parse(stdout)
		if err != nil {
			return nil, err
		}
		values := workload.Values{}
		for name, unit := range units {
			m, ok := out.Metrics[name]
			if !ok || m.Unit != unit {
				return nil, fmt.Errorf("the program's output has no %s in %s", name, unit)
			}
			if m.Value == 0 {
				return nil, fmt.Errorf("the program's output has 0 for %s: it completed no operation in its time", name)
			}
			values[name] = m.Value
		}
		return values, nil
	}}
}

// Syscall calls the system call mix of UnixBench, close(dup(fd)) of a pipe, getpid, getuid, umask, in
// copies (1 to 256) at once for a time d. Values: LoopsPerSecond, the sum over the copies, and
// Index, the loops per second over 1500 (UnixBench: 15000 are index 10).
func Syscall(copies int, d time.Duration) workload.Program { return syscalls(copies, d) }

// SyscallStdin is Syscall with the program's standard input instead of a pipe, as in UnixBench.
func SyscallStdin(copies int, d time.Duration) workload.Program {
	return syscalls(copies, d, "--stdin")
}

func syscalls(copies int, d time.Duration, options ...string) workload.Program {
	units := map[string]workload.Unit{"LoopsPerSecond": workload.PerSecond, "Index": workload.Score}
	args := []string{"syscall", "--copies", strconv.Itoa(copies), "--ms", workload.Milliseconds(d)}
	return load(units, append(args, options...)...)
}

// Calls lists the system calls that Latency measures, in its order.
func Calls() []string {
	return []string{
		"getpid", "getppid", "getuid", "umask", "uname", "getcwd", "clock_gettime", "sched_yield", "getrandom",
		"rt_sigaction", "rt_sigprocmask", "dup+close", "read /dev/zero", "write /dev/null", "lseek+read file", "lseek",
		"fstat", "stat", "open+close", "write+read pipe", "ppoll", "futex wake", "mmap+munmap", "mmap+touch+munmap",
		"fork+exit+wait",
	}
}

// Latency calls the measurement of single system calls, which share the time. Values: the median of each of Calls in seconds. Parse
// returns the whole distributions.
func Latency(d time.Duration) workload.Program {
	return workload.Program{Args: []string{Path, "latency", "--ms", workload.Milliseconds(d)}, Parse: func(stdout []byte) (workload.Values, error) {
		out, err := Parse(stdout)
		if err != nil {
			return nil, err
		}
		values := workload.Values{}
		for i, name := range Calls() {
			if i >= len(out.Calls) || out.Calls[i].Name != name {
				return nil, fmt.Errorf("the program's output has no %s as call %d", name, i+1)
			}
			if out.Calls[i].P50 == 0 {
				return nil, fmt.Errorf("the program's output has 0 for %s", name)
			}
			values[name] = out.Calls[i].P50 / 1e9
		}
		if len(out.Calls) > len(values) {
			return nil, fmt.Errorf("the program's output has %d calls instead of %d", len(out.Calls), len(values))
		}
		return values, nil
	}}
}

// SingleCall calls the measurement of one of Calls, one call after the other. Values: the median P50, the 99th percentile P99 and the longest time
// Max, in seconds. Parse returns the distribution with the longest times.
func SingleCall(name string, samples int) workload.Program {
	return workload.Program{Args: []string{Path, "latency", "--call", name, "--samples", strconv.Itoa(samples)}, Parse: func(stdout []byte) (workload.Values, error) {
		out, err := Parse(stdout)
		if err != nil {
			return nil, err
		}
		if len(out.Calls) != 1 || out.Calls[0].Name != name || out.Calls[0].Count != uint64(samples) || out.Calls[0].Tail == nil {
			return nil, fmt.Errorf("the program's output is not the distribution of %d single calls of %s", samples, name)
		}
		c := out.Calls[0]
		if c.Min == 0 {
			return nil, fmt.Errorf("the program's output has 0 for %s", name)
		}
		return workload.Values{"P50": c.P50 / 1e9, "P99": c.P99 / 1e9, "Max": c.Max / 1e9}, nil
	}}
}

// Stream calls the four kernels of STREAM on three arrays with a size in MiB each, until the time is over. Values: Copy, Scale,
// Add, Triad, the best of the repetitions as in STREAM.
func Stream(mib int, d time.Duration) workload.Program { return StreamCopies(1, mib, d) }

// StreamCopies is Stream in copies (1 to 256) at once, each with arrays of its own. The values count the bytes of all copies.
func StreamCopies(copies, mib int, d time.Duration) workload.Program {
	units := map[string]workload.Unit{"Copy": workload.BytesPerSecond, "Scale": workload.BytesPerSecond, "Add": workload.BytesPerSecond, "Triad": workload.BytesPerSecond}
	return load(units, "stream", "--copies", strconv.Itoa(copies), "--mib", strconv.Itoa(mib), "--ms", workload.Milliseconds(d))
}

// StreamLines calls the kernels of Stream for a time. It writes a line for ParseMoved after each repetition of all four.
func StreamLines(mib int, d time.Duration) []string {
	return []string{Path, "stream", "--lines", "--mib", strconv.Itoa(mib), "--ms", workload.Milliseconds(d)}
}

// ParseMoved reads a line of the program that StreamLines calls, without its end, and returns the bytes of the repetition.
func ParseMoved(line string) (int, error) { return ReadCount(line, "moved ") }

// Forks calls a program that forks processes up to a limit and on and on, for a time, as a fork bomb does. It never has more than
// limit processes, and exits with code ForksUnlimited if nothing stops it before. It writes lines for ParseForks. With stop
// it exits when it has found the limit.
func Forks(limit int, d time.Duration, stop bool) []string {
	args := []string{Path, "forks", "--most", strconv.Itoa(limit), "--ms", workload.Milliseconds(d)}
	if stop {
		args = append(args, "--once")
	}
	return args
}

// ForksUnlimited is the exit code of the program that Forks calls if no limit stops it.
const ForksUnlimited = 3

// ForksProgress is a line of the program that Forks calls: all processes that it has made, those that live, and the attempts that
// the kernel has refused.
type ForksProgress struct{ Total, Live, Refused int }

// ParseForks reads a line of the program that Forks calls, without its end.
func ParseForks(line string) (p ForksProgress, err error) {
	words := strings.Fields(line)
	if len(words) != 6 || words[0] != "forks" || words[2] != "live" || words[4] != "refused" {
		return ForksProgress{}, fmt.Errorf("read the program's progress: %q is not \"forks N live N refused N\"", workload.Excerpt(line))
	}
	for i, field := range []*int{&p.Total, &p.Live, &p.Refused} {
		n, err := workload.Whole(words[2*i+1])
		if err != nil {
			return ForksProgress{}, fmt.Errorf("read the program's progress: %w", err)
		}
		*field = int(n)
	}
	return p, nil
}

// FilesLoad is a load of small files, as in Blogbench.
type FilesLoad struct {
	// Dir is a writable directory of the container. The program removes the files that it makes in it.
	Dir string
	// Writers is 1 to 64; the others are 0 to 64 each.
	Writers, Rewriters, Commenters, Readers int
	// Seed determines all sizes and choices.
	Seed uint64
	// BlogbenchMiB selects the mixture of files of Blogbench itself: its sizes and numbers of articles, pictures and comments, in at
	// most so many MiB, 128 to 16777216. 0 selects a bounded mixture of small articles, which fills at most 30 MiB.
	BlogbenchMiB int
}

// PaperFilesLoad is the load of wang §5.3: three writers, one rewriter, five commenters,
// ten readers. Its mixture of files is the bounded one.
func PaperFilesLoad(dir string, seed uint64) FilesLoad {
	return FilesLoad{Dir: dir, Writers: 3, Rewriters: 1, Commenters: 5, Readers: 10, Seed: seed}
}

// Files calls the load of small files. Values: ReadScore and WriteScore, the complete blogs that are read and written per second
// (probe/files.c defines them), and BlogsRead and BlogsWritten, their numbers.
func Files(l FilesLoad, d time.Duration) workload.Program {
	args := []string{
		"files", "--dir", l.Dir, "--ms", workload.Milliseconds(d),
		"--writers", strconv.Itoa(l.Writers), "--rewriters", strconv.Itoa(l.Rewriters), "--commenters", strconv.Itoa(l.Commenters),
		"--readers", strconv.Itoa(l.Readers), "--seed", strconv.FormatUint(l.Seed, 10),
	}
	if l.BlogbenchMiB > 0 {
		args = append(args, "--blogbench", strconv.Itoa(l.BlogbenchMiB))
	}
	return load(map[string]workload.Unit{"ReadScore": workload.Score, "WriteScore": workload.Score, "BlogsRead": workload.Count, "BlogsWritten": workload.Count}, args...)
}

// BlogbenchBlogs is the number of Blogbench's own blogs that fit into a space in MiB. A blog has at most 100 articles, pictures and
// comments each. A load that writes more blogs replaces the oldest.
func BlogbenchBlogs(mib int) int { return mib << 20 / (100 * (32 + 64 + 10) << 10) }

// Serve calls an HTTP server on 127.0.0.1 that answers every request with ServeBody; port 0 lets the kernel choose. ParseServing
// reads its first line. It exits with code 0 on SIGTERM.
func Serve(port int) []string { return []string{Path, "serve", "--port", strconv.Itoa(port)} }

// ServeAny is Serve on all addresses instead of 127.0.0.1, for clients in other containers.
func ServeAny(port int) []string {
	return []string{Path, "serve", "--any", "--port", strconv.Itoa(port)}
}

// ServeBody is the body of the answers of the program that Serve calls.
const ServeBody = "touchstone\n"

// ParseServing reads the first line of the program that Serve calls, without its end, and returns the port.
func ParseServing(line string) (port int, err error) {
	text, ok := strings.CutPrefix(line, "ready port=")
	if !ok {
		return 0, fmt.Errorf("read the server's first line: %q is not \"ready port=N\"", workload.Excerpt(line))
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("read the server's first line: %q is not a port", workload.Excerpt(text))
	}
	return int(n), nil
}

// Reach calls a program that tries to connect to a port of an IPv4 address until it succeeds. It exits with code 0 then, and with
// code 1 after the limit.
func Reach(addr netip.AddrPort, limit time.Duration) []string {
	return []string{
		Path, "reach", "--address", addr.Addr().String(), "--port", strconv.Itoa(int(addr.Port())), "--ms", workload.Milliseconds(limit),
	}
}

// Write calls a program that makes a new file with one line. It exits with code 1 if it fails.
func Write(file string) []string { return []string{Path, "write", file} }

// CPUs calls a program that writes one line: the CPUs that it may use, in the kernel's format ("0-3,6"). In a sandbox with
// virtual CPUs only their number has a meaning.
func CPUs() []string { return []string{Path, "cpus"} }

// Grow calls a program that touches an amount of memory, a MiB at a time, and exits with code 0 when it has touched all. It writes a
// line for ParseHeld before the first MiB and after each.
func Grow(mib int) []string { return []string{Path, "grow", "--mib", strconv.Itoa(mib)} }

// ParseHeld reads a line of the program that Grow calls, without its end, and returns the number of touched bytes.
func ParseHeld(line string) (int64, error) {
	text, ok := strings.CutPrefix(line, "held ")
	n, err := workload.Whole(text)
	if !ok || err != nil || n%(1<<20) != 0 {
		return 0, fmt.Errorf("read the amount of touched memory: %q is not \"held BYTES\" with whole MiB", workload.Excerpt(line))
	}
	return int64(n), nil
}
