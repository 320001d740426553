package outage

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// machinePlan measures the nodes themselves, for half a minute.
const machinePlan = `version: 1
name: machine
targets: [native, oci/runc]
benchmarks: [operations.container.lifecycle]
blocks: 40
warmup: 0
`

// nodeRemains lists in a node the folders, cgroups, mounts and processes of runs that measured it.
const nodeRemains = `ls -d /var/lib/touchstone* /run/touchstone* 2>/dev/null
find /sys/fs/cgroup -name 'touchstone-*'
awk '$2 ~ /touchstone/ { print "mount", $2 }' /proc/mounts
pgrep -fa '^/proc/self/exe agent'
true`

// TestPrivilegedAgents measures nodes by privileged agents that are killed meanwhile. Each run is complete, with all trials once, and nothing is left in
// the cluster and on the nodes.
//
// Invariant privileged-leftovers: A privileged agent leaves nothing on its node, also if it is killed: the next agent or touchstone cluster cleanup removes it.
func TestPrivilegedAgents(t *testing.T) {
	cells.Need(t, "fleet/privileged")
	s := newSite(t, 2)
	s.plant()
	state, err := s.state()
	must.Do(t, err)
	for _, part := range []struct {
		name string
		test func(s *site)
	}{
		{"agents killed", killedPrivilegedAgents},
		{"nobody left to clean", abandonedNodes},
		{"stopped", stoppedPrivilegedAgents},
		{"restricted namespace", restrictedNamespace},
	} {
		t.Run(part.name, func(t *testing.T) {
			scope := *s
			scope.T = t
			part.test(&scope)
			scope.unchanged(state)
			scope.cleanNodes()
		})
	}
}

// cleanNodes checks that the nodes have nothing of a run.
func (s *site) cleanNodes() {
	s.Helper()
	for n := 1; n <= s.nodes; n++ {
		if left := strings.TrimSpace(s.Node(s, n, "sh", "-c", nodeRemains)); left != "" {
			s.Errorf("node%d has leftovers:\n%s", n, left)
		}
	}
}

// killedPrivilegedAgents kills the agent of one node, and removes the pod of the other one at once.
func killedPrivilegedAgents(s *site) {
	f := s.begin(machinePlan, "--privileged-agents")
	f.awaitTrials(10)
	f.keep()
	if groups := s.Node(s, 1, "sh", "-c", `cat /proc/$(pgrep -f '^/proc/self/exe agent node')/cgroup`); strings.Contains(groups, "kubepods") ||
		!strings.Contains(groups, "/touchstone-agent-"+f.id) {
		s.Errorf("the agent measures the node in the cgroups of a pod:\n%s", groups)
	}
	k := &kill{fleet: f, node: 1}
	k.agentProcess()
	_, err := s.kubectl("delete", "pod", "--namespace", f.namespace(), f.agent("node2"), "--grace-period=0", "--force")
	must.Do(s, err)
	f.mustEnd(exitOK, "privileged: this pod is root on its node")
	f.check()
	f.measured(80)
	for node, run := range f.runs() {
		if n := run.Host.Node; n == nil || n.Name != node || run.Host.Hostname != node || run.Host.CPU == "" {
			s.Errorf("the host of the run of %s is %+v", node, run.Host)
		}
		if !slices.ContainsFunc(run.Images, func(i result.Image) bool { return i.Name == agentImage && i.Digest != "" }) {
			s.Errorf("the run of %s has no digest of the image of its agent: %+v", node, run.Images)
		}
	}
}

// abandonedNodes kills the coordinator and all agents. A clean-up finds what they left on the nodes.
func abandonedNodes(s *site) {
	f := s.begin(machinePlan, "--privileged-agents")
	f.awaitTrials(5)
	must.Do(s, f.coordinator.cmd.Process.Signal(syscall.SIGKILL))
	<-f.coordinator.exited
	_, err := s.kubectl("delete", "pods", "--all", "--namespace", f.namespace(), "--grace-period=0", "--force")
	must.Do(s, err)
	output, err := s.touchstone("cluster", "cleanup", f.id)
	if err != nil {
		s.Errorf("clean up run %s: %v: %s", f.id, err, output)
	}
}

// stoppedPrivilegedAgents interrupts the coordinator.
func stoppedPrivilegedAgents(s *site) {
	f := s.begin(machinePlan, "--privileged-agents")
	f.awaitTrials(5)
	must.Do(s, f.coordinator.cmd.Process.Signal(syscall.SIGINT))
	f.mustEnd(exitInterrupted)
	f.check()
}

// restrictedNamespace checks a namespace that does not admit privileged pods. The check says so, and a run leaves nothing.
func restrictedNamespace(s *site) {
	s.Apply(s, `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "narrow", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}`)
	defer s.Kubectl(s, "delete", "namespace", "narrow")
	output, err := s.touchstone("cluster", "check", "--dry", "--privileged-agents", "--namespace", "narrow", "--image", agentImage)
	for _, text := range []string{"this pod is root on its node", "kubectl label namespace narrow pod-security.kubernetes.io/enforce=privileged"} {
		if err == nil || !strings.Contains(strings.Join(strings.Fields(output), " "), text) {
			s.Errorf("the check of a restricted namespace ends with %v, and without %q:\n%s", err, text, output)
		}
	}
	f := s.prepare(s.Kubeconfig)
	f.run(machinePlan, "--privileged-agents", "--namespace", "narrow")
	f.mustEnd(exitNoTarget, "node1: failed.*violates PodSecurity")
}
