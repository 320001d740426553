package performance

import (
	"context"
	"net/netip"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
	"github.com/touchstone-bench/touchstone/internal/workload/remote"
)

func bandwidth() bench.Benchmark {
	b := overNetwork(bench.Benchmark{
		Name:    "performance.network.bandwidth",
		Summary: "one TCP stream by iperf3, between a container and the host, another container or another machine, in each direction",
		Source:  "nishimura section 4.7, tables 3 and 4 (iperf, container as server, host as client)",
		Metrics: []result.Metric{
			bench.Headed(result.ColumnNetwork, bench.Scored(result.DimensionNetwork, bench.Higher("Send", result.BitsPerSecond, "payload from the container: from the server to its client, or with the server on another machine from the client to it"))),
			bench.Scored(result.DimensionNetwork, bench.Higher("Receive", result.BitsPerSecond, "payload to the container, in the other direction")),
			{
				Name: "Retransmits", Unit: result.PerSecond, Better: result.Lower, Optional: true,
				Help: "segments per second that the host or the other machine retransmits while the container receives, their count over the test's duration; not with peer=containers, since sandboxes do not count theirs",
			},
		},
	}, "time of the measurement in each direction", func(ctx context.Context, t bench.Trial, duration time.Duration) error {
		omit := t.Duration("omit")
		toServer, clients, err := iperf(ctx, t, programs.IperfTest{Duration: duration, Omit: omit})
		if err != nil {
			return err
		}
		fromServer, servers, err := iperf(ctx, t, programs.IperfTest{Duration: duration, Omit: omit, Reverse: true})
		if err != nil {
			return err
		}
		send, receive := fromServer, toServer
		_, remote := bench.RemotePeer(t.Params)
		if remote { // the container is the client
			send, receive = toServer, fromServer
		}
		t.Record("Send", send["BitsPerSecond"])
		t.Record("Receive", receive["BitsPerSecond"])
		if bench.AtHost(t) || remote {
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
func iperf(ctx context.Context, t bench.Trial, test programs.IperfTest) (values workload.Values, congestion string, err error) {
	server := bench.Server{
		Spec: t.Spec(programs.IperfServer()...), Port: programs.IperfPort, Listening: programs.IperfListening, End: bench.ByItself,
		Remote: remote.Iperf,
	}
	err = bench.Serve(ctx, t, server, func(ctx context.Context, addr netip.AddrPort) error {
		test.Server = addr
		p := test.Program()
		var text []byte
		if values, text, err = bench.Run(ctx, t, bench.AsClient, bench.SpecOf(t, p), p); err != nil {
			return err
		}
		congestion, err = programs.IperfCongestion(text)
		return err
	})
	return values, congestion, err
}
