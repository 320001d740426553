// Package workload is the programs that run in containers, seen from the host: how
// they are called, and what their output says.
//
// A program's call is a function that gives its argument vector; its output is read by a pure
// function, so that it can be tested on output that was captured from every runtime. Nothing
// here runs anything.
//
// The probe (folder probe at the top) writes a line of JSON for each result and a last
// line that counts them. [Parse] believes none of it: it refuses output that was cut off, in which
// something is missing, twice or unknown, and numbers that cannot be. A failure
// must never look like a result.
package workload

import (
	"net/netip"
	"strconv"
	"time"
)

// Probe is the path of the probe in the image, the first element of every argument
// vector given here.
const Probe = "/probe"

// ReadyLine is the first line of the program that Ready calls. Its first byte is the first
// thing the program does; when the line is complete, the program can be ended
// with SIGTERM.
const ReadyLine = "ready"

// Ready calls a program that writes ReadyLine and waits. It ends with code 0 on SIGTERM.
func Ready() []string { return []string{Probe, "ready"} }

// PauseName is the name of the process of the program that Pause calls, as the kernel shows it.
const PauseName = "pause"

// Pause calls a program that waits without a word, for a pod's sandbox. It ends with code 0 on SIGTERM.
func Pause() []string { return []string{Probe, "pause"} }

// Exit calls a program that ends at once with a code from 0 to 255.
func Exit(code int) []string { return []string{Probe, "exit", strconv.Itoa(code)} }

// Syscall calls the system call mix of UnixBench, close(dup(fd)) of a pipe, getpid, getuid, umask, in
// copies (1 to 256) at once for a time. Metrics: LoopsPerSecond, the sum over the copies, and
// Index, the loops per second over 1500 (UnixBench: 15000 are index 10).
func Syscall(copies int, d time.Duration) []string {
	return []string{Probe, "syscall", "--copies", strconv.Itoa(copies), "--ms", milliseconds(d)}
}

// Latency calls the measurement of single system calls, which share the time. The
// output has calls and no metrics.
func Latency(d time.Duration) []string {
	return []string{Probe, "latency", "--ms", milliseconds(d)}
}

// Stream calls the four kernels of STREAM on three arrays of so many MiB each, until the time
// is over. Metrics: Copy, Scale, Add, Triad, the best of the repetitions as STREAM has it;
// CopyMedian, …; Repetitions.
func Stream(mib int, d time.Duration) []string {
	return []string{Probe, "stream", "--mib", strconv.Itoa(mib), "--ms", milliseconds(d)}
}

// FilesLoad says who works how on small files, as in Blogbench.
type FilesLoad struct {
	// Dir is a directory of the container that can be written. All that is made
	// in it is removed again.
	Dir string
	// Writers is 1 to 64, the others 0 to 64 each.
	Writers, Rewriters, Commenters, Readers int
	// Seed decides all sizes and choices.
	Seed uint64
}

// PaperFilesLoad is the load of wang §5.3: three writers, one rewriter, five commenters,
// ten readers. It fills at most 30 MiB.
func PaperFilesLoad(dir string, seed uint64) FilesLoad {
	return FilesLoad{Dir: dir, Writers: 3, Rewriters: 1, Commenters: 5, Readers: 10, Seed: seed}
}

// Files calls the load of small files. Metrics: ReadScore and WriteScore, the blogs read
// and written whole per second (probe/files.c defines them); and what they are made of.
func Files(load FilesLoad, d time.Duration) []string {
	return []string{
		Probe, "files", "--dir", load.Dir, "--ms", milliseconds(d),
		"--writers", strconv.Itoa(load.Writers),
		"--rewriters", strconv.Itoa(load.Rewriters),
		"--commenters", strconv.Itoa(load.Commenters),
		"--readers", strconv.Itoa(load.Readers),
		"--seed", strconv.FormatUint(load.Seed, 10),
	}
}

// Serve calls an HTTP server on 127.0.0.1 that answers every request with ServeBody; port 0
// lets the kernel choose. Its first line is for ParseServing. It ends with code 0 on SIGTERM.
func Serve(port int) []string { return []string{Probe, "serve", "--port", strconv.Itoa(port)} }

// ServeAny is Serve on all addresses instead of 127.0.0.1, for clients in other containers.
func ServeAny(port int) []string {
	return []string{Probe, "serve", "--any", "--port", strconv.Itoa(port)}
}

// ServeBody is the body of the answers of the program that Serve calls.
const ServeBody = "touchstone\n"

// Reach calls a program that connects to a port, an IPv4 address's, again and again until that is accepted. It
// ends with code 0 then, and with 1 when the limit is over.
func Reach(addr netip.AddrPort, limit time.Duration) []string {
	return []string{
		Probe, "reach", "--address", addr.Addr().String(), "--port", strconv.Itoa(int(addr.Port())), "--ms", milliseconds(limit),
	}
}

// Write calls a program that makes a file, which is not there yet, with one line in it, and leaves it. It ends with
// code 1 if it cannot.
func Write(file string) []string { return []string{Probe, "write", file} }

// CPUs calls a program that writes one line: the CPUs on which it may run, as the kernel spells them ("0-3,6"). In a
// sandbox with CPUs of its own making that is how many there are, and not which.
func CPUs() []string { return []string{Probe, "cpus"} }

// milliseconds rounds up: a program must not get no time at all.
func milliseconds(d time.Duration) string {
	ms := (d + time.Millisecond - 1) / time.Millisecond
	return strconv.FormatInt(max(int64(ms), 1), 10)
}
