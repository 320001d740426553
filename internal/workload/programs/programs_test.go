package programs_test

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
	"github.com/touchstone-bench/touchstone/internal/workload/workloadtest"
)

// The settings are in the arguments of the programs.
func TestProgramArguments(t *testing.T) {
	files := programs.FileIO{Files: 2, MiB: 16, Requests: 10_000}
	synced := func(s programs.Syncs, mode programs.FileMode) workload.Program {
		files.Syncs = s
		return files.Run(mode, "x")
	}
	random := programs.Syncs{Every: 100, Random: true, End: true}
	for _, tt := range []struct {
		program workload.Program
		want    string // all arguments, or the part between two ellipses
	}{
		{programs.SysbenchCPU(20000, 500, 4), "/usr/bin/sysbench cpu --cpu-max-prime=20000 --threads=4 --events=500 --time=0 run"},
		{programs.SysbenchCPUProgress(20000, 500, 1), "/usr/bin/sysbench cpu --cpu-max-prime=20000 --threads=1 --events=500 --time=0 --report-interval=1 run"},
		{
			// Each thread does a third of the blocks, and the rest is left out.
			programs.SysbenchMemory(programs.MemoryLoad{BlockKiB: 1024, TotalMiB: 1024, Threads: 3, Scope: programs.LocalMemory, Operation: "read", Access: "rnd"}),
			"/usr/bin/sysbench memory --memory-block-size=1024K --memory-total-size=1024M --memory-scope=local --memory-oper=read --memory-access-mode=rnd --histogram=on --threads=3 --events=1023 --time=0 run",
		},
		{programs.Dav1d(100, 2), "/usr/bin/dav1d --quiet --input " + programs.ClipPath + " --limit 100 --threads 2 --muxer null --output /dev/null --frametimes /dev/stdout"},
		{programs.Dav1dVerify(programs.ClipFrames), "/usr/bin/dav1d --quiet --input " + programs.ClipPath + " --limit 600 --verify " + programs.ClipMD5},
		{programs.Linpack(5000, 1, 0), "/usr/bin/linpack --n 5000 --runs 1"},
		{programs.Linpack(5000, 1, 4), "/usr/bin/linpack --n 5000 --runs 1 --threads 4"},
		{programs.Zstd(19, 3*time.Second), "/usr/bin/zstd -q -b19 -i3 --single-thread"},
		{programs.SevenZip{Dictionary: 18, Step: 1e9}.Program(), "/usr/bin/7z b 1 -mmt=on -md=18 -mtimems=1000"},
		{programs.SevenZip{Dictionary: 18, Passes: 20, Step: 1e9}.Program(), "/usr/bin/7z b 20 -mmt=on -md=18 -mtimems=1000"},

		{synced(random, programs.SeqWrite), "… --file-fsync-freq=0 --file-fsync-end=on …"},
		{synced(random, programs.RndWrite), "… --file-fsync-freq=100 --file-fsync-end=on …"},
		{synced(programs.Syncs{Every: 100, End: true}, programs.SeqRewrite), "… --file-fsync-freq=100 --file-fsync-end=on …"},
		{synced(programs.Syncs{}, programs.SeqWrite), "… --file-fsync-freq=0 --file-fsync-end=off …"},
		{files.Empty()[0], "/usr/bin/busybox truncate -s 0 test_file.0 test_file.1"},
		{files.Empty()[1], "/usr/bin/busybox truncate -s 16777216 test_file.0 test_file.1"},

		{sends, "… --client 10.77.0.1 --port 5201 --json --time 1 --omit 1 --interval 0 --connect-timeout 10000"},
		{receives, "… --connect-timeout 10000 --reverse"},
		{programs.NetperfRun(programs.TCPRR, peer, 3*time.Second), "… -H 10.77.0.1 -p 5201 -t TCP_RR -l 3 …"},
		{crr, "… -H 10.77.0.1 -p 5201 -t TCP_CRR -l -2430 …"},
		{programs.ABRun(webServer, "/small", 1, 2*time.Second), "… -t 2 -n 200000 …"},
		{abSmall, "… http://10.77.0.1:8080/small"},
		{abPosts, "… -p /data/sent -T …"},
		{abPosts, "… http://10.77.0.1:8080/post"},
		{redis, "… -h 10.77.0.1 -p 6379 -n 5000 -c 50 -t ping,set,…"},
		{redis, "… --csv"},
		{redisState, "… -h 10.77.0.1 -p 6379 INFO stats persistence"},
	} {
		got, want := strings.Join(tt.program.Args, " "), tt.want
		if rest, ok := strings.CutPrefix(want, "…"); ok {
			head, end, open := strings.Cut(rest, "…")
			if index := strings.Index(got, head); index < 0 || !open && !strings.HasSuffix(got, head) || end != "" {
				t.Errorf("%s, want %s", got, want)
			}
		} else if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for _, p := range files.Empty() {
		if _, err := p.Parse([]byte("truncate: test_file.0: No space left on device\n")); err == nil {
			t.Error("a complaint of truncate is no error")
		}
	}
}

// A run that ends with the file or with its time, whichever is first, can do no more than the file has.
func TestFioEnds(t *testing.T) {
	output := workloadtest.Read(t, "fio-cold-native.txt")
	for _, tt := range []struct {
		mib   int
		span  time.Duration
		again bool
		good  bool
	}{
		{16, 0, false, true},
		{16, time.Hour, true, false},
		{16, time.Millisecond, true, true},
		{32, 0, false, false},
		{32, 2 * time.Millisecond, false, true},
		{8, 0, false, false},
	} {
		run, f := fioRead, fio
		run.For, run.Again, f.MiB = tt.span, tt.again, tt.mib
		if _, err := probe.Sequence("/data", f.Run(run)).Parse(output); (err == nil) != tt.good {
			t.Errorf("16 MiB in 2 ms of a file of %d MiB, for %v, again %v: %v", tt.mib, tt.span, tt.again, err)
		}
	}
}

// The syncs are events of sysbench's: without them a mode would do less than the paper's work.
func TestEventsOfFileIO(t *testing.T) {
	paper := programs.Syncs{Every: 100, Random: true, End: true} // of sysbench 0.4
	syncs := programs.Syncs{Every: 100, End: true}               // the default of sysbench 1.0
	for _, tt := range []struct {
		syncs programs.Syncs
		mode  programs.FileMode
		want  int
	}{
		{paper, programs.SeqRead, 128 * 1024},
		{paper, programs.RndRead, 10_000},
		{paper, programs.SeqWrite, 128 * 1024},
		{paper, programs.RndWrite, 10_000 + 128*99},
		{syncs, programs.SeqWrite, 128*1024 + 128*1310},
		{syncs, programs.SeqRewrite, 128*1024 + 128*1310},
		{programs.Syncs{}, programs.SeqWrite, 128 * 1024},
		{programs.Syncs{}, programs.RndWrite, 10_000},
	} {
		args := programs.FileIO{Files: 128, MiB: 16, Requests: 10_000, Syncs: tt.syncs}.Run(tt.mode, "x").Args
		if !slices.Contains(args, "--events="+strconv.Itoa(tt.want)) {
			t.Errorf("%s of %+v is %q, want %d events", tt.mode, tt.syncs, args, tt.want)
		}
	}
}

// A mode without any sync reports none.
func TestFileIOWithoutSyncs(t *testing.T) {
	variant := files
	variant.Syncs = programs.Syncs{}
	first, _, _ := strings.Cut(string(workloadtest.Read(t, "fileio-write-native.txt")), `{"step":1`)
	p := variant.Run(programs.SeqWrite, "SeqWrite")
	first = strings.NewReplacer("events:              532", "events:              512", "532.0000/", "512.0000/").Replace(first)
	if values, err := p.Parse([]byte(first)); err == nil || !strings.Contains(err.Error(), "mode seqwr did") {
		t.Errorf("with syncs: %v, %v", values, err)
	}
	if values, err := p.Parse([]byte(strings.Replace(first, "347.07", "  0.00", 1))); err != nil || values["SeqWrite"] != 0.0682 {
		t.Errorf("without syncs: %v, %v", values, err)
	}
}

// No two programs of a sequence may give the same value.
func TestSequenceRefusesTheSameTwice(t *testing.T) {
	p := probe.Sequence("/data", files.Prepare(), files.Run(programs.SeqRead, "SeqRead"), files.Run(programs.RndRead, "SeqRead"))
	if _, err := p.Parse(workloadtest.Read(t, "fileio-read-native.txt")); err == nil || !strings.Contains(err.Error(), "once more") {
		t.Errorf("error %v", err)
	}
}

func TestIperfCongestion(t *testing.T) {
	for _, file := range []string{"iperf3-send.json", "iperf3-receive.json"} {
		if congestion, err := programs.IperfCongestion(workloadtest.Read(t, file)); err != nil || congestion != "bbr" {
			t.Errorf("%s: congestion control %q, %v", file, congestion, err)
		}
	}
}

// On a busy host netperf's timer fires twice. TCP repeats a lost packet: if the test ends before the repetition, the transaction counts in
// the elapsed time only.
func TestNetperfOnABusyHost(t *testing.T) {
	output := "catcher: timer popped with times_up != 0\n" + string(workloadtest.Read(t, "netperf-tcp-maerts.txt"))
	if got, err := netperf(programs.TCPMaerts).Parse([]byte(output)); err != nil || got["Throughput"] != 6078.58e6 {
		t.Errorf("told twice: %v, %v", got, err)
	}
	gap := strings.Replace(string(workloadtest.Read(t, "netperf-tcp-rr.txt")), "MEAN_LATENCY=82.17", "MEAN_LATENCY=69.70", 1)
	if got, err := netperf(programs.TCPRR).Parse([]byte(gap)); err != nil || math.Abs(got["MeanLatency"]-69.7e-6) > 1e-12 {
		t.Errorf("a loss at its end: %v, %v", got, err)
	}
}

// A percentile is one of a request: ab has a line, but no time, for those that there are too few requests for.
func TestABOfFewRequests(t *testing.T) {
	for requests, want := range map[string][]string{
		"1": {"BitsPerSecond", "Latency"}, "2": {"BitsPerSecond", "Latency", "P50Latency"}, "50": {"BitsPerSecond", "Latency", "P50Latency"},
		"51": {"BitsPerSecond", "Latency", "P50Latency", "P99Latency"},
	} {
		output := strings.NewReplacer("29949.55", requests, "29950", requests).Replace(string(workloadtest.Read(t, "ab-small.txt")))
		got, err := abSmall.Parse([]byte(output))
		if names := slices.Sorted(maps.Keys(got)); err != nil || !slices.Equal(names, want) {
			t.Errorf("of %s requests there are %q, %v; want %q", requests, names, err, want)
		}
	}
}

// The tests of sateri's tables 4.5 and 4.6, in their order, with 7 values each.
func TestRedisTests(t *testing.T) {
	const want = "PING_INLINE PING_MBULK SET GET INCR LPUSH RPUSH LPOP RPOP SADD HSET SPOP ZADD ZPOPMIN LPUSH_LRANGE " +
		"LRANGE_100 LRANGE_300 LRANGE_500 LRANGE_600 MSET"
	var names []string
	for _, test := range programs.RedisTests() {
		names = append(names, test.Name)
	}
	if got := strings.Join(names, " "); got != want {
		t.Errorf("the tests are %s, want %s", got, want)
	}
	if got, err := redis.Parse(workloadtest.Read(t, "redis-benchmark-native.csv")); err != nil || len(got) != 20*7 {
		t.Errorf("there are %d values, %v; want 7 for each of 20 tests", len(got), err)
	}
	// The capture is of a server after one snapshot.
	if got, err := redisState.Parse(workloadtest.Read(t, "redis-info.txt")); err != nil || len(got) != 1 || got[programs.RedisSaves] != 1 {
		t.Errorf("the state is read as %v, %v", got, err)
	}
	if got, err := redisState.Parse(nil); err == nil {
		t.Errorf("nothing is read as %v", got)
	}
}

// Redis is filled only if it reports all keys.
func TestLocalRedisFill(t *testing.T) {
	fill := programs.LocalRedisFill(7000, 20)
	if values, err := fill.Parse([]byte("20\n")); err != nil || len(values) > 0 {
		t.Errorf("Parse = %v, %v", values, err)
	}
	for _, output := range []string{"", "20", "19\n", "ERR unknown command\n"} {
		if _, err := fill.Parse([]byte(output)); err == nil {
			t.Errorf("Parse(%q): no error", output)
		}
	}
}

// A bare process shares the ports of the host, where the user may have a Redis.
func TestRedisSweepHasNoPort(t *testing.T) {
	argv := programs.RedisSweep(10, time.Minute)
	if index := slices.Index(argv, "--port"); index < 0 || argv[index+1] != "0" || slices.Contains(argv, "--bind") {
		t.Errorf("the server has a port: %q", argv)
	}
	for line := range strings.Lines(argv[2]) {
		if strings.Contains(line, "redis-cli") && !strings.Contains(line, "redis-cli -s /tmp/redis.sock ") {
			t.Errorf("a client does not use the server's socket: %s", line)
		}
	}
}

func TestRates(t *testing.T) {
	for _, file := range []string{"sysbench-progress-native.txt", "sysbench-progress-runc.txt", "sysbench-progress-runsc.txt"} {
		got, err := programs.Rates(workloadtest.Read(t, file))
		if err != nil || len(got) < 2 || slices.Min(got) < 100 || slices.Max(got) > 10000 {
			t.Errorf("%s: %v, %v", file, got, err)
		}
	}
	const line = "[ 1s ] thds: 1 eps: 859.58 lat (ms,95%): 1.70\n"
	if got, err := programs.Rates([]byte("x\n" + line)); err != nil || !slices.Equal(got, []float64{859.58}) || !programs.IsProgress(line) {
		t.Errorf("Rates() = %v, %v", got, err)
	}
	// A busy host delays the second line: the third one comes at once.
	lines := line + strings.Replace(line, "1s", "3s", 1) + strings.Replace(line, "1s", "3s", 1) + strings.Replace(line, "1s", "4s", 1)
	if got, err := programs.Rates([]byte(lines)); err != nil || len(got) != 4 || !math.IsNaN(got[2]) || got[1] != 859.58 || got[3] != 859.58 {
		t.Errorf("Rates() of a late line = %v, %v", got, err)
	}
	for _, text := range []string{
		"", "x\n", strings.Replace(line, "1s", "0s", 1), strings.Replace(line, "1s", "2s", 1) + line, strings.Replace(line, "859.58", "859,58", 1),
		strings.Replace(line, "859.58", "", 1), strings.Replace(line, " lat (ms", "", 1), "[ \n", "[ 1s ] thds: \n",
	} {
		if got, err := programs.Rates([]byte(text)); err == nil {
			t.Errorf("Rates(%q) = %v", text, got)
		}
	}
}
