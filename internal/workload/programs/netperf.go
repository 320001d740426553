package programs

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

// Paths of netperf in the workload image.
const (
	Netperf   = "/usr/bin/netperf"
	Netserver = "/usr/bin/netserver"
)

var netperfTool = Tool{Name: "netperf", Packages: []string{"netperf"}, Files: []string{Netperf, Netserver}}

// NetserverPort is the port of the control connection. Data connections have the port after it.
const NetserverPort = 12865

// netserverData is the port of netserver's data connections.
func netserverData(server netip.AddrPort) string { return strconv.Itoa(int(server.Port()) + 1) }

// NetperfServer calls the server of netperf's tests. It serves one test after the other in its first process, until it is
// killed.
func NetperfServer() []string { return NetperfServe("-p", strconv.Itoa(NetserverPort)) }

// NetperfServe calls a server with further options.
func NetperfServe(options ...string) []string {
	return append([]string{Netserver, "-D", "-f", "-N", "-4"}, options...)
}

// NetperfTest is a test of netperf.
type NetperfTest string

// The tests. A transaction is a request of one byte and an answer of one byte.
const (
	TCPStream NetperfTest = "TCP_STREAM" // the client sends at full speed
	TCPMaerts NetperfTest = "TCP_MAERTS" // the server sends at full speed
	TCPRR     NetperfTest = "TCP_RR"     // transactions, one after the other, over one connection
	TCPCRR    NetperfTest = "TCP_CRR"    // transactions, each over a connection of its own
	UDPRR     NetperfTest = "UDP_RR"     // transactions in datagrams
)

// stream reports whether the test has a throughput of bytes instead of transactions.
func (t NetperfTest) stream() bool { return t == TCPStream || t == TCPMaerts }

// The values of netperf's report, in the requested order.
const (
	netperfProtocol   = "PROTOCOL"
	netperfDirection  = "DIRECTION"
	netperfElapsed    = "ELAPSED_TIME" // in s, with two decimals
	netperfUnits      = "THROUGHPUT_UNITS"
	netperfSent       = "LOCAL_BYTES_SENT"
	netperfReceived   = "LOCAL_BYTES_RECVD"
	netperfMean       = "MEAN_LATENCY" // in µs, like the following ones
	netperfP50        = "P50_LATENCY"
	netperfP99        = "P99_LATENCY"
	netperfThroughput = "THROUGHPUT"
)

func netperfKeys() []string {
	return []string{
		netperfProtocol, netperfDirection, netperfElapsed, netperfUnits, netperfSent, netperfReceived,
		netperfMean, netperfP50, netperfP99, netperfThroughput,
	}
}

// NetperfRun calls a test of some whole seconds. Values: Throughput in bit/s of payload, or in transactions a second. Tests of
// transactions also have MeanLatency, P50Latency and P99Latency, with percentiles in whole microseconds.
//
// The server continues for four seconds after a TCP_CRR, and netperf waits for it. NetperfCount does not have this wait.
func NetperfRun(test NetperfTest, server netip.AddrPort, d time.Duration) workload.Program {
	return netperfProgram(test, server, wholeSeconds(d), func(elapsed, _ float64) error {
		if !lasted(elapsed, d) {
			return fmt.Errorf("it covers %g s instead of %g; a send that writes less than it should ends the test, as on gVisor with the host's network", elapsed, d.Seconds())
		}
		return nil
	})
}

// NetperfCount is NetperfRun for a number of transactions instead of a time.
func NetperfCount(test NetperfTest, server netip.AddrPort, transactions int) workload.Program {
	return netperfProgram(test, server, strconv.Itoa(-transactions), func(_, done float64) error {
		if done != float64(transactions) {
			return fmt.Errorf("it covers %g transactions instead of %d", done, transactions)
		}
		return nil
	})
}

// netperfProgram calls a test with a length in netperf's format. check returns an error if the elapsed time, or the number of sent bytes
// or transactions, does not cover that length.
func netperfProgram(test NetperfTest, server netip.AddrPort, length string, check func(elapsed, done float64) error) workload.Program {
	return workload.Program{
		Args: []string{
			Netperf, "-4", "-H", server.Addr().String(), "-p", strconv.Itoa(int(server.Port())), "-t", string(test),
			"-l", length, "-P", "0", "--", "-P", "," + netserverData(server), "-k", strings.Join(netperfKeys(), ","),
		},
		Parse: reading("netperf's report", func(stdout []byte) (workload.Values, error) { return readNetperf(stdout, test, check) }),
	}
}

