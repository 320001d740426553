package programs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

// Iperf is the path of iperf3 in the workload image.
const Iperf = "/usr/bin/iperf3"

var iperfTool = Tool{Name: "iperf3", Packages: []string{"iperf3"}, Files: []string{Iperf}}

// IperfPort is the port of iperf3's server.
const IperfPort = 5201

// IperfListening begins the first line of iperf3's server, which it writes when it listens.
const IperfListening = "-----"

// IperfServer calls a server for one test. It exits with code 0 after the test.
func IperfServer() []string { return IperfServe("--port", strconv.Itoa(IperfPort)) }

// IperfServe calls a server for one test with further options.
func IperfServe(options ...string) []string {
	return append([]string{Iperf, "--server", "--one-off", "--forceflush"}, options...)
}

// IperfTest is one test of iperf3: one TCP stream at full speed.
type IperfTest struct {
	Server netip.AddrPort
	// Omit is the time for the start of the stream, and Duration counts from its end. Both are whole seconds.
	Duration, Omit time.Duration
	// Reverse lets the server send instead of the client.
	Reverse bool
}

// Program calls the client. Values: BitsPerSecond, the received payload by the receiver's clock; and Retransmits, the
// segments a second that the sender's kernel sent again. A sandbox that does not count them reports 0.
func (t IperfTest) Program() workload.Program {
	args := []string{
		Iperf, "--client", t.Server.Addr().String(), "--port", strconv.Itoa(int(t.Server.Port())), "--json",
		"--time", wholeSeconds(t.Duration), "--omit", wholeSeconds(t.Omit), "--interval", "0", "--connect-timeout", "10000",
	}
	if t.Reverse {
		args = append(args, "--reverse")
	}
	return workload.Program{Args: args, Parse: reading("iperf3's report", t.read)}
}

// IperfCongestion returns the sender's congestion control from the client's report. It is empty if it is unknown.
func IperfCongestion(stdout []byte) (string, error) {
	out, err := readIperf(stdout)
	return out.End.Congestion, err
}

// iperfSum is the sum over the streams, as one side measured it.
type iperfSum struct {
	Seconds       float64 `json:"seconds"`
	Bytes         float64 `json:"bytes"`
	BitsPerSecond float64 `json:"bits_per_second"`
	Retransmits   float64 `json:"retransmits"`
}

// iperfOutput has the fields of the client's JSON that are used.
type iperfOutput struct {
	Error string `json:"error"`
	Start struct {
		Test struct {
			Protocol string `json:"protocol"`
			Streams  int    `json:"num_streams"`
			Omit     int    `json:"omit"`
			Duration int    `json:"duration"`
			Reverse  int    `json:"reverse"`
		} `json:"test_start"`
	} `json:"start"`
	End struct {
		Sent       *iperfSum `json:"sum_sent"`
		Received   *iperfSum `json:"sum_received"`
		Congestion string    `json:"sender_tcp_congestion"`
	} `json:"end"`
}

func readIperf(stdout []byte) (out iperfOutput, err error) {
	if err := unmarshal(stdout, &out); err != nil {
		return iperfOutput{}, err
	}
	if out.Error != "" {
		return iperfOutput{}, fmt.Errorf("iperf3 reports an error: %.200q", out.Error)
	}
	if len(out.End.Congestion) > workload.MaxName {
		return iperfOutput{}, fmt.Errorf("%q is not a congestion control", workload.Excerpt(out.End.Congestion))
	}
	return out, nil
}

// unmarshal decodes a report that is one JSON document.
func unmarshal(stdout []byte, report any) error {
	d := json.NewDecoder(bytes.NewReader(stdout))
	switch err := d.Decode(report); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return workload.ErrCutOff
	case err != nil:
		return fmt.Errorf("it is not a report in JSON: %w", err)
	}
	if rest := strings.TrimSpace(string(stdout[d.InputOffset():])); rest != "" {
		return fmt.Errorf("it is not one report in JSON: %q follows", workload.Excerpt(rest))
	}
	return nil
}

