package workload_test

import (
	"bufio"
	"fmt"
	"math"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

func fioReport(bytes string, bins string) []string {
	return []string{
		"{", `"fio version" : "fio-3.39", "jobs" : [{"error" : 0,`,
		`"read" : {"io_bytes" : ` + bytes + `, "clat_ns" : {"bins" : {` + bins + `}}},`,
		`"write" : {"io_bytes" : 0, "clat_ns" : {}}}]`, "}",
	}
}

func TestFioReports(t *testing.T) {
	r := workload.FioReports{Mode: workload.FioRandRead}
	var got []workload.FioProgress
	for _, line := range slices.Concat(fioReport("8192", `"1000" : 2`), []string{""}, fioReport("20480", `"1000" : 3, "5000" : 2`)) {
		p, ok, err := r.Line(line)
		if err != nil {
			t.Fatal(err)
		}
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
		r := workload.FioReports{Mode: workload.FioRandRead}
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
	var r workload.NetperfReports
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
	got, ok, err := workload.ParseIperfLine("[  5]   0.10-0.20   sec   118 MBytes  9898000 Kbits/sec    0   1.25 MBytes       ")
	if math.Abs(got-123725000) > 1 || !ok || err != nil {
		t.Errorf("an interval has %v bytes, %v, %v", got, ok, err)
	}
	for _, line := range []string{"", "Connecting to host 10.0.0.1, port 5201", "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd", "- - - -"} {
		if got, ok, err := workload.ParseIperfLine(line); ok || err != nil {
			t.Errorf("%q: %v, %v, %v", line, got, ok, err)
		}
	}
	if _, _, err := workload.ParseIperfLine("iperf3: error - unable to connect to server"); err == nil {
		t.Error("an error is accepted")
	}
}

func TestRedisLines(t *testing.T) {
	r := workload.RedisSwept{Values: 256}
	for i, line := range []string{"256", "8192000", "8192000"} {
		if swept, err := r.Line(line); swept != (i > 0) || err != nil {
			t.Errorf("line %d: %v, %v", i+1, swept, err)
		}
	}
	for _, line := range []string{"", "8192001", "256", "ERR unknown command", "(integer) 8192000"} {
		if _, err := r.Line(line); err == nil {
			t.Errorf("%q is accepted", line)
		}
	}
	if _, err := new(workload.RedisSwept).Line("8192000"); err == nil {
		t.Error("a sweep before the server is filled is accepted")
	}
}

// The calls have a time limit, so that a program whose controller is killed ends by itself.
func TestLoadsHaveTimeLimits(t *testing.T) {
	at := netip.MustParseAddrPort("10.0.0.1:80")
	fio := workload.Fio{Dir: "/data", MiB: 1, Direct: true}
	for _, args := range [][]string{
		workload.LinpackLines(100, 2, time.Minute), workload.StreamLines(1, time.Minute), workload.Forks(10, time.Minute, false),
		workload.NetperfLines(workload.TCPRR, at, time.Minute, 100*time.Millisecond), workload.IperfLines(at, time.Minute, 100*time.Millisecond), workload.RedisSweep(1, time.Minute),
		fio.Lines(workload.FioRun{Mode: workload.FioRandRead, Metric: "m", Block: 4096, For: time.Minute}, 100*time.Millisecond),
	} {
		if line := strings.Join(args, " "); !strings.Contains(line, " 60 ") && !strings.Contains(line, "60000") && !strings.HasSuffix(line, " 60") && !strings.Contains(line, "=60\n") {
			t.Errorf("%q has no limit of a minute", line)
		}
	}
}

func TestProbeGrow(t *testing.T) {
	got := runProbe(t, workload.Grow(3)...)
	if want := "held 0\nheld 1048576\nheld 2097152\nheld 3145728\n"; got != (result{stdout: want}) {
		t.Errorf("%+v, want a line before the first MiB and after each", got)
	}
}

// The program writes numbered lines until SIGTERM. It sleeps between them: a program that does not sleep takes as much CPU time as
// wall time.
func TestProbeTick(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), probe(t), workload.Tick(5 * time.Millisecond)[1:]...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 1; n <= 20 && lines.Scan(); n++ {
		if got, err := workload.ParseTick(lines.Text()); got != n || err != nil {
			t.Errorf("line %d is %q: %d, %v", n, lines.Text(), got, err)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // the lines before the signal
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	if used := cmd.ProcessState.SystemTime() + cmd.ProcessState.UserTime(); used > 40*time.Millisecond {
		t.Errorf("20 lines took %v of CPU time", used)
	}
}

func parsed[T any](parse func(string) (T, error)) func(string) (any, error) {
	return func(line string) (any, error) { return parse(line) }
}

// Each kind of line has one format.
func TestLinesOfProgress(t *testing.T) {
	for _, tt := range []struct {
		parse      func(string) (any, error)
		line, want string
		bad        []string
	}{
		{parsed(workload.ParseHeld), "held 66060288", "66060288", []string{
			"", "held", "held ", "held 1", "held -1048576", "held 1048576 ", "held +1048576", "kept 1048576", "1048576", "held 18446744073709551616",
		}},
		{parsed(workload.ParseTick), "tick 7", "7", []string{"", "tick", "tick ", "tick 0", "tick -1", "tick 1 ", "tock 1", "1"}},
		{parsed(workload.ParseServing), "ready port=65535", "65535", []string{
			"", "ready", "ready port=", "ready port=0", "ready port=65536", "ready port=-1", "ready port=80\n", "port=80",
		}},
		{parsed(workload.ParseSolved), "solved 17", "17", []string{
			"", "solved", "solved 0", "solved -1", "solved 1 ", "moved 1", "solved 1e3", strings.Repeat("9", 400),
		}},
		{parsed(workload.ParseMoved), "moved 335544320", "335544320", []string{"", "solved 1"}},
		{parsed(workload.ParseForks), "forks 300 live 256 refused 12", "{300 256 12}", []string{
			"", "forks 1 live 1", "forks 1 live x refused 1", "forks 1 live 1 refused -1", "forks 1 live 1 refused 1 more",
		}},
	} {
		if got, err := tt.parse(tt.line); fmt.Sprint(got) != tt.want || err != nil {
			t.Errorf("%q is %v, %v; want %s", tt.line, got, err, tt.want)
		}
		for _, line := range tt.bad {
			if got, err := tt.parse(line); err == nil {
				t.Errorf("%q is %v beside %q", line, got, tt.line)
			}
		}
	}
}
