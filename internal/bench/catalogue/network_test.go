package catalogue_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/runner/meter"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
	"github.com/touchstone-bench/touchstone/internal/workload/remote"
)

// wire is a network of imitated containers: engine, network and the host's end in one. Only containers have limits. Its clients write the captured output of
// the real programs and exit at once. Its servers run until they are killed or deleted.
type wire struct {
	// outputs replaces the captured output of a client, by a part of its arguments.
	outputs map[string]string
	// exits are the exits of clients, by a part of their arguments.
	exits map[string]engine.Exit
	// dies makes a server fail as soon as the first client starts.
	dies bool
	// dumb servers write nothing when they listen. Stubborn servers ignore SIGTERM, confused servers fail on it.
	dumb, stubborn, confused bool
	// hangs is called when a wait for a dumb or stubborn server begins.
	hangs func()
	// out is the network of containers that reach other machines, or closed the reason why none does.
	out    engine.Network
	closed error
	// far is the other machine.
	far far

	mu   sync.Mutex
	runs []string // "host" or "container", and the arguments
	open []*wired
}

func (*wire) Info() engine.Info                { return engine.Info{} }
func (*wire) Supports(engine.Capability) error { return nil }
func (*wire) Close() error                     { return nil }

func (*wire) Link(context.Context) (engine.Link, error) {
	return engine.Link{
		Namespace: "/run/netns/host", Host: netip.MustParseAddr("10.9.0.1"),
		About: map[string]string{"interface": "veth", "mtu": "1500"},
	}, nil
}

func (e *wire) Create(_ context.Context, s engine.Spec) (engine.Container, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	place := "container"
	switch {
	case s.Network == engine.HostNet && s.Join == "/run/netns/host":
		place = "host"
	case s.Network != engine.Bridged && s.Network != e.out:
		return nil, fmt.Errorf("%q has the network %q", s.Process.Args, s.Network)
	}
	if hasLimit := s.Resources.Memory > 0; hasLimit != (place == "container") {
		return nil, fmt.Errorf("%q in the %s has the limits %+v", s.Process.Args, place, s.Resources)
	}
	e.runs = append(e.runs, place+" "+strings.Join(s.Process.Args, " "))
	c := &wired{wire: e, spec: s, process: process{ended: make(chan struct{})}}
	e.open = append(e.open, c)
	return c, nil
}

// wired is a container on the wire.
type wired struct {
	process
	wire *wire
	spec engine.Spec
}

func (c *wired) ID() string { return c.spec.ID }

func (c *wired) Address(context.Context) (netip.Addr, error) {
	return netip.MustParseAddr("10.9.0.2"), nil
}

func (c *wired) Start(context.Context) error {
	args := strings.Join(c.spec.Process.Args, " ")
	if c.isServer() {
		switch {
		case c.wire.dumb:
			c.wire.hangs()
		case c.spec.Process.Args[0] == programs.Iperf:
			_, _ = io.WriteString(c.spec.Process.Stdout, programs.IperfListening+"\n")
		}
		return nil
	}
	if c.wire.dies {
		c.wire.each(func(s *wired) { s.end(engine.Exit{Code: 3}) })
		return nil // it waits for a server that has exited
	}
	exit := engine.Exit{}
	for part, e := range c.wire.exits {
		if strings.Contains(args, part) {
			exit = e
		}
	}
	if c.spec.Process.Args[0] != probe.Path {
		_, _ = io.WriteString(c.spec.Process.Stdout, c.wire.output(args))
	}
	c.end(exit)
	if c.spec.Process.Args[0] == programs.Iperf {
		c.wire.each(func(s *wired) { s.end(engine.Exit{}) }) // the server exits after one client
	}
	return nil
}

// Exec runs a client in the container of a server.
func (c *wired) Exec(_ context.Context, p engine.Process) (engine.Exit, error) {
	args := strings.Join(p.Args, " ")
	c.wire.mu.Lock()
	c.wire.runs = append(c.wire.runs, "within "+args)
	c.wire.mu.Unlock()
	for part, e := range c.wire.exits {
		if strings.Contains(args, part) {
			return e, nil
		}
	}
	if p.Args[0] != probe.Path {
		_, _ = io.WriteString(p.Stdout, c.wire.output(args))
	}
	return engine.Exit{}, nil
}

