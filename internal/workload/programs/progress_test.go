package programs_test

import (
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

func fioReport(bytes string, bins string) []string {
	return []string{
		"{", `"fio version" : "fio-3.39", "jobs" : [{"error" : 0,`,
		`"read" : {"io_bytes" : ` + bytes + `, "clat_ns" : {"bins" : {` + bins + `}}},`,
		`"write" : {"io_bytes" : 0, "clat_ns" : {}}}]`, "}",
	}
}

func TestFioReports(t *testing.T) {
	r := programs.FioReports{Mode: programs.FioRandRead}
	var got []programs.FioProgress
	for _, line := range slices.Concat(fioReport("8192", `"1000" : 2`), []string{""}, fioReport("20480", `"1000" : 3, "5000" : 2`)) {
		p, ok, err := r.Line(line)
		must.Do(t, err)
		if ok {
			got = append(got, p)
		}
	}
	if len(got) != 2 || got[1].Bytes != 12288 || got[1].Requests[1e-6] != 1 || got[1].Requests[5e-6] != 2 || got[0].Requests[1e-6] != 2 {
		t.Errorf("the progress is %+v", got)
	}
	for what, lines := range map[string][]string{
		"no report":                {"fio: pid=0, err=2/file:filesetup.c:249"},
		"a counter that falls":     append(fioReport("8192", `"1000" : 2`), fioReport("4096", `"1000" : 1`)...),
		"a histogram that falls":   append(fioReport("8192", `"1000" : 2`), fioReport("8192", `"1000" : 1`)...),
		"a bin without a number":   fioReport("8192", `"x" : 2`),
		"another version":          {"{", `"fio version" : "fio-2.1"`, "}"},
		"no JSON":                  {"{", "}}", "}"},
		"an error in the only job": {"{", `"fio version" : "fio-3.39", "jobs" : [{"error" : 5}]`, "}"},
	} {
		r := programs.FioReports{Mode: programs.FioRandRead}
		var failed error
		for _, line := range lines {
			if _, _, err := r.Line(line); err != nil {
				failed = err
			}
		}
		if failed == nil {
			t.Errorf("%s is accepted", what)
		}
	}
}

func TestNetperfReports(t *testing.T) {
	var r programs.NetperfReports
	for _, line := range []string{"NETPERF_INTERIM_RESULT[0]=67369.98", "NETPERF_UNITS[0]=Trans/s"} {
		if _, _, ok, err := r.Line(line); ok || err != nil {
			t.Errorf("%s: %v, %v", line, ok, err)
		}
	}
	rate, seconds, ok, err := r.Line("NETPERF_INTERVAL[0]=0.103")
	if rate != 67369.98 || seconds != 0.103 || !ok || err != nil {
		t.Errorf("the interval has %v, %v, %v, %v", rate, seconds, ok, err)
	}
	for _, line := range []string{"establish control: are you sure there is a netserver", "NETPERF_UNITS[0]=10^6bits/s", "NETPERF_INTERIM_RESULT[0]=x"} {
		if _, _, _, err := r.Line(line); err == nil {
			t.Errorf("%q is accepted", line)
		}
	}
}

func TestIperfLine(t *testing.T) {
	got, ok, err := programs.ParseIperfLine("[  5]   0.10-0.20   sec   118 MBytes  9898000 Kbits/sec    0   1.25 MBytes       ")
	if math.Abs(got-123725000) > 1 || !ok || err != nil {
		t.Errorf("an interval has %v bytes, %v, %v", got, ok, err)
	}
	for _, line := range []string{"", "Connecting to host 10.0.0.1, port 5201", "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd", "- - - -"} {
		if got, ok, err := programs.ParseIperfLine(line); ok || err != nil {
			t.Errorf("%q: %v, %v, %v", line, got, ok, err)
		}
	}
	if _, _, err := programs.ParseIperfLine("iperf3: error - unable to connect to server"); err == nil {
		t.Error("an error is accepted")
	}
}

func TestRedisLines(t *testing.T) {
	r := programs.RedisSwept{Values: 256}
	for i, line := range []string{"256", "8192000", "8192000"} {
		if sweep, err := r.Line(line); sweep != (i > 0) || err != nil {
			t.Errorf("line %d: %v, %v", i+1, sweep, err)
		}
	}
	for _, line := range []string{"", "8192001", "256", "ERR unknown command", "(integer) 8192000"} {
		if _, err := r.Line(line); err == nil {
			t.Errorf("%q is accepted", line)
		}
	}
	if _, err := new(programs.RedisSwept).Line("8192000"); err == nil {
		t.Error("a sweep before the server is filled is accepted")
	}
}

// The calls have a time limit, so that a program whose controller is killed ends by itself.
func TestLoadsHaveTimeLimits(t *testing.T) {
	address := netip.MustParseAddrPort("10.0.0.1:80")
	fio := programs.Fio{Dir: "/data", MiB: 1, Direct: true}
	for _, args := range [][]string{
		programs.LinpackLines(100, 2, time.Minute), probe.StreamLines(1, time.Minute), probe.Forks(10, time.Minute, false),
		programs.NetperfLines(programs.TCPRR, address, time.Minute, 100*time.Millisecond), programs.IperfLines(address, time.Minute, 100*time.Millisecond), programs.RedisSweep(1, time.Minute),
		fio.Lines(programs.FioRun{Mode: programs.FioRandRead, Metric: "m", Block: 4096, For: time.Minute}, 100*time.Millisecond),
	} {
		if line := strings.Join(args, " "); !strings.Contains(line, " 60 ") && !strings.Contains(line, "60000") && !strings.HasSuffix(line, " 60") && !strings.Contains(line, "=60\n") {
			t.Errorf("%q has no limit of a minute", line)
		}
	}
}
