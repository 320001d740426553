// Package outage is the adversarial campaign of cluster runs: the real program on a real cluster of three nodes, whose parts are killed while it
// measures. It has only tests.
//
// The moments, the victims and the order of the kills follow from a seed, which each campaign prints. FLEET_KILLS, FLEET_SEED and FLEET_MINUTES set the
// number of kills, the seed and a time limit. FLEET_FULL=1 selects the full campaign, which needs the machine for itself. scripts/bench-fleet.sh measures the size of a cluster run with a thousand nodes.
package outage

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/kube"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/test/cluster"
	"github.com/touchstone-bench/touchstone/test/record"
)

// builtVariable names the directory with the program touchstone: make chaos-programs builds it.
const builtVariable = "TOUCHSTONE_CHAOS"

// patience is the limit against hanging of each wait.
const patience = 10 * time.Minute

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// program returns the path of touchstone, on a machine that can run a cluster.
func program(t testing.TB) string {
	t.Helper()
	cluster.Require(t)
	path := filepath.Join(os.Getenv(builtVariable), "touchstone")
	if _, err := os.Stat(path); os.Getenv(builtVariable) == "" || err != nil {
		reason := fmt.Sprintf("%s names no directory with touchstone: make chaos-programs builds bin/chaos", builtVariable)
		if os.Getenv("TOUCHSTONE_MUST_RUN") != "" {
			t.Fatal(reason)
		}
		record.Skip(t, reason)
	}
	return path
}

// agentImage is the name of the image of agents in all clusters of the campaign.
const agentImage = "localhost/touchstone:fleet"

// archive returns the archive of the image of agents.
func archive(t testing.TB) string {
	t.Helper()
	path := program(t)
	file := filepath.Join(t.TempDir(), "agent.tar")
	output, err := exec.Command(path, "cluster", "image", "save", file, "--probe-only", "--name", agentImage).CombinedOutput()
	if err != nil {
		t.Fatalf("make the image of agents: %v\n%s", err, output)
	}
	return file
}

// site is a cluster with touchstone.
type site struct {
	*testing.T
	*cluster.Cluster
	client  *kube.Client
	program string
	nodes   int
}

// nodeName is the name of a node in a cluster.
func nodeName(n int) string { return fmt.Sprintf("node%d", n) }

// newSite starts a cluster whose nodes have the image of agents.
func newSite(t *testing.T, nodes int) *site {
	t.Helper()
	s := &site{T: t, program: program(t), nodes: nodes}
	s.Cluster = cluster.New(t, cluster.Options{Nodes: nodes, Images: []string{archive(t)}})
	config, _, err := kube.Place{Kubeconfig: s.Kubeconfig}.Load()
	must.Do(t, err)
	s.client, err = kube.New(config, "touchstone-test")
	must.Do(t, err)
	return s
}

// kubectl returns the output of kubectl, and its error: the API server may be killed.
func (s *site) kubectl(args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(s.Dir, "bin", "kubectl"), append([]string{"--kubeconfig", s.Kubeconfig, "--cache-dir", filepath.Join(s.Dir, "cache")}, args...)...)
	var output, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &messages
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, messages.String())
	}
	return output.String(), nil
}

// touchstone runs touchstone with the cluster, and returns its output.
func (s *site) touchstone(args ...string) (string, error) {
	return s.touchstoneLocal(append(args, "--kubeconfig", s.Kubeconfig)...)
}

// touchstoneLocal runs touchstone without a cluster, and returns its output.
func (s *site) touchstoneLocal(args ...string) (string, error) {
	output, err := cluster.Bind(exec.Command(s.program, args...)).CombinedOutput()
	return string(output), err
}

// await repeats a check until it returns no reason to wait. The objects and processes of a cluster end later than the requests that end them.
func (s *site) await(subject string, check func() string) {
	s.Helper()
	reason := "it has no time"
	for limit := time.Now().Add(patience); time.Now().Before(limit); pause(interval) {
		if reason = check(); reason == "" {
			return
		}
	}
	s.Errorf("%s after %v: %s", subject, patience, reason)
}

// interval is the time between two checks of a state that no event announces.
const interval = 200 * time.Millisecond

// pause waits: the moments of kills are random.
func pause(d time.Duration) { <-time.After(d) }

// number reads a number of the environment.
func number(t testing.TB, variable string, fallback int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("read %s: %v", variable, err)
	}
	return n
}
