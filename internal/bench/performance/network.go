package performance

import (
	"context"
	"fmt"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
)

// longestTest bounds the time of a test, and thus ab's memory, which grows with it.
const longestTest = 5 * time.Minute

// testTime is the parameter for the time of each of a benchmark's tests. iperf3, netperf and ab count in whole seconds.
func testTime(help string) bench.Param {
	return bench.Param{
		Name: "duration", Help: help, Quick: time.Second.String(), Paper: (10 * time.Second).String(),
		Check: wholeSeconds(time.Second),
	}
}

func wholeSeconds(minimum time.Duration) func(string) error {
	return func(v string) error {
		if d, err := time.ParseDuration(v); err != nil || d < minimum || d > longestTest || d%time.Second != 0 {
			return fmt.Errorf("must be whole seconds from %v to %v", minimum, longestTest)
		}
		return nil
	}
}

// overNetwork completes a benchmark with tests of a given time each between a server and a client. The parameter peer places the
// client of a server in a container at the host's end or in another container. Or it places the server on another machine; its client
// is then in a container, whose network depends on the engine.
func overNetwork(b bench.Benchmark, timeHelp string, run func(ctx context.Context, t bench.Trial, duration time.Duration) error) bench.Benchmark {
	b.Params = []bench.Param{bench.PeerOrRemote(bench.HostPeer), testTime(timeHelp)}
	b.Image = bench.WorkloadImage
	b.Needs = func(p bench.Params) bench.Needs {
		if _, remote := bench.RemotePeer(p); remote {
			return bench.Needs{}
		}
		return bench.Needs{Capabilities: []engine.Capability{engine.NetworkBridge}}
	}
	b.Run = func(ctx context.Context, t bench.Trial) error {
		return run(ctx, t, t.Duration("duration"))
	}
	return b
}
