package workload

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Paths of netperf in the workload image.
const (
	Netperf   = "/usr/bin/netperf"
	Netserver = "/usr/bin/netserver"
)

var netperfTool = Tool{Name: "netperf", Packages: []string{"netperf"}, Files: []string{Netperf, Netserver}}

// Ports of netserver.
const (
	NetserverPort     = 12865 // of the control connection
	netserverDataPort = 12866
)

// NetperfServer calls the server of netperf's tests, which serves one after the other in its first process and goes on until
// it is killed.
func NetperfServer() []string {
	return []string{Netserver, "-D", "-f", "-N", "-4", "-p", strconv.Itoa(NetserverPort)}
}

// NetperfTest is what netperf measures.
type NetperfTest string

// The tests there are. A transaction is a request of one byte and an answer of one byte.
const (
	TCPStream NetperfTest = "TCP_STREAM" // the client sends as fast as it goes
	TCPMaerts NetperfTest = "TCP_MAERTS" // the server does
	TCPRR     NetperfTest = "TCP_RR"     // transactions, one after the other, over one connection
	TCPCRR    NetperfTest = "TCP_CRR"    // transactions, each over a connection of its own
	UDPRR     NetperfTest = "UDP_RR"     // transactions in datagrams
)

// stream tells whether the test has a throughput of bytes instead of transactions.
func (t NetperfTest) stream() bool { return t == TCPStream || t == TCPMaerts }

// The values that netperf gives, in the order in which it is asked for them.
const (
	netperfProtocol   = "PROTOCOL"
	netperfDirection  = "DIRECTION"
	netperfElapsed    = "ELAPSED_TIME" // in s, with two decimals
	netperfUnits      = "THROUGHPUT_UNITS"
	netperfSent       = "LOCAL_BYTES_SENT"
	netperfReceived   = "LOCAL_BYTES_RECVD"
	netperfMean       = "MEAN_LATENCY" // in µs, as those that follow
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

// NetperfRun calls a test of some whole seconds. Values: Throughput in bit/s of payload, or in transactions a second; of the latter
// also MeanLatency, P50Latency and P99Latency, the percentiles as whole microseconds.
//
// The server goes on for four seconds after a TCP_CRR, and netperf waits for it: NetperfCount has no end to wait for.
func NetperfRun(test NetperfTest, server netip.AddrPort, d time.Duration) Program {
	return netperfProgram(test, server, wholeSeconds(d), func(elapsed, _ float64) error {
		if !lasted(elapsed, d) {
			return fmt.Errorf("it is over %g s instead of %g", elapsed, d.Seconds())
		}
		return nil
	})
}

// NetperfCount is NetperfRun for so many transactions, however long they take.
func NetperfCount(test NetperfTest, server netip.AddrPort, transactions int) Program {
	return netperfProgram(test, server, strconv.Itoa(-transactions), func(_, done float64) error {
		if done != float64(transactions) {
			return fmt.Errorf("it is over %g transactions instead of %d", done, transactions)
		}
		return nil
	})
}

// netperfProgram calls a test of a length as netperf spells it. whole tells whether a report of a time and of what was sent, or done, is
// one over all of that length.
func netperfProgram(test NetperfTest, server netip.AddrPort, length string, whole func(elapsed, done float64) error) Program {
	return Program{
		Args: []string{
			Netperf, "-4", "-H", server.Addr().String(), "-p", strconv.Itoa(int(server.Port())), "-t", string(test),
			"-l", length, "-P", "0", "--", "-P", "," + strconv.Itoa(netserverDataPort), "-k", strings.Join(netperfKeys(), ","),
		},
		Parse: func(stdout []byte) (Values, error) {
			values, err := readNetperf(stdout, test, whole)
			if err != nil {
				return nil, fmt.Errorf("read netperf's report: %w", err)
			}
			return values, nil
		},
	}
}

func readNetperf(stdout []byte, test NetperfTest, whole func(elapsed, done float64) error) (Values, error) {
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
		return nil, fmt.Errorf("it is that of another test: %q", text)
	}
	elapsed, done := numbers[netperfElapsed], numbers[netperfSent]
	if err := whole(elapsed, done); err != nil {
		return nil, err
	}
	values := Values{"Throughput": numbers[netperfThroughput] * scale}
	switch test {
	case TCPMaerts:
		done = 8 * numbers[netperfReceived]
	case TCPStream:
		done *= 8
	case TCPRR, TCPCRR, UDPRR: // of which each sends one byte
	}
	// The time has two decimals only, and what was under way at the end is counted by some.
	if !(done > 0) || !near(values["Throughput"], done/elapsed, 0.03) && !near(values["Throughput"]*elapsed, done, 2/done) {
		return nil, fmt.Errorf("%g %s over %g s are not %g in all", numbers[netperfThroughput], units, elapsed, done)
	}
	if test.stream() {
		return values, nil
	}
	return transactions(values, done, elapsed, numbers)
}

