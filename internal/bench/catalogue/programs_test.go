package catalogue_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

// captureDir is the directory with the captured output of programs.
const captureDir = "../../workload/testdata"

// install puts imitations of the image's programs into the root file system of fake containers. A program without an
// imitation here repeats its capture with quick parameters, PROGRAM-native.txt, if there is one.
func install(d *fake.Driver) {
	for name, program := range imitations() {
		d.Install(name, program)
	}
}

// imitations returns the imitated programs by their paths in the image.
func imitations() map[string]fake.Program {
	scripts := map[string]fake.Program{
		"/usr/bin/sysbench": byFirst(map[string]fake.Program{"fileio": fileio, "cpu": sysbenchCPU, "memory": sysbenchMemory}),
		"/usr/bin/busybox":  byFirst(map[string]fake.Program{"truncate": busybox}),
		"/usr/bin/7z":       sevenZip,
		"/usr/bin/dav1d":    dav1d,
		"/usr/bin/linpack":  linpack,
		"/usr/bin/fio":      fio,
		"/usr/bin/sqlite3":  sqlite(),
		programs.Nginx:      idleNginx,
		"/usr/bin/sh":       redisSweep,
	}
	for _, tool := range programs.Tools() {
		for _, file := range tool.Files {
			text, err := os.ReadFile(filepath.Join(captureDir, path.Base(file)+"-native.txt"))
			if _, scripted := scripts[file]; !scripted && err == nil {
				scripts[file] = repeated(string(text))
			}
		}
	}
	return scripts
}

// idleNginx listens until it is killed.
func idleNginx([]string, engine.Spec) fake.Behaviour {
	return fake.Behaviour{Log: `2026/11/22 20:00:00 [notice] 1#1: using the "epoll" event method` + "\n"}
}

// redisSweep imitates the victim of isolation.memory.reclaim: its first line is the number of values.
func redisSweep(args []string, _ engine.Spec) fake.Behaviour {
	_, rest, _ := strings.Cut(args[1], "VALUES=")
	values, _, _ := strings.Cut(rest, ";")
	return fake.Behaviour{Every: 5 * time.Millisecond, Lines: func(n int) string {
		if n == 1 {
			return values
		}
		return strconv.Itoa(programs.RedisSweeps * 4096)
	}}
}

// repeated is a program that takes a second and writes a text, with any arguments.
func repeated(text string) fake.Program {
	return func([]string, engine.Spec) fake.Behaviour { return fake.Behaviour{Took: time.Second, Stdout: text} }
}

// byFirst is a program with a subcommand as its first argument.
func byFirst(commands map[string]fake.Program) fake.Program {
	return func(args []string, spec engine.Spec) fake.Behaviour {
		if len(args) > 0 {
			if command, ok := commands[args[0]]; ok {
				return command(args[1:], spec)
			}
		}
		return fake.Behaviour{Stderr: fmt.Sprintf("unknown command: %q\n", args), Exit: engine.Exit{Code: 1}}
	}
}

// The following functions imitate the CPU programs of the image. They write the output that the benchmarks read.

// sysbenchEvent is the time of each of sysbench's events in a thread.
const sysbenchEvent = 600 * time.Microsecond

// sysbenchReport is the output of sysbench, with a head and a section of the test. An event takes the same time in each thread.
func sysbenchReport(o map[string]string, event time.Duration, settings, results string) fake.Behaviour {
	threads, events := wholeOf(o["threads"]), wholeOf(o["events"])
	took, ms := time.Duration(events/threads)*event, 1e3*event.Seconds()
	return fake.Behaviour{Took: took, Stdout: fmt.Sprintf(`sysbench 1.0.20 (using system LuaJIT 2.1.1700206165)

Running the test with following options:
Number of threads: %d
Initializing random number generator from current time


%s
Initializing worker threads...

Threads started!

%s
General statistics:
    total time:                          %.4fs
    total number of events:              %d

Latency (ms):
         min:                                    %.2f
         avg:                                    %.2f
         max:                                    %.2f
         95th percentile:                        %.2f
         sum:                                 %8.2f

Threads fairness:
    events (avg/stddev):           %.4f/0.00
    execution time (avg/stddev):   %.4f/0.00

`, threads, settings, results, took.Seconds(), events, ms*5/6, ms, ms*7/6, ms, float64(events)*ms, float64(events)/float64(threads), took.Seconds())}
}

// sysbenchCPU imitates the test cpu of sysbench.
func sysbenchCPU(args []string, _ engine.Spec) fake.Behaviour {
	o := optionsOf(args)
	rate := float64(wholeOf(o["threads"])) / sysbenchEvent.Seconds()
	return sysbenchReport(o, sysbenchEvent, "Prime numbers limit: "+o["cpu-max-prime"]+"\n", fmt.Sprintf("CPU speed:\n    events per second: %8.2f\n", rate))
}

