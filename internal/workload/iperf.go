package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"time"
)

// Iperf is the path of iperf3 in the workload image.
const Iperf = "/usr/bin/iperf3"

var iperfTool = Tool{Name: "iperf3", Packages: []string{"iperf3"}, Files: []string{Iperf}}

// IperfPort is the port of iperf3's server.
const IperfPort = 5201

// IperfListening is how the first line begins that iperf3's server writes, when it listens.
const IperfListening = "-----"

// IperfServer calls a server for one test. It ends with code 0 after it.
func IperfServer() []string {
	return []string{Iperf, "--server", "--one-off", "--forceflush", "--port", strconv.Itoa(IperfPort)}
}

// IperfTest is one test of iperf3: one TCP stream, as fast as it goes.
type IperfTest struct {
	Server netip.AddrPort
	// Duration counts from the end of Omit, in which the stream begins. Both are whole seconds.
	Duration, Omit time.Duration
	// Reverse lets the server send instead of the client.
	Reverse bool
}

// IperfReport is what a test found.
type IperfReport struct {
	// BitsPerSecond is the payload that came to the receiver, by the receiver's clock.
	BitsPerSecond float64
	// Retransmits are the segments that the sender's kernel sent again, a second. A sandbox that does not
	// count them says 0.
	Retransmits float64
	// Congestion names the sender's congestion control; it is empty if that is not known.
	Congestion string
}

// Args call the client.
func (t IperfTest) Args() []string {
	args := []string{
		Iperf, "--client", t.Server.Addr().String(), "--port", strconv.Itoa(int(t.Server.Port())), "--json",
		"--time", wholeSeconds(t.Duration), "--omit", wholeSeconds(t.Omit), "--interval", "0", "--connect-timeout", "10000",
	}
	if t.Reverse {
		args = append(args, "--reverse")
	}
	return args
}

// iperfSum is the sum over the streams, as one side saw it.
type iperfSum struct {
	Seconds       float64 `json:"seconds"`
	Bytes         float64 `json:"bytes"`
	BitsPerSecond float64 `json:"bits_per_second"`
	Retransmits   float64 `json:"retransmits"`
}

// iperfOutput is the part of the client's JSON that is read.
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

// Read reads what the client has written. It refuses the report of another test, of one that ended early, and sums that do not
// agree with each other.
func (t IperfTest) Read(stdout []byte) (IperfReport, error) {
	report, err := t.read(stdout)
	if err != nil {
		return IperfReport{}, fmt.Errorf("read iperf3's report: %w", err)
	}
	return report, nil
}

func (t IperfTest) read(stdout []byte) (IperfReport, error) {
	var out iperfOutput
	if err := json.Unmarshal(stdout, &out); err != nil {
		return IperfReport{}, fmt.Errorf("it is cut off, or no report in JSON: %w", err)
	}
	if out.Error != "" {
		return IperfReport{}, fmt.Errorf("iperf3 says %.200q", out.Error)
	}
	reverse := 0
	if t.Reverse {
		reverse = 1
	}
	ran := out.Start.Test
	if ran.Protocol != "TCP" || ran.Streams != 1 || ran.Reverse != reverse ||
		float64(ran.Duration) != t.Duration.Seconds() || float64(ran.Omit) != t.Omit.Seconds() {
		return IperfReport{}, fmt.Errorf("it is that of another test: %+v", ran)
	}
	sent, received := out.End.Sent, out.End.Received
	if sent == nil || received == nil {
		return IperfReport{}, errors.New("the sums of the end are missing")
	}
	for _, side := range []struct {
		name string
		*iperfSum
	}{{"sender", sent}, {"receiver", received}} {
		if err := side.check(t.Duration); err != nil {
			return IperfReport{}, fmt.Errorf("the %s's sum: %w", side.name, err)
		}
	}
	// They do not count the same moments, so some of either may be missing in the other.
	if r := received.Bytes / sent.Bytes; !(r > 0.5 && r < 1.5) {
		return IperfReport{}, fmt.Errorf("%g bytes were received of %g that were sent", received.Bytes, sent.Bytes)
	}
	if len(out.End.Congestion) > maxName {
		return IperfReport{}, fmt.Errorf("%.80q is no congestion control", out.End.Congestion)
	}
	return IperfReport{
		BitsPerSecond: received.BitsPerSecond, Retransmits: sent.Retransmits / sent.Seconds, Congestion: out.End.Congestion,
	}, nil
}

// check tells whether the sum can be that of a test which took so long. One that was cut short has a time of no sense.
func (s *iperfSum) check(d time.Duration) error {
	switch {
	case !(s.Bytes > 0) || s.Retransmits < 0:
		return fmt.Errorf("nothing was transferred (%g bytes, %g retransmits)", s.Bytes, s.Retransmits)
	case !lasted(s.Seconds, d):
		return fmt.Errorf("it is over %g s instead of %g", s.Seconds, d.Seconds())
	case !near(s.BitsPerSecond, 8*s.Bytes/s.Seconds, 0.01):
		return fmt.Errorf("%g bytes in %g s are not %g bit/s", s.Bytes, s.Seconds, s.BitsPerSecond)
	}
	return nil
}

// wholeSeconds spells a time for programs that know nothing shorter than a second.
func wholeSeconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// lasted tells whether a program that was to run for a time has done so: it looks at its clock now and then only, so that
// it may run on for a while, the longer the slower its sandbox is.
func lasted(seconds float64, d time.Duration) bool {
	return seconds > 0.8*d.Seconds() && seconds < 1.5*d.Seconds()+5
}

// near tells whether two numbers differ by less than a share of the second.
func near(a, b, share float64) bool { return math.Abs(a-b) <= share*math.Abs(b) }
