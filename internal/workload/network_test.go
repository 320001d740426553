package workload_test

import (
	"maps"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

// The captures cover a second between two network namespaces with a veth pair. "german" is with
// LC_ALL=de_DE.UTF-8, whose numbers have commas. "few" is at 420 Mbit/s, by tc.

var (
	peer      = netip.MustParseAddrPort("10.77.0.1:5201")
	webServer = netip.MustParseAddrPort("10.77.0.1:8080")
)

var (
	sends    = workload.IperfTest{Server: peer, Duration: time.Second, Omit: time.Second}
	receives = workload.IperfTest{Server: peer, Duration: time.Second, Omit: time.Second, Reverse: true}
)

func TestIperfCaptured(t *testing.T) {
	for file, tt := range map[string]struct {
		test workload.IperfTest
		want workload.Values
	}{
		"iperf3-send.json":    {sends, workload.Values{"BitsPerSecond": 13269210547.321608, "Retransmits": 293 / 1.002101}},
		"iperf3-receive.json": {receives, workload.Values{"BitsPerSecond": 13831605990.168348, "Retransmits": 492 / 1.000309}},
	} {
		got, err := tt.test.Program().Parse(captured(t, file))
		checkValues(t, file, got, err, tt.want)
		if congestion, err := workload.IperfCongestion(captured(t, file)); err != nil || congestion != "bbr" {
			t.Errorf("%s: congestion control %q, %v", file, congestion, err)
		}
	}
	if got, err := sends.Program().Parse(captured(t, "iperf3-german.json")); err != nil || !(got["BitsPerSecond"] > 1e9) {
		t.Errorf("in a German locale: %v, %v", got, err)
	}
}

func TestIperfRefuses(t *testing.T) {
	good := string(captured(t, "iperf3-send.json"))
	longer := sends
	longer.Duration = 2 * time.Second
	for _, tt := range []struct {
		what   string
		test   workload.IperfTest
		output string
		reason string
	}{
		{"no server", sends, string(captured(t, "iperf3-refused.json")), "Connection refused"},
		{"the server was killed", sends, string(captured(t, "iperf3-server-killed.json")), "the server has terminated"},
		{"that without its error", sends, strings.Replace(string(captured(t, "iperf3-server-killed.json")), `"error"`, `"terror"`, 1), "the sender's sum: it covers"},
		{"the other direction", receives, good, "another test"},
		{"another time", longer, good, "another test"},
		{"cut off", sends, good[:len(good)-3], "cut off"},
		{"nothing", sends, "", "cut off"},
		{"commas", sends, strings.ReplaceAll(good, "13269210547.321608", "13269210547,321608"), "report in JSON"},
		{"twice", sends, good + good, "report in JSON"},
		{"no bytes", sends, strings.ReplaceAll(good, `"bytes":	1658191872`, `"bytes": 0`), "nothing was transferred"},
		{"another rate", sends, strings.ReplaceAll(good, "13269210547.321608", "1326921054.7321608"), "are not"},
		{"half of it arrived", sends, strings.NewReplacer("1658191872", "658191872", "13269210547.321608", "5266993612.4").Replace(good), "were received"},
		{"less than no retransmits", sends, strings.ReplaceAll(good, `"retransmits":	293`, `"retransmits": -1`), "retransmits"},
		{"no sums", sends, strings.ReplaceAll(good, "sum_received", "sum_perceived"), "missing"},
		{"several streams", sends, strings.Replace(good, `"num_streams":	1`, `"num_streams": 8`, 1), "another test"},
	} {
		if got, err := tt.test.Program().Parse([]byte(tt.output)); err == nil || !strings.Contains(err.Error(), tt.reason) || got != nil {
			t.Errorf("%s is read as %+v, %v; want %q", tt.what, got, err, tt.reason)
		}
	}
}

func FuzzIperf(f *testing.F) {
	for _, file := range []string{"iperf3-send.json", "iperf3-receive.json", "iperf3-refused.json", "iperf3-server-killed.json"} {
		f.Add(capturedFor(f, file), strings.Contains(file, "receive"))
	}
	f.Fuzz(func(t *testing.T, output []byte, reverse bool) {
		test := sends
		test.Reverse = reverse
		got, err := test.Program().Parse(output)
		if err == nil && !(finite(got["BitsPerSecond"]) && got["BitsPerSecond"] > 0 && finite(got["Retransmits"]) && got["Retransmits"] >= 0) {
			t.Errorf("%q is read as %v", output, got)
		}
	})
}

func TestNetperfCaptured(t *testing.T) {
	for file, tt := range map[string]struct {
		test workload.NetperfTest
		want workload.Values
	}{
		"netperf-tcp-stream.txt": {workload.TCPStream, workload.Values{"Throughput": 6012.38e6}},
		"netperf-tcp-maerts.txt": {workload.TCPMaerts, workload.Values{"Throughput": 6078.58e6}},
		"netperf-tcp-rr.txt":     {workload.TCPRR, workload.Values{"Throughput": 12150.73, "MeanLatency": 82.17e-6, "P50Latency": 81e-6, "P99Latency": 131e-6}},
		"netperf-udp-rr.txt":     {workload.UDPRR, workload.Values{"Throughput": 63491.40, "MeanLatency": 15.7e-6, "P50Latency": 15e-6, "P99Latency": 24e-6}},
		"netperf-german.txt":     {workload.TCPRR, workload.Values{"Throughput": 59687.18, "MeanLatency": 16.71e-6, "P50Latency": 15e-6, "P99Latency": 44e-6}},
	} {
		got, err := workload.NetperfRun(tt.test, peer, time.Second).Parse(captured(t, file))
		checkValues(t, file, got, err, tt.want)
	}
	connections := workload.NetperfCount(workload.TCPCRR, peer, 2430)
	got, err := connections.Parse(captured(t, "netperf-tcp-crr.txt"))
	checkValues(t, "a count", got, err, workload.Values{"Throughput": 10681.37, "MeanLatency": 93.55e-6, "P50Latency": 87e-6, "P99Latency": 233e-6})
}

// On a busy host netperf's timer fires twice. The result is the same.
func TestNetperfToldTwice(t *testing.T) {
	late := append([]byte("catcher: timer popped with times_up != 0\n"), captured(t, "netperf-tcp-maerts.txt")...)
	got, err := workload.NetperfRun(workload.TCPMaerts, peer, time.Second).Parse(late)
	checkValues(t, "told twice", got, err, workload.Values{"Throughput": 6078.58e6})
}

// TCP repeats a lost packet. If the test ends before the repetition, the transaction counts in the elapsed time only.
func TestNetperfEndsInLossOverTCP(t *testing.T) {
	report := strings.Replace(string(captured(t, "netperf-tcp-rr.txt")), "MEAN_LATENCY=82.17", "MEAN_LATENCY=69.70", 1)
	got, err := workload.NetperfRun(workload.TCPRR, peer, time.Second).Parse([]byte(report))
	want := workload.Values{"Throughput": 12150.73, "MeanLatency": 69.7e-6, "P50Latency": 81e-6, "P99Latency": 131e-6}
	checkValues(t, "a report of TCP_RR with a loss at its end", got, err, want)
}

func TestNetperfRefuses(t *testing.T) {
	stream, rr := string(captured(t, "netperf-tcp-stream.txt")), string(captured(t, "netperf-tcp-rr.txt"))
	for _, tt := range []struct {
		what   string
		test   workload.NetperfTest
		output string
		reason string
	}{
		{"no server", workload.TCPRR, string(captured(t, "netperf-refused.txt")), "not one of the values"},
		{"a lost datagram", workload.UDPRR, string(captured(t, "netperf-lost.txt")), "a packet was lost"},
		{"a mean in another unit", workload.TCPRR, strings.Replace(rr, "82.17", "8.217", 1), "do not fill"},
		{"nothing", workload.TCPRR, "", "cut off"},
		{"another test", workload.UDPRR, rr, "another test"},
		{"a stream for transactions", workload.TCPRR, stream, "another test"},
		{"the other direction", workload.TCPMaerts, stream, "another test"},
		{"a line is missing", workload.TCPRR, strings.Replace(rr, "P99_LATENCY=131\n", "", 1), "not one of the values"},
		{"a line too many", workload.TCPRR, rr + "THROUGHPUT=1\n", "not one of the values"},
		{"commas", workload.TCPRR, strings.Replace(rr, "12150.73", "12150,73", 1), "not a number"},
		{"not a number", workload.TCPRR, strings.Replace(rr, "12150.73", "nan", 1), "not a number"},
		{"another unit", workload.TCPStream, strings.Replace(stream, "10^6bits/s", "10^3bits/s", 1), "another test"},
		{"too short", workload.TCPRR, strings.Replace(rr, "ELAPSED_TIME=1.00", "ELAPSED_TIME=0.50", 1), "instead of 1; a send that writes less than it should ends the test"},
		{"a rate that the count denies", workload.TCPRR, strings.Replace(rr, "12150.73", "21150.73", 1), "are not"},
		{"nothing sent", workload.TCPStream, strings.Replace(stream, "751976448", "0", 1), "are not"},
		{"latencies in disorder", workload.TCPRR, strings.Replace(rr, "P99_LATENCY=131", "P99_LATENCY=13", 1), "not in order"},
		{"flood", workload.TCPRR, strings.Repeat(rr, 1000), "not one of the values"},
	} {
		got, err := workload.NetperfRun(tt.test, peer, time.Second).Parse([]byte(tt.output))
		if err == nil || !strings.Contains(err.Error(), tt.reason) || got != nil {
			t.Errorf("%s is read as %v, %v; want %q", tt.what, got, err, tt.reason)
		}
	}
	refusesCut(t, rr, func(s []byte) error {
		_, err := workload.NetperfRun(workload.TCPRR, peer, time.Second).Parse(s)
		return err
	})
	fewer := workload.NetperfCount(workload.TCPCRR, peer, 2431)
	if got, err := fewer.Parse(captured(t, "netperf-tcp-crr.txt")); err == nil || !strings.Contains(err.Error(), "2430 transactions instead of 2431") {
		t.Errorf("fewer transactions than asked for are read as %v, %v", got, err)
	}
}

func FuzzNetperf(f *testing.F) {
	tests := []workload.NetperfTest{workload.TCPStream, workload.TCPMaerts, workload.TCPRR, workload.TCPCRR, workload.UDPRR}
	for i, file := range []string{
		"netperf-tcp-stream.txt", "netperf-tcp-maerts.txt", "netperf-tcp-rr.txt", "netperf-tcp-crr.txt", "netperf-udp-rr.txt", "netperf-refused.txt",
	} {
		f.Add(capturedFor(f, file), i)
	}
	f.Fuzz(func(t *testing.T, output []byte, i int) {
		test := tests[uint(i)%uint(len(tests))]
		got, err := workload.NetperfRun(test, peer, time.Second).Parse(output)
		checkFuzzed(t, output, got, err)
		got, err = workload.NetperfCount(test, peer, 2430).Parse(output)
		checkFuzzed(t, output, got, err)
	})
}

// abPosts is the run of the capture ab-post.txt.
func abPosts() workload.Program {
	return workload.ABPost(webServer, workload.NginxPost, len(workload.NginxAnswer), "/data/sent", 16<<10, time.Second)
}

// The bytes of the bodies must have been sent, and only by POST.
func TestABPostRefuses(t *testing.T) {
	posted := string(captured(t, "ab-post.txt"))
	const sent = "Total body sent:        153875744\n"
	for _, tt := range []struct{ what, old, replacement string }{
		{"a request without its body", sent, "Total body sent:        152371199\n"},
		{"no bodies", sent, ""},
		{"no number", sent, "Total body sent:        many\n"},
	} {
		changed := strings.Replace(posted, tt.old, tt.replacement, 1)
		if changed == posted {
			t.Fatalf("the capture has no %q", tt.old)
		}
		if got, err := abPosts().Parse([]byte(changed)); err == nil || !strings.Contains(err.Error(), "od") || got != nil {
			t.Errorf("%s is read as %v, %v", tt.what, got, err)
		}
	}
	got := strings.Replace(string(captured(t, "ab-small.txt")), "HTML transferred:", sent+"HTML transferred:", 1)
	if values, err := workload.ABRun(webServer, "/small", 1, time.Second).Parse([]byte(got)); err == nil {
		t.Errorf("GET with bodies is read as %v", values)
	}
	if args := strings.Join(abPosts().Args, " "); !strings.Contains(args, " -p /data/sent -T ") || !strings.HasSuffix(args, " http://10.77.0.1:8080/post") {
		t.Errorf("ab is called as %q", args)
	}
}

func TestABCaptured(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		file, path string
		length     int
		want       workload.Values
	}{
		{"ab-small.txt", "/small", 1, workload.Values{"Latency": 1 / 29949.55, "P50Latency": 21e-6, "P99Latency": 89e-6, "BitsPerSecond": 8 * 29949.55}},
		{"ab-few.txt", "/large", mib, workload.Values{"Latency": 1 / 42.66, "P50Latency": 20890e-6, "BitsPerSecond": 8 * mib * 42.66}},
		{"ab-large.txt", "/large", mib, workload.Values{"Latency": 1 / 1383.54, "P50Latency": 519e-6, "P99Latency": 2796e-6, "BitsPerSecond": 8 * mib * 1383.54}},
	} {
		got, err := workload.ABRun(webServer, tt.path, tt.length, time.Second).Parse(captured(t, tt.file))
		checkValues(t, tt.file, got, err, tt.want)
	}
	got, err := abPosts().Parse(captured(t, "ab-post.txt"))
	checkValues(t, "ab-post.txt", got, err, workload.Values{"Latency": 1 / 9297.78, "P50Latency": 25e-6, "P99Latency": 2108e-6, "BitsPerSecond": 8 * 16384 * 9297.78})
	if got, err := workload.ABRun(webServer, "/small", 1, time.Second).Parse(captured(t, "ab-german.txt")); err != nil || !(got["Latency"] > 10e-6) {
		t.Errorf("in a German locale it is read as %v, %v", got, err)
	}
}

