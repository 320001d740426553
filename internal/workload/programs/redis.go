package programs

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

// Paths of Redis in the workload image.
const (
	RedisServer    = "/usr/bin/redis-server"
	RedisBenchmark = "/usr/bin/redis-benchmark"
	redisCLI       = "/usr/bin/redis-cli"
)

var redisTool = Tool{
	Name: "Redis", Packages: []string{"redis-server", "redis-tools"}, Files: []string{RedisServer, RedisBenchmark, redisCLI},
}

// RedisPort is the port of the server.
const RedisPort = 6379

// RedisServe calls a server that keeps its data in memory only. It exits with code 0 on SIGTERM.
func RedisServe() []string {
	return append(redisServer(), "--save", "", "--appendonly", "no", "--dir", "/tmp")
}

// RedisPersist calls a server like RedisServe that also writes snapshots to a directory, at the times of Redis without a configuration
// file, as in the image "redis" of Docker: RedisSnapshots.
func RedisPersist(dir string) []string {
	args := append(redisServer(), "--appendonly", "no", "--dir", dir, "--save")
	return append(args, strings.Fields(RedisSnapshots)...)
}

// RedisSnapshots are pairs of seconds and changes: Redis writes a snapshot after that time if it had that many changes.
const RedisSnapshots = "3600 1 300 100 60 10000"

func redisServer() []string {
	return []string{RedisServer, "--port", strconv.Itoa(RedisPort), "--bind", "0.0.0.0", "--protected-mode", "no"}
}

// RedisHealth calls a client that reads the server's statistics. It is an error if the last snapshot failed, or if the server answered
// a request with an error: redis-benchmark counts such answers like others. Values: RedisSaves, the number of snapshots.
func RedisHealth(server netip.AddrPort) workload.Program {
	return workload.Program{
		Args: []string{
			redisCLI, "-h", server.Addr().String(), "-p", strconv.Itoa(int(server.Port())), "INFO", "stats", "persistence",
		},
		Parse: reading("the statistics of Redis", redisHealth),
	}
}

// RedisSaves is the value of RedisHealth.
const RedisSaves = "snapshots"

func redisHealth(stdout []byte) (workload.Values, error) {
	lines, err := completeLines(stdout)
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for _, line := range lines {
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r"), ":")
		fields[name] = value
	}
	for _, name := range []string{"total_error_replies", "rdb_saves", "rdb_last_bgsave_status"} {
		if fields[name] == "" {
			return nil, fmt.Errorf("%s is missing: %w, or Redis has another version", name, workload.ErrCutOff)
		}
	}
	failures, err := workload.Whole(fields["total_error_replies"])
	if err != nil {
		return nil, err
	}
	saves, err := workload.Whole(fields["rdb_saves"])
	switch {
	case err != nil:
		return nil, err
	case fields["rdb_last_bgsave_status"] != "ok":
		return nil, fmt.Errorf("the last snapshot failed: its status is %q", workload.Excerpt(fields["rdb_last_bgsave_status"]))
	case failures > 0:
		return nil, fmt.Errorf("the server answered %d requests with an error", failures)
	}
	return workload.Values{RedisSaves: float64(saves)}, nil
}

// LocalRedis calls a server like RedisServe on a port of the loopback interface. Bare processes share that interface with the host, so
// each needs its own port.
func LocalRedis(port int) []string {
	return []string{
		RedisServer, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", "/tmp",
	}
}

// RedisTest is a test of redis-benchmark.
type RedisTest struct {
	// Name is redis-benchmark's name without the text in parentheses. The LPUSH before the LRANGEs has a name of our own.
	Name  string
	title string
}

// Title is the name of the test in redis-benchmark's report.
func (t RedisTest) Title() string { return t.title }

// RedisTests lists the 20 tests of sateri's tables 4.5 and 4.6, in redis-benchmark's order.
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

