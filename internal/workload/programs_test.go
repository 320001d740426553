package workload_test

import (
	"bytes"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

// programs are calls with output that was captured of them: from bare processes, runc and runsc, and of runs that failed
// or were cut off.
var programs = []struct {
	file    string
	program workload.Program
	want    workload.Values // some of them; nil if the output is no result
}{
	{"sysbench-cpu-native.txt", workload.SysbenchCPU(20000, 500, 1), workload.Values{"TotalTime": 0.3127, "EventsPerSecond": 1592.86}},
	{"sysbench-cpu-runc.txt", workload.SysbenchCPU(20000, 500, 1), workload.Values{"TotalTime": 0}},
	{"sysbench-cpu-runsc.txt", workload.SysbenchCPU(20000, 500, 1), workload.Values{"TotalTime": 0}},
	{"sysbench-cpu-german.txt", workload.SysbenchCPU(20000, 300, 1), workload.Values{"TotalTime": 0}},
	{"sysbench-progress-runc.txt", workload.SysbenchCPUProgress(20000, 4000, 1), workload.Values{"TotalTime": 0}},
	{"sysbench-cpu-native.txt", workload.SysbenchCPU(20000, 501, 1), nil},
	{"sysbench-cpu-native.txt", workload.SysbenchCPU(20000, 500, 2), nil},
	{"sysbench-cpu-native.txt", workload.SysbenchCPU(10000, 500, 1), nil},
	{"sysbench-cpu-failed.txt", workload.SysbenchCPU(20000, 500, 1), nil},
	{"sysbench-cpu-killed.txt", workload.SysbenchCPU(20000, 100000, 1), nil},
	{"sysbench-memory-native.txt", workload.SysbenchCPU(20000, 4096, 1), nil},

	{"sysbench-memory-native.txt", workload.SysbenchMemory(workload.PaperMemoryLoad(4096)), workload.Values{"TotalTime": 0}},
	{"sysbench-memory-runc.txt", workload.SysbenchMemory(workload.PaperMemoryLoad(4096)), workload.Values{"TotalTime": 0}},
	{"sysbench-memory-runsc.txt", workload.SysbenchMemory(workload.PaperMemoryLoad(4096)), workload.Values{
		"TotalTime": 0.3758, "MinLatency": 0.039e-3, "AvgLatency": 0.30716 / 4096, "MaxLatency": 0.26e-3,
	}},
	{"sysbench-memory-native.txt", workload.SysbenchMemory(workload.PaperMemoryLoad(4097)), nil},
	{"sysbench-memory-timed.txt", workload.SysbenchMemory(workload.PaperMemoryLoad(204800)), nil},
	{"sysbench-memory-endless.txt", workload.SysbenchMemory(workload.PaperMemoryLoad(1024)), nil}, // it warns
	{"sysbench-cpu-native.txt", workload.SysbenchMemory(workload.PaperMemoryLoad(500)), nil},

	{"sevenzip-native.txt", workload.SevenZip{Threads: 2, Dictionary: 19, Passes: 2, Step: 1}.Program(), workload.Values{
		"CompressRating": 10258, "DecompressRating": 12436, "TotalRating": 11347, "TotalUsage": 1.69, "Threads": 2,
	}},
	{"sevenzip-native.txt", workload.SevenZip{Threads: 2, Dictionary: 19, Step: 1}.Program(), nil}, // it has two passes
	{"sevenzip-native.txt", workload.SevenZip{Threads: 2, Dictionary: 19, Passes: 3, Step: 1}.Program(), nil},
	{"sevenzip-runc.txt", workload.SevenZip{Threads: 1, Dictionary: 18, Step: 1}.Program(), workload.Values{
		"CompressRating": 4865, "CompressUsage": 1, "CompressPerUsage": 4852, "DecompressRating": 7183, "DecompressUsage": 1,
		"DecompressPerUsage": 7170, "TotalRating": 6024, "TotalUsage": 1, "TotalPerUsage": 6011, "Threads": 1,
	}},
	{"sevenzip-runsc.txt", workload.SevenZip{Dictionary: 18, Step: 1}.Program(), workload.Values{"CompressUsage": 0.97, "Threads": 1}},
	{"sevenzip-german.txt", workload.SevenZip{Threads: 1, Dictionary: 18, Step: 1}.Program(), workload.Values{"Threads": 1}},
	{"sevenzip-passes.txt", workload.SevenZip{Threads: 2, Dictionary: 20, Step: 1}.Program(), workload.Values{"Threads": 2}},
	{"sevenzip-runc.txt", workload.SevenZip{Threads: 2, Dictionary: 18, Step: 1}.Program(), nil},
	{"sevenzip-runc.txt", workload.SevenZip{Threads: 1, Dictionary: 19, Step: 1}.Program(), nil},
	{"sevenzip-killed.txt", workload.SevenZip{Threads: 1, Dictionary: 19, Step: 1}.Program(), nil},
	{"sevenzip-failed.txt", workload.SevenZip{Threads: 1, Dictionary: 18, Step: 1}.Program(), nil},

	{"zstd-native.txt", workload.Zstd(3, time.Second), workload.Values{"Compression": 11.42e6, "Decompression": 111.6e6}},
	{"zstd-runc.txt", workload.Zstd(3, time.Second), workload.Values{"Compression": 58.17e6, "Decompression": 204.4e6}},
	{"zstd-runsc.txt", workload.Zstd(3, time.Second), workload.Values{"Compression": 39.04e6, "Decompression": 515.1e6}},
	{"zstd-native.txt", workload.Zstd(4, time.Second), nil},
	{"zstd-native.txt", workload.Zstd(3, 2*time.Second), nil},
	{"zstd-killed.txt", workload.Zstd(3, 3*time.Second), nil},

	{"dav1d-native.txt", workload.Dav1d(60, 1), workload.Values{"FramesPerSecond": 0}},
	{"dav1d-runc.txt", workload.Dav1d(60, 1), workload.Values{"FramesPerSecond": 0}},
	{"dav1d-runsc.txt", workload.Dav1d(60, 1), workload.Values{"FramesPerSecond": 0}},
	{"dav1d-german.txt", workload.Dav1d(60, 1), workload.Values{"FramesPerSecond": 0}},
	{"dav1d-native.txt", workload.Dav1d(61, 1), nil},
	{"dav1d-short.txt", workload.Dav1d(60, 1), nil}, // of a clip that ends within its frame 40, with exit code 0
	{"dav1d-killed.txt", workload.Dav1d(600, 1), nil},
	{"dav1d-native.txt", workload.Dav1dVerify(100), nil},

	{"linpack-native.txt", workload.Linpack(1000, 2, 2), workload.Values{"FlopPerSecond": 8794616793, "Threads": 2}},
	{"linpack-runc.txt", workload.Linpack(2000, 3, 1), workload.Values{"FlopPerSecond": 24028074256, "Threads": 1}},
	{"linpack-runsc.txt", workload.Linpack(2000, 3, 0), workload.Values{"FlopPerSecond": 51255572156, "Threads": 1}},
	{"linpack-german.txt", workload.Linpack(1000, 2, 2), workload.Values{"FlopPerSecond": 41174882356, "Threads": 2}},
	{"linpack-failed.txt", workload.Linpack(1000, 2, 2), nil}, // its error without its library
	{"linpack-native.txt", workload.Linpack(1000, 2, 1), nil},
	{"linpack-native.txt", workload.Linpack(1000, 3, 2), nil},
	{"linpack-native.txt", workload.Linpack(2000, 2, 2), nil},
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	output, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return output
}

func TestProgramsCaptured(t *testing.T) {
	for _, tt := range programs {
		got, err := tt.program.Parse(read(t, tt.file))
		if (err == nil) != (tt.want != nil) {
			t.Errorf("%s of %q = %v, %v", tt.file, tt.program.Args, got, err)
			continue
		}
		for name, want := range tt.want {
			v := got[name]
			if want != 0 && !(math.Abs(v/want-1) < 1e-9) || !(v > 0) {
				t.Errorf("%s: %s = %v, want %v", tt.file, name, v, want)
			}
		}
		if err != nil && got != nil {
			t.Errorf("%s: values %v beside the error %v", tt.file, got, err)
		}
	}
}

// Output that is cut off at any byte is refused.
func TestProgramsCutOff(t *testing.T) {
	for _, tt := range programs {
		output := read(t, tt.file)
		if tt.want == nil {
			continue
		}
		for end := range output {
			if got, err := tt.program.Parse(output[:end]); err == nil || got != nil {
				t.Errorf("%s cut off after %d of %d bytes: %v", tt.file, end, len(output), got)
			}
		}
	}
}

// Changed captures are refused.
func TestProgramsRefuse(t *testing.T) {
	cpu, memory := workload.SysbenchCPU(20000, 500, 1), workload.SysbenchMemory(workload.PaperMemoryLoad(4096))
	zip, line := workload.SevenZip{Threads: 1, Dictionary: 18, Step: 1}.Program(), workload.Linpack(1000, 2, 2)
	for _, tt := range []struct {
		file     string
		program  workload.Program
		old, new string
	}{
		{"sysbench-cpu-native.txt", cpu, "sysbench 1.0.20", "sysbench 1.1.0"},
		{"sysbench-cpu-native.txt", cpu, "Number of threads: 1", "Number of threads: 2"},
		{"sysbench-cpu-native.txt", cpu, "    total time:                          0.", "    total time:                          0,"},
		{"sysbench-cpu-native.txt", cpu, "    total time:                          0.", "    total time:                          1."},
		{"sysbench-cpu-native.txt", cpu, "    total time:                          0.", "    total time:                         -0."},
		{"sysbench-cpu-native.txt", cpu, "total number of events:              500", "total number of events:              499"},
		{"sysbench-cpu-native.txt", cpu, "500.0000/0.00", "499.0000/0.00"},
		{"sysbench-cpu-native.txt", cpu, "         max: ", "         min: "},
		{"sysbench-cpu-native.txt", cpu, "         sum:          ", "         sum:         9"},
		{"sysbench-cpu-native.txt", cpu, "Threads started!", "WARNING: something is odd"},
		{"sysbench-cpu-native.txt", cpu, "Threads started!", "FATAL: something is broken"},
		{"sysbench-cpu-native.txt", cpu, "CPU speed:", "CPU-Geschwindigkeit:"},
		{"sysbench-memory-native.txt", memory, "operation: write", "operation: read"},
		{"sysbench-memory-native.txt", memory, "scope: global", "scope: local"},
		{"sysbench-memory-native.txt", memory, "block size: 1024KiB", "block size: 1KiB"},
		{"sysbench-memory-native.txt", memory, "Total operations: 4096", "Total operations: 4095"},
		{"sysbench-memory-native.txt", memory, "       0.", "       9."},
		{"sysbench-memory-native.txt", memory, "*** ", "*** 1"},
		{"sevenzip-runc.txt", zip, "7-Zip", "p7zip"},
		{"sevenzip-runc.txt", zip, "Benchmark threads:      1", "Benchmark threads:      2"},
		{"sevenzip-runc.txt", zip, "18:       5460   100   4852   4865", "18:       5460   100   4852   5865"},
		{"sevenzip-runc.txt", zip, "18:       5460   100   4852   4865", "18:       5460   200   2426   4865"}, // a clock that goes wrong
		{"sevenzip-runc.txt", zip, "18:       5460   100   4852   4865", "18:       5460     0   4852      0"},
		{"sevenzip-runc.txt", zip, "Avr:      5460   100   4852   4865", "Avr:      5460   100   4852   4870"},
		{"sevenzip-runc.txt", zip, "100   6011   6024", "100   6011   6034"},
		{"sevenzip-runc.txt", zip, "\n---", "\nDecoding ERROR\n---"},
		{"linpack-native.txt", line, `"linpack"`, `"lunpack"`},
		{"linpack-native.txt", line, `"version":1`, `"version":2`},
		{"linpack-native.txt", line, `"residual":0`, `"residual":1e3`},
		{"linpack-native.txt", line, `"residual":0`, `"residual":-0`},
		{"linpack-native.txt", line, "8794616793", "9794616793"},
		{"linpack-native.txt", line, "[0.161910933,", "["},
		{"linpack-native.txt", line, "[0.161910933,", "[0,"},
		{"linpack-native.txt", line, "}", "}\n{}"},
		{"zstd-native.txt", workload.Zstd(3, time.Second), "1.5.7", "1.6.0"},
		{"zstd-native.txt", workload.Zstd(3, time.Second), "2981954", "2881954"},
		{"zstd-native.txt", workload.Zstd(3, time.Second), "11.42", "0.00"},
		{"zstd-native.txt", workload.Zstd(3, time.Second), "11.42", "11,42"},
		{"zstd-native.txt", workload.Zstd(3, time.Second), "Lorem ipsum", "Synthetic 50%"},
		{"dav1d-native.txt", workload.Dav1d(60, 1), "\n", "\n-"},
	} {
		output := read(t, tt.file)
		changed := bytes.Replace(output, []byte(tt.old), []byte(tt.new), 1)
		if bytes.Equal(output, changed) {
			t.Errorf("%s does not contain %q", tt.file, tt.old)
		}
		if got, err := tt.program.Parse(changed); err == nil || got != nil {
			t.Errorf("%s with %q for %q: %v", tt.file, tt.new, tt.old, got)
		}
	}
	if got, err := workload.Dav1dVerify(100).Parse(nil); err != nil || len(got) > 0 {
		t.Errorf("a verification that says nothing: %v, %v", got, err)
	}
	if got, err := workload.Dav1d(2, 1).Parse([]byte("0\n0\n")); err == nil {
		t.Errorf("frames that took no time: %v", got)
	}
}

// A warning is named, so that one knows what to mend.
func TestSysbenchComplaints(t *testing.T) {
	for file, want := range map[string]string{"sysbench-memory-endless.txt": "running an endless test", "sysbench-cpu-failed.txt": "Invalid value of cpu-max-prime"} {
		_, err := workload.SysbenchCPU(20000, 500, 1).Parse(read(t, file))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", file, err, want)
		}
	}
}

