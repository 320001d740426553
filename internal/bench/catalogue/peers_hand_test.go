package catalogue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/native"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/runner/meter"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

// peerHarness is bare metal, with the image's root file system.
type peerHarness struct {
	*testing.T
	*native.Engine
	session        engine.Session
	rootfs, memory string
	// cpu is the CPU of all programs: the kernel's choice of CPUs for two communicating programs decides about their
	// speed, and differs between runs.
	cpu      string
	programs []program // of the trial
}

// program is a program that a trial has run.
type program struct {
	argv   []string
	server bool
	files  string // a copy of the directory of a server; empty without one
}

// Create records the program.
func (l *peerHarness) Create(ctx context.Context, spec engine.Spec) (engine.Container, error) {
	p := program{argv: spec.Process.Args, server: spec.Network == engine.Bridged}
	if p.server && len(spec.Mounts) > 0 {
		var err error
		if p.files, err = os.MkdirTemp(l.session.Data, ""); err != nil {
			return nil, err
		}
		if err := os.CopyFS(p.files, os.DirFS(spec.Mounts[0].Source)); err != nil {
			return nil, err
		}
	}
	l.programs = append(l.programs, p)
	return l.Engine.Create(ctx, spec)
}

func newPeerHarness(t *testing.T) *peerHarness {
	t.Helper()
	rootfs, _ := enginetest.Workload(t)
	l := &peerHarness{T: t, session: enginetest.Session(t, oci.LauncherOptions), rootfs: rootfs, memory: memoryDir(t), cpu: lastCPU(t)}
	if l.session.Cgroups == nil {
		t.Skip("needs the right to make cgroups: run as root")
	}
	e, err := native.Driver{}.Open(t.Context(), target.Target{Engine: target.Native}, l.session)
	enginetest.Require(t, target.Native, err)
	l.Engine = e.(*native.Engine)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// lastCPU is the last CPU that this process may use: the first CPUs serve more other work.
func lastCPU(t *testing.T) string {
	t.Helper()
	var affinity unix.CPUSet
	must.Do(t, unix.SchedGetaffinity(0, &affinity))
	last := 0
	for cpu := range len(affinity) * 64 {
		if affinity.IsSet(cpu) {
			last = cpu
		}
	}
	return fmt.Sprint(last)
}

// measure returns Touchstone's values, from a trial as in any run, and the programs of the trial.
func (l *peerHarness) measure(p peer) ([]float64, []program, error) {
	l.Helper()
	b := find(l.T, p.benchmark)
	params, err := b.Resolve(p.params, false)
	if err != nil {
		return nil, nil, err
	}
	l.programs = nil
	var trial result.Trial
	_, err = runner.Run(l.Context(), runner.Config{
		RunID: l.session.RunID, Images: map[bench.Image]runner.Image{b.Image: {Rootfs: l.rootfs}}, Data: l.session.Data, Memory: l.memory,
		Work: []plan.Work{{Benchmark: b, Params: params}}, Targets: []runner.Target{{Name: target.Native, Engine: l}}, Host: l,
		WorkloadCPUs: l.cpu, HostCPUs: l.cpu,
		Stop: stats.StopRule{Min: 1}, TrialLimit: peerLimit, CallLimit: peerLimit,
		Clock: meter.System{}, Cgroups: l.session.Cgroups, Noise: quiet{}, Observer: quiet{},
		Record: func(t result.Trial) error { trial = t; return nil },
	})
	if err != nil {
		return nil, nil, err
	}
	if trial.Status != result.OK {
		return nil, nil, fmt.Errorf("%s because %s: %s", trial.Status, trial.Reason, trial.Output)
	}
	var values []float64
	for _, v := range p.values {
		var found []float64
		for _, metric := range v.metrics {
			found = append(found, trial.Values(metric)...)
		}
		if len(found) != len(v.metrics) {
			return nil, nil, fmt.Errorf("%v have the values %v", v.metrics, found)
		}
		values = append(values, v.one(found))
	}
	return values, l.programs, nil
}

// inRoot is the head of the scripts that run programs by hand, as in a shell: in the root directory $1, with the directory $2
// at /data. The script has its own mounts. It joins cgroups, since the accounting of a cgroup, mostly of memory, costs time.
const inRoot = `
set -eu
root=$1 data=$2
shift 2
for dir in proc dev sys; do mount --rbind "/$dir" "$root/$dir"; done
mount -t tmpfs tmpfs "$root/tmp"
mount --bind "$data" "$root/data"
join() { for file in $1; do echo 0 >"$file"; done; }
in_root() { unshare --root="$root" --wd=/data "$@"; }
`

// oneByOneScript runs programs, separated by "--then", one after the other.
const oneByOneScript = inRoot + `
join "$PROGRAM"
TIMEFORMAT='took %3R'
while [ $# -gt 0 ]; do
	program=()
	while [ $# -gt 0 ] && [ "$1" != --then ]; do program+=("$1"); shift; done
	[ $# -eq 0 ] || shift
	{ time in_root "${program[@]}"; } 2>&1
done
`

// took matches the time that oneByOneScript writes after each program.
const took = `^took ([0-9.]+)$`

// byHand runs the programs of a trial by hand and returns their values.
func (l *peerHarness) byHand(p peer, programs []program) ([]float64, error) {
	l.Helper()
	var output []byte
	var err error
	if slices.ContainsFunc(programs, func(p program) bool { return p.server }) {
		output, err = l.overNetwork(programs)
	} else {
		output, err = l.oneByOne(p, programs[len(programs)-1])
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, output)
	}
	return p.read(output)
}