// sysbenchMemory imitates the test memory of sysbench.
func sysbenchMemory(args []string, _ engine.Spec) fake.Behaviour {
	o := optionsOf(args)
	return sysbenchReport(o, sysbenchEvent, fmt.Sprintf(`Running memory speed test with the following options:
  block size: %siB
  total size: %siB
  operation: %s
  scope: %s
`, o["memory-block-size"], o["memory-total-size"], o["memory-oper"], o["memory-scope"]), fmt.Sprintf(`Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       0.504 |****************************************  %s

Total operations: %s (1666.67 per second)

x MiB transferred (1666.67 MiB/sec)

`, o["events"], o["events"]))
}

// sevenZip imitates 7-Zip's benchmark with two CPUs.
func sevenZip(args []string, _ engine.Spec) fake.Behaviour {
	value := func(prefix string) string {
		i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, prefix) })
		return strings.TrimPrefix(args[i], prefix)
	}
	threads := value("-mmt=")
	if threads == "on" {
		threads = "2"
	}
	n := wholeOf(threads)
	result := fmt.Sprintf("%5d %6d %6d", 100*n, 5000, 5000*n)
	line := result + "  |      80000 " + result
	var passes strings.Builder
	for range wholeOf(args[1]) {
		for d := 18; d <= wholeOf(value("-md=")); d++ {
			fmt.Fprintf(&passes, "%d:      8000 %s\n", d, line)
		}
	}
	return fake.Behaviour{Took: time.Second, Stdout: fmt.Sprintf(`
7-Zip 25.01 (x64) : Copyright (c) 1999-2025 Igor Pavlov : 2025-08-03

RAM usage:     17 MB,  # Benchmark threads:      %d

                       Compressing  |                  Decompressing
Dict     Speed Usage    R/U Rating  |      Speed Usage    R/U Rating
         KiB/s     %%   MIPS   MIPS  |      KiB/s     %%   MIPS   MIPS

%s----------------------------------  | ------------------------------
Avr:      8000 %s
Tot:           %s
`, n, passes.String(), line, result)}
}

// dav1dFrame is dav1d's time for a picture.
const dav1dFrame = 4 * time.Millisecond

// dav1d imitates dav1d.
func dav1d(args []string, _ engine.Spec) fake.Behaviour {
	frames := wholeOf(args[slices.Index(args, "--limit")+1])
	b := fake.Behaviour{Took: time.Duration(frames) * dav1dFrame}
	if slices.Contains(args, "--frametimes") {
		b.Stdout = strings.Repeat(strconv.FormatInt(dav1dFrame.Nanoseconds(), 10)+"\n", frames)
	}
	return b
}

// linpackRate is the rate of the imitated linpack.
const linpackRate = 40e9

// linpack imitates Touchstone's linpack program with two CPUs.
func linpack(args []string, _ engine.Spec) fake.Behaviour {
	value := func(name string, fallback int) int {
		if i := slices.Index(args, name); i >= 0 {
			return wholeOf(args[i+1])
		}
		return fallback
	}
	n, runs := float64(value("--n", 1000)), value("--runs", 1)
	second := (2.0/3*n*n*n + 2*n*n) / linpackRate
	if slices.Contains(args, "--seconds") {
		solved := func(n int) string { return fmt.Sprintf("solved %d", n) }
		return fake.Behaviour{Every: time.Duration(second * float64(time.Second)), Lines: solved}
	}
	seconds := strings.Trim(strings.Repeat(fmt.Sprintf("%.9f,", second), runs), ",")
	return fake.Behaviour{
		Took: time.Duration(second * float64(runs) * float64(time.Second)),
		Stdout: fmt.Sprintf(`{"program":"linpack","version":1,"n":%.0f,"runs":%d,"threads":%d,"seconds":[%s],"flops_per_second":%.0f,"residual":0.0018}`+"\n",
			n, runs, value("--threads", 2), seconds, linpackRate),
	}
}

// The following functions imitate the disk programs of the image. They write the output that the benchmarks read.

// optionsOf returns the options of a command line, "--name=value" or "--name".
func optionsOf(args []string) map[string]string {
	options := map[string]string{}
	for _, arg := range args {
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		options[name] = value
	}
	return options
}

