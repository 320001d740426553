package programs_test

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
	"github.com/touchstone-bench/touchstone/internal/workload/workloadtest"
)

// The calls of the captures. A test of the network covers a second between two network namespaces with a veth pair; "few" is at 420 Mbit/s.
// /probe sequence made the captures of the disk.
var (
	cpu    = programs.SysbenchCPU(20000, 500, 1)
	memory = programs.SysbenchMemory(programs.PaperMemoryLoad(4096))
	zip    = programs.SevenZip{Threads: 1, Dictionary: 18, Step: 1}.Program()
	line   = programs.Linpack(1000, 2, 2)
	zstd   = programs.Zstd(3, time.Second)
	dav1d  = programs.Dav1d(60, 1)

	files      = programs.FileIO{Files: 4, MiB: 2, Requests: 500, Syncs: programs.Syncs{Every: 100, End: true}}
	fileReads  = probe.Sequence("/data", files.Prepare(), files.Run(programs.SeqRead, "SeqRead"), files.Run(programs.RndRead, "RndRead"))
	fileWrites = probe.Sequence("/data", files.Run(programs.SeqWrite, "SeqWrite"),
		files.Run(programs.SeqRewrite, "SeqRewrite"), files.Run(programs.RndWrite, "RndWrite"))
	insertions = probe.Sequence("/data", programs.Insertions(20, "TotalTime")...)

	fio      = programs.Fio{Dir: "/data", MiB: 16}
	fioWrite = programs.FioRun{Mode: programs.FioWrite, Metric: "SeqWrite", Unit: workload.BytesPerSecond, Block: 128 << 10}
	fioRead  = programs.FioRun{Mode: programs.FioRead, Metric: "SeqRead", Unit: workload.BytesPerSecond, Block: 128 << 10}
	fioCold  = probe.Sequence("/data", fio.Run(fioRead))
	fioAll   = probe.Sequence("/data", fio.Run(fioWrite,
		programs.FioRun{Mode: programs.FioRead, Metric: "SeqRead", Unit: workload.BytesPerSecond, Block: 128 << 10, For: span, Again: true},
		programs.FioRun{Mode: programs.FioRandRead, Metric: "RndRead", Unit: workload.PerSecond, Block: 4 << 10, For: span, Again: true},
		programs.FioRun{Mode: programs.FioRandWrite, Metric: "RndWrite", Unit: workload.PerSecond, Block: 4 << 10, For: span, Again: true},
	))

	peer       = netip.MustParseAddrPort("10.77.0.1:5201")
	webServer  = netip.MustParseAddrPort("10.77.0.1:8080")
	redisAt    = netip.MustParseAddrPort("10.77.0.1:6379")
	sends      = programs.IperfTest{Server: peer, Duration: time.Second, Omit: time.Second}.Program()
	receives   = programs.IperfTest{Server: peer, Duration: time.Second, Omit: time.Second, Reverse: true}.Program()
	crr        = programs.NetperfCount(programs.TCPCRR, peer, 2430)
	abSmall    = programs.ABRun(webServer, "/small", 1, time.Second)
	abLarge    = programs.ABRun(webServer, "/large", 1<<20, time.Second)
	abPosts    = programs.ABPost(webServer, programs.NginxPost, len(programs.NginxAnswer), "/data/sent", 16<<10, time.Second)
	redis      = programs.RedisRun{Server: redisAt, Requests: 5000, Clients: 50}.Program()
	redisState = programs.RedisHealth(redisAt)
)

const span = 50 * time.Millisecond

func netperf(test programs.NetperfTest) workload.Program {
	return programs.NetperfRun(test, peer, time.Second)
}

