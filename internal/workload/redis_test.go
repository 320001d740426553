package workload_test

import (
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

var redisRun = workload.RedisRun{Server: netip.MustParseAddrPort("10.77.0.1:6379"), Requests: 5000, Clients: 50}

func TestRedisCaptured(t *testing.T) {
	got, err := redisRun.Program().Parse(captured(t, "redis-benchmark-native.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 20*7 {
		t.Fatalf("there are %d values, want 7 for each of 20 tests", len(got))
	}
	want := workload.Values{
		"SET": 96153.84, "SET avg": 0.280e-3, "SET min": 0.088e-3, "SET p50": 0.271e-3, "SET p95": 0.367e-3, "SET p99": 0.471e-3, "SET max": 0.679e-3,
		"MSET": 80645.16, "MSET avg": 0.358e-3, "MSET min": 0.112e-3, "MSET p50": 0.319e-3, "MSET p95": 0.535e-3, "MSET p99": 1.127e-3, "MSET max": 2.455e-3,
	}
	for name, want := range want {
		if math.Abs(got[name]-want) > 1e-12 {
			t.Errorf("%s = %v, want %v", name, got[name], want)
		}
	}
	if got, err := redisRun.Program().Parse(captured(t, "redis-benchmark-german.csv")); err != nil || got["PING_INLINE"] != 75757.58 {
		t.Errorf("in a German locale: %v, %v", got, err)
	}
}

// The tests of sateri's tables 4.5 and 4.6, in their order.
func TestRedisTests(t *testing.T) {
	const want = "PING_INLINE PING_MBULK SET GET INCR LPUSH RPUSH LPOP RPOP SADD HSET SPOP ZADD ZPOPMIN LPUSH_LRANGE " +
		"LRANGE_100 LRANGE_300 LRANGE_500 LRANGE_600 MSET"
	var names []string
	for _, test := range workload.RedisTests() {
		names = append(names, test.Name)
	}
	if got := strings.Join(names, " "); got != want {
		t.Errorf("the tests are %s, want %s", got, want)
	}
	if got := strings.Join(redisRun.Program().Args, " "); !strings.Contains(got, "-h 10.77.0.1 -p 6379 -n 5000 -c 50 -t ping,set,") || !strings.HasSuffix(got, " --csv") {
		t.Errorf("redis-benchmark is called by %q", got)
	}
}

// The capture is of a server after one snapshot.
func TestRedisHealth(t *testing.T) {
	health := workload.RedisHealth(redisRun.Server)
	good := string(captured(t, "redis-info.txt"))
	if got, err := health.Parse([]byte(good)); err != nil || len(got) != 1 || got[workload.RedisSaves] != 1 {
		t.Errorf("the capture is read as %v, %v", got, err)
	}
	if args := strings.Join(health.Args, " "); !strings.HasSuffix(args, " -h 10.77.0.1 -p 6379 INFO stats persistence") {
		t.Errorf("redis-cli is called by %q", args)
	}
	for _, tt := range []struct{ old, replacement, reason string }{
		{"total_error_replies:0", "total_error_replies:2", "2 requests with an error"},
		{"rdb_last_bgsave_status:ok", "rdb_last_bgsave_status:err", `the last snapshot failed: its status is "err"`},
		{"rdb_saves:1", "rdb_saves:one", "not a whole number"},
		{"rdb_saves:1", "saves:1", "rdb_saves is missing"},
		{good, "", "cut off"},
		{good, "NOAUTH Authentication required.\n", "total_error_replies is missing"},
	} {
		changed := strings.Replace(good, tt.old, tt.replacement, 1)
		if got, err := health.Parse([]byte(changed)); changed == good || err == nil || !strings.Contains(err.Error(), tt.reason) || got != nil {
			t.Errorf("with %q: %v, %v; want %q", tt.replacement, got, err, tt.reason)
		}
	}
}

func TestRedisRefuses(t *testing.T) {
	good := string(captured(t, "redis-benchmark-native.csv"))
	lines := strings.SplitAfter(good, "\n")
	for _, tt := range []struct{ what, output, reason string }{
		{"the server was killed", string(captured(t, "redis-benchmark-killed.csv")), "it has 3 tests instead of 20"},
		{"nothing", "", "cut off"},
		{"no tests", lines[0], "it has 0 tests"},
		{"no names of columns", strings.Join(lines[1:], ""), "names of the columns"},
		{"a test more", good + strings.Replace(lines[1], "PING_INLINE", "XADD", 1), "it has 21 tests"},
		{"a test twice", strings.Replace(good, `"GET"`, `"SET"`, 1), `instead of "GET"`},
		{"commas", strings.Replace(good, `"96153.84"`, `"96153,84"`, 1), "not a number"},
		{"no number", strings.Replace(good, `"96153.84"`, `"inf"`, 1), "not a number"},
		{"nothing done", strings.Replace(good, `"96153.84"`, `"0.00"`, 1), "no request"},
		{"latencies in disorder", strings.Replace(good, `"0.471","0.679"`, `"0.679","0.471"`, 1), "not in order"},
		{"an average above the maximum", strings.Replace(good, `"0.280","0.088"`, `"0.780","0.088"`, 1), "not in order"},
		{"more under way than clients", strings.Replace(good, `"96153.84"`, `"396153.84"`, 1), "cannot make"},
		{"a field less", strings.Replace(good, `,"0.679"`, "", 1), "wrong number of fields"},
		{"other text", "WARNING: something new\n" + good, ""},
	} {
		got, err := redisRun.Program().Parse([]byte(tt.output))
		if err == nil || !strings.Contains(err.Error(), tt.reason) || got != nil {
			t.Errorf("%s is read as %v, %v; want %q", tt.what, got, err, tt.reason)
		}
	}
	refusesCut(t, good, func(s []byte) error { _, err := redisRun.Program().Parse(s); return err })
}

func FuzzRedis(f *testing.F) {
	for _, file := range []string{"redis-benchmark-native.csv", "redis-benchmark-german.csv", "redis-benchmark-killed.csv"} {
		f.Add(capturedFor(f, file))
	}
	f.Fuzz(func(t *testing.T, output []byte) {
		got, err := redisRun.Program().Parse(output)
		if err != nil {
			return
		}
		for name, v := range got {
			if !finite(v) || v < 0 {
				t.Errorf("%q: %s = %v", output, name, v)
			}
		}
	})
}

// Redis is filled only if it reports all keys.
func TestLocalRedisFill(t *testing.T) {
	fill := workload.LocalRedisFill(7000, 20)
	if values, err := fill.Parse([]byte("20\n")); err != nil || len(values) > 0 {
		t.Errorf("Parse = %v, %v", values, err)
	}
	for _, output := range []string{"", "20", "19\n", "ERR unknown command\n"} {
		if _, err := fill.Parse([]byte(output)); err == nil {
			t.Errorf("Parse(%q): no error", output)
		}
	}
}

// A bare process shares the ports of the host, where the user may have a Redis.
func TestRedisSweepHasNoPort(t *testing.T) {
	argv := workload.RedisSweep(10, time.Minute)
	if at := slices.Index(argv, "--port"); at < 0 || argv[at+1] != "0" || slices.Contains(argv, "--bind") {
		t.Errorf("the server has a port: %q", argv)
	}
	for line := range strings.Lines(argv[2]) {
		if strings.Contains(line, "redis-cli") && !strings.Contains(line, "redis-cli -s /tmp/redis.sock ") {
			t.Errorf("a client does not use the server's socket: %s", line)
		}
	}
}
