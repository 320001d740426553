package cli_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/network"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/peer"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/test/cells"
	"github.com/touchstone-bench/touchstone/test/record"
)

// The addresses of the two namespaces, from a range for documentation.
const (
	hereAddress  = "198.51.100.1"
	thereAddress = "198.51.100.2"
)

// twoNamespaces returns the paths of two network namespaces with a veth pair between them.
func twoNamespaces(t *testing.T) (first, second string) {
	t.Helper()
	var spaces [2]*network.Namespace
	for i := range spaces {
		n, err := network.New()
		must.Do(t, err)
		t.Cleanup(func() { _ = n.Close() })
		spaces[i] = n
	}
	file, err := os.Open(spaces[1].Path())
	must.Do(t, err)
	defer func() { _ = file.Close() }()
	assign := func(text string) error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		address, err := netlink.ParseAddr(text + "/24")
		if err != nil {
			return err
		}
		return errors.Join(netlink.AddrAdd(link, address), netlink.LinkSetUp(link))
	}
	err = spaces[0].Do(func() error {
		attributes := netlink.NewLinkAttrs()
		attributes.Name = "eth0"
		pair := &netlink.Veth{LinkAttrs: attributes, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(file.Fd()))}
		return errors.Join(netlink.LinkAdd(pair), assign(hereAddress))
	})
	if err == nil {
		err = spaces[1].Do(func() error { return assign(thereAddress) })
	}
	must.Do(t, err)
	return spaces[0].Path(), spaces[1].Path()
}

// within returns the command that executes touchstone in a network namespace. nsenter becomes touchstone, so that signals reach it.
func within(namespace string, args ...string) []string {
	return append([]string{"nsenter", "--net=" + namespace, "touchstone"}, args...)
}

// serving starts touchstone peer and returns when it serves, with the ID of its directories on this machine and its secret.
func serving(t *testing.T, namespace string) (p *program, id, secret string) {
	t.Helper()
	p = prepareFor(t, 15*time.Minute, t.TempDir(), within(namespace, "peer", "--listen", thereAddress)...)
	p.cmd.Stdout = nil
	stdout, err := p.cmd.StdoutPipe()
	must.Do(t, err)
	p.run()
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		p.stdout.WriteString(lines.Text() + "\n")
		if word, found := strings.CutPrefix(lines.Text(), "  "); found { // the last of the indented lines
			secret = word
		}
		if strings.Contains(lines.Text(), "^C ends the servers") {
			if !regexp.MustCompile(`^[A-Z2-7]{26,}$`).MatchString(secret) {
				t.Fatalf("the secret is %q", secret)
			}
			return p, runOf(t, p.cmd.Process.Pid), secret
		}
	}
	p.ends(-2) // it prints the output
	return nil, "", ""
}

// withSecret gives a secret to a program that has not started.
func withSecret(p *program, secret string) *program {
	p.cmd.Env = append(p.cmd.Env, peer.SecretVariable+"="+secret)
	return p
}

// nowhere checks that no file of a folder contains a secret.
func nowhere(t *testing.T, dir, secret string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		files++
		content, err := os.ReadFile(name)
		if bytes.Contains(content, []byte(secret)) {
			t.Errorf("%s contains the secret", name)
		}
		return err
	})
	if err != nil || files < 2 {
		t.Errorf("in %s are %d files, %v", dir, files, err)
	}
}

// runOf returns the ID of the directories that a process has locked.
func runOf(t *testing.T, pid int) string {
	t.Helper()
	fds := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(fds)
	must.Do(t, err)
	id := regexp.MustCompile(`/([0-9]{8}-[0-9]{6}-[a-z2-7]{4})/`)
	for _, e := range entries {
		link, err := os.Readlink(filepath.Join(fds, e.Name()))
		if m := id.FindStringSubmatch(link); err == nil && m != nil {
			return m[1]
		}
	}
	t.Fatalf("process %d has locked no directories", pid)
	return ""
}

// remotePlan is a plan of the network benchmarks with their servers in the other namespace.
func remotePlan(targets ...string) string {
	text := "version: 1\ntargets: [" + strings.Join(targets, ", ") + "]\nblocks: 1\nwarmup: 0\nbenchmarks:\n"
	for _, b := range remoteBenchmarks() {
		text += fmt.Sprintf("  - {name: %s, params: {peer: %s}}\n", b.Name, thereAddress)
	}
	return text
}

// remoteBenchmarks are the benchmarks whose servers can be on another machine.
func remoteBenchmarks() []bench.Benchmark {
	return realPrograms(func(b bench.Benchmark) bool { return bench.Matches("performance.network", b.Name) })
}