// captures are calls with output that was captured of them: from bare processes, runc and runsc, with LC_ALL=de_DE.UTF-8 ("german"),
// and of runs that failed or were cut off.
var captures = []struct {
	file    string
	program workload.Program
	want    workload.Values // some of them, 0 for any positive number; nil if the output is no result
}{
	{"sysbench-cpu-native.txt", cpu, workload.Values{"TotalTime": 0.3127, "EventsPerSecond": 1592.86}},
	{"sysbench-cpu-runc.txt", cpu, workload.Values{"TotalTime": 0}},
	{"sysbench-cpu-runsc.txt", cpu, workload.Values{"TotalTime": 0}},
	{"sysbench-cpu-german.txt", programs.SysbenchCPU(20000, 300, 1), workload.Values{"TotalTime": 0}},
	{"sysbench-progress-runc.txt", programs.SysbenchCPUProgress(20000, 4000, 1), workload.Values{"TotalTime": 0}},
	{"sysbench-cpu-native.txt", programs.SysbenchCPU(20000, 501, 1), nil},
	{"sysbench-cpu-native.txt", programs.SysbenchCPU(20000, 500, 2), nil},
	{"sysbench-cpu-native.txt", programs.SysbenchCPU(10000, 500, 1), nil},
	{"sysbench-cpu-killed.txt", programs.SysbenchCPU(20000, 100000, 1), nil},
	{"sysbench-memory-native.txt", programs.SysbenchCPU(20000, 4096, 1), nil},

	{"sysbench-memory-native.txt", memory, workload.Values{"TotalTime": 0}},
	{"sysbench-memory-runc.txt", memory, workload.Values{"TotalTime": 0}},
	{"sysbench-memory-runsc.txt", memory, workload.Values{
		"TotalTime": 0.3758, "MinLatency": 0.039e-3, "AvgLatency": 0.30716 / 4096, "MaxLatency": 0.26e-3,
	}},
	{"sysbench-memory-native.txt", programs.SysbenchMemory(programs.PaperMemoryLoad(4097)), nil},
	{"sysbench-memory-timed.txt", programs.SysbenchMemory(programs.PaperMemoryLoad(204800)), nil},
	{"sysbench-memory-endless.txt", programs.SysbenchMemory(programs.PaperMemoryLoad(1024)), nil}, // it warns
	{"sysbench-cpu-native.txt", programs.SysbenchMemory(programs.PaperMemoryLoad(500)), nil},

	{"sevenzip-native.txt", programs.SevenZip{Threads: 2, Dictionary: 19, Passes: 2, Step: 1}.Program(), workload.Values{
		"CompressRating": 10258, "DecompressRating": 12436, "TotalRating": 11347, "TotalUsage": 1.69, "Threads": 2,
	}},
	{"sevenzip-native.txt", programs.SevenZip{Threads: 2, Dictionary: 19, Step: 1}.Program(), nil}, // it has two passes
	{"sevenzip-native.txt", programs.SevenZip{Threads: 2, Dictionary: 19, Passes: 3, Step: 1}.Program(), nil},
	{"sevenzip-runc.txt", zip, workload.Values{
		"CompressRating": 4865, "CompressUsage": 1, "CompressPerUsage": 4852, "DecompressRating": 7183, "DecompressUsage": 1,
		"DecompressPerUsage": 7170, "TotalRating": 6024, "TotalUsage": 1, "TotalPerUsage": 6011, "Threads": 1,
	}},
	{"sevenzip-runsc.txt", programs.SevenZip{Dictionary: 18, Step: 1}.Program(), workload.Values{"CompressUsage": 0.97, "Threads": 1}},
	{"sevenzip-german.txt", zip, workload.Values{"Threads": 1}},
	{"sevenzip-passes.txt", programs.SevenZip{Threads: 2, Dictionary: 20, Step: 1}.Program(), workload.Values{"Threads": 2}},
	{"sevenzip-runc.txt", programs.SevenZip{Threads: 2, Dictionary: 18, Step: 1}.Program(), nil},
	{"sevenzip-runc.txt", programs.SevenZip{Threads: 1, Dictionary: 19, Step: 1}.Program(), nil},
	{"sevenzip-killed.txt", programs.SevenZip{Threads: 1, Dictionary: 19, Step: 1}.Program(), nil},
	{"sevenzip-failed.txt", zip, nil},

	{"zstd-native.txt", zstd, workload.Values{"Compression": 11.42e6, "Decompression": 111.6e6}},
	{"zstd-runc.txt", zstd, workload.Values{"Compression": 58.17e6, "Decompression": 204.4e6}},
	{"zstd-runsc.txt", zstd, workload.Values{"Compression": 39.04e6, "Decompression": 515.1e6}},
	{"zstd-native.txt", programs.Zstd(4, time.Second), nil},
	{"zstd-native.txt", programs.Zstd(3, 2*time.Second), nil},
	{"zstd-killed.txt", programs.Zstd(3, 3*time.Second), nil},

	{"dav1d-native.txt", dav1d, workload.Values{"FramesPerSecond": 0}},
	{"dav1d-runc.txt", dav1d, workload.Values{"FramesPerSecond": 0}},
	{"dav1d-runsc.txt", dav1d, workload.Values{"FramesPerSecond": 0}},
	{"dav1d-german.txt", dav1d, workload.Values{"FramesPerSecond": 0}},
	{"dav1d-native.txt", programs.Dav1d(61, 1), nil},
	{"dav1d-short.txt", dav1d, nil}, // of a clip that ends within its frame 40, with exit code 0
	{"dav1d-killed.txt", programs.Dav1d(600, 1), nil},
	{"dav1d-native.txt", programs.Dav1dVerify(100), nil},

	{"linpack-native.txt", line, workload.Values{"FlopPerSecond": 8794616793, "Threads": 2}},
	{"linpack-runc.txt", programs.Linpack(2000, 3, 1), workload.Values{"FlopPerSecond": 24028074256, "Threads": 1}},
	{"linpack-runsc.txt", programs.Linpack(2000, 3, 0), workload.Values{"FlopPerSecond": 51255572156, "Threads": 1}},
	{"linpack-german.txt", line, workload.Values{"FlopPerSecond": 41174882356, "Threads": 2}},
	{"linpack-failed.txt", line, nil}, // its error without its library
	{"linpack-native.txt", programs.Linpack(1000, 2, 1), nil},
	{"linpack-native.txt", programs.Linpack(1000, 3, 2), nil},
	{"linpack-native.txt", programs.Linpack(2000, 2, 2), nil},

	{"fileio-read-native.txt", fileReads, workload.Values{"SeqRead": 0.0035, "RndRead": 0.0013}},
	{"fileio-read-runsc.txt", fileReads, workload.Values{"SeqRead": 0.0275, "RndRead": 0.0099}},
	{"fileio-read-german.txt", fileReads, workload.Values{"SeqRead": 0.0013, "RndRead": 0.0014}},
	{"fileio-write-native.txt", fileWrites, workload.Values{"SeqWrite": 0.0682, "SeqRewrite": 0.0697, "RndWrite": 0.0135}},
	{"fileio-full.txt", fileReads, nil},
	{"fileio-write-full.txt", fileWrites, nil},
	{"fileio-killed.txt", fileReads, nil},
	{"fio-native.txt", fioAll, workload.Values{
		"SeqWrite": 16777216 / 0.056, "SeqRead": 895221760 / 0.060, "RndRead": 5664 / 0.140, "RndWrite": 18620 / 0.061,
	}},
	{"fio-runsc.txt", fioAll, workload.Values{
		"SeqWrite": 16777216 / 0.006, "SeqRead": 176947200 / 0.051, "RndRead": 2819 / 0.050, "RndWrite": 3210 / 0.050,
	}},
	{"fio-cold-native.txt", fioCold, workload.Values{"SeqRead": 16777216 / 0.002}},
	{"fio-german.txt", probe.Sequence("/data", fio.Run(fioWrite)), workload.Values{"SeqWrite": 16777216 / 0.013}},
	{"fio-full.txt", fioAll, nil},
	{"sqlite-native.txt", insertions, workload.Values{"TotalTime": 0.964622008}},
	{"sqlite-runsc.txt", insertions, workload.Values{"TotalTime": 0.045219289}},
	{"sqlite-german.txt", insertions, workload.Values{"TotalTime": 0.015027815}},
	{"sqlite-full.txt", insertions, nil},

	{"iperf3-send.json", sends, workload.Values{"BitsPerSecond": 13269210547.321608, "Retransmits": 293 / 1.002101}},
	{"iperf3-receive.json", receives, workload.Values{"BitsPerSecond": 13831605990.168348, "Retransmits": 492 / 1.000309}},
	{"iperf3-german.json", sends, workload.Values{"BitsPerSecond": 0}},
	{"iperf3-send.json", receives, nil},
	{"iperf3-send.json", programs.IperfTest{Server: peer, Duration: 2 * time.Second, Omit: time.Second}.Program(), nil},

	{"netperf-tcp-stream.txt", netperf(programs.TCPStream), workload.Values{"Throughput": 6012.38e6}},
	{"netperf-tcp-maerts.txt", netperf(programs.TCPMaerts), workload.Values{"Throughput": 6078.58e6}},
	{"netperf-tcp-rr.txt", netperf(programs.TCPRR), workload.Values{
		"Throughput": 12150.73, "MeanLatency": 82.17e-6, "P50Latency": 81e-6, "P99Latency": 131e-6,
	}},
	{"netperf-udp-rr.txt", netperf(programs.UDPRR), workload.Values{
		"Throughput": 63491.40, "MeanLatency": 15.7e-6, "P50Latency": 15e-6, "P99Latency": 24e-6,
	}},
	{"netperf-german.txt", netperf(programs.TCPRR), workload.Values{
		"Throughput": 59687.18, "MeanLatency": 16.71e-6, "P50Latency": 15e-6, "P99Latency": 44e-6,
	}},
	{"netperf-tcp-crr.txt", crr, workload.Values{"Throughput": 10681.37, "MeanLatency": 93.55e-6, "P50Latency": 87e-6, "P99Latency": 233e-6}},
	{"netperf-tcp-rr.txt", netperf(programs.UDPRR), nil},
	{"netperf-tcp-stream.txt", netperf(programs.TCPRR), nil},
	{"netperf-tcp-stream.txt", netperf(programs.TCPMaerts), nil}, // the other direction

	{"ab-small.txt", abSmall, workload.Values{"Latency": 1 / 29949.55, "P50Latency": 21e-6, "P99Latency": 89e-6, "BitsPerSecond": 8 * 29949.55}},
	{"ab-few.txt", abLarge, workload.Values{"Latency": 1 / 42.66, "P50Latency": 20890e-6, "BitsPerSecond": 8 << 20 * 42.66}},
	{"ab-large.txt", abLarge, workload.Values{
		"Latency": 1 / 1383.54, "P50Latency": 519e-6, "P99Latency": 2796e-6, "BitsPerSecond": 8 << 20 * 1383.54,
	}},
	{"ab-post.txt", abPosts, workload.Values{
		"Latency": 1 / 9297.78, "P50Latency": 25e-6, "P99Latency": 2108e-6, "BitsPerSecond": 8 * 16384 * 9297.78,
	}},
	{"ab-german.txt", abSmall, workload.Values{"Latency": 0}},

	{"redis-benchmark-native.csv", redis, workload.Values{
		"SET": 96153.84, "SET avg": 0.280e-3, "SET min": 0.088e-3, "SET p50": 0.271e-3, "SET p95": 0.367e-3, "SET p99": 0.471e-3, "SET max": 0.679e-3,
		"MSET": 80645.16, "MSET avg": 0.358e-3, "MSET min": 0.112e-3, "MSET p50": 0.319e-3, "MSET p95": 0.535e-3, "MSET p99": 1.127e-3, "MSET max": 2.455e-3,
	}},
	{"redis-benchmark-german.csv", redis, workload.Values{"PING_INLINE": 75757.58}},
}

