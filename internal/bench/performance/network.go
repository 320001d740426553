package performance

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// longestTest bounds the time of a test, and thus ab's memory, which grows with it.
const longestTest = 5 * time.Minute

// testTime is the parameter for the time of each of a benchmark's tests. iperf3, netperf and ab count in whole seconds.
func testTime(help string) bench.Param {
	return bench.Param{
		Name: "duration", Help: help, Quick: time.Second.String(), Paper: (10 * time.Second).String(),
		Check: wholeSeconds(time.Second),
	}
}

func wholeSeconds(least time.Duration) func(string) error {
	return func(v string) error {
		if d, err := time.ParseDuration(v); err != nil || d < least || d > longestTest || d%time.Second != 0 {
			return fmt.Errorf("must be whole seconds from %v to %v", least, longestTest)
		}
		return nil
	}
}

// overNetwork completes a benchmark with tests of a given time each between a server and a client. The server is always in a
// container. The parameter peer places the client at the host's end or in another container.
func overNetwork(b bench.Benchmark, timeHelp string, run func(ctx context.Context, t bench.Trial, each time.Duration) error) bench.Benchmark {
	b.Params = []bench.Param{bench.Peer(bench.HostPeer), testTime(timeHelp)}
	b.Image, b.Needs = bench.WorkloadImage, bench.Always(engine.NetworkBridge)
	b.Run = func(ctx context.Context, t bench.Trial) error {
		return run(ctx, t, t.Duration("duration"))
	}
	return b
}

func bandwidth() bench.Benchmark {
	b := overNetwork(bench.Benchmark{
		Name:    "performance.network.bandwidth",
		Summary: "one TCP stream by iperf3, between a container and the host or another container, in each direction",
		Source:  "nishimura section 4.7, tables 3 and 4 (iperf, container as server, host as client)",
		Metrics: []result.Metric{
			bench.Higher("Send", result.BitsPerSecond, "payload from the server's container to its client"),
			bench.Higher("Receive", result.BitsPerSecond, "payload from the client to the server's container"),
			{
				Name: "Retransmits", Unit: result.PerSecond, Better: result.Lower, Optional: true,
				Help: "segments per second that the host retransmits while the container receives, their count over the test's duration; only with peer=host, since sandboxes do not count theirs",
			},
		},
	}, "time of the measurement in each direction", func(ctx context.Context, t bench.Trial, each time.Duration) error {
		omit := t.Duration("omit")
		receive, clients, err := iperf(ctx, t, workload.IperfTest{Duration: each, Omit: omit})
		if err != nil {
			return err
		}
		send, servers, err := iperf(ctx, t, workload.IperfTest{Duration: each, Omit: omit, Reverse: true})
		if err != nil {
			return err
		}
		t.Record("Send", send["BitsPerSecond"])
		t.Record("Receive", receive["BitsPerSecond"])
		if bench.AtHost(t) {
			t.Record("Retransmits", receive["Retransmits"])
		}
		t.Condition("server's congestion", servers)
		t.Condition("client's congestion", clients)
		return nil
	})
	b.Params = append(b.Params, bench.Param{
		Name: "omit", Help: "run time of a stream before the measurement, until TCP reaches a steady rate: milliseconds on one host, seconds over long distances",
		Quick: "0s", Paper: "1s", Check: wholeSeconds(0),
	})
	return b
}

// iperf runs one test of iperf3 with its own server. It also returns the sender's congestion control.
func iperf(ctx context.Context, t bench.Trial, test workload.IperfTest) (values workload.Values, congestion string, err error) {
	server := bench.Server{
		Spec: t.Spec(workload.IperfServer()...), Port: workload.IperfPort, Listening: workload.IperfListening, End: bench.ByItself,
	}
	err = bench.Serve(ctx, t, server, func(ctx context.Context, at netip.AddrPort) error {
		test.Server = at
		p := test.Program()
		var text []byte
		if values, text, err = bench.Run(ctx, t, bench.AsClient, bench.SpecOf(t, p), p); err != nil {
			return err
		}
		congestion, err = workload.IperfCongestion(text)
		return err
	})
	return values, congestion, err
}

