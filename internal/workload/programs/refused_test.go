package programs_test

import (
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

// change is a change of captured output, which is refused with a reason. Without old and new the capture itself is refused.
type change struct{ old, new, want string }

// refused are captures with changes, everywhere or at the first place.
var refused = []struct {
	file       string
	program    workload.Program
	everywhere bool
	changes    []change
}{
	{"sysbench-memory-endless.txt", cpu, false, []change{{"", "", "running an endless test"}}},
	{"sysbench-cpu-failed.txt", cpu, false, []change{{"", "", "Invalid value of cpu-max-prime"}}},
	{"sysbench-cpu-native.txt", cpu, false, []change{
		{"sysbench 1.0.20", "sysbench 1.1.0", ""},
		{"Number of threads: 1", "Number of threads: 2", ""},
		{"    total time:                          0.", "    total time:                          0,", ""},
		{"    total time:                          0.", "    total time:                          1.", ""},
		{"total number of events:              500", "total number of events:              499", ""},
		{"         max: ", "         min: ", ""},
		{"         sum:          ", "         sum:         9", ""},
		{"Threads started!", "WARNING: something is odd", ""},
		{"Threads started!", "FATAL: something is broken", ""},
		{"CPU speed:", "CPU-Geschwindigkeit:", ""},
	}},
	{"sysbench-memory-native.txt", memory, false, []change{
		{"operation: write", "operation: read", ""},
		{"Total operations: 4096", "Total operations: 4095", ""},
		{"       0.", "       9.", ""},
		{"*** ", "*** 1", ""},
	}},
	{"sevenzip-runc.txt", zip, false, []change{
		{"7-Zip", "p7zip", ""},
		{"Benchmark threads:      1", "Benchmark threads:      2", ""},
		{"18:       5460   100   4852   4865", "18:       5460   100   4852   5865", ""},
		{"18:       5460   100   4852   4865", "18:       5460   200   2426   4865", ""}, // a clock that goes wrong
		{"18:       5460   100   4852   4865", "18:       5460     0   4852      0", ""},
		{"Avr:      5460   100   4852   4865", "Avr:      5460   100   4852   4870", ""},
		{"100   6011   6024", "100   6011   6034", ""},
		{"\n---", "\nDecoding ERROR\n---", ""},
	}},
	{"linpack-native.txt", line, false, []change{
		{`"linpack"`, `"lunpack"`, ""},
		{`"version":1`, `"version":2`, ""},
		{`"residual":0`, `"residual":1e3`, ""},
		{"8794616793", "9794616793", ""},
		{"[0.161910933,", "[", ""},
		{"[0.161910933,", "[0,", ""},
		{"}", "}\n{}", ""},
	}},
	{"zstd-native.txt", zstd, false, []change{
		{"1.5.7", "1.6.0", ""},
		{"2981954", "2881954", ""},
		{"11.42", "0.00", ""},
		{"Lorem ipsum", "Synthetic 50%", ""},
	}},
	{"dav1d-native.txt", dav1d, false, []change{{"\n", "\n-", ""}}},

	{"fileio-read-native.txt", fileReads, false, []change{
		{"8388608 bytes written", "8372224 bytes written", "instead of"}, // files that were not made whole
		{"8388608 bytes written in 0.03 seconds", "No bytes written in", "instead of"},
		{"events:              512", "events:              511", "511"},
		{"writes/s:                     0.00", "writes/s:                     9.00", "mode seqrd did"},
		{"fsyncs/s:                     0.00", "fsyncs/s:                     9.00", "mode seqrd did"},
		{"read, MiB/s:                  1819.16", "read, MiB/s:                  1519.16", "are not 1519.16 MiB"},
		{"total time:                          0.0035s", "total time:                          0.0000s", "its time"},
		{"Threads started!", "WARNING: something", "a warning"},
		{`{"step":2,"of":3`, `{"step":3,"of":3`, "end of step 3"},
	}},
	{"fileio-write-native.txt", fileWrites, false, []change{
		{"fsyncs/s:                     347.07", "fsyncs/s:                     0.00", "mode seqwr did"},
	}},
	{"sqlite-native.txt", insertions, false, []change{
		{`"ns":964622008`, `"ns":0`, "took 0 ns"},
		{`"ns":964622008`, `"ns":18446744073709551615`, "took"},
		{`"ns":964622008`, `"ns":964622008,"x":1`, "unknown fields"},
		{`{"step":3,"of":3,"ns":5752935}` + "\n", `{"step":3,"of":3,"ns":5752935}` + "\nmore\n", "follows"},
		{`{"step":2`, "Runtime error\n" + `{"step":2`, "SQLite's output"},
		{"\nok\n", "\nrow 3 missing from index pts1_f1\n", "SQLite's output"},
	}},
	{"fio-native.txt", fioAll, false, []change{
		{"fio-3.39", "fio-4.0", "version"},
		{`"fio version"`, `"version"`, "version"},
		{"{\n", "note: something\n{\n", "invalid character"},
		{"\n}\n", "\n}\nfio: something\n", "follows"},
		{`"jobname" : "SeqRead"`, `"jobname" : "RndRead"`, "another job"},
		{`"error" : 0`, `"error" : 28`, "has an error"},
		{`"error" : 0`, `"mistake" : 0`, "the field for errors is missing"},
		{`"io_bytes" : 16777216`, `"bytes" : 16777216`, "a number is missing"},
		{`"io_bytes" : 16777216`, `"io_bytes" : "16777216"`, "cannot unmarshal"},
		{`"total_ios" : 128,` + "\n        " + `"short_ios" : 0`, `"total_ios" : 128, "short_ios" : 1`, "were short"},
		{`"iops" : 2285.714286`, `"iops" : 2385.714286`, "a second"},
		{`"runtime" : 60`, `"runtime" : 40`, "before its time"},
	}},
	{"fio-cold-native.txt", fioAll, false, []change{{"", "", "1 jobs instead of 4"}}},
	{"fio-cold-native.txt", fioCold, false, []change{{`"io_bytes" : 16777216`, `"io_bytes" : 8388608`, "are not 8388608 bytes"}}},

	{"iperf3-refused.json", sends, true, []change{{"", "", "Connection refused"}}},
	{"iperf3-server-killed.json", sends, true, []change{
		{"", "", "the server has terminated"},
		{`"error"`, `"terror"`, "the sender's sum: it covers"},
	}},
	{"iperf3-send.json", sends, true, []change{
		{"13269210547.321608", "13269210547,321608", "report in JSON"},
		{`"bytes":	1658191872`, `"bytes": 0`, "nothing was transferred"},
		{"13269210547.321608", "1326921054.7321608", "are not"},
		{"1658191872,\n\t\t\t\"bits_per_second\":\t13269210547.321608", "658191872, \"bits_per_second\": 5266993612.4", "were received"},
		{`"retransmits":	293`, `"retransmits": -1`, "retransmits"},
		{"sum_received", "sum_perceived", "missing"},
		{`"num_streams":	1`, `"num_streams": 8`, "another test"},
	}},

	{"netperf-refused.txt", netperf(programs.TCPRR), false, []change{{"", "", "not one of the values"}}},
	{"netperf-lost.txt", netperf(programs.UDPRR), false, []change{{"", "", "a packet was lost"}}},
	{"netperf-tcp-crr.txt", programs.NetperfCount(programs.TCPCRR, peer, 2431), false, []change{{"", "", "2430 transactions instead of 2431"}}},
	{"netperf-tcp-stream.txt", netperf(programs.TCPStream), false, []change{
		{"10^6bits/s", "10^3bits/s", "another test"},
		{"751976448", "0", "are not"},
	}},
	{"netperf-tcp-rr.txt", netperf(programs.TCPRR), false, []change{
		{"82.17", "8.217", "do not fill"}, // a mean in another unit
		{"P99_LATENCY=131\n", "", "not one of the values"},
		{"12150.73", "12150,73", "not a number"},
		{"ELAPSED_TIME=1.00", "ELAPSED_TIME=0.50", "instead of 1; a send that writes less than it should ends the test"},
		{"12150.73", "21150.73", "are not"},
		{"P99_LATENCY=131", "P99_LATENCY=13", "not in order"},
	}},

	{"ab-refused.txt", abSmall, false, []change{{"", "", "cut off"}}},
	{"ab-killed.txt", abSmall, false, []change{{"", "", "cut off"}}},
	{"ab-interrupted.txt", abSmall, false, []change{{"", "", "it covers"}}},
	{"ab-closed.txt", abSmall, false, []change{{"", "", "the connection was kept for only 0 of"}}},
	{"ab-404.txt", abSmall, true, []change{{"/missing", "/small", "Non-2xx"}}},
	{"ab-large.txt", abSmall, false, []change{{"", "", "it belongs to"}}},
	{"ab-small.txt", abSmall, false, []change{
		{"29949.55", "29949,55", "not a number"},
		{"Failed requests:        0", "Failed requests:        1", "1 requests failed"},
		{"Keep-Alive requests:", "Write errors:           3\nKeep-Alive requests:", "Write errors"},
		{"29949.55", "9949.55", "are not"},
		{"HTML transferred:       29950", "HTML transferred:       29949", "are not"},
		{"Requests per second", "Reguests per second", "it has no Requests per second"},
		{"Time taken for tests:   1.000 seconds", "Time taken for tests:   1.000 minutes", "not a number"},
		{"\n50,", "\n51,", "not line 50"},
		{"\n0,", "\n0,9", "not in order"},
		{"HTML transferred:", "Total body sent:        153875744\nHTML transferred:", "od"}, // GET sends no bodies
	}},
	{"ab-post.txt", abPosts, false, []change{ // the bytes of the bodies must have been sent
		{"Total body sent:        153875744\n", "Total body sent:        152371199\n", "od"},
		{"Total body sent:        153875744\n", "", "od"},
		{"Total body sent:        153875744\n", "Total body sent:        many\n", "od"},
	}},

	{"redis-benchmark-killed.csv", redis, false, []change{{"", "", "it has 3 tests instead of 20"}}},
	{"redis-benchmark-native.csv", redis, false, []change{
		{`"test","rps"`, `"PING_INLINE","rps"`, "names of the columns"},
		{`"MSET`, `"XADD","1","1","1","1","1","1","1"` + "\n" + `"MSET`, "it has 21 tests"},
		{`"GET"`, `"SET"`, `instead of "GET"`},
		{`"96153.84"`, `"96153,84"`, "not a number"},
		{`"96153.84"`, `"0.00"`, "no request"},
		{`"0.471","0.679"`, `"0.679","0.471"`, "not in order"},
		{`"96153.84"`, `"396153.84"`, "cannot make"}, // more under way than clients
		{`,"0.679"`, "", "wrong number of fields"},
		{"", "WARNING: something new\n", ""},
	}},
	{"redis-info.txt", redisState, false, []change{
		{"total_error_replies:0", "total_error_replies:2", "2 requests with an error"},
		{"rdb_last_bgsave_status:ok", "rdb_last_bgsave_status:err", `the last snapshot failed: its status is "err"`},
		{"rdb_saves:1", "rdb_saves:one", "not a whole number"},
		{"rdb_saves:1", "saves:1", "rdb_saves is missing"},
		{"total_error_replies:0", "NOAUTH Authentication required.", "total_error_replies is missing"},
	}},
}