// each calls do with every server.
func (e *wire) each(do func(*wired)) {
	e.mu.Lock()
	open := slices.Clone(e.open)
	e.mu.Unlock()
	for _, c := range open {
		if c.isServer() {
			do(c)
		}
	}
}

func (c *wired) isServer() bool {
	args := c.spec.Process.Args
	return slices.Contains([]string{programs.Netserver, programs.Nginx, programs.RedisServer}, args[0]) || slices.Contains(args, "--server")
}

func (c *wired) end(exit engine.Exit) { c.finish(exit, c.spec.Process.CloseOutput) }

func (c *wired) Kill(_ context.Context, s syscall.Signal) error {
	switch {
	case s == syscall.SIGTERM && c.wire.stubborn:
		c.wire.hangs()
	case s == syscall.SIGTERM && c.wire.confused:
		c.end(engine.Exit{Code: 1})
	case s == syscall.SIGTERM:
		c.end(engine.Exit{})
	default:
		c.end(engine.Exit{Signal: s})
	}
	return nil
}

func (c *wired) State(context.Context) (engine.State, error) { return engine.Running, nil }

func (c *wired) Delete(context.Context) error {
	c.end(engine.Exit{Signal: syscall.SIGKILL})
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	c.wire.open = slices.DeleteFunc(c.wire.open, func(o *wired) bool { return o == c })
	return nil
}

// captures are the captured outputs of the real programs from package workload, by parts of their arguments.
func captures() map[string]string {
	return map[string]string{
		"--reverse": "iperf3-receive.json", "--json": "iperf3-send.json",
		"-t TCP_STREAM": "netperf-tcp-stream.txt", "-t TCP_MAERTS": "netperf-tcp-maerts.txt", "-t TCP_RR": "netperf-tcp-rr.txt",
		"-t TCP_CRR": "netperf-tcp-crr.txt", "-t UDP_RR": "netperf-udp-rr.txt",
		"/small": "ab-small.txt", "/large": "ab-large.txt", programs.NginxPost: "ab-post.txt", programs.RedisBenchmark: "redis-benchmark-native.csv",
		"INFO": "redis-info.txt",
	}
}

func (e *wire) output(args string) string {
	for part, text := range e.outputs {
		if strings.Contains(args, part) {
			return text
		}
	}
	for part, file := range captures() {
		if strings.Contains(args, part) && (part != "--json" || !strings.Contains(args, "--reverse")) {
			text, err := os.ReadFile(filepath.Join(captureDir, file))
			if err != nil {
				return err.Error()
			}
			return string(text)
		}
	}
	return "no capture of " + args
}

// runOnWire executes a trial between containers of e and its host's end.
func runOnWire(t *testing.T, name string, e *wire, overrides bench.Params, clock meter.Clock) result.Trial {
	t.Helper()
	var trials []result.Trial
	_, err := runner.Run(t.Context(), runner.Config{
		RunID: runID, Images: map[bench.Image]runner.Image{bench.WorkloadImage: {Rootfs: "/"}}, Data: t.TempDir(),
		Work:    []plan.Work{{Benchmark: find(t, name), Params: resolved(t, name, overrides), Limits: engine.Resources{Memory: 64 << 20}}},
		Targets: []runner.Target{{Name: "under/test", Engine: e}}, Host: e,
		Remote: e.far.open, Stop: stats.StopRule{Min: 1}, TrialLimit: time.Hour, CallLimit: 10 * time.Minute, Clock: clock, Noise: quiet{}, Observer: quiet{},
		Record: func(trial result.Trial) error { trials = append(trials, trial); return nil },
	})
	if err != nil || len(trials) != 1 {
		t.Fatalf("Run() = %v with %d trials, want one", err, len(trials))
	}
	if len(e.open) > 0 {
		t.Errorf("%s leaves %d containers", name, len(e.open))
	}
	return trials[0]
}

