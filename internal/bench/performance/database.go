package performance

import (
	"context"
	"net/netip"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// database lists the benchmarks of databases.
func database() []bench.Benchmark {
	return []bench.Benchmark{redis()}
}

// redisLatency is one of the times that redis-benchmark tells of a test's requests. It is a series with a value for each test: as
// metrics of their own they would be 120.
type redisLatency struct {
	metric result.Metric
	of     func(workload.RedisResult) float64
}

func redisLatencies() []redisLatency {
	series := func(name, what string) result.Metric {
		m := latencyMetric(name, what+" of the time that a request takes, of each test in the order above")
		m.Series = true
		return m
	}
	return []redisLatency{
		{series("LatencyAvg", "mean"), func(r workload.RedisResult) float64 { return r.Avg }},
		{series("LatencyMin", "minimum"), func(r workload.RedisResult) float64 { return r.Min }},
		{series("LatencyP50", "median"), func(r workload.RedisResult) float64 { return r.P50 }},
		{series("LatencyP95", "95th percentile"), func(r workload.RedisResult) float64 { return r.P95 }},
		{series("LatencyP99", "99th percentile"), func(r workload.RedisResult) float64 { return r.P99 }},
		{series("LatencyMax", "maximum"), func(r workload.RedisResult) float64 { return r.Max }},
	}
}

// named tells whether a test has latencies by names of their own beside the series.
func named(test workload.RedisTest) bool {
	return slices.Contains([]string{"SET", "GET"}, test.Name)
}

func redis() bench.Benchmark {
	var rates, times []result.Metric
	for _, test := range workload.RedisTests() {
		rates = append(rates, higher(test.Name, result.PerSecond, "requests answered a second: "+test.Title()))
		if named(test) {
			times = append(times,
				latencyMetric(test.Name+"P50", "median of the time that a "+test.Name+" takes"),
				latencyMetric(test.Name+"P99", "99th percentile of the time that a "+test.Name+" takes"),
			)
		}
	}
	for _, l := range redisLatencies() {
		times = append(times, l.metric)
	}
	return bench.Benchmark{
		Name:    "performance.database.redis",
		Summary: "the 20 tests of redis-benchmark, with server and client in two containers",
		Source:  "sateri tables 4.5, 4.6 and A.1 to A.9; wang figure 9",
		Metrics: slices.Concat(rates, times),
		Params: []bench.Param{
			bench.Peer(bench.ContainerPeer),
			{Name: "requests", Help: "requests in each test, which make the lists long enough for LRANGE_600", Quick: "3000", Paper: "100000", Check: bench.IntRange(1000, 10_000_000)},
			{Name: "clients", Help: "connections that ask at once", Quick: "50", Paper: "50", Check: bench.IntRange(1, 1000)},
		},
		Image: bench.WorkloadImage,
		Needs: []engine.Capability{engine.NetworkBridge},
		Run: func(ctx context.Context, t bench.Trial) error {
			var requests, clients int
			if err := bench.Numbers(t, map[string]*int{"requests": &requests, "clients": &clients}); err != nil {
				return err
			}
			server := bench.Server{Spec: t.Spec(workload.RedisServe()...), Port: workload.RedisPort, End: bench.Terminated}
			return bench.Serve(ctx, t, server, func(ctx context.Context, at netip.AddrPort) error {
				run := workload.RedisRun{Server: at, Requests: requests, Clients: clients}
				text, err := bench.Client(ctx, t, t.Spec(run.Args()...))
				if err != nil {
					return err
				}
				results, err := run.Read(text)
				if err != nil {
					return err
				}
				recordRedis(t, results)
				return nil
			})
		},
	}
}

func recordRedis(t bench.Trial, results []workload.RedisResult) {
	for _, r := range results {
		t.Record(r.Name, r.RequestsPerSecond)
		if named(r.RedisTest) {
			t.Record(r.Name+"P50", r.P50)
			t.Record(r.Name+"P99", r.P99)
		}
		for _, l := range redisLatencies() {
			t.Record(l.metric.Name, l.of(r))
		}
	}
}