// TestRealTwoMachines runs the network benchmarks with their servers in another network namespace, as a machine without a second one can. A
// busy host can spoil a trial, as by a lost packet: a run with such a trial is repeated once.
//
// Invariant server-session.
// Invariant peer-secret.
// Invariant another-machine.
func TestRealTwoMachines(t *testing.T) {
	cells.Need(t, "cli/remote")
	needRoot(t, "runc", "runsc")
	if _, err := exec.LookPath("nsenter"); err != nil {
		t.Skip("needs nsenter: ", err)
	}
	enginetest.Workload(t)
	t.Parallel()
	targets := []string{"native", "oci/runc"}
	first, second := twoNamespaces(t)
	server, serverID, secret := serving(t, second)
	dir := t.TempDir()
	write := func(targets ...string) {
		t.Helper()
		must.Do(t, os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte(remotePlan(targets...)), 0o600))
	}
	write(targets...)
	measure := func(codes ...int) *program {
		t.Helper()
		p := withSecret(prepareFor(t, 10*time.Minute, dir, within(first, "benchmark", "-f", "plan.yaml")...), secret)
		p.run()
		p.ends(codes...)
		return p
	}
	for _, stranger := range []string{"", "another-secret-of-the-tests"} {
		p := withSecret(prepareFor(t, time.Minute, dir, within(first, "benchmark", "-f", "plan.yaml")...), stranger)
		p.run()
		p.ends(1)
		p.says(`^touchstone: use the server on another machine, 198\.51\.100\.2: .*the secret is missing or another: set TOUCHSTONE_PEER_SECRET`)
	}
	// completed runs the plan, and once more if a trial is spoilt.
	completed := func(spoilt func(result.Trial) bool) (p *program, run result.Run) {
		t.Helper()
		for n := range 2 {
			p = measure(0, 3)
			run = export(t, dir, "latest")
			nothingLeft(t, run.ID)
			i := slices.IndexFunc(run.Trials, spoilt)
			if i < 0 {
				return p, run
			}
			reason := fmt.Sprintf("%s on %s is %s: %s", run.Trials[i].Benchmark, run.Trials[i].Target, run.Trials[i].Status, run.Trials[i].Reason)
			if n == 0 {
				record.Repeat(t, reason)
			} else {
				t.Log(reason)
			}
		}
		t.Error("a trial of both runs failed")
		return p, run
	}
	p, run := completed(func(trial result.Trial) bool { return trial.Status != result.OK })
	p.says(`^note: the servers of peer=198\.51\.100\.2 are on this machine, in another network namespace: this is no measurement between two machines$`)
	checkRemote(t, run, targets)
	nowhere(t, dir, secret)

	// gVisor with the host's network mostly writes less than netperf asks for, and netperf then ends its test. A trial without such a write is ok.
	write("oci/runsc")
	_, run = completed(func(trial result.Trial) bool {
		isShort := trial.Benchmark != "performance.network.bandwidth" && strings.Contains(trial.Reason, "a send that writes less than it should ends the test")
		return trial.Status != result.OK && !isShort
	})
	for _, trial := range run.Trials {
		if trial.Status == result.OK && !strings.Contains(trial.Conditions["network"], "--network=host") {
			t.Errorf("%s on gVisor has the network %q", trial.Benchmark, trial.Conditions["network"])
		}
	}

	server.signal(syscall.SIGTERM)
	server.ends(0)
	nothingLeft(t, serverID)
	p = measure(1)
	p.says(`^touchstone: use the server on another machine, 198\.51\.100\.2: connection refused: .*: run touchstone peer --listen 198\.51\.100\.2:7480 on that machine$`)
}

// checkRemote checks the trials of remotePlan.
func checkRemote(t *testing.T, run result.Run, targets []string) {
	t.Helper()
	if !strings.Contains(strings.Join(run.Caveats, "\n"), "in another network namespace") {
		t.Errorf("the run has the caveats %q", run.Caveats)
	}
	checkTrials(t, run, remoteBenchmarks())
	if want := len(targets) * len(remoteBenchmarks()); len(run.Trials) != want || want < 6 {
		t.Errorf("there are %d trials, want %d", len(run.Trials), want)
	}
	for _, trial := range run.Trials {
		if !strings.Contains(trial.Params, "peer="+thereAddress) {
			t.Errorf("%s on %s has the parameters %q", trial.Benchmark, trial.Target, trial.Params)
		}
		for condition, want := range map[string]string{
			"server": "this machine, in another network namespace", "client": "a container of the target", "interface": "eth0", "kind": "veth",
			"network": "the host's own", "server's machine": "Linux ", "server's interface": "eth0", "server's image": "sha256:",
		} {
			if !strings.HasPrefix(trial.Conditions[condition], want) {
				t.Errorf("%s on %s: the condition %q is %q, want %q", trial.Benchmark, trial.Target, condition, trial.Conditions[condition], want)
			}
		}
		for _, s := range trial.Samples {
			if s.Metric != "Retransmits" && s.Value <= 0 {
				t.Errorf("%s on %s: %s is %v", trial.Benchmark, trial.Target, s.Metric, s.Value)
			}
		}
	}
}

// TestRealServerIsLost kills touchstone peer during a trial, which fails with the reason. Nothing of either program is left.
func TestRealServerIsLost(t *testing.T) {
	cells.Need(t, "cli/remote")
	needRoot(t)
	if _, err := exec.LookPath("nsenter"); err != nil {
		t.Skip("needs nsenter: ", err)
	}
	enginetest.Workload(t)
	t.Parallel()
	first, second := twoNamespaces(t)
	server, serverID, secret := serving(t, second)
	dir := t.TempDir()
	text := "version: 1\ntargets: [native]\nblocks: 1\nwarmup: 0\nbenchmarks:\n" +
		"  - {name: performance.network.netperf, params: {peer: " + thereAddress + ", duration: 30s}}\n"
	must.Do(t, os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte(text), 0o600))
	p := withSecret(prepare(t, dir, within(first, "benchmark", "-f", "plan.yaml")...), secret)
	p.run()
	server.awaitLine("serves " + hereAddress)
	server.signal(syscall.SIGKILL)
	server.ends(-1)
	p.ends(3)
	run := export(t, dir, "latest")
	nothingLeft(t, run.ID)
	if len(run.Trials) != 1 || run.Trials[0].Status != result.Failed || len(run.Trials[0].Samples) > 0 || !strings.Contains(run.Trials[0].Reason, "the connection to touchstone peer is lost") {
		t.Errorf("the trials are %+v", run.Trials)
	}
	start(t, t.TempDir(), "cleanup").ends(0)
	nothingLeft(t, serverID)
}
