package performance

import (
	"context"
	"net/netip"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
	"github.com/touchstone-bench/touchstone/internal/workload/remote"
)

func netperf() bench.Benchmark {
	metrics := []result.Metric{
		bench.Higher(string(programs.TCPStream), result.BitsPerSecond, "payload from the client to the server, over one connection"),
		bench.Headed(result.ColumnNetwork, bench.Scored(result.DimensionNetwork, bench.Higher(string(programs.TCPRR), result.PerSecond, "transactions of one byte in each direction, one after the other, over one connection"))),
		bench.Higher(string(programs.TCPCRR), result.PerSecond, "TCP_RR with a new connection for each transaction; a fifth as many transactions, at least 100"),
		bench.Higher(string(programs.UDPRR), result.PerSecond, "TCP_RR with datagrams"),
	}
	return overNetwork(bench.Benchmark{
		Name:    "performance.network.netperf",
		Summary: "netperf's TCP_STREAM, TCP_RR, TCP_CRR and UDP_RR",
		Source:  "wang figures 13 and 14",
		Metrics: metrics,
	}, "time of each of the four tests except TCP_CRR", func(ctx context.Context, t bench.Trial, duration time.Duration) error {
		return bench.Serve(ctx, t, netserver(t), func(ctx context.Context, addr netip.AddrPort) error {
			var rate float64 // of the previous test
			for _, m := range metrics {
				test := programs.NetperfTest(m.Name)
				run := programs.NetperfRun(test, addr, duration)
				if test == programs.TCPCRR {
					run = programs.NetperfCount(test, addr, connections(rate*duration.Seconds()))
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
	return bench.Server{Spec: t.Spec(programs.NetperfServer()...), Port: programs.NetserverPort, End: bench.ByForce, Remote: remote.Netserver}
}