// oneByOne runs a program, or the programs of a sequence, one after the other.
func (l *peerHarness) oneByOne(p peer, last program) ([]byte, error) {
	args := slices.DeleteFunc(slices.Clone(last.argv), func(arg string) bool { return slices.Contains(p.without, arg) })
	if i := slices.Index(args, "--"); i > 0 && slices.Contains(args[:i], "sequence") {
		args = args[i+1:]
	}
	return l.shell(hand{script: oneByOneScript, in: l.memory, groups: []string{"PROGRAM"}}, args...)
}

// hand describes a run by hand.
type hand struct {
	script    string
	in        string   // parent of the directory for /data
	files     string   // directory with its content
	groups    []string // variables with the files for joining cgroups
	namespace string   // an option of unshare for a namespace in addition to mounts; may be empty
}

// shell runs a script with arguments and returns its output. Its cgroups are beside the cgroups of trials.
func (l *peerHarness) shell(h hand, args ...string) (output []byte, err error) {
	data, err := os.MkdirTemp(h.in, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	if h.files != "" {
		if err := os.CopyFS(data, os.DirFS(h.files)); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(l.Context(), peerLimit)
	defer cancel()
	options := []string{"--cpu-list", l.cpu, "unshare", "--mount", "--propagation", "private"}
	if h.namespace != "" {
		options = append(options, h.namespace)
	}
	cmd := exec.CommandContext(ctx, "taskset", slices.Concat(options, []string{"--", "bash", "-c", h.script, "by-hand", l.rootfs, data}, args)...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	var buffer bytes.Buffer
	cmd.Stdout, cmd.Stderr = &buffer, &buffer
	run := func() error { return l.session.Launcher.Run(ctx, cmd) }
	for _, group := range h.groups {
		run = l.joining(ctx, cmd, group, run)
	}
	err = run()
	return buffer.Bytes(), err
}

// joining calls run with a cgroup whose files are in an environment variable of the command.
func (l *peerHarness) joining(ctx context.Context, cmd *exec.Cmd, variable string, run func() error) func() error {
	name := "by-hand-" + strings.ToLower(variable)
	return func() error {
		return l.session.InCgroup(ctx, l, name, func() error {
			group, err := l.session.Cgroups.Create("/" + engine.Prefix + l.session.RunID + "/" + name + "/program")
			if err != nil {
				return err
			}
			files := slices.DeleteFunc(group.ProcsFiles(), l.session.Hides)
			cmd.Env = append(cmd.Env, variable+"="+strings.Join(files, " "))
			return run()
		})
	}
}

// networkPeers are the peers with a server, and with clients at the host's end.
func networkPeers() []peer {
	useHostPeer := func(params bench.Params) bench.Params {
		params["peer"] = bench.HostPeer
		return params
	}
	iperf := func(metric, reverse string) value {
		return one(metric, `"reverse":\s*`+reverse+`,(?s:.*?)"sum_received":(?s:.*?)"bits_per_second":\s*([0-9.e+]+)`, nil)
	}
	// A report of netperf begins with the name of the test.
	netperf := func(test, protocol, direction string, unit float64) value {
		return one(test, `^PROTOCOL=`+protocol+`\nDIRECTION=`+direction+`\n(?s:.*?)\nTHROUGHPUT=([0-9.]+)$`, times(unit))
	}
	ab := func(metric, file, number string, convert func(float64) float64) value {
		return one(metric, `^Document Path: +/`+file+`$(?s:.*?)^`+number+`: +([0-9.]+) `, convert)
	}
	// One test alone is too short for redis-benchmark, which counts whole milliseconds.
	redis := value{name: "all tests", pattern: `^"[A-Z_0-9]+(?: \([^)]*\))?","([0-9.]+)"`, together: serially}
	for _, test := range programs.RedisTests() {
		redis.metrics = append(redis.metrics, test.Name)
	}
	return []peer{
		{
			benchmark: "performance.network.bandwidth", params: useHostPeer(bench.Params{"duration": "1s"}), turns: 1,
			values: []value{iperf("Send", "1"), iperf("Receive", "0")},
		},
		{
			benchmark: "performance.network.netperf", params: useHostPeer(bench.Params{"duration": "1s"}), turns: 1,
			values: []value{
				netperf("TCP_STREAM", "TCP", "Send", 1e6), netperf("TCP_RR", "TCP", `Send\|Recv`, 1),
				netperf("TCP_CRR", "TCP", `Connect\|Send\|Recv`, 1), netperf("UDP_RR", "UDP", `Send\|Recv`, 1),
			},
		},
		{
			benchmark: "performance.network.http", params: useHostPeer(bench.Params{"duration": "1s"}), turns: 1,
			// The tests with netperf are compared above.
			values: []value{
				ab("HTTPBandwidth", "large", "Transfer rate", times(8*1024)), ab("HTTPLatency", "small", "Requests per second", inverse),
				ab("HTTPUpload", "post", "Requests per second", times(8*(16<<10))),
			},
		},
		{
			benchmark: "performance.database.redis", params: useHostPeer(bench.Params{"duration": "0s", "requests": "5000"}), turns: 1,
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
