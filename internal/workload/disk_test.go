package workload_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

// The captures were made by /probe sequence with these programs: by a bare process, in runsc, with LC_ALL=de_DE.UTF-8
// where there was that locale (it changes nothing), on a tmpfs that was too small, and killed.

var captureFiles = workload.FileIO{Files: 4, MiB: 2, Requests: 500, Syncs: workload.Syncs{Every: 100, End: true}}

func fileReads() workload.Program {
	return workload.Sequence("/data", captureFiles.Prepare(),
		captureFiles.Run(workload.SeqRead, "SeqRead"), captureFiles.Run(workload.RndRead, "RndRead"))
}

func fileWrites() workload.Program {
	return workload.Sequence("/data", captureFiles.Run(workload.SeqWrite, "SeqWrite"),
		captureFiles.Run(workload.SeqRewrite, "SeqRewrite"), captureFiles.Run(workload.RndWrite, "RndWrite"))
}

var captureFio = workload.Fio{Dir: "/data", MiB: 16}

func fioWrite() workload.FioRun {
	return workload.FioRun{Mode: workload.FioWrite, Metric: "SeqWrite", Unit: workload.BytesPerSecond, Block: 128 << 10}
}

func fioRead() workload.FioRun {
	return workload.FioRun{Mode: workload.FioRead, Metric: "SeqRead", Unit: workload.BytesPerSecond, Block: 128 << 10}
}

func fioAll() workload.Program {
	const span = 50 * time.Millisecond
	read := fioRead()
	read.For, read.Again = span, true
	return workload.Sequence("/data", captureFio.Run(fioWrite(), read,
		workload.FioRun{Mode: workload.FioRandRead, Metric: "RndRead", Unit: workload.PerSecond, Block: 4 << 10, For: span, Again: true},
		workload.FioRun{Mode: workload.FioRandWrite, Metric: "RndWrite", Unit: workload.PerSecond, Block: 4 << 10, For: span, Again: true},
	))
}

func fioOnce(run workload.FioRun) workload.Program {
	return workload.Sequence("/data", captureFio.Run(run))
}

func insertions() workload.Program {
	return workload.Sequence("/data", workload.Insertions(20, "TotalTime")...)
}

// diskCaptures are the captures of successful runs, with their values.
var diskCaptures = []struct {
	file string
	of   workload.Program
	want workload.Values
}{
	{"fileio-read-native.txt", fileReads(), workload.Values{"SeqRead": 0.0035, "RndRead": 0.0013}},
	{"fileio-read-runsc.txt", fileReads(), workload.Values{"SeqRead": 0.0275, "RndRead": 0.0099}},
	{"fileio-read-german.txt", fileReads(), workload.Values{"SeqRead": 0.0013, "RndRead": 0.0014}},
	{"fileio-write-native.txt", fileWrites(), workload.Values{"SeqWrite": 0.0682, "SeqRewrite": 0.0697, "RndWrite": 0.0135}},
	{"fio-native.txt", fioAll(), workload.Values{
		"SeqWrite": 16777216 / 0.056, "SeqRead": 895221760 / 0.060, "RndRead": 5664 / 0.140, "RndWrite": 18620 / 0.061,
	}},
	{"fio-runsc.txt", fioAll(), workload.Values{
		"SeqWrite": 16777216 / 0.006, "SeqRead": 176947200 / 0.051, "RndRead": 2819 / 0.050, "RndWrite": 3210 / 0.050,
	}},
	{"fio-cold-native.txt", fioOnce(fioRead()), workload.Values{"SeqRead": 16777216 / 0.002}},
	{"fio-german.txt", fioOnce(fioWrite()), workload.Values{"SeqWrite": 16777216 / 0.013}},
	{"sqlite-native.txt", insertions(), workload.Values{"TotalTime": 0.964622008}},
	{"sqlite-runsc.txt", insertions(), workload.Values{"TotalTime": 0.045219289}},
	{"sqlite-german.txt", insertions(), workload.Values{"TotalTime": 0.015027815}},
}

func TestDiskPrograms(t *testing.T) {
	for _, tt := range diskCaptures {
		got, err := tt.of.Parse(captured(t, tt.file))
		if err != nil {
			t.Errorf("%s: %v", tt.file, err)
		}
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.file, diff)
		}
	}
}

// Wherever output is cut off it is refused.
func TestDiskProgramsCutOff(t *testing.T) {
	for _, tt := range diskCaptures {
		output := captured(t, tt.file)
		for end := 0; end < len(output); end++ {
			if len(output) > 5000 && output[end] != '\n' && output[max(0, end-1)] != '\n' {
				continue // reports of fio are long
			}
			if values, err := tt.of.Parse(output[:end]); !errors.Is(err, workload.ErrCutOff) || values != nil {
				t.Fatalf("%s cut off after %d bytes: %v, %v; want %v", tt.file, end, values, err, workload.ErrCutOff)
			}
		}
	}
}