func readNetperf(stdout []byte, test NetperfTest, check func(elapsed, done float64) error) (workload.Values, error) {
	text, numbers, err := netperfFields(stdout)
	if err != nil {
		return nil, err
	}
	protocol, _, _ := strings.Cut(string(test), "_")
	direction := map[NetperfTest]string{
		TCPStream: "Send", TCPMaerts: "Receive", TCPRR: "Send|Recv", TCPCRR: "Connect|Send|Recv", UDPRR: "Send|Recv",
	}[test]
	units, scale := "Trans/s", 1.0
	if test.stream() {
		units, scale = "10^6bits/s", 1e6
	}
	if text[netperfProtocol] != protocol || text[netperfDirection] != direction || text[netperfUnits] != units {
		return nil, fmt.Errorf("it belongs to another test: %q", text)
	}
	elapsed, done := numbers[netperfElapsed], numbers[netperfSent]
	if err := check(elapsed, done); err != nil {
		return nil, err
	}
	values := workload.Values{"Throughput": numbers[netperfThroughput] * scale}
	switch test {
	case TCPMaerts:
		done = 8 * numbers[netperfReceived]
	case TCPStream:
		done *= 8
	case TCPRR, TCPCRR, UDPRR: // one byte for each transaction
	}
	// The time has only two decimals, and some tests count the transaction in flight at the end.
	if !(done > 0) || !near(values["Throughput"], done/elapsed, 0.03) && !near(values["Throughput"]*elapsed, done, 2/done) {
		return nil, fmt.Errorf("%g %s over %g s are not %g in all", numbers[netperfThroughput], units, elapsed, done)
	}
	if test.stream() {
		return values, nil
	}
	return transactions(values, done, elapsed, test, numbers)
}

// transactions adds the latencies of a test with a number of completed transactions.
func transactions(values workload.Values, done, elapsed float64, test NetperfTest, numbers map[string]float64) (workload.Values, error) {
	mean := numbers[netperfMean] / 1e6
	p50, p99 := numbers[netperfP50]/1e6, numbers[netperfP99]/1e6
	if !(mean > 0) || !(p50 > 0) || p99 < p50 {
		return nil, fmt.Errorf("the latencies are not in order: mean %g s, P50 %g s, P99 %g s", mean, p50, p99)
	}
	// One transaction follows the other, so their latencies fill the time, except the time of the transaction that the end of the
	// test interrupts. TCP repeats a lost packet after 200 ms or more, so that transaction can be long, and the rate includes it
	// rightly. UDP repeats nothing: after a lost datagram netperf waits until the end, and its rate covers that wait.
	filled := 0.9
	if test != UDPRR {
		filled = 0.5
	}
	if duration := done * mean; duration < filled*elapsed-mean || duration > 1.1*elapsed+2*mean {
		return nil, fmt.Errorf("%g transactions of %g s each do not fill %g s: a packet was lost, or the program stood still", done, mean, elapsed)
	}
	values["MeanLatency"], values["P50Latency"], values["P99Latency"] = mean, p50, p99
	return values, nil
}

// netperfLate is a line that netperf writes on a busy host, if its timer fires twice before it reacts. The reported time is
// nevertheless the elapsed time.
const netperfLate = "catcher: timer popped with times_up != 0"

// netperfFields reads lines of KEY=VALUE, with the requested keys in their order.
func netperfFields(stdout []byte) (text map[string]string, numbers map[string]float64, err error) {
	text, numbers = map[string]string{}, map[string]float64{}
	keys := netperfKeys()
	words := []string{netperfProtocol, netperfDirection, netperfUnits}
	lines, err := completeLines(stdout)
	if err != nil {
		return nil, nil, err
	}
	for _, line := range lines {
		if line == netperfLate {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if len(keys) == 0 || !ok || name != keys[0] {
			return nil, nil, fmt.Errorf("%q is not one of the values %q", workload.Excerpt(line), keys)
		}
		keys = keys[1:]
		if slices.Contains(words, name) {
			text[name] = workload.Excerpt(value)
			continue
		}
		n, err := readDecimal(value)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		numbers[name] = n
	}
	if len(keys) > 0 {
		return nil, nil, fmt.Errorf("%w: %q are missing", workload.ErrCutOff, keys)
	}
	return text, numbers, nil
}

// NetperfLines calls a test of transactions that reports its progress at an interval for NetperfReports.
func NetperfLines(test NetperfTest, server netip.AddrPort, d, interval time.Duration) []string {
	return []string{
		Netperf, "-4", "-H", server.Addr().String(), "-p", strconv.Itoa(int(server.Port())), "-t", string(test),
		"-l", wholeSeconds(d), "-P", "0", "-D", strconv.FormatFloat(interval.Seconds(), 'f', 3, 64),
		"--", "-P", "," + netserverData(server), "-k", netperfThroughput,
	}
}

// NetperfReports reads the reports of the program that NetperfLines calls.
type NetperfReports struct{ rate float64 }

// Line reads a line without its end. With the last line of a report it returns true, the rate in the interval, per second, and
// the length of the interval by netperf's clock.
func (r *NetperfReports) Line(line string) (rate, seconds float64, ok bool, err error) {
	name, value, found := strings.Cut(line, "=")
	name, _, indexed := strings.Cut(name, "[")
	if !found || !indexed || !strings.HasPrefix(name, "NETPERF_") {
		if line == netperfLate {
			return 0, 0, false, nil
		}
		return 0, 0, false, fmt.Errorf("read netperf's progress: %q", workload.Excerpt(line))
	}
	switch name {
	case "NETPERF_INTERIM_RESULT":
		r.rate, err = readDecimal(value)
	case "NETPERF_INTERVAL":
		seconds, err = readDecimal(value)
		ok = err == nil && seconds > 0
	case "NETPERF_UNITS":
		if value != "Trans/s" {
			err = fmt.Errorf("read netperf's progress: the unit is %q", workload.Excerpt(value))
		}
	}
	return r.rate, seconds, ok, err
}
