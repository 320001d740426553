package catalogue_test

import (
	"errors"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// networkPeers are the peers with a server, and with clients at the host's end.
func networkPeers() []peer {
	beside := func(more bench.Params) bench.Params {
		more["peer"] = bench.HostPeer
		return more
	}
	iperf := func(metric, reverse string) value {
		return one(metric, `"reverse":\s*`+reverse+`,(?s:.*?)"sum_received":(?s:.*?)"bits_per_second":\s*([0-9.e+]+)`, nil)
	}
	// A report of netperf begins with the name of the test.
	netperf := func(test, protocol, direction string, unit float64) value {
		return one(test, `^PROTOCOL=`+protocol+`\nDIRECTION=`+direction+`\n(?s:.*?)\nTHROUGHPUT=([0-9.]+)$`, times(unit))
	}
	ab := func(metric, file, number string, of func(float64) float64) value {
		return one(metric, `^Document Path: +/`+file+`$(?s:.*?)^`+number+`: +([0-9.]+) `, of)
	}
	// One test alone is too short for redis-benchmark, which counts whole milliseconds.
	redis := value{name: "all tests", pattern: `^"[A-Z_0-9]+(?: \([^)]*\))?","([0-9.]+)"`, together: serially}
	for _, test := range workload.RedisTests() {
		redis.metrics = append(redis.metrics, test.Name)
	}
	return []peer{
		{
			benchmark: "performance.network.bandwidth", params: beside(bench.Params{"duration": "1s"}), turns: 1,
			values: []value{iperf("Send", "1"), iperf("Receive", "0")},
		},
		{
			benchmark: "performance.network.netperf", params: beside(bench.Params{"duration": "1s"}), turns: 1,
			values: []value{
				netperf("TCP_STREAM", "TCP", "Send", 1e6), netperf("TCP_RR", "TCP", `Send\|Recv`, 1),
				netperf("TCP_CRR", "TCP", `Connect\|Send\|Recv`, 1), netperf("UDP_RR", "UDP", `Send\|Recv`, 1),
			},
		},
		{
			benchmark: "performance.network.http", params: beside(bench.Params{"duration": "1s"}), turns: 1,
			// The tests with netperf are compared above.
			values: []value{
				ab("HTTPBandwidth", "large", "Transfer rate", times(8*1024)), ab("HTTPLatency", "small", "Requests per second", inverse),
				ab("HTTPUpload", "post", "Requests per second", times(8*(16<<10))),
			},
		},
		{
			benchmark: "performance.database.redis", params: beside(bench.Params{"duration": "0s", "requests": "5000"}), turns: 1,
			values: []value{redis},
		},
	}
}

// overNetworkScript runs programs, each after a word: a "server" at one end of a network, or a "client" at the other end until
// it exits. "listening" waits for the first line of the server. A server is killed before the next one starts, or after the
// last client.
//
// The network is Touchstone's network for bare metal: an Ethernet pair between two namespaces, with the same addresses and
// without IPv6. The script's own namespace is the host's end.
const overNetworkScript = inRoot + `
begin() {
	for which in all default; do
		file=/proc/sys/net/ipv6/conf/$which/disable_ipv6
		[ ! -e "$file" ] || echo 1 >"$file"
	done
	ip link set lo up
}
inside=$root/tmp/inside
touch "$inside"
unshare --net="$inside" bash -c "$(declare -f begin); begin"
begin
ip link add host0 type veth peer name eth0 netns "$inside"
ip address add 198.18.0.1/16 dev host0
ip link set host0 up
nsenter --net="$inside" -- bash -euc '
	ip address add 198.18.0.2/16 dev eth0
	ip link set eth0 up
	ip route add default via 198.18.0.1
'
server=
end() {
	[ -n "$server" ] || return 0
	kill "$server" 2>/dev/null || true # one that serves once has ended
	wait "$server" || true
}
trap end EXIT
while [ $# -gt 0 ]; do
	word=$1
	shift
	program=()
	while [ $# -gt 0 ] && [ "$1" != --then ]; do program+=("$1"); shift; done
	[ $# -eq 0 ] || shift
	case $word in
	server)
		end
		exec {said}< <(
			join "$SERVER"
			exec nsenter --net="$inside" -- unshare --root="$root" --wd=/ "${program[@]}" </dev/null
		)
		server=$!
		;;
	listening) read -r -t 30 line <&"$said" ;;
	client) (join "$CLIENT"; in_root "${program[@]}") ;;
	esac
done
`

// overNetwork runs the programs of a trial at both ends of a network.
func (l *peerHarness) overNetwork(programs []program) ([]byte, error) {
	h := hand{script: overNetworkScript, in: l.session.Data, groups: []string{"SERVER", "CLIENT"}, namespace: "--net"}
	var args []string
	for i, p := range programs {
		word := "client"
		if p.server {
			word = "server"
		}
		args = append(slices.Concat(args, []string{word}, p.argv), "--then")
		if p.files != "" {
			if h.files != "" {
				return nil, errors.New("two servers have files")
			}
			h.files = p.files
		}
		// A server without a probing client reports itself that it listens.
		if p.server && i+1 < len(programs) && !slices.Contains(programs[i+1].argv, "reach") {
			args = append(args, "listening", "--then")
		}
	}
	return l.shell(h, args...)
}
