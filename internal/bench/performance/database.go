package performance

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

// redisSteps is the resolution of latencies: redis-benchmark counts them in a histogram (HdrHistogram from 10 µs, hence 8).
const redisSteps = ", in steps of 8 µs"

// redisLatency is a latency that redis-benchmark reports for each test. It is a series with a value for each test: metrics
// of their own would be 120.
type redisLatency struct {
	metric result.Metric
	of     string // the name of the latency in package workload
}

func redisLatencies() []redisLatency {
	series := func(name, statistic, steps string) result.Metric {
		m := bench.Seconds(name, statistic+" of the time of a request, of each test in the order above"+steps)
		m.Series = true
		return m
	}
	return []redisLatency{
		{series("LatencyAvg", "mean", ""), programs.RedisAvg},
		{series("LatencyMin", "minimum", redisSteps), programs.RedisMin},
		{series("LatencyP50", "median", redisSteps), programs.RedisP50},
		{series("LatencyP95", "95th percentile", redisSteps), programs.RedisP95},
		{series("LatencyP99", "99th percentile", redisSteps), programs.RedisP99},
		{series("LatencyMax", "maximum", redisSteps), programs.RedisMax},
	}
}

// named reports whether a test has metrics for its latencies beside the series.
func named(test programs.RedisTest) bool {
	return slices.Contains([]string{"SET", "GET"}, test.Name)
}

func redis() bench.Benchmark {
	var rates, times []result.Metric
	for _, test := range programs.RedisTests() {
		rates = append(rates, bench.Higher(test.Name, result.PerSecond, "completed requests per second: "+test.Title()))
		if named(test) {
			times = append(times,
				bench.Seconds(test.Name+"P50", "median of the time of a "+test.Name+redisSteps),
				bench.Seconds(test.Name+"P99", "99th percentile of the time of a "+test.Name+redisSteps),
			)
		}
	}
	for _, l := range redisLatencies() {
		times = append(times, l.metric)
	}
	return bench.Benchmark{
		Name:    "performance.database.redis",
		Summary: "the 20 tests of redis-benchmark, by default with server and client in two containers",
		Source:  "sateri tables 4.5, 4.6 and A.1 to A.9; wang figure 9",
		Metrics: slices.Concat(rates, times),
		Params: []bench.Param{
			bench.PeerOrSame(bench.ContainerPeer),
			{
				Name: "persistence", Quick: inMemory, Paper: snapshots, Check: bench.OneOf(inMemory, snapshots),
				Help: "none keeps the data in memory only; snapshots also writes them to a bind mount of the host's disk, at the times of Redis without a configuration, as in its Docker image",
			},
			{Name: "requests", Help: "maximum number of requests in each test", Quick: "50000", Paper: "100000", Check: bench.IntRange(fewestRequests, 10_000_000)},
			{
				Name: "duration", Quick: "3s", Paper: "0s", Check: bench.TimeRange(0, time.Hour),
				Help: "approximate time of all tests together: each has the same number of requests, at least 1000; 0s sets no limit",
			},
			{Name: "clients", Help: "number of concurrent connections", Quick: "50", Paper: "50", Check: bench.IntRange(1, 1000)},
		},
		Image: bench.WorkloadImage,
		Needs: func(p bench.Params) bench.Needs {
			memory := int64(p.Int("requests")) * redisRequest
			needs := bench.Needs{Capabilities: []engine.Capability{engine.NetworkBridge}, Memory: memory}
			if p.Param("peer") == bench.SamePeer {
				needs.Capabilities = append(needs.Capabilities, engine.CanExec)
			}
			if p.Param("persistence") == snapshots {
				disk := bench.Bind.Needs(2 * memory) // the snapshot, and the next one beside it
				needs.Capabilities, needs.Space = append(needs.Capabilities, disk.Capabilities...), disk.Space
			}
			return needs
		},
		Run: func(ctx context.Context, t bench.Trial) error {
			run := redisTrial{
				RedisRun: programs.RedisRun{Requests: t.Int("requests"), Clients: t.Int("clients")},
				within:   t.Duration("duration"), snapshots: t.Param("persistence") == snapshots, client: bench.AsClient,
			}
			server := bench.Server{Spec: t.Spec(programs.RedisServe()...), Port: programs.RedisPort, End: bench.Terminated}
			if run.snapshots {
				m, err := bench.Bind.Mount(t)
				if err != nil {
					return err
				}
				server.Spec = t.Spec(programs.RedisPersist(bench.DataDir)...)
				m.Into(&server.Spec)
				t.Condition("snapshots on", m.On)
			}
			if t.Param("peer") == bench.SamePeer {
				return bench.ServeWithin(ctx, t, server, func(ctx context.Context, runner bench.Where, addr netip.AddrPort) error {
					run.client, run.Server = runner, addr
					return run.measure(ctx, t)
				})
			}
			return bench.Serve(ctx, t, server, func(ctx context.Context, addr netip.AddrPort) error {
				run.Server = addr
				return run.measure(ctx, t)
			})
		},
	}
}