// read refuses the report of another test or of a test that ended early, and sums that contradict each other.
func (t IperfTest) read(stdout []byte) (workload.Values, error) {
	out, err := readIperf(stdout)
	if err != nil {
		return nil, err
	}
	reverse := 0
	if t.Reverse {
		reverse = 1
	}
	ran := out.Start.Test
	if ran.Protocol != "TCP" || ran.Streams != 1 || ran.Reverse != reverse ||
		float64(ran.Duration) != t.Duration.Seconds() || float64(ran.Omit) != t.Omit.Seconds() {
		return nil, fmt.Errorf("it belongs to another test: %+v", ran)
	}
	sender, receiver := out.End.Sent, out.End.Received
	if sender == nil || receiver == nil {
		return nil, errors.New("the sums of the end are missing")
	}
	for _, side := range []struct {
		name string
		*iperfSum
	}{{"sender", sender}, {"receiver", receiver}} {
		if err := side.check(t.Duration); err != nil {
			return nil, fmt.Errorf("the %s's sum: %w", side.name, err)
		}
	}
	// The two sides count at different moments, so some bytes of one may be missing on the other.
	if r := receiver.Bytes / sender.Bytes; !(r > 0.5 && r < 1.5) {
		return nil, fmt.Errorf("%g bytes were received of %g that were sent", receiver.Bytes, sender.Bytes)
	}
	return workload.Values{"BitsPerSecond": receiver.BitsPerSecond, "Retransmits": sender.Retransmits / sender.Seconds}, nil
}

// check returns an error if a test of the time d cannot have the sum. A test that was cut short has a meaningless time.
func (s *iperfSum) check(d time.Duration) error {
	switch {
	case !(s.Bytes > 0) || s.Retransmits < 0:
		return fmt.Errorf("nothing was transferred (%g bytes, %g retransmits)", s.Bytes, s.Retransmits)
	case !lasted(s.Seconds, d):
		return fmt.Errorf("it covers %g s instead of %g", s.Seconds, d.Seconds())
	case !near(s.BitsPerSecond, 8*s.Bytes/s.Seconds, 0.01):
		return fmt.Errorf("%g bytes in %g s are not %g bit/s", s.Bytes, s.Seconds, s.BitsPerSecond)
	}
	return nil
}

// IperfLines calls a client that sends one stream for a time, and reports its progress at an interval for ParseIperfLine.
func IperfLines(server netip.AddrPort, d, interval time.Duration) []string {
	return []string{
		Iperf, "--client", server.Addr().String(), "--port", strconv.Itoa(int(server.Port())), "--forceflush", "--format", "k",
		"--time", wholeSeconds(d), "--interval", strconv.FormatFloat(interval.Seconds(), 'f', 1, 64), "--connect-timeout", "10000",
	}
}

// iperfInterval is a line of the progress of one stream.
var iperfInterval = regexp.MustCompile(`^\[ *\d+\] +([0-9.]+)-([0-9.]+) +sec +[0-9.]+ .?Bytes +([0-9.]+) Kbits/sec`)

// ParseIperfLine reads a line of the program that IperfLines calls, without its end. It returns the bytes of an interval, and
// false for other lines.
func ParseIperfLine(line string) (bytes float64, ok bool, err error) {
	if strings.HasPrefix(line, "iperf3: error") {
		return 0, false, fmt.Errorf("iperf3 reports an error: %.200q", line)
	}
	fields := iperfInterval.FindStringSubmatch(line)
	if fields == nil {
		return 0, false, nil
	}
	var numbers [3]float64
	for i := range numbers {
		if numbers[i], err = readDecimal(fields[i+1]); err != nil {
			return 0, false, fmt.Errorf("read iperf3's progress: %w", err)
		}
	}
	return numbers[2] * 1000 / 8 * (numbers[1] - numbers[0]), true, nil
}