// A percentile is one of a request: ab has a line, but no time, for those that there are too few requests for.
func TestABOfFewRequests(t *testing.T) {
	for requests, want := range map[string][]string{
		"1": {"BitsPerSecond", "Latency"}, "2": {"BitsPerSecond", "Latency", "P50Latency"}, "50": {"BitsPerSecond", "Latency", "P50Latency"},
		"51": {"BitsPerSecond", "Latency", "P50Latency", "P99Latency"},
	} {
		few := strings.NewReplacer("29949.55", requests, "29950", requests).Replace(string(captured(t, "ab-small.txt")))
		got, err := workload.ABRun(webServer, "/small", 1, time.Second).Parse([]byte(few))
		if names := slices.Sorted(maps.Keys(got)); err != nil || !slices.Equal(names, want) {
			t.Errorf("of %s requests there are %q, %v; want %q", requests, names, err, want)
		}
	}
}

func TestABRefuses(t *testing.T) {
	small := string(captured(t, "ab-small.txt"))
	parse := func(s []byte) (workload.Values, error) {
		return workload.ABRun(webServer, "/small", 1, time.Second).Parse(s)
	}
	change := func(old, replacement string) string {
		changed := strings.Replace(small, old, replacement, 1)
		if changed == small {
			t.Fatalf("the capture has no %q", old)
		}
		return changed
	}
	for _, tt := range []struct{ what, output, reason string }{
		{"no server", string(captured(t, "ab-refused.txt")), "cut off"},
		{"the server was killed", string(captured(t, "ab-killed.txt")), "cut off"},
		{"interrupted", string(captured(t, "ab-interrupted.txt")), "it covers"},
		{"connections that were not kept", string(captured(t, "ab-closed.txt")), "the connection was kept for only 0 of"},
		{"a file that is not there", strings.ReplaceAll(string(captured(t, "ab-404.txt")), "/missing", "/small"), "Non-2xx"},
		{"another file", string(captured(t, "ab-large.txt")), "it belongs to"},
		{"nothing", "", "cut off"},
		{"commas", change("29949.55", "29949,55"), "not a number"},
		{"failures", change("Failed requests:        0", "Failed requests:        1"), "1 requests failed"},
		{"write errors", change("Keep-Alive requests:", "Write errors:           3\nKeep-Alive requests:"), "Write errors"},
		{"a rate that the count denies", change("29949.55", "9949.55"), "are not"},
		{"answers that are too short", change("HTML transferred:       29950", "HTML transferred:       29949"), "are not"},
		{"no rate", change("Requests per second", "Reguests per second"), "it has no Requests per second"},
		{"another unit", change("Time taken for tests:   1.000 seconds", "Time taken for tests:   1.000 minutes"), "not a number"},
		{"a per cent is missing", change("\n50,", "\n51,"), "not line 50"},
		{"times in disorder", change("\n0,", "\n0,9"), "not in order"},
	} {
		got, err := parse([]byte(tt.output))
		if err == nil || !strings.Contains(err.Error(), tt.reason) || got != nil {
			t.Errorf("%s is read as %v, %v; want %q", tt.what, got, err, tt.reason)
		}
	}
	refusesCut(t, small, func(s []byte) error { _, err := parse(s); return err })
}

