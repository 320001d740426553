// Package touchstone knows the benchmarks of TouchStone, the tool of espe, and reads and writes its JSON.
//
// TouchStone writes the results of one plan as a line of JSON, a list with an entry for each cri with each oci, and appends the line to the
// plan's output. Two plans with one output therefore give two lists in one file. The file has no units, times, versions or
// facts about the host. The form is documented nowhere; the source is github.com/lnsp/touchstone, pkg/benchmark and pkg/visual.
//
// The package refuses JSON of another shape, negative values, and more than MaxSize bytes. It leaves out benchmarks and metrics of other
// versions of TouchStone, whose units are unknown, and lists them.
package touchstone

import "slices"

// MaxSize is the maximum size of a file in bytes.
const MaxSize = 64 << 20

// metric is a value of a benchmark. scale is the factor from TouchStone's value to seconds.
type metric struct {
	name  string
	scale float64
}

// The units of TouchStone's values: it keeps the numbers that its clock and sysbench 0.4 print, and sysbench prints latencies in
// milliseconds.
const (
	seconds      = 1
	milliseconds = 1e-3
)

// benchmark is a benchmark of TouchStone.
type benchmark struct {
	name    string
	metrics []metric
}

// benchmarks are the benchmarks of TouchStone's last version, in its order. Their names and metrics are the same in the catalogue.
var benchmarks = []benchmark{
	{"performance.cpu.time", []metric{{"TotalTime", seconds}}},
	{"performance.memory.total", []metric{{"TotalTime", seconds}}},
	{"performance.memory.minavglatency", []metric{{"MinLatency", milliseconds}, {"AvgLatency", milliseconds}}},
	{"performance.memory.maxlatency", []metric{{"MaxLatency", milliseconds}}},
	{"performance.disk.read", []metric{{"SeqRead", seconds}, {"RndRead", seconds}}},
	{"performance.disk.write", []metric{{"SeqWrite", seconds}, {"SeqRewrite", seconds}, {"RndWrite", seconds}}},
	{"operations.container.lifecycle", []metric{{"Create", seconds}, {"Run", seconds}, {"CreateAndRun", seconds}, {"Destroy", seconds}}},
	{"limits.cpu.time", []metric{{"TotalTime", seconds}}},
	{"limits.cpu.scaling", []metric{{"TotalTime", seconds}}},
	{"scalability.runtime.5", []metric{{"TotalTime", seconds}}},
	{"scalability.runtime.10", []metric{{"TotalTime", seconds}}},
	{"scalability.runtime.50", []metric{{"TotalTime", seconds}}},
}

// Benchmarks lists the names of TouchStone's benchmarks, in its order.
func Benchmarks() []string {
	var names []string
	for _, b := range benchmarks {
		names = append(names, b.name)
	}
	return names
}

// Metrics lists the names of the metrics of one of TouchStone's benchmarks.
func Metrics(name string) []string {
	var names []string
	if i := index(name); i >= 0 {
		for _, m := range benchmarks[i].metrics {
			names = append(names, m.name)
		}
	}
	return names
}

func index(name string) int {
	return slices.IndexFunc(benchmarks, func(b benchmark) bool { return b.name == name })
}
