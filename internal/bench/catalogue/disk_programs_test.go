package catalogue_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
)

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
	events := wholeOf(o["events"])
	took := time.Duration(events) * fileioRequest
	reads, writes, syncs := 1/fileioRequest.Seconds(), 0.0, 0.0
	if mode := o["file-test-mode"]; strings.HasSuffix(mode, "wr") {
		reads, writes, syncs = 0, reads, 1
		if o["file-fsync-freq"] == "0" && o["file-fsync-end"] == "off" {
			syncs = 0
		}
	}
	return fake.Behaviour{Took: took, Stdout: fmt.Sprintf(`sysbench 1.0.20 (using system LuaJIT 2.1.1700206165)

Running the test with following options:
Number of threads: 1

Threads started!


File operations:
    reads/s:                      %.2f
    writes/s:                     %.2f
    fsyncs/s:                     %.2f

Throughput:
    read, MiB/s:                  %.2f
    written, MiB/s:               %.2f

General statistics:
    total time:                          %.4fs
    total number of events:              %d

Latency (ms):
         min:                                    0.01
         avg:                                    0.01
         max:                                    0.01
         95th percentile:                        0.01
         sum:                                    %.2f

Threads fairness:
    events (avg/stddev):           %d.0000/0.00
    execution time (avg/stddev):   %.4f/0.00

`, reads, writes, syncs, reads/64, writes/64, took.Seconds(), events, 1e3*took.Seconds(), events, took.Seconds())}
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
	if every, ok := optionsOf(args)["status-interval"]; ok {
		return fake.Behaviour{Every: time.Duration(wholeOf(strings.TrimSuffix(every, "ms"))) * time.Millisecond, Lines: fioStatus}
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
	var whole time.Duration
	var jobs []any
	for _, group := range groups[1:] {
		o := optionsOf(group)
		block, took, bytes := wholeOf(o["bs"]), fioTook, size
		if _, again := o["time_based"]; again {
			took = time.Duration(wholeOf(strings.TrimSuffix(o["runtime"], "ms"))) * time.Millisecond
			bytes = int(took.Seconds()*fioBytesPerSecond) / block * block
		}
		whole += took
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
	return fake.Behaviour{Took: whole, Stdout: string(text) + "\n"}
}

// sqliteTook is the time of each call of SQLite.
const sqliteTook = 2 * time.Second

// sqlite imitates SQLite's shell for the insertions. The size of the tables determines their number.
func sqlite() fake.Program {
	rows := ""
	return func(args []string, _ engine.Spec) fake.Behaviour {
		b := fake.Behaviour{Took: sqliteTook}
		last := args[len(args)-1]
		if _, after, made := strings.Cut(last, " LIMIT "); made {
			rows, _, _ = strings.Cut(after, ")")
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