func TestProgramsCaptured(t *testing.T) {
	for _, tt := range captures {
		got, err := tt.program.Parse(workloadtest.Read(t, tt.file))
		if (err == nil) != (tt.want != nil) || err != nil && got != nil {
			t.Errorf("%s of %q = %v, %v", tt.file, tt.program.Args, got, err)
			continue
		}
		for name, want := range tt.want {
			if v := got[name]; want != 0 && !(math.Abs(v/want-1) < 1e-9) || !(v > 0) {
				t.Errorf("%s: %s = %v, want %v", tt.file, name, v, want)
			}
		}
	}
}

// Output that is cut off at any byte is refused. Long output is cut at ends of lines and beside them. JSON needs no end of its last line.
//
// Invariant whole-output: The output of a program counts only if it is complete: its last line, its counts, its checksums.
func TestProgramsCutOff(t *testing.T) {
	for _, tt := range captures {
		output := workloadtest.Read(t, tt.file)
		if tt.want == nil {
			continue
		}
		for end := range output {
			if len(output) > 2500 && output[end] != '\n' && output[max(0, end-1)] != '\n' || strings.HasSuffix(tt.file, ".json") && end == len(output)-1 {
				continue
			}
			got, err := tt.program.Parse(output[:end])
			if err == nil || got != nil || slices.Contains(tt.program.Args, "sequence") && !errors.Is(err, workload.ErrCutOff) {
				t.Fatalf("%s cut off after %d of %d bytes: %v, %v", tt.file, end, len(output), got, err)
			}
		}
	}
}