const (
	networkBandwidth = "performance.network.bandwidth"
	networkNetperf   = "performance.network.netperf"
	networkHTTP      = "performance.network.http"
	databaseRedis    = "performance.database.redis"
)

func overNetwork() []string {
	return []string{networkBandwidth, networkNetperf, networkHTTP, databaseRedis}
}

// The values equal the values in the captures.
func TestNetworkValues(t *testing.T) {
	for _, tt := range []struct {
		name  string
		given bench.Params
		want  map[string]float64
	}{
		{networkBandwidth, bench.Params{"peer": "host", "omit": "1s"}, map[string]float64{"Send": 13831605990.168348, "Receive": 13269210547.321608, "Retransmits": 293 / 1.002101}},
		{networkBandwidth, bench.Params{"peer": "containers", "omit": "1s"}, map[string]float64{"Send": 13831605990.168348, "Receive": 13269210547.321608}},
		{networkNetperf, bench.Params{"peer": "host"}, map[string]float64{"TCP_STREAM": 6012.38e6, "TCP_RR": 12150.73, "TCP_CRR": 10681.37, "UDP_RR": 63491.40}},
		{networkHTTP, bench.Params{"peer": "host"}, map[string]float64{
			"TCPUpload": 6012.38e6, "HTTPUpload": 8 * (16 << 10) * 9297.78,
			"TCPBandwidth": 6078.58e6, "TCPLatency": 82.17e-6, "TCPLatencyP99": 131e-6,
			"HTTPBandwidth": 8 * (1 << 20) * 1383.54, "HTTPLatency": 1 / 29949.55, "HTTPLatencyP99": 89e-6,
		}},
	} {
		checkSamples(t, tt.name, runOnWire(t, tt.name, &wire{}, tt.given, still{}), tt.want, cmpopts.EquateApprox(1e-9, 0))
	}
}

func TestRedisValues(t *testing.T) {
	trial := mustBeOK(t, runOnWire(t, databaseRedis, &wire{}, nil, still{}))
	for metric, want := range map[string]float64{"PING_INLINE": 90909.09, "SET": 96153.84, "LPUSH": 74626.87, "LPUSH_LRANGE": 75757.58, "MSET": 80645.16} {
		if got := trial.Values(metric); !slices.Equal(got, []float64{want}) {
			t.Errorf("%s = %v, want %v", metric, got, want)
		}
	}
	// The series cover sateri's tables A.1 to A.9.
	for _, metric := range []string{"LatencyAvg", "LatencyMin", "LatencyP50", "LatencyP95", "LatencyP99", "LatencyMax"} {
		values := trial.Values(metric)
		if len(values) != len(programs.RedisTests()) {
			t.Errorf("%s has %d values, want one for each test", metric, len(values))
		}
	}
	p99 := trial.Values("LatencyP99")
	for i, test := range programs.RedisTests() {
		if values := trial.Values(test.Name + "P99"); len(values) > 0 && values[0] != p99[i] {
			t.Errorf("%sP99 is %v, and %v in the series", test.Name, values, p99[i])
		}
	}
}

// The client is a further process of the server's container, at its loopback interface.
func TestRedisInOneContainer(t *testing.T) {
	e := &wire{}
	trial := runOnWire(t, databaseRedis, e, bench.Params{"peer": "same"}, still{})
	if trial.Status != result.OK || len(trial.Values("SET")) != 1 {
		t.Fatalf("%s because %s", trial.Status, trial.Reason)
	}
	if len(e.runs) != 4 || !strings.HasPrefix(e.runs[0], "container "+programs.RedisServer) {
		t.Fatalf("the trial runs %q", e.runs)
	}
	for _, run := range e.runs[1:] {
		if !strings.HasPrefix(run, "within ") || !strings.Contains(run, "127.0.0.1") {
			t.Errorf("the client is %q", run)
		}
	}
	if c := trial.Conditions; !strings.Contains(c["client"], "server's container") || !strings.Contains(c["interface"], "loopback") {
		t.Errorf("the conditions are %v", c)
	}
	trial = runOnWire(t, databaseRedis, &wire{exits: map[string]engine.Exit{"reach": {Code: 1}}}, bench.Params{"peer": "same"}, still{})
	checkEnd(t, "without a server", trial, result.Failed, "reach the server at 127.0.0.1:6379")
}