// Captures of failed runs are refused.
func TestDiskProgramsFailed(t *testing.T) {
	for file, p := range map[string]workload.Program{
		"fileio-full.txt":       fileReads(),
		"fileio-write-full.txt": fileWrites(),
		"fileio-killed.txt":     fileReads(),
		"fio-full.txt":          fioAll(),
		"sqlite-full.txt":       insertions(),
	} {
		if values, err := p.Parse(captured(t, file)); err == nil || values != nil {
			t.Errorf("%s: %v, %v; want an error alone", file, values, err)
		}
	}
}

func TestDiskProgramsRefuse(t *testing.T) {
	for _, tt := range []struct {
		what, file string
		of         workload.Program
		old, new   string
		want       string
	}{
		{"files that were not made whole", "fileio-read-native.txt", fileReads(), "8388608 bytes written", "8372224 bytes written", "instead of"},
		{"files that were there", "fileio-read-native.txt", fileReads(), "8388608 bytes written in 0.03 seconds", "No bytes written in", "instead of"},
		{"requests that are missing", "fileio-read-native.txt", fileReads(), "events:              512", "events:              511", "511"},
		{"another mode", "fileio-read-native.txt", fileReads(), "writes/s:                     0.00", "writes/s:                     9.00", "mode seqrd did"},
		{"reads that were synced", "fileio-read-native.txt", fileReads(), "fsyncs/s:                     0.00", "fsyncs/s:                     9.00", "mode seqrd did"},
		{"no sync", "fileio-write-native.txt", fileWrites(), "fsyncs/s:                     347.07", "fsyncs/s:                     0.00", "mode seqwr did"},
		{"bytes that do not fit", "fileio-read-native.txt", fileReads(), "read, MiB/s:                  1819.16", "read, MiB/s:                  1519.16", "are not 1519.16 MiB"},
		{"no time", "fileio-read-native.txt", fileReads(), "total time:                          0.0035s", "total time:                          0.0000s", "its time"},
		{"a decimal comma", "fileio-read-native.txt", fileReads(), "0.0035s", "0,0035s", "not a number"},
		{"a warning", "fileio-read-native.txt", fileReads(), "Threads started!", "WARNING: something", "a warning"},
		{"another version of sysbench", "fileio-write-native.txt", fileWrites(), "sysbench 1.0.20", "sysbench 2.0.20", "begins with"},
		{"a step that is missing", "fileio-read-native.txt", fileReads(), `{"step":2,"of":3`, `{"step":3,"of":3`, "end of step 3"},
		{"steps of another sequence", "fileio-read-native.txt", fileReads(), `{"step":2,"of":3`, `{"step":2,"of":4`, "end of step 2 of 4"},
		{"a step that took no time", "sqlite-native.txt", insertions(), `"ns":964622008`, `"ns":0`, "took 0 ns"},
		{"a step that took forever", "sqlite-native.txt", insertions(), `"ns":964622008`, `"ns":18446744073709551615`, "took"},
		{"a step that says more", "sqlite-native.txt", insertions(), `"ns":964622008`, `"ns":964622008,"x":1`, "unknown fields"},
		{"more after the end", "sqlite-native.txt", insertions(), `{"step":3,"of":3,"ns":5752935}` + "\n", `{"step":3,"of":3,"ns":5752935}` + "\nmore\n", "follows"},
		{"a complaint of SQLite", "sqlite-native.txt", insertions(), `{"step":2`, "Runtime error\n" + `{"step":2`, "SQLite's output"},
		{"rows that are missing", "sqlite-native.txt", insertions(), "20|20|1|20", "19|19|1|19", "SQLite's output"},
		{"a database that is broken", "sqlite-native.txt", insertions(), "\nok\n", "\nrow 3 missing from index pts1_f1\n", "SQLite's output"},
		{"another version of fio", "fio-native.txt", fioAll(), "fio-3.39", "fio-4.0", "version"},
		{"no version", "fio-native.txt", fioAll(), `"fio version"`, `"version"`, "version"},
		{"a note before the report", "fio-native.txt", fioAll(), "{\n", "note: something\n{\n", "invalid character"},
		{"a note after the report", "fio-native.txt", fioAll(), "\n}\n", "\n}\nfio: something\n", "follows"},
		{"jobs that are missing", "fio-cold-native.txt", fioAll(), "}", "}", "1 jobs instead of 4"},
		{"another job", "fio-native.txt", fioAll(), `"jobname" : "SeqRead"`, `"jobname" : "RndRead"`, "another job"},
		{"another mode of fio", "fio-native.txt", fioAll(), `"rw" : "randread"`, `"rw" : "read"`, "another job"},
		{"blocks of another size", "fio-native.txt", fioAll(), `"bs" : "4096"`, `"bs" : "4k"`, "another job"},
		{"an error", "fio-native.txt", fioAll(), `"error" : 0`, `"error" : 28`, "has an error"},
		{"no word of an error", "fio-native.txt", fioAll(), `"error" : 0`, `"mistake" : 0`, "the field for errors is missing"},
		{"a number that is missing", "fio-native.txt", fioAll(), `"io_bytes" : 16777216`, `"bytes" : 16777216`, "a number is missing"},
		{"a number that is text", "fio-native.txt", fioAll(), `"io_bytes" : 16777216`, `"io_bytes" : "16777216"`, "cannot unmarshal"},
		{"a negative number", "fio-native.txt", fioAll(), `"io_bytes" : 16777216`, `"io_bytes" : -16777216`, "cannot unmarshal"},
		{"half of the file", "fio-cold-native.txt", fioOnce(fioRead()), `"io_bytes" : 16777216`, `"io_bytes" : 8388608`, "are not 8388608 bytes"},
		{"short requests", "fio-native.txt", fioAll(), `"total_ios" : 128,` + "\n        " + `"short_ios" : 0`, `"total_ios" : 128, "short_ios" : 1`, "were short"},
		{"a rate that does not fit", "fio-native.txt", fioAll(), `"iops" : 2285.714286`, `"iops" : 2385.714286`, "a second"},
		{"an end before its time", "fio-native.txt", fioAll(), `"runtime" : 60`, `"runtime" : 40`, "before its time"},
	} {
		output := string(captured(t, tt.file))
		if !strings.Contains(output, tt.old) {
			t.Errorf("%s: %q is not in %s", tt.what, tt.old, tt.file)
		}
		values, err := tt.of.Parse([]byte(strings.Replace(output, tt.old, tt.new, 1)))
		if err == nil || !strings.Contains(err.Error(), tt.want) || values != nil {
			t.Errorf("%s: %v, %v; want an error with %q", tt.what, values, err, tt.want)
		}
	}
}