// Changed output is refused with the reason.
//
// Invariant whole-output.
func TestProgramsRefuse(t *testing.T) {
	for _, tt := range refused {
		output := workloadtest.Read(t, tt.file)
		for _, change := range tt.changes {
			variant := bytes.ReplaceAll(output, []byte(change.old), []byte(change.new))
			if !tt.everywhere {
				variant = bytes.Replace(output, []byte(change.old), []byte(change.new), 1)
			}
			if bytes.Equal(output, variant) && change.old != "" {
				t.Errorf("%s does not contain %q", tt.file, change.old)
			}
			if got, err := tt.program.Parse(variant); err == nil || got != nil || !strings.Contains(err.Error(), change.want) {
				t.Errorf("%s with %q for %q: %v, %v; want %q", tt.file, change.new, change.old, got, err, change.want)
			}
		}
	}
	if got, err := programs.Dav1dVerify(100).Parse(nil); err != nil || len(got) > 0 {
		t.Errorf("a verification that says nothing: %v, %v", got, err)
	}
	if got, err := programs.Dav1d(2, 1).Parse([]byte("0\n0\n")); err == nil {
		t.Errorf("frames that took no time: %v", got)
	}
}

// Accepted values are finite and positive, except percentiles and counts of retransmits, and the output is accepted again.
//
// Invariant whole-output.
func FuzzPrograms(f *testing.F) {
	for _, output := range workloadtest.All(f, "*.*") {
		f.Add(output)
	}
	f.Fuzz(func(t *testing.T, output []byte) {
		for _, tt := range captures {
			got, err := tt.program.Parse(output)
			if err != nil {
				if got != nil {
					t.Errorf("%q: values %v beside the error %v", tt.program.Args, got, err)
				}
				continue
			}
			for name, v := range got {
				zero := strings.HasPrefix(name, "P") || strings.Contains(name, " ") || name == "Retransmits"
				if !(v >= 0 && v <= math.MaxFloat64) || v == 0 && !zero {
					t.Errorf("%q: %s = %v of %q", tt.program.Args, name, v, output)
				}
			}
			if repeat, err := tt.program.Parse(output); err != nil || !maps.Equal(got, repeat) {
				t.Errorf("%q: %v, and then %v, %v", tt.program.Args, got, repeat, err)
			}
		}
		if rates, err := programs.Rates(output); err == nil && (len(rates) == 0 || slices.Min(rates) < 0) {
			t.Errorf("rates %v of %q", rates, output)
		}
	})
}