// redisSelection selects the tests: newer versions of redis-benchmark run more tests by default.
const redisSelection = "ping,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange,mset"

// RedisRun is a run of redis-benchmark: Clients at once make Requests in each test.
type RedisRun struct {
	Server            netip.AddrPort
	Requests, Clients int
}

// Latencies of a test, by their columns in redis-benchmark's report.
const (
	RedisAvg = "avg"
	RedisMin = "min"
	RedisP50 = "p50"
	RedisP95 = "p95"
	RedisP99 = "p99"
	RedisMax = "max"
)

func redisLatencies() []string {
	return []string{RedisAvg, RedisMin, RedisP50, RedisP95, RedisP99, RedisMax}
}

// RedisValue is the name of the value of a test's latency.
func RedisValue(t RedisTest, latency string) string { return t.Name + " " + latency }

// Program calls redis-benchmark. Values: the requests a second of each of RedisTests by its name, and its latencies in seconds,
// as a client measures them, by RedisValue.
func (r RedisRun) Program() workload.Program {
	return workload.Program{
		Args: []string{
			RedisBenchmark, "-h", r.Server.Addr().String(), "-p", strconv.Itoa(int(r.Server.Port())),
			"-n", strconv.Itoa(r.Requests), "-c", strconv.Itoa(r.Clients), "-t", redisSelection, "--csv",
		},
		Parse: reading("redis-benchmark's report", r.read),
	}
}

func (r RedisRun) read(stdout []byte) (workload.Values, error) {
	if !bytes.HasSuffix(stdout, []byte("\n")) {
		return nil, workload.ErrCutOff
	}
	columns := []string{"test", "rps"}
	for _, latency := range redisLatencies() {
		columns = append(columns, latency+"_latency_ms")
	}
	reader := csv.NewReader(bytes.NewReader(stdout))
	reader.FieldsPerRecord = len(columns)
	rows, err := reader.ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 || !slices.Equal(rows[0], columns) {
		return nil, errors.New("it does not begin with the names of the columns")
	}
	rows = rows[1:]
	tests := RedisTests()
	if len(rows) != len(tests) {
		return nil, fmt.Errorf("it has %d tests instead of %d", len(rows), len(tests))
	}
	results := workload.Values{}
	for i, test := range tests {
		if rows[i][0] != test.title {
			return nil, fmt.Errorf("test %d is %q instead of %q", i+1, workload.Excerpt(rows[i][0]), test.title)
		}
		values, err := r.test(test, rows[i][1:])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", test.title, err)
		}
		maps.Copy(results, values)
	}
	return results, nil
}

// test reads the requests a second and the latencies of a test, in ms, and checks them.
func (r RedisRun) test(test RedisTest, row []string) (workload.Values, error) {
	rate, err := readDecimal(row[0])
	if err != nil {
		return nil, err
	}
	values, latencies := workload.Values{test.Name: rate}, map[string]float64{}
	for i, latency := range redisLatencies() {
		ms, err := readDecimal(row[1+i])
		if err != nil {
			return nil, err
		}
		latencies[latency] = ms * 1e-3
		values[RedisValue(test, latency)] = latencies[latency]
	}
	if !(rate > 0) {
		return nil, errors.New("no request was answered")
	}
	avg := latencies[RedisAvg]
	ordered := slices.IsSorted([]float64{latencies[RedisMin], latencies[RedisP50], latencies[RedisP95], latencies[RedisP99], latencies[RedisMax]})
	if !(avg > 0) || !ordered || avg < latencies[RedisMin] || avg > latencies[RedisMax] {
		return nil, errors.New("the latencies are not in order")
	}
	// By Little's law, the mean number of requests in flight is at most the number of clients. The rate comes from a time in
	// whole milliseconds.
	requests, clients := float64(r.Requests), float64(r.Clients)
	if elapsed := requests/rate + 1e-3; requests*avg > 1.1*clients*elapsed {
		return nil, fmt.Errorf("%d clients with a latency of %g s cannot make %g requests a second", r.Clients, avg, rate)
	}
	return values, nil
}

