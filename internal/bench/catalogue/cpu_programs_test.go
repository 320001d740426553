package catalogue_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
)

// The following functions imitate the CPU programs of the image. They write the output that the benchmarks read.

// sysbenchEvent is the time of each of sysbench's events in a thread.
const sysbenchEvent = 600 * time.Microsecond

// sysbenchReport is the output of sysbench, with a head and a section of the test.
func sysbenchReport(o map[string]string, settings, results string) fake.Behaviour {
	threads, events := wholeOf(o["threads"]), wholeOf(o["events"])
	took := time.Duration(events/threads) * sysbenchEvent
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
         min:                                    0.50
         avg:                                    0.60
         max:                                    0.70
         95th percentile:                        0.65
         sum:                                 %8.2f

Threads fairness:
    events (avg/stddev):           %.4f/0.00
    execution time (avg/stddev):   %.4f/0.00

`, threads, settings, results, took.Seconds(), events, float64(events)*0.6, float64(events)/float64(threads), took.Seconds())}
}

// sysbenchCPU imitates the test cpu of sysbench.
func sysbenchCPU(args []string, _ engine.Spec) fake.Behaviour {
	o := optionsOf(args)
	rate := float64(wholeOf(o["threads"])) / sysbenchEvent.Seconds()
	return sysbenchReport(o, "Prime numbers limit: "+o["cpu-max-prime"]+"\n", fmt.Sprintf("CPU speed:\n    events per second: %8.2f\n", rate))
}

// sysbenchMemory imitates the test memory of sysbench.
func sysbenchMemory(args []string, _ engine.Spec) fake.Behaviour {
	o := optionsOf(args)
	return sysbenchReport(o, fmt.Sprintf(`Running memory speed test with the following options:
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
	value := func(name string, otherwise int) int {
		if i := slices.Index(args, name); i >= 0 {
			return wholeOf(args[i+1])
		}
		return otherwise
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
