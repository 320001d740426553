package fake

import (
	"fmt"
	"strings"
)

// The reports are made up: plausible values of a bare machine, divided or multiplied by the slowness of their name. Their
// format is the probe's: a line of JSON for each result, and a last line with the count.

// slowness returns the ratio of a result with this name to a bare machine's.
type slowness func(name string) float64

func syscallReport(slow slowness, copies int) string {
	rate := 1.5e6 * float64(copies) / slow("LoopsPerSecond")
	var r report
	r.metric("LoopsPerSecond", rate, "1/s")
	r.metric("Index", rate/1500, "score") // the unit of UnixBench's index: 15000 loops/s are 10
	return r.done()
}

func streamReport(slow slowness) string {
	var r report
	for _, k := range []struct {
		name string
		rate float64
	}{{"Copy", 26e9}, {"Scale", 25e9}, {"Add", 27e9}, {"Triad", 26.5e9}} {
		best := k.rate / slow(k.name)
		r.metric(k.name, best, "B/s")
		r.metric(k.name+"Median", 0.97*best, "B/s")
	}
	r.metric("Repetitions", 40, "count")
	return r.done()
}

func filesReport(slow slowness) string {
	read, written := 24000/slow("ReadScore"), 130/slow("WriteScore")
	var r report
	r.metric("ReadScore", read, "score")
	r.metric("WriteScore", written, "score")
	for _, c := range []struct {
		name  string
		value float64
	}{
		{"BlogsWritten", written},
		{"ArticlesWritten", 8 * written},
		{"ArticlesRewritten", 12},
		{"CommentsWritten", 100},
		{"BlogsRead", read},
		{"ArticlesRead", 8 * read},
		{"CommentsRead", read / 2},
		{"Misses", 100},
	} {
		r.metric(c.name, float64(int64(c.value)), "count")
	}
	r.metric("BytesRead", float64(int64(140e3*read)), "B")
	r.metric("BytesWritten", float64(int64(140e3*written)), "B")
	return r.done()
}

func latencyReport(slow slowness) string {
	var r report
	for _, c := range []struct {
		name string
		ns   float64
	}{
		{"getpid", 100},
		{"getppid", 100},
		{"getuid", 100},
		{"umask", 100},
		{"uname", 200},
		{"getcwd", 200},
		{"clock_gettime", 170},
		{"sched_yield", 230},
		{"getrandom", 300},
		{"rt_sigaction", 140},
		{"rt_sigprocmask", 130},
		{"dup+close", 260},
		{"read /dev/zero", 140},
		{"write /dev/null", 130},
		{"lseek+read file", 370},
		{"lseek", 120},
		{"fstat", 190},
		{"stat", 460},
		{"open+close", 900},
		{"write+read pipe", 390},
		{"ppoll", 210},
		{"futex wake", 130},
		{"mmap+munmap", 1500},
		{"mmap+touch+munmap", 4500},
		{"fork+exit+wait", 36000},
	} {
		p50 := c.ns * slow(c.name)
		bucket := 1
		for float64(2*bucket) <= p50 {
			bucket *= 2
		}
		r.line(`{"call":%q,"unit":"ns","count":1000,"k":100,"min":%.3f,"p50":%.3f,"p90":%.3f,"p99":%.3f,"max":%.3f,"hist":[[%d,10]]}`,
			c.name, 0.9*p50, p50, 1.1*p50, 1.5*p50, 8*p50, bucket)
	}
	return r.done()
}

// report builds the output of a measuring command of the probe.
type report struct {
	text  strings.Builder
	lines int
}

func (r *report) metric(name string, value float64, unit string) {
	r.line(`{"metric":%q,"value":%.3f,"unit":%q}`, name, value, unit)
}

func (r *report) line(format string, args ...any) {
	_, _ = fmt.Fprintf(&r.text, format+"\n", args...)
	r.lines++
}

func (r *report) done() string {
	n := r.lines
	r.line(`{"done":true,"metrics":%d}`, n)
	return r.text.String()
}