// A run that ends with the file or with its time, whichever is first, can do no more than the file has.
func TestFioEnds(t *testing.T) {
	output := captured(t, "fio-cold-native.txt")
	for _, tt := range []struct {
		mib   int
		span  time.Duration
		again bool
		good  bool
	}{
		{16, 0, false, true},
		{16, time.Hour, false, true},
		{16, time.Hour, true, false},
		{16, time.Millisecond, true, true},
		{32, 0, false, false},
		{32, time.Hour, false, false},
		{32, 2 * time.Millisecond, false, true},
		{8, 0, false, false},
		{8, time.Hour, false, false},
	} {
		run := fioRead()
		run.For, run.Again = tt.span, tt.again
		f := captureFio
		f.MiB = tt.mib
		if _, err := workload.Sequence("/data", f.Run(run)).Parse(output); (err == nil) != tt.good {
			t.Errorf("16 MiB in 2 ms of a file of %d MiB, for %v, again %v: %v", tt.mib, tt.span, tt.again, err)
		}
	}
}

// The syncs are events of sysbench's: without them a mode would do less than the paper's work.
func TestEventsOfFileIO(t *testing.T) {
	events := func(f workload.FileIO, mode workload.FileMode) string {
		for _, arg := range f.Run(mode, "x").Args {
			if n, ok := strings.CutPrefix(arg, "--events="); ok {
				return n
			}
		}
		return ""
	}
	of := func(s workload.Syncs) workload.FileIO {
		return workload.FileIO{Files: 128, MiB: 16, Requests: 10_000, Syncs: s}
	}
	paper := of(workload.Syncs{Every: 100, Random: true, End: true}) // of sysbench 0.4
	all := of(workload.Syncs{Every: 100, End: true})                 // the default of sysbench 1.0
	never := of(workload.Syncs{})
	for _, tt := range []struct {
		of   workload.FileIO
		mode workload.FileMode
		want int
	}{
		{paper, workload.SeqRead, 128 * 1024},
		{paper, workload.RndRead, 10_000},
		{paper, workload.SeqWrite, 128 * 1024},
		{paper, workload.SeqRewrite, 128 * 1024},
		{paper, workload.RndWrite, 10_000 + 128*99},
		{all, workload.SeqRead, 128 * 1024},
		{all, workload.SeqWrite, 128*1024 + 128*1310},
		{all, workload.SeqRewrite, 128*1024 + 128*1310},
		{all, workload.RndWrite, 10_000 + 128*99},
		{never, workload.SeqWrite, 128 * 1024},
		{never, workload.RndWrite, 10_000},
	} {
		if got := events(tt.of, tt.mode); got != strconv.Itoa(tt.want) {
			t.Errorf("%s of %+v has %s events, want %d", tt.mode, tt.of, got, tt.want)
		}
	}
}

