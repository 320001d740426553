package isolation

import (
	"context"
	"net/netip"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

// Intervals of the reports of netperf and iperf3. iperf3's is the shortest that it accepts.
const (
	netperfInterval = 20 * time.Millisecond
	iperfInterval   = 100 * time.Millisecond
)

func network() bench.Benchmark {
	s := speed{
		unit: result.PerSecond, work: "transactions of one byte in each direction of the victim (netperf's TCP_RR)",
		unitOf: "transaction, as the mean of intervals of 20 ms",
	}
	return bench.Benchmark{
		Name:    "isolation.network",
		Summary: "small transactions over TCP while another container receives a stream at full speed",
		Source:  "wang section 5.8, equation 2; figures 13 and 14 for the programs",
		Metrics: metrics(s, ""),
		Image:   bench.WorkloadImage, Components: true,
		Params: joined([]bench.Param{bench.Peer(bench.HostPeer)}, phaseParams(), limitParams(), aggressorParams("1")),
		Needs: func(p bench.Params) bench.Needs {
			n := needs(p, bench.Needs{Capabilities: []engine.Capability{engine.NetworkBridge}, CPUs: 2})
			n.Containers *= 2
			return n
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			if err := bench.RecordPath(ctx, t); err != nil {
				return err
			}
			aggressor := stream
			if t.Param(aggressorParam) == nativeHost {
				t.Condition("aggressor's path", "both ends at the host's end of the network: it loads the CPUs and the host's network stack, but no interface of the target")
				aggressor = loopback
			}
			return scene{victim: transactions, aggressor: aggressor}.run(ctx, t)
		},
	}
}

// transactions runs a server of netperf in a container, and its client.
func transactions(ctx context.Context, t bench.Trial, p *party) error {
	spec := limited(t, t.Spec(programs.NetperfServer()...))
	server, err := p.serve(ctx, t, bench.Follow, bench.Server{Spec: spec, Port: programs.NetserverPort})
	if err != nil {
		return err
	}
	var reports programs.NetperfReports
	client := limited(t, t.Spec(programs.NetperfLines(programs.TCPRR, server, longest(t), netperfInterval)...))
	_, err = p.launch(ctx, t, bench.FollowClient, client, func(line string) (step, bool, error) {
		rate, seconds, ok, err := reports.Line(line)
		if !ok || err != nil {
			return step{}, false, err
		}
		s := step{work: rate * seconds, times: []times{}}
		if rate > 0 {
			s.times = append(s.times, times{seconds: 1 / rate, count: s.work})
		}
		return s, true, nil
	})
	return err
}

// stream runs a server of iperf3 in a container, and a client that sends to it.
func stream(ctx context.Context, t bench.Trial, p *party) error {
	server, err := p.serve(ctx, t, bench.Follow, iperfServer(limited(t, t.Spec(programs.IperfServer()...))))
	if err != nil {
		return err
	}
	return p.send(ctx, t, bench.FollowClient, server)
}

// loopback is stream with both ends outside the target.
func loopback(ctx context.Context, t bench.Trial, p *party) error {
	link, err := t.Network.Link(ctx)
	if err != nil {
		return err
	}
	server := limited(t, t.Spec(programs.IperfServer()...))
	if _, err := p.launch(ctx, t, bench.FollowAtHost, server, silence); err != nil {
		return err
	}
	return p.send(ctx, t, bench.FollowAtHost, netip.AddrPortFrom(link.Host, programs.IperfPort))
}

func iperfServer(spec engine.Spec) bench.Server {
	return bench.Server{Spec: spec, Port: programs.IperfPort, Listening: programs.IperfListening}
}

// serve starts a server and returns its address.
func (p *party) serve(ctx context.Context, t bench.Trial, launch launcher, s bench.Server) (netip.AddrPort, error) {
	s.Spec.Network = engine.Bridged
	c, err := p.launch(ctx, t, launch, s.Spec, silence)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return s.Reached(ctx, t, c.Running)
}

// silence reads the lines of a program that reports no work.
func silence(string) (step, bool, error) { return step{}, false, nil }

// send starts a client of iperf3.
func (p *party) send(ctx context.Context, t bench.Trial, launch launcher, server netip.AddrPort) error {
	client := limited(t, t.Spec(programs.IperfLines(server, longest(t), iperfInterval)...))
	_, err := p.launch(ctx, t, launch, client, func(line string) (step, bool, error) {
		bytes, ok, err := programs.ParseIperfLine(line)
		return step{work: bytes}, ok && bytes > 0, err
	})
	return err
}