func wholeOf(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

// fileioRequest is the time of each of sysbench's events.
const fileioRequest = 10 * time.Microsecond

// fileio imitates the test fileio of sysbench.
func fileio(args []string, _ engine.Spec) fake.Behaviour {
	o := optionsOf(args)
	if args[len(args)-1] == "prepare" {
		return fake.Behaviour{
			Took:   time.Second,
			Stdout: "sysbench 1.0.20\n\nCreating files for the test...\n" + o["file-total-size"] + " bytes written in 0.06 seconds (579.50 MiB/sec).\n",
		}
	}
	reads, writes, syncs := 1/fileioRequest.Seconds(), 0.0, 0.0
	if mode := o["file-test-mode"]; strings.HasSuffix(mode, "wr") {
		reads, writes, syncs = 0, reads, 1
		if o["file-fsync-freq"] == "0" && o["file-fsync-end"] == "off" {
			syncs = 0
		}
	}
	o["threads"] = "1"
	return sysbenchReport(o, fileioRequest, "", fmt.Sprintf(`
File operations:
    reads/s:                      %.2f
    writes/s:                     %.2f
    fsyncs/s:                     %.2f

Throughput:
    read, MiB/s:                  %.2f
    written, MiB/s:               %.2f
`, reads, writes, syncs, reads/64, writes/64))
}

// busybox imitates truncate of busybox, which says nothing.
func busybox([]string, engine.Spec) fake.Behaviour { return fake.Behaviour{Took: time.Millisecond} }

// The rates of the imitated fio.
const (
	fioBytesPerSecond = 1 << 30
	fioTook           = time.Second // of a run that ends with its file
)

// fio imitates fio: each job reads or writes the file once, or runs for its time.
func fio(args []string, _ engine.Spec) fake.Behaviour {
	if interval, ok := optionsOf(args)["status-interval"]; ok {
		return fake.Behaviour{Every: time.Duration(wholeOf(strings.TrimSuffix(interval, "ms"))) * time.Millisecond, Lines: fioStatus}
	}
	var groups [][]string
	for _, arg := range args {
		if strings.HasPrefix(arg, "--name=") {
			groups = append(groups, nil)
		}
		if len(groups) > 0 {
			groups[len(groups)-1] = append(groups[len(groups)-1], arg)
		}
	}
	size := wholeOf(strings.TrimSuffix(optionsOf(groups[0])["size"], "m")) << 20
	var total time.Duration
	var jobs []any
	for _, group := range groups[1:] {
		o := optionsOf(group)
		block, took, bytes := wholeOf(o["bs"]), fioTook, size
		if _, repeats := o["time_based"]; repeats {
			took = time.Duration(wholeOf(strings.TrimSuffix(o["runtime"], "ms"))) * time.Millisecond
			bytes = int(took.Seconds()*fioBytesPerSecond) / block * block
		}
		total += took
		side := func(count int) map[string]any {
			return map[string]any{
				"io_bytes": count * block, "total_ios": count, "short_ios": 0, "drop_ios": 0,
				"runtime": took.Milliseconds(), "iops": float64(count) / took.Seconds(),
			}
		}
		read, write := side(bytes/block), side(0)
		if strings.HasSuffix(o["rw"], "write") {
			read, write = write, read
		}
		jobs = append(jobs, map[string]any{
			"jobname": o["name"], "error": 0, "job options": map[string]any{"name": o["name"], "rw": o["rw"], "bs": o["bs"]},
			"read": read, "write": write,
		})
	}
	text, err := json.MarshalIndent(map[string]any{"fio version": "fio-3.39", "jobs": jobs}, "", "  ")
	if err != nil {
		panic(err)
	}
	return fake.Behaviour{Took: total, Stdout: string(text) + "\n"}
}

// sqliteTook is the time of each call of SQLite.
const sqliteTook = 2 * time.Second

// sqlite imitates SQLite's shell for the insertions. The size of the tables determines their number.
func sqlite() fake.Program {
	rows := ""
	return func(args []string, _ engine.Spec) fake.Behaviour {
		b := fake.Behaviour{Took: sqliteTook}
		last := args[len(args)-1]
		if _, tail, hasLimit := strings.Cut(last, " LIMIT "); hasLimit {
			rows, _, _ = strings.Cut(tail, ")")
		}
		if strings.HasPrefix(last, "PRAGMA integrity_check") {
			b.Stdout = rows + "|" + rows + "|1|" + rows + "\nok\n"
		}
		return b
	}
}

// fioStatus is the nth report of a run of fio with progress: 100 requests of 4 KiB in each interval, and the hundredth is
// slow.
func fioStatus(n int) string {
	side := fmt.Sprintf(`{"io_bytes": %d, "clat_ns": {"bins": {"100352": %d, "2007040": %d}}}`, n*100*4096, n*99, n)
	return "{\n" + fmt.Sprintf(`"fio version": "fio-3.39", "jobs": [{"error": 0, "read": %s, "write": %s}]`, side, side) + "\n}"
}