// The values of the parameter persistence.
const (
	inMemory  = "none"
	snapshots = "snapshots"
)

// redisTrial is a run of redis-benchmark in a trial.
type redisTrial struct {
	programs.RedisRun
	// within is the time of all tests together; 0 sets no limit.
	within time.Duration
	// snapshots is set if the server writes snapshots.
	snapshots bool
	client    bench.Where
}

// redisRequest bounds the memory that a request takes, in bytes. Two tests push an element of three bytes to a list for each
// request, and another test creates that list again.
const redisRequest = 64

// fewestRequests is enough to fill the lists of LRANGE_600.
const fewestRequests = 1000

// measure runs the tests with as many requests as fit into the time, at most run.Requests. A run with the fewest requests
// estimates the number. redis-benchmark counts whole milliseconds and has no time limit of its own.
func (run redisTrial) measure(ctx context.Context, t bench.Trial) error {
	var results workload.Values
	if run.within > 0 {
		first := run.RedisRun
		first.Requests = fewestRequests
		var err error
		if results, err = bench.Measure(ctx, t, run.client, first.Program()); err != nil {
			return err
		}
		run.Requests = requestsWithin(run.within, results, run.Requests)
	}
	if results == nil || run.Requests > fewestRequests {
		var err error
		if results, err = bench.Measure(ctx, t, run.client, run.Program()); err != nil {
			return err
		}
	}
	t.Condition("requests in each test", strconv.Itoa(run.Requests))
	if run.snapshots {
		health, err := bench.Measure(ctx, t, run.client, programs.RedisHealth(run.Server))
		if err != nil {
			return err
		}
		t.Condition("snapshots", strconv.Itoa(int(health[programs.RedisSaves])))
	}
	recordRedis(t, results)
	return nil
}

// requestsWithin estimates from the results of a shorter run how many requests, at most limit, each test can have if all tests
// together take the time d. The number is rounded down to 1, 2 or 5 times a power of ten, so that all trials of a
// target have the same.
func requestsWithin(d time.Duration, results workload.Values, limit int) int {
	var one float64 // seconds for one request in each test
	for _, test := range programs.RedisTests() {
		one += 1 / results[test.Name]
	}
	n := fewestRequests
	for scale := fewestRequests; scale <= limit; scale *= 10 {
		for _, step := range []int{1, 2, 5, 10} {
			if next := min(step*scale, limit); float64(next)*one <= d.Seconds() {
				n = next
			}
		}
	}
	return n
}

func recordRedis(t bench.Trial, results workload.Values) {
	for _, test := range programs.RedisTests() {
		t.Record(test.Name, results[test.Name])
		if named(test) {
			t.Record(test.Name+"P50", results[programs.RedisValue(test, programs.RedisP50)])
			t.Record(test.Name+"P99", results[programs.RedisValue(test, programs.RedisP99)])
		}
		for _, l := range redisLatencies() {
			t.Record(l.metric.Name, results[programs.RedisValue(test, l.of)])
		}
	}
}