// RedisListens reports whether a line of the server's output means that it can be reached.
func RedisListens(line string) (bool, error) {
	if !utf8.ValidString(line) {
		return false, fmt.Errorf("read the server's output: %q is no text", workload.Excerpt(line))
	}
	return strings.Contains(line, "Ready to accept connections"), nil
}

// LocalRedisFill calls a client that gives the server of LocalRedis a number of keys with values of 100 bytes. It has no values.
func LocalRedisFill(port, keys int) workload.Program {
	const script = "for i=1,ARGV[1] do redis.call('SET','key:'..i,string.rep('x',100)) end return redis.call('DBSIZE')"
	return workload.Program{Args: redisScript([]string{"-p", strconv.Itoa(port)}, script, keys), Parse: reading("redis-cli's answer", silent(strconv.Itoa(keys)+"\n"))}
}

func redisScript(options []string, script string, values int) []string {
	args := append([]string{redisCLI, "-p", strconv.Itoa(RedisPort)}, options...)
	return append(args, "EVAL", script, "0", strconv.Itoa(values))
}

// redisValueSize is the size of the values of RedisSweep.
const redisValueSize = 4096

// RedisSweeps is the number of values that a sweep of RedisSweep reads.
const RedisSweeps = 2000

// The scripts of RedisSweep. The counter c carries a sweep on where the last one has ended.
const (
	redisFillScript  = "for i=1,ARGV[1] do redis.call('SET','k'..i,string.rep('x',4096)) end return tonumber(ARGV[1])"
	redisSweepScript = "local n=0 local c=redis.call('INCRBY','c',2000) for i=1,2000 do n=n+#redis.call('GET','k'..((c+i)%ARGV[1]+1)) end return n"
)

// RedisSweep calls a server and a client in one container. The client fills the server with values of 4 KiB, and then makes it
// read them in turn for a time, RedisSweeps of them in a sweep. It writes the number of values, and a line for RedisSwept after each
// sweep. Some engines deliver the output of further processes only at their exit, so all is one process and its children.
//
// The two use a socket in /tmp, which each container has for itself. A bare process shares the ports of the host: its client could
// write to a server of the user's.
func RedisSweep(values int, d time.Duration) []string {
	const script = `"$@" >/dev/null &
tries=0
until /usr/bin/redis-cli -s /tmp/redis.sock ping >/dev/null 2>&1; do tries=$((tries+1)); [ $tries -lt 5000 ] || exit 1; done
/usr/bin/redis-cli -s /tmp/redis.sock EVAL "$FILL" 0 "$VALUES"
exec /usr/bin/busybox timeout "$SECONDS_LEFT" /usr/bin/redis-cli -s /tmp/redis.sock -r -1 EVAL "$SWEEP" 0 "$VALUES"`
	set := fmt.Sprintf("FILL=%q; SWEEP=%q; VALUES=%d; SECONDS_LEFT=%s\n", redisFillScript, redisSweepScript, values, wholeSeconds(d))
	return []string{
		"/usr/bin/sh", "-c", set + script, "sh",
		RedisServer, "--port", "0", "--unixsocket", "/tmp/redis.sock", "--save", "", "--appendonly", "no", "--dir", "/tmp",
	}
}

// RedisSwept reads the lines of the program that RedisSweep calls.
type RedisSwept struct {
	Values int
	filled bool
}

// Line checks a line without its end. It returns true for a sweep.
func (r *RedisSwept) Line(line string) (bool, error) {
	want := strconv.Itoa(RedisSweeps * redisValueSize)
	if !r.filled {
		want = strconv.Itoa(r.Values)
	}
	if line != want {
		return false, fmt.Errorf("read redis-cli's output: %q instead of %q", workload.Excerpt(line), want)
	}
	sweep := r.filled
	r.filled = true
	return sweep, nil
}