// Snapshots are those of Redis without a configuration. An error of the server fails the trial, since redis-benchmark counts it as an answer.
func TestRedisSnapshots(t *testing.T) {
	for params, want := range map[string]string{"none": "--save  --appendonly no --dir /tmp", "snapshots": "--dir /data --save 3600 1 300 100 60 10000"} {
		for _, peer := range []string{"containers", "same"} {
			e := &wire{}
			trial := mustBeOK(t, runOnWire(t, databaseRedis, e, bench.Params{"persistence": params, "peer": peer}, still{}))
			if !strings.Contains(e.runs[0], want) {
				t.Errorf("persistence=%s calls %q, want %q", params, e.runs[0], want)
			}
			if location := trial.Conditions["snapshots on"]; (location != "") != (params == "snapshots") || (trial.Conditions["snapshots"] == "1") != (params == "snapshots") {
				t.Errorf("persistence=%s has the conditions %v", params, trial.Conditions)
			}
		}
	}
	for _, output := range []string{"total_error_replies:3\nrdb_saves:1\nrdb_last_bgsave_status:ok\n", "total_error_replies:0\nrdb_saves:1\nrdb_last_bgsave_status:err\n", "# Stats\n"} {
		trial := runOnWire(t, databaseRedis, &wire{outputs: map[string]string{"INFO": output}}, bench.Params{"persistence": "snapshots"}, still{})
		checkEnd(t, output, trial, result.Failed, "")
	}
	if needs := find(t, databaseRedis).Needs(resolved(t, databaseRedis, bench.Params{"persistence": "snapshots", "requests": "1000"})); needs.Space.Disk != 128_000 {
		t.Errorf("snapshots of 1000 requests take %d bytes", needs.Space.Disk)
	}
}

// With the capture's rates, one request in each of the tests takes 0.33 ms. If the time allows more than the fewest requests, the
// result comes from a second run.
func TestRedisRequests(t *testing.T) {
	for _, tt := range []struct {
		requests, duration string
		want               []string
	}{
		{"", "", []string{"1000", "5000"}},
		{"", "650ms", []string{"1000"}},
		{"", "660ms", []string{"1000", "2000"}},
		{"1000", "33s", []string{"1000"}},
		{"7000", "33s", []string{"1000", "7000"}},
		{"1000", "0s", []string{"1000"}},
	} {
		overrides := bench.Params{}
		if tt.duration != "" {
			overrides["duration"] = tt.duration
		}
		if tt.requests != "" {
			overrides["requests"] = tt.requests
		}
		e := &wire{}
		trial := mustBeOK(t, runOnWire(t, databaseRedis, e, overrides, still{}))
		var requests []string
		for _, run := range e.runs {
			if _, args, ok := strings.Cut(run, programs.RedisBenchmark); ok {
				fields := strings.Fields(args)
				requests = append(requests, fields[slices.Index(fields, "-n")+1])
			}
		}
		if last := trial.Conditions["requests in each test"]; !slices.Equal(requests, tt.want) || last != tt.want[len(tt.want)-1] {
			t.Errorf("%v: %v requests were made and %s recorded; want %v", overrides, requests, last, tt.want)
		}
		if got := trial.Values("SET"); len(got) != 1 {
			t.Errorf("%v: SET = %v, want one value", overrides, got)
		}
	}
}

