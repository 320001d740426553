// Package workload has the programs that run in containers, as the host calls them and reads their output.
//
// A [Program] is the argument vector of a call and the parser of its output. The parser is a pure function, so that tests can
// use output that was captured from every runtime. Nothing here runs a process. A file for each program also declares its
// [Tool]: the packages and files of the workload image.
//
// The probe (folder probe at the top) writes a line of JSON for each result and a last line with their number. [Parse] trusts
// nothing: it refuses output that was cut off, fields that are missing, duplicate or unknown, and impossible numbers. A failure
// must never look like a result.
package workload

import (
	"net/netip"
	"strconv"
	"time"
)

// Probe is the path of the probe in the image.
const Probe = "/probe"

// ReadyLine is the first line of the program that Ready calls. Its first byte is the program's first action. After the complete
// line, SIGTERM ends the program.
const ReadyLine = "ready"

// Ready calls a program that writes ReadyLine and waits. It exits with code 0 on SIGTERM.
func Ready() []string { return []string{Probe, "ready"} }

// PauseName is the kernel's name of the process that Pause calls.
const PauseName = "pause"

// Pause calls a program that waits and writes nothing, for a pod's sandbox. It exits with code 0 on SIGTERM.
func Pause() []string { return []string{Probe, "pause"} }

// Exit calls a program that exits at once with a code from 0 to 255.
func Exit(code int) []string { return []string{Probe, "exit", strconv.Itoa(code)} }

// Syscall calls the system call mix of UnixBench, close(dup(fd)) of a pipe, getpid, getuid, umask, in
// copies (1 to 256) at once for a time d. Metrics: LoopsPerSecond, the sum over the copies, and
// Index, the loops per second over 1500 (UnixBench: 15000 are index 10).
func Syscall(copies int, d time.Duration) []string {
	return []string{Probe, "syscall", "--copies", strconv.Itoa(copies), "--ms", milliseconds(d)}
}

// Latency calls the measurement of single system calls, which share the time. The output has calls and no metrics.
func Latency(d time.Duration) []string {
	return []string{Probe, "latency", "--ms", milliseconds(d)}
}

// Stream calls the four kernels of STREAM on three arrays with a size in MiB each, until the time is over. Metrics: Copy, Scale,
// Add, Triad, the best of the repetitions as in STREAM; CopyMedian, …; Repetitions.
func Stream(mib int, d time.Duration) []string {
	return []string{Probe, "stream", "--mib", strconv.Itoa(mib), "--ms", milliseconds(d)}
}

// FilesLoad is a load of small files, as in Blogbench.
type FilesLoad struct {
	// Dir is a writable directory of the container. The program removes the files that it makes in it.
	Dir string
	// Writers is 1 to 64; the others are 0 to 64 each.
	Writers, Rewriters, Commenters, Readers int
	// Seed determines all sizes and choices.
	Seed uint64
}

// PaperFilesLoad is the load of wang §5.3: three writers, one rewriter, five commenters,
// ten readers. It fills at most 30 MiB.
func PaperFilesLoad(dir string, seed uint64) FilesLoad {
	return FilesLoad{Dir: dir, Writers: 3, Rewriters: 1, Commenters: 5, Readers: 10, Seed: seed}
}

// Files calls the load of small files. Metrics: ReadScore and WriteScore, the complete blogs that are read and written per second
// (probe/files.c defines them); and their components.
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

// Serve calls an HTTP server on 127.0.0.1 that answers every request with ServeBody; port 0 lets the kernel choose. ParseServing
// reads its first line. It exits with code 0 on SIGTERM.
func Serve(port int) []string { return []string{Probe, "serve", "--port", strconv.Itoa(port)} }

// ServeAny is Serve on all addresses instead of 127.0.0.1, for clients in other containers.
func ServeAny(port int) []string {
	return []string{Probe, "serve", "--any", "--port", strconv.Itoa(port)}
}

// ServeBody is the body of the answers of the program that Serve calls.
const ServeBody = "touchstone\n"

// Reach calls a program that tries to connect to a port of an IPv4 address until it succeeds. It exits with code 0 then, and with
// code 1 after the limit.
func Reach(addr netip.AddrPort, limit time.Duration) []string {
	return []string{
		Probe, "reach", "--address", addr.Addr().String(), "--port", strconv.Itoa(int(addr.Port())), "--ms", milliseconds(limit),
	}
}

// Write calls a program that makes a new file with one line. It exits with code 1 if it fails.
func Write(file string) []string { return []string{Probe, "write", file} }

// CPUs calls a program that writes one line: the CPUs on which it may run, in the kernel's format ("0-3,6"). In a sandbox with
// virtual CPUs only their number has a meaning.
func CPUs() []string { return []string{Probe, "cpus"} }