func TestArgumentsOfFileIO(t *testing.T) {
	f := workload.FileIO{Files: 2, MiB: 16, Requests: 10_000}
	for _, tt := range []struct {
		syncs      workload.Syncs
		mode       workload.FileMode
		every, end string
	}{
		{workload.Syncs{Every: 100, Random: true, End: true}, workload.SeqWrite, "0", "on"},
		{workload.Syncs{Every: 100, Random: true, End: true}, workload.RndWrite, "100", "on"},
		{workload.Syncs{Every: 100, End: true}, workload.SeqRewrite, "100", "on"},
		{workload.Syncs{}, workload.SeqWrite, "0", "off"},
	} {
		f.Syncs = tt.syncs
		args := strings.Join(f.Run(tt.mode, "x").Args, " ")
		if want := " --file-fsync-freq=" + tt.every + " --file-fsync-end=" + tt.end + " "; !strings.Contains(args, want) {
			t.Errorf("%s with %+v: %s lacks %q", tt.mode, tt.syncs, args, want)
		}
	}
	var got []string
	for _, p := range f.Empty() {
		got = append(got, strings.Join(p.Args, " "))
		if _, err := p.Parse([]byte("truncate: test_file.0: No space left on device\n")); err == nil {
			t.Error("a complaint of truncate is no error")
		}
	}
	if diff := cmp.Diff([]string{
		"/usr/bin/busybox truncate -s 0 test_file.0 test_file.1", "/usr/bin/busybox truncate -s 16777216 test_file.0 test_file.1",
	}, got); diff != "" {
		t.Errorf("the programs that empty the files (-want +got):\n%s", diff)
	}
}

// A mode without any sync reports none.
func TestFileIOWithoutSyncs(t *testing.T) {
	never := captureFiles
	never.Syncs = workload.Syncs{}
	report := func(syncs string) []byte {
		return fmt.Appendf(nil, `sysbench 1.0.20

Number of threads: 1

File operations:
    reads/s:                      0.00
    writes/s:                     1000.00
    fsyncs/s:                     %s

Throughput:
    read, MiB/s:                  0.00
    written, MiB/s:               15.62

General statistics:
    total time:                          0.5120s
    total number of events:              512

Latency (ms):
         min:                                    1.00
         avg:                                    1.00
         max:                                    1.00
         sum:                                  512.00

Threads fairness:
    events (avg/stddev):           512.0000/0.00
    execution time (avg/stddev):   0.5120/0.00

`, syncs)
	}
	p := never.Run(workload.SeqWrite, "SeqWrite")
	if values, err := p.Parse(report("0.00")); err != nil || values["SeqWrite"] != 0.512 {
		t.Errorf("without syncs: %v, %v", values, err)
	}
	if values, err := p.Parse(report("250.00")); err == nil {
		t.Errorf("with syncs: %v", values)
	}
}

// No two programs of a sequence may give the same value.
func TestSequenceRefusesTheSameTwice(t *testing.T) {
	p := workload.Sequence("/data", captureFiles.Prepare(), captureFiles.Run(workload.SeqRead, "SeqRead"), captureFiles.Run(workload.RndRead, "SeqRead"))
	if _, err := p.Parse(captured(t, "fileio-read-native.txt")); err == nil || !strings.Contains(err.Error(), "once more") {
		t.Errorf("error %v", err)
	}
}

// FuzzDiskPrograms checks that what is accepted can be: every value is a positive, finite number.
func FuzzDiskPrograms(f *testing.F) {
	for _, pattern := range []string{"fileio-*", "fio-*", "sqlite-*"} {
		files, err := filepath.Glob(filepath.Join("testdata", pattern))
		if err != nil || len(files) == 0 {
			f.Fatalf("no captured output to begin with (%v)", err)
		}
		for _, file := range files {
			output, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(output)
		}
	}
	programs := []workload.Program{fileReads(), fileWrites(), fioAll(), fioOnce(fioRead()), fioOnce(fioWrite()), insertions()}
	f.Fuzz(func(t *testing.T, output []byte) {
		for _, p := range programs {
			values, err := p.Parse(output)
			if err != nil && values != nil {
				t.Errorf("%q: values %v with the error %v", output, values, err)
			}
			for name, v := range values {
				if !(v > 0) || math.IsInf(v, 0) {
					t.Errorf("%q: %s is %v", output, name, v)
				}
			}
		}
	})
}