// Servers run in containers, clients in the place that the parameter selects. The trial records both places.
func TestPlacesOfServersAndClients(t *testing.T) {
	for _, name := range overNetwork() {
		for peer, want := range map[string]string{"host": "host", "containers": "container"} {
			e := &wire{}
			overrides := bench.Params{"peer": peer}
			if name == networkBandwidth {
				overrides["omit"] = "1s" // as in the captures
			}
			trial := mustBeOK(t, runOnWire(t, name, e, overrides, still{}))
			clients := 0
			for _, run := range e.runs {
				place, args, _ := strings.Cut(run, " ")
				server := (&wired{spec: engine.Spec{Process: engine.Process{Args: strings.Fields(args)}}}).isServer()
				if server && place != "container" || !server && place != want {
					t.Errorf("%s with peer=%s runs %q in the %s", name, peer, args, place)
				}
				if !server {
					clients++
					if !strings.Contains(args, "10.9.0.2") {
						t.Errorf("%s: the client %q does not connect to the server", name, args)
					}
				}
			}
			if clients == 0 {
				t.Errorf("%s has no client", name)
			}
			if trial.Conditions["interface"] != "veth" || trial.Conditions["mtu"] != "1500" || !strings.Contains(trial.Conditions["server"], "container") ||
				!strings.Contains(trial.Conditions["client"], strings.TrimSuffix(peer, "s")) {
				t.Errorf("%s with peer=%s has the conditions %v", name, peer, trial.Conditions)
			}
		}
	}
}

// A fault at either end fails the trial with a reason and without samples.
func TestNetworkFaults(t *testing.T) {
	failed := engine.Exit{Code: 1}
	for _, tt := range []struct {
		what   string
		names  []string
		engine *wire
		reason string
	}{
		{"the server dies", overNetwork(), &wire{dies: true}, "the server: "},
		{"nobody listens", []string{networkNetperf, networkHTTP, databaseRedis}, &wire{exits: map[string]engine.Exit{"reach": failed}}, "reach the server at 10.9.0.2:"},
		{
			"a client fails", overNetwork(),
			&wire{exits: map[string]engine.Exit{"--json": failed, programs.Netperf + " ": failed, programs.AB: failed, programs.RedisBenchmark: failed}},
			"ended: exit code 1",
		},
		{
			"unknown output of a client", overNetwork(),
			&wire{outputs: map[string]string{"--json": "{}", programs.Netperf + " ": "hello\n", programs.AB: "hello\n", programs.RedisBenchmark: "hello\n"}},
			"read ",
		},
		{
			"too much output of a client", overNetwork(),
			&wire{outputs: map[string]string{
				"--json": strings.Repeat("{", 2*bench.MaxOutput), programs.Netperf + " ": strings.Repeat("PROTOCOL=TCP\n", bench.MaxOutput/6),
				programs.AB: strings.Repeat("x", 2*bench.MaxOutput), programs.RedisBenchmark: strings.Repeat("\"\n", bench.MaxOutput),
			}},
			"output",
		},
		{"a server fails on SIGTERM", []string{networkHTTP, databaseRedis}, &wire{confused: true}, "the server: "},
		{"a slow server", []string{networkHTTP}, &wire{outputs: map[string]string{"/small": fewAnswers(t)}}, "too few responses"},
	} {
		for _, name := range tt.names {
			e := &wire{outputs: tt.engine.outputs, exits: tt.engine.exits, dies: tt.engine.dies, confused: tt.engine.confused}
			checkEnd(t, name+", "+tt.what, runOnWire(t, name, e, nil, still{}), result.Failed, tt.reason)
		}
	}
}

// fewAnswers is the output of ab after too few transfers for a 99th percentile.
func fewAnswers(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(captureDir, "ab-small.txt"))
	must.Do(t, err)
	return strings.NewReplacer("29949.55", "48", "29950", "48").Replace(string(text))
}

// A server that never exits or never listens makes the trial exceed a limit.
func TestNetworkHangs(t *testing.T) {
	for _, tt := range []struct {
		what, name string
		engine     *wire
	}{
		{"a server that ignores SIGTERM", databaseRedis, &wire{stubborn: true}},
		{"a server that does not listen", networkBandwidth, &wire{dumb: true}},
	} {
		clock := &limit{}
		tt.engine.hangs = clock.reach
		checkEnd(t, tt.what, runOnWire(t, tt.name, tt.engine, nil, clock), result.Timeout, "")
	}
}

// limit is a stopped clock on which all limits can expire at once.
type limit struct {
	still
	mu      sync.Mutex
	reached bool
	ends    []func()
}

