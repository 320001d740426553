package workload

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Paths of Redis in the workload image.
const (
	RedisServer    = "/usr/bin/redis-server"
	RedisBenchmark = "/usr/bin/redis-benchmark"
)

var redisTool = Tool{
	Name: "Redis", Packages: []string{"redis-server", "redis-tools"}, Files: []string{RedisServer, RedisBenchmark, "/usr/bin/redis-cli"},
}

// RedisPort is the port of the server.
const RedisPort = 6379

// RedisServe calls a server that keeps its data in memory only. It ends with code 0 on SIGTERM.
func RedisServe() []string {
	return []string{
		RedisServer, "--port", strconv.Itoa(RedisPort), "--bind", "0.0.0.0", "--protected-mode", "no",
		"--save", "", "--appendonly", "no", "--dir", "/tmp",
	}
}

// RedisTest is a test of redis-benchmark.
type RedisTest struct {
	// Name is ours: redis-benchmark's without what stands in parentheses, but for the LPUSH that comes
	// before the LRANGEs.
	Name  string
	title string
}

// Title is the test's name as redis-benchmark spells it.
func (t RedisTest) Title() string { return t.title }

// RedisTests lists the 20 tests of sateri's tables 4.5 and 4.6, in the order in which redis-benchmark runs them.
func RedisTests() []RedisTest {
	var tests []RedisTest
	for _, title := range []string{
		"PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "LPUSH", "RPUSH", "LPOP", "RPOP", "SADD", "HSET", "SPOP", "ZADD", "ZPOPMIN",
		redisFill, "LRANGE_100 (first 100 elements)", "LRANGE_300 (first 300 elements)", "LRANGE_500 (first 500 elements)",
		"LRANGE_600 (first 600 elements)", "MSET (10 keys)",
	} {
		name, _, _ := strings.Cut(title, " ")
		if title == redisFill {
			name = "LPUSH_LRANGE"
		}
		tests = append(tests, RedisTest{Name: name, title: title})
	}
	return tests
}

const redisFill = "LPUSH (needed to benchmark LRANGE)"

// redisSelection is how redis-benchmark is asked for the tests: without it newer ones run more.
const redisSelection = "ping,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange,mset"

// RedisResult is what redis-benchmark found in a test. Times are in seconds, those of single requests as a client saw them.
type RedisResult struct {
	RedisTest
	RequestsPerSecond            float64
	Avg, Min, P50, P95, P99, Max float64
}

// RedisRun is a run of redis-benchmark, in which Clients at once make so many Requests for each test.
type RedisRun struct {
	Server            netip.AddrPort
	Requests, Clients int
}

// Args call redis-benchmark.
func (r RedisRun) Args() []string {
	return []string{
		RedisBenchmark, "-h", r.Server.Addr().String(), "-p", strconv.Itoa(int(r.Server.Port())),
		"-n", strconv.Itoa(r.Requests), "-c", strconv.Itoa(r.Clients), "-t", redisSelection, "--csv",
	}
}

// redisColumns are the columns of the report: the test, requests a second, times in ms.
func redisColumns() []string {
	return []string{
		"test", "rps", "avg_latency_ms", "min_latency_ms", "p50_latency_ms", "p95_latency_ms", "p99_latency_ms", "max_latency_ms",
	}
}

// Read reads what redis-benchmark has written: the results of RedisTests, in their order.
func (r RedisRun) Read(stdout []byte) ([]RedisResult, error) {
	results, err := r.read(stdout)
	if err != nil {
		return nil, fmt.Errorf("read redis-benchmark's report: %w", err)
	}
	return results, nil
}

func (r RedisRun) read(stdout []byte) ([]RedisResult, error) {
	if !bytes.HasSuffix(stdout, []byte("\n")) {
		return nil, errors.New("it is cut off")
	}
	reader := csv.NewReader(bytes.NewReader(stdout))
	reader.FieldsPerRecord = len(redisColumns())
	rows, err := reader.ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 || !slices.Equal(rows[0], redisColumns()) {
		return nil, errors.New("it does not begin with the names of the columns")
	}
	rows = rows[1:]
	tests := RedisTests()
	if len(rows) != len(tests) {
		return nil, fmt.Errorf("it has %d tests instead of %d", len(rows), len(tests))
	}
	var results []RedisResult
	for i, test := range tests {
		if rows[i][0] != test.title {
			return nil, fmt.Errorf("test %d is %.80q instead of %q", i+1, rows[i][0], test.title)
		}
		result, err := r.result(test, rows[i][1:])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", test.title, err)
		}
		results = append(results, result)
	}
	return results, nil
}

func (r RedisRun) result(test RedisTest, row []string) (RedisResult, error) {
	result := RedisResult{RedisTest: test}
	scale := 1.0
	for i, field := range []*float64{
		&result.RequestsPerSecond, &result.Avg, &result.Min, &result.P50, &result.P95, &result.P99, &result.Max,
	} {
		v, err := positive(row[i])
		if err != nil {
			return RedisResult{}, err
		}
		*field = v * scale
		scale = 1e-3 // what follows is in ms
	}
	return result, r.check(result)
}

// check tells whether the result can be.
func (r RedisRun) check(f RedisResult) error {
	if !(f.RequestsPerSecond > 0) {
		return errors.New("no request was answered")
	}
	if !(f.Avg > 0) || !slices.IsSorted([]float64{f.Min, f.P50, f.P95, f.P99, f.Max}) || f.Avg < f.Min || f.Avg > f.Max {
		return errors.New("the latencies are not in order")
	}
	// By Little's law no more requests can be under way, on average, than there are clients. The rate
	// comes from a time in whole milliseconds.
	requests, clients := float64(r.Requests), float64(r.Clients)
	if elapsed := requests/f.RequestsPerSecond + 1e-3; requests*f.Avg > 1.1*clients*elapsed {
		return fmt.Errorf("%d clients do not have %g requests a second answered in %g s each", r.Clients, f.RequestsPerSecond, f.Avg)
	}
	return nil
}