// transactions adds the latencies of a test that did so many of them.
func transactions(values Values, done, elapsed float64, numbers map[string]float64) (Values, error) {
	mean := numbers[netperfMean] / 1e6
	p50, p99 := numbers[netperfP50]/1e6, numbers[netperfP99]/1e6
	if !(mean > 0) || !(p50 > 0) || p99 < p50 {
		return nil, fmt.Errorf("the latencies are not in order: mean %g s, P50 %g s, P99 %g s", mean, p50, p99)
	}
	// One transaction follows the other, so that their latencies fill the time. When a datagram gets lost netperf waits for the
	// answer to the end, and the rate is that of the time before over the whole.
	if busy := done * mean; busy < 0.9*elapsed-mean || busy > 1.1*elapsed+2*mean {
		return nil, fmt.Errorf("%g transactions of %g s each do not fill %g s: a packet was lost, or the program stood still", done, mean, elapsed)
	}
	values["MeanLatency"], values["P50Latency"], values["P99Latency"] = mean, p50, p99
	return values, nil
}

// netperfLate is what netperf says when the end of its time is told a second time before it has seen the first: on a busy
// host. The time that it reports is the one that passed.
const netperfLate = "catcher: timer popped with times_up != 0"

// netperfFields reads lines of KEY=VALUE, which are those asked for in their order.
func netperfFields(stdout []byte) (text map[string]string, numbers map[string]float64, err error) {
	text, numbers = map[string]string{}, map[string]float64{}
	keys := netperfKeys()
	words := []string{netperfProtocol, netperfDirection, netperfUnits}
	for line := range bytes.Lines(stdout) {
		content, complete := strings.CutSuffix(string(line), "\n")
		if content == netperfLate && complete {
			continue
		}
		name, value, ok := strings.Cut(content, "=")
		if len(keys) == 0 || !ok || !complete || name != keys[0] {
			return nil, nil, fmt.Errorf("%.80q is none of the values that follow: %q", content, keys)
		}
		keys = keys[1:]
		if slices.Contains(words, name) {
			text[name] = cut(value)
			continue
		}
		n, err := positive(value)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		numbers[name] = n
	}
	if len(keys) > 0 {
		return nil, nil, fmt.Errorf("it is cut off: %q are missing", keys)
	}
	return text, numbers, nil
}

// maxNumber is far above all that programs can find, and far below what computing with it could make infinite.
const maxNumber = 1e18

// positive reads a number from 0 to maxNumber in plain decimals with a point.
func positive(s string) (float64, error) {
	plain := func(r rune) bool { return r >= '0' && r <= '9' || r == '.' }
	if s == "" || strings.TrimFunc(s, plain) != "" {
		return 0, fmt.Errorf("%.80q is no number from 0", s)
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, fmt.Errorf("%.80q is no number from 0", s)
	}
	if n > maxNumber {
		return 0, errors.New("the number is too large to be one")
	}
	return n, nil
}