func TestProgramArguments(t *testing.T) {
	for _, tt := range []struct {
		program workload.Program
		want    string
	}{
		{workload.SysbenchCPU(20000, 500, 4), "/usr/bin/sysbench cpu --cpu-max-prime=20000 --threads=4 --events=500 --time=0 run"},
		{workload.SysbenchCPUProgress(20000, 500, 1), "/usr/bin/sysbench cpu --cpu-max-prime=20000 --threads=1 --events=500 --time=0 --report-interval=1 run"},
		{
			// Each thread does a third of the blocks, and the rest is left out.
			workload.SysbenchMemory(workload.MemoryLoad{BlockKiB: 1024, TotalMiB: 1024, Threads: 3, Scope: workload.LocalMemory, Operation: "read", Access: "rnd"}),
			"/usr/bin/sysbench memory --memory-block-size=1024K --memory-total-size=1024M --memory-scope=local --memory-oper=read --memory-access-mode=rnd --histogram=on --threads=3 --events=1023 --time=0 run",
		},
		{workload.Dav1d(100, 2), "/usr/bin/dav1d --quiet --input " + workload.ClipPath + " --limit 100 --threads 2 --muxer null --output /dev/null --frametimes /dev/stdout"},
		{workload.Dav1dVerify(workload.ClipFrames), "/usr/bin/dav1d --quiet --input " + workload.ClipPath + " --limit 600 --verify " + workload.ClipMD5},
		{workload.Linpack(5000, 1, 0), "/usr/bin/linpack --n 5000 --runs 1"},
		{workload.Linpack(5000, 1, 4), "/usr/bin/linpack --n 5000 --runs 1 --threads 4"},
		{workload.Zstd(19, 3*time.Second), "/usr/bin/zstd -q -b19 -i3 --single-thread"},
		{workload.SevenZip{Dictionary: 18, Step: 1e9}.Program(), "/usr/bin/7z b 1 -mmt=on -md=18 -mtimems=1000"},
		{workload.SevenZip{Dictionary: 18, Passes: 20, Step: 1e9}.Program(), "/usr/bin/7z b 20 -mmt=on -md=18 -mtimems=1000"},
	} {
		if got := strings.Join(tt.program.Args, " "); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
}

func TestRates(t *testing.T) {
	for _, file := range []string{"sysbench-progress-native.txt", "sysbench-progress-runc.txt", "sysbench-progress-runsc.txt"} {
		got, err := workload.Rates(read(t, file))
		if err != nil || len(got) < 2 || slices.Min(got) < 100 || slices.Max(got) > 10000 {
			t.Errorf("%s: %v, %v", file, got, err)
		}
	}
	const line = "[ 1s ] thds: 1 eps: 859.58 lat (ms,95%): 1.70\n"
	if got, err := workload.Rates([]byte("x\n" + line)); err != nil || !slices.Equal(got, []float64{859.58}) || !workload.IsProgress(line) {
		t.Errorf("Rates() = %v, %v", got, err)
	}
	// A busy host delays the second line: the third one comes at once.
	late := line + strings.Replace(line, "1s", "3s", 1) + strings.Replace(line, "1s", "3s", 1) + strings.Replace(line, "1s", "4s", 1)
	if got, err := workload.Rates([]byte(late)); err != nil || len(got) != 4 || !math.IsNaN(got[2]) || got[1] != 859.58 || got[3] != 859.58 {
		t.Errorf("Rates() of a late line = %v, %v", got, err)
	}
	for _, text := range []string{
		"", "x\n", strings.Replace(line, "1s", "0s", 1), strings.Replace(line, "1s", "2s", 1) + line, strings.Replace(line, "859.58", "859,58", 1),
		strings.Replace(line, "859.58", "", 1), strings.Replace(line, " lat (ms", "", 1), "[ \n", "[ 1s ] thds: \n",
	} {
		if got, err := workload.Rates([]byte(text)); err == nil {
			t.Errorf("Rates(%q) = %v", text, got)
		}
	}
}

// Accepted values are finite and positive, and the output is accepted again.
func FuzzPrograms(f *testing.F) {
	for _, tt := range programs {
		f.Add(read(f, tt.file))
	}
	f.Fuzz(func(t *testing.T, output []byte) {
		for _, tt := range programs {
			got, err := tt.program.Parse(output)
			if err != nil {
				continue
			}
			for name, v := range got {
				if !(v > 0 && v <= math.MaxFloat64) {
					t.Errorf("%q: %s = %v of %q", tt.program.Args, name, v, output)
				}
			}
			again, err := tt.program.Parse(output)
			if err != nil || !maps.Equal(got, again) {
				t.Errorf("%q: %v, and then %v, %v", tt.program.Args, got, again, err)
			}
		}
		rates, err := workload.Rates(output)
		if err == nil && (len(rates) == 0 || slices.Min(rates) < 0) {
			t.Errorf("rates %v of %q", rates, output)
		}
	})
}