func (l *limit) WithTimeoutCause(ctx context.Context, _ time.Duration, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reached {
		cancel(cause)
	}
	l.ends = append(l.ends, func() { cancel(cause) })
	return ctx, func() { cancel(context.Canceled) }
}

func (l *limit) reach() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reached = true
	for _, end := range l.ends {
		end()
	}
}

// otherMachine is the value of the parameter peer for an imitated machine.
const otherMachine = "192.0.2.7"

// far is an imitated machine with touchstone peer.
type far struct {
	refuses, lost, stays error

	opened []remote.Server
	inUse  int
}

func (f *far) open(_ context.Context, remote remote.Place, server remote.Server) (bench.Remote, error) {
	if f.refuses != nil {
		return nil, f.refuses
	}
	f.opened = append(f.opened, server)
	f.inUse++
	return farServer{f, remote, server}, nil
}

type farServer struct {
	*far
	at     remote.Place
	server remote.Server
}

func (s farServer) Server() netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(s.at.Host), s.server.Port(s.at.Port))
}

func (s farServer) Control() netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(s.at.Host), s.at.Port)
}

func (farServer) About() map[string]string {
	return map[string]string{"server": "another machine", "interface": "eth0"}
}

func (s farServer) Watch(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if s.lost != nil {
		cancel(s.lost)
	}
	return ctx, func() { cancel(context.Canceled) }
}

func (s farServer) Close() error {
	s.inUse--
	return errors.Join(s.lost, s.stays)
}

// Outward makes the wire an engine.Outgoing.
func (e *wire) Outward() (engine.Outward, error) {
	return engine.Outward{Network: e.out, About: "of the wire"}, e.closed
}

// remotely lists the benchmarks whose server can be on another machine, each with its servers there and parts of its clients' arguments.
func remotely() map[string]struct {
	servers []remote.Server
	calls   []string
} {
	return map[string]struct {
		servers []remote.Server
		calls   []string
	}{
		networkBandwidth: {
			[]remote.Server{remote.Iperf, remote.Iperf},
			[]string{"reach", "--client 192.0.2.7 --port 7481 ", "reach", "--client 192.0.2.7 --port 7481 "},
		},
		networkNetperf: {
			[]remote.Server{remote.Netserver},
			[]string{
				"reach", "-H 192.0.2.7 -p 7482 -t TCP_STREAM ", "-p 7482 -t TCP_RR -l 1 -P 0 -- -P ,7483 ", "-p 7482 -t TCP_CRR ", "-p 7482 -t UDP_RR ",
			},
		},
		networkHTTP: {
			[]remote.Server{remote.Netserver, remote.Nginx},
			[]string{
				"reach", "-p 7482 -t TCP_MAERTS ", "-p 7482 -t TCP_STREAM ", "-p 7482 -t TCP_RR ",
				"reach", "http://192.0.2.7:7484/large", "http://192.0.2.7:7484/small", "http://192.0.2.7:7484/post",
			},
		},
	}
}

// With a server on another machine no server runs here, and all clients are in containers of the network that leads there.
func TestServersOnAnotherMachine(t *testing.T) {
	for name, want := range remotely() {
		for _, network := range []engine.Network{engine.HostNet, engine.Bridged} {
			e := &wire{out: network}
			overrides := bench.Params{"peer": otherMachine}
			if name == networkBandwidth {
				overrides["omit"] = "1s" // as in the captures
			}
			trial := runOnWire(t, name, e, overrides, still{})
			if trial.Status != result.OK || !strings.Contains(trial.Params, "peer=192.0.2.7") {
				t.Fatalf("%s %s: %s because %s", name, trial.Params, trial.Status, trial.Reason)
			}
			if diff := cmp.Diff(want.servers, e.far.opened); diff != "" || e.far.inUse != 0 {
				t.Errorf("%s leaves %d servers (-want +got):\n%s", name, e.far.inUse, diff)
			}
			if len(e.runs) != len(want.calls) {
				t.Fatalf("%s runs %q", name, e.runs)
			}
			for i, part := range want.calls {
				if !strings.HasPrefix(e.runs[i], "container ") || !strings.Contains(e.runs[i], part) ||
					part == "reach" && !strings.Contains(e.runs[i], "--address 192.0.2.7 --port 7480 ") {
					t.Errorf("%s: program %d is %q, want %q in a container", name, i+1, e.runs[i], part)
				}
			}
			for condition, text := range map[string]string{"server": "another machine", "client": "a container of the target", "network": "of the wire", "interface": "eth0"} {
				if trial.Conditions[condition] != text {
					t.Errorf("%s: the condition %s is %q, want %q", name, condition, trial.Conditions[condition], text)
				}
			}
		}
	}
}