func netperf() bench.Benchmark {
	metrics := []result.Metric{
		bench.Higher(string(workload.TCPStream), result.BitsPerSecond, "payload from the client to the server's container, over one connection"),
		bench.Higher(string(workload.TCPRR), result.PerSecond, "transactions of one byte in each direction, one after the other, over one connection"),
		bench.Higher(string(workload.TCPCRR), result.PerSecond, "TCP_RR with a new connection for each transaction; a fifth as many transactions, at least 100"),
		bench.Higher(string(workload.UDPRR), result.PerSecond, "TCP_RR with datagrams"),
	}
	return overNetwork(bench.Benchmark{
		Name:    "performance.network.netperf",
		Summary: "netperf's TCP_STREAM, TCP_RR, TCP_CRR and UDP_RR",
		Source:  "wang figures 13 and 14",
		Metrics: metrics,
	}, "time of each of the four tests except TCP_CRR", func(ctx context.Context, t bench.Trial, each time.Duration) error {
		return bench.Serve(ctx, t, netserver(t), func(ctx context.Context, at netip.AddrPort) error {
			var rate float64 // of the previous test
			for _, m := range metrics {
				test := workload.NetperfTest(m.Name)
				run := workload.NetperfRun(test, at, each)
				if test == workload.TCPCRR {
					run = workload.NetperfCount(test, at, connections(rate*each.Seconds()))
				}
				values, err := bench.Measure(ctx, t, bench.AsClient, run)
				if err != nil {
					return err
				}
				rate = values["Throughput"]
				t.Record(m.Name, rate)
			}
			return nil
		})
	})
}

// connections is the number of transactions of TCP_CRR, from the number of TCP_RR: a fifth, since a connection takes
// several more packets, and at least 100, which suffice for a rate on a slow target.
func connections(transactions float64) int { return max(100, int(transactions/5)) }

func netserver(t bench.Trial) bench.Server {
	return bench.Server{Spec: t.Spec(workload.NetperfServer()...), Port: workload.NetserverPort, End: bench.ByForce}
}

// webRoot is the directory of the web server's files in its container.
const webRoot = "/data"

// The files of the web server.
const (
	smallFile, smallBytes = "/small", 1
	largeFile, largeBytes = "/large", 1 << 20
)

func web() bench.Benchmark {
	return overNetwork(bench.Benchmark{
		Name:    "performance.network.http",
		Summary: "bandwidth and latency of TCP (netperf) and of HTTP (nginx and ab), over one connection each",
		Source:  "wang table 3 (Ethr)",
		Metrics: []result.Metric{
			bench.Higher("TCPBandwidth", result.BitsPerSecond, "payload from the server's container to its client (TCP_MAERTS)"),
			bench.Higher("HTTPBandwidth", result.BitsPerSecond, "bytes of repeated transfers of a file of 1 MiB, without headers"),
			bench.Seconds("TCPLatency", "mean time from a byte sent to the byte received in response (TCP_RR)"),
			bench.Seconds("HTTPLatency", "mean time from a request to the end of its response, a file of one byte"),
			bench.Seconds("TCPLatencyP99", "99th percentile of TCPLatency, in whole microseconds"),
			bench.Seconds("HTTPLatencyP99", "99th percentile of HTTPLatency, in whole microseconds"),
		},
	}, "time of each of the four tests", func(ctx context.Context, t bench.Trial, each time.Duration) error {
		if err := overTCP(ctx, t, each); err != nil {
			return err
		}
		return overHTTP(ctx, t, each)
	})
}

func overTCP(ctx context.Context, t bench.Trial, d time.Duration) error {
	return bench.Serve(ctx, t, netserver(t), func(ctx context.Context, at netip.AddrPort) error {
		stream, err := bench.Measure(ctx, t, bench.AsClient, workload.NetperfRun(workload.TCPMaerts, at, d))
		if err != nil {
			return err
		}
		turns, err := bench.Measure(ctx, t, bench.AsClient, workload.NetperfRun(workload.TCPRR, at, d))
		if err != nil {
			return err
		}
		t.Record("TCPBandwidth", stream["Throughput"])
		t.Record("TCPLatency", turns["MeanLatency"])
		t.Record("TCPLatencyP99", turns["P99Latency"])
		return nil
	})
}

func overHTTP(ctx context.Context, t bench.Trial, d time.Duration) error {
	dir, err := t.Storage.Scratch(bench.Disk)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		smallFile: make([]byte, smallBytes), largeFile: make([]byte, largeBytes),
		workload.NginxConfig: []byte(workload.NginxConfiguration(webRoot)),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return fmt.Errorf("write the web server's files: %w", err)
		}
	}
	server := bench.Server{Spec: t.Spec(workload.NginxServer(webRoot)...), Port: workload.NginxPort, End: bench.Terminated}
	server.Spec.Mounts = []engine.Mount{{Source: dir, Target: webRoot, ReadOnly: true}}
	return bench.Serve(ctx, t, server, func(ctx context.Context, at netip.AddrPort) error {
		large, err := bench.Measure(ctx, t, bench.AsClient, workload.ABRun(at, largeFile, largeBytes, d))
		if err != nil {
			return err
		}
		small, err := bench.Measure(ctx, t, bench.AsClient, workload.ABRun(at, smallFile, smallBytes, d))
		if err != nil {
			return err
		}
		p99, known := small["P99Latency"]
		if !known {
			return errors.New("the web server sent too few responses for their 99th percentile: set a longer duration")
		}
		t.Record("HTTPBandwidth", large["BitsPerSecond"])
		t.Record("HTTPLatency", small["Latency"])
		t.Record("HTTPLatencyP99", p99)
		return nil
	})
}
