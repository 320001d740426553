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
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
	"github.com/touchstone-bench/touchstone/internal/workload/remote"
)

// webRoot is the directory of the web server's files in its container.
const webRoot = "/data"

func web() bench.Benchmark {
	b := overNetwork(bench.Benchmark{
		Name:    "performance.network.http",
		Summary: "bandwidth and latency of TCP (netperf) and of HTTP (nginx and ab), over one connection each",
		Source:  "wang table 3 (Ethr: from client to server, over HTTP by POST of 16 KiB)",
		Metrics: []result.Metric{
			bench.Higher("TCPUpload", result.BitsPerSecond, "payload from the client to the server (TCP_STREAM), the direction of the paper"),
			bench.Higher("HTTPUpload", result.BitsPerSecond, "bytes of the bodies of repeated POST requests of 16 KiB, without headers, as in the paper"),
			bench.Higher("TCPBandwidth", result.BitsPerSecond, "payload from the server to its client (TCP_MAERTS)"),
			bench.Scored(result.DimensionNetwork, bench.Higher("HTTPBandwidth", result.BitsPerSecond, "bytes of repeated transfers of a file of 1 MiB, without headers")),
			bench.Seconds("TCPLatency", "mean time from a byte sent to the byte received in response (TCP_RR)"),
			bench.Scored(result.DimensionNetwork, bench.Seconds("HTTPLatency", "mean time from a request to the end of its response, a file of one byte")),
			bench.Seconds("TCPLatencyP99", "99th percentile of TCPLatency, in whole microseconds"),
			bench.Seconds("HTTPLatencyP99", "99th percentile of HTTPLatency, in whole microseconds"),
		},
	}, "time of each of the six tests", func(ctx context.Context, t bench.Trial, duration time.Duration) error {
		if err := overTCP(ctx, t, duration); err != nil {
			return err
		}
		return overHTTP(ctx, t, duration)
	})
	network := b.Needs
	b.Needs = func(p bench.Params) bench.Needs {
		needs := network(p)
		needs.Capabilities = append(needs.Capabilities, engine.CanBind) // of the web server's files, and of the file that a client sends
		return needs
	}
	return b
}

func overTCP(ctx context.Context, t bench.Trial, d time.Duration) error {
	return bench.Serve(ctx, t, netserver(t), func(ctx context.Context, addr netip.AddrPort) error {
		stream, err := bench.Measure(ctx, t, bench.AsClient, programs.NetperfRun(programs.TCPMaerts, addr, d))
		if err != nil {
			return err
		}
		upload, err := bench.Measure(ctx, t, bench.AsClient, programs.NetperfRun(programs.TCPStream, addr, d))
		if err != nil {
			return err
		}
		turns, err := bench.Measure(ctx, t, bench.AsClient, programs.NetperfRun(programs.TCPRR, addr, d))
		if err != nil {
			return err
		}
		t.Record("TCPUpload", upload["Throughput"])
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
	for name, content := range programs.WebFiles(webRoot, netip.AddrPort{}) {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return fmt.Errorf("write the web server's files: %w", err)
		}
	}
	server := bench.Server{Spec: t.Spec(programs.NginxServer(webRoot)...), Port: programs.NginxPort, End: bench.Terminated, Remote: remote.Nginx}
	files := func(spec *engine.Spec) {
		spec.Mounts = []engine.Mount{{Source: dir, Target: webRoot, ReadOnly: true}}
	}
	files(&server.Spec)
	return bench.Serve(ctx, t, server, func(ctx context.Context, addr netip.AddrPort) error {
		bulk, err := bench.Measure(ctx, t, bench.AsClient, programs.ABRun(addr, programs.LargeFile, programs.LargeBytes, d))
		if err != nil {
			return err
		}
		exchange, err := bench.Measure(ctx, t, bench.AsClient, programs.ABRun(addr, programs.SmallFile, programs.SmallBytes, d))
		if err != nil {
			return err
		}
		post := programs.ABPost(addr, programs.NginxPost, len(programs.NginxAnswer), webRoot+programs.SentFile, programs.SentBytes, d)
		upload, err := bench.Measure(ctx, t, bench.AsClient, post, files)
		if err != nil {
			return err
		}
		p99, ok := exchange["P99Latency"]
		if !ok {
			return errors.New("the web server sent too few responses for their 99th percentile: set a longer duration")
		}
		t.Record("HTTPUpload", upload["BitsPerSecond"])
		t.Record("HTTPBandwidth", bulk["BitsPerSecond"])
		t.Record("HTTPLatency", exchange["Latency"])
		t.Record("HTTPLatencyP99", p99)
		return nil
	})
}