// Send is the direction out of the container at either end.
func TestDirectionOfBandwidth(t *testing.T) {
	trial := runOnWire(t, networkBandwidth, &wire{out: engine.HostNet}, bench.Params{"peer": otherMachine, "omit": "1s"}, still{})
	reference := runOnWire(t, networkBandwidth, &wire{}, bench.Params{"peer": "host", "omit": "1s"}, still{})
	for metric, counterpart := range map[string]string{"Send": "Receive", "Receive": "Send"} {
		if got, want := trial.Values(metric), reference.Values(counterpart); len(got) != 1 || !slices.Equal(got, want) {
			t.Errorf("%s of a client is %v, want %v, the other direction of a server", metric, got, want)
		}
	}
	if got := trial.Values("Retransmits"); len(got) != 1 {
		t.Errorf("Retransmits is %v", got)
	}
}

// A fault of the other machine or of the path to it fails the trial with its reason. A target whose containers reach no other machine is
// skipped, before a server is started.
func TestFaultsOfAnotherMachine(t *testing.T) {
	for _, tt := range []struct {
		what   string
		engine *wire
		status result.Status
		reason string
	}{
		{"it is busy", &wire{far: far{refuses: errors.New("busy with a trial of 192.0.2.9")}}, result.Failed, "busy with a trial of 192.0.2.9"},
		{"containers have no route", &wire{exits: map[string]engine.Exit{"reach": {Code: 1}}}, result.Failed, "reach 192.0.2.7:7480 from a container of the target: "},
		{"it is lost", &wire{far: far{lost: errors.New("the connection is lost")}}, result.Failed, "the connection is lost"},
		{"it keeps a server", &wire{far: far{stays: errors.New("a process stays")}}, result.Failed, "a process stays"},
		{"the network is closed", &wire{closed: engine.NoWayOut("use your daemon")}, result.Skipped, "no packet leaves it; use your daemon"},
	} {
		for name := range remotely() {
			e := &wire{exits: tt.engine.exits, closed: tt.engine.closed, far: tt.engine.far, out: engine.Bridged}
			trial := runOnWire(t, name, e, bench.Params{"peer": otherMachine, "duration": "1s"}, still{})
			if trial.Status != tt.status || len(trial.Samples) > 0 || strings.Count(trial.Reason, tt.reason) != 1 {
				t.Errorf("%s, %s: %s because %q; want %s because of one %q", name, tt.what, trial.Status, trial.Reason, tt.status, tt.reason)
			}
			if e.far.inUse != 0 || tt.status == result.Skipped && e.far.opened != nil {
				t.Errorf("%s, %s: %d of the servers %v are in use", name, tt.what, e.far.inUse, e.far.opened)
			}
		}
	}
}

// One server has one spelling, so that one measurement has one cell.
func TestSpellingOfAnotherMachine(t *testing.T) {
	for spelling, want := range map[string]string{"192.0.2.7:7480": "192.0.2.7", "Bench2.Example:9000": "bench2.example:9000", "host": "host"} {
		if params := resolved(t, networkHTTP, bench.Params{"peer": spelling}); params["peer"] != want {
			t.Errorf("peer=%s is recorded as %s, want %s", spelling, params["peer"], want)
		}
	}
	if needs := find(t, networkHTTP).Needs(resolved(t, networkHTTP, bench.Params{"peer": otherMachine})); slices.Contains(needs.Capabilities, engine.NetworkBridge) {
		t.Errorf("a server on another machine needs %v", needs.Capabilities)
	}
}