func FuzzAB(f *testing.F) {
	for _, file := range []string{"ab-small.txt", "ab-large.txt", "ab-few.txt", "ab-404.txt", "ab-closed.txt", "ab-killed.txt", "ab-post.txt"} {
		f.Add(capturedFor(f, file))
	}
	f.Fuzz(func(t *testing.T, output []byte) {
		got, err := workload.ABRun(webServer, "/small", 1, time.Second).Parse(output)
		checkFuzzed(t, output, got, err)
		got, err = abPosts().Parse(output)
		checkFuzzed(t, output, got, err)
	})
}

// checkValues compares parsed values with the values in the capture.
func checkValues(t *testing.T, what string, got workload.Values, err error, want workload.Values) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	same := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }
	if !maps.EqualFunc(got, want, same) {
		t.Errorf("%s is read as %v, want %v", what, got, want)
	}
}

// checkFuzzed checks that whatever is accepted is a result.
func checkFuzzed(t *testing.T, output []byte, got workload.Values, err error) {
	t.Helper()
	if err != nil {
		return
	}
	for name, v := range got {
		if !finite(v) || v < 0 || v == 0 && !strings.HasPrefix(name, "P") {
			t.Errorf("%q is read as %s = %v", output, name, v)
		}
	}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// refusesCut checks that output is refused wherever it is cut off.
func refusesCut(t *testing.T, output string, read func([]byte) error) {
	t.Helper()
	for end := range len(output) {
		if err := read([]byte(output[:end])); err == nil {
			t.Errorf("cut off after %d bytes (%q) it is read", end, output[max(0, end-20):end])
		}
	}
}

func capturedFor(f *testing.F, file string) []byte {
	f.Helper()
	output, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		f.Fatal(err)
	}
	return output
}

// The settings are in the arguments of the programs.
func TestNetworkArguments(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{receives.Program().Args, "--client 10.77.0.1 --port 5201 --json --time 1 --omit 1 --interval 0"},
		{receives.Program().Args, " --reverse"},
		{workload.NetperfRun(workload.TCPRR, peer, 3*time.Second).Args, "-H 10.77.0.1 -p 5201 -t TCP_RR -l 3 "},
		{workload.NetperfCount(workload.TCPCRR, peer, 2430).Args, "-H 10.77.0.1 -p 5201 -t TCP_CRR -l -2430 "},
		{workload.ABRun(webServer, "/small", 1, 2*time.Second).Args, "-t 2 -n 200000 "},
		{workload.ABRun(webServer, "/small", 1, 2*time.Second).Args, " http://10.77.0.1:8080/small"},
	} {
		if got := strings.Join(tt.args, " "); !strings.Contains(got, tt.want) {
			t.Errorf("%q lacks %q", got, tt.want)
		}
	}
	if slices.Contains(sends.Program().Args, "--reverse") {
		t.Error("a test of sending has --reverse")
	}
}
