package catalogue_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// otherMachine is the value of the parameter peer for an imitated machine.
const otherMachine = "192.0.2.7"

// far is an imitated machine with touchstone serve.
type far struct {
	refuses, lost, stays error

	opened []workload.Served
	inUse  int
}

func (f *far) open(_ context.Context, at workload.Remote, server workload.Served) (bench.Remote, error) {
	if f.refuses != nil {
		return nil, f.refuses
	}
	f.opened = append(f.opened, server)
	f.inUse++
	return farServer{f, at, server}, nil
}

type farServer struct {
	*far
	at     workload.Remote
	server workload.Served
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
	servers []workload.Served
	calls   []string
} {
	return map[string]struct {
		servers []workload.Served
		calls   []string
	}{
		networkBandwidth: {
			[]workload.Served{workload.ServedIperf, workload.ServedIperf},
			[]string{"reach", "--client 192.0.2.7 --port 7481 ", "reach", "--client 192.0.2.7 --port 7481 "},
		},
		networkNetperf: {
			[]workload.Served{workload.ServedNetserver},
			[]string{
				"reach", "-H 192.0.2.7 -p 7482 -t TCP_STREAM ", "-p 7482 -t TCP_RR -l 1 -P 0 -- -P ,7483 ", "-p 7482 -t TCP_CRR ", "-p 7482 -t UDP_RR ",
			},
		},
		networkHTTP: {
			[]workload.Served{workload.ServedNetserver, workload.ServedNginx},
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
			given := bench.Params{"peer": otherMachine}
			if name == networkBandwidth {
				given["omit"] = "1s" // as in the captures
			}
			trial := runOnWire(t, name, e, given, still{})
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
	here := runOnWire(t, networkBandwidth, &wire{}, bench.Params{"peer": "host", "omit": "1s"}, still{})
	for metric, as := range map[string]string{"Send": "Receive", "Receive": "Send"} {
		if got, want := trial.Values(metric), here.Values(as); len(got) != 1 || !slices.Equal(got, want) {
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
	for given, want := range map[string]string{"192.0.2.7:7480": "192.0.2.7", "Bench2.Example:9000": "bench2.example:9000", "host": "host"} {
		if params := resolved(t, networkHTTP, bench.Params{"peer": given}); params["peer"] != want {
			t.Errorf("peer=%s is recorded as %s, want %s", given, params["peer"], want)
		}
	}
	if needs := find(t, networkHTTP).Needs(resolved(t, networkHTTP, bench.Params{"peer": otherMachine})); slices.Contains(needs.Capabilities, engine.NetworkBridge) {
		t.Errorf("a server on another machine needs %v", needs.Capabilities)
	}
}
