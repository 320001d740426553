package cluster_test

import (
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/cluster"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// manifest returns all objects of a fleet with a node.
func manifest(t *testing.T, isPrivileged bool) string {
	t.Helper()
	f := cluster.Fleet{
		ID: "20200101-000000-abcd", Namespace: "touchstone-20200101-000000-abcd", OwnNamespace: true, Image: "image", Privileged: isPrivileged,
		Nodes: []cluster.Node{{Node: result.Node{Name: "node1"}, Arch: "amd64"}},
	}
	text, err := f.Manifest()
	must.Do(t, err)
	return string(text)
}

// rights are the lines of a manifest that give a pod a right on its node.
var rights = []string{
	"privileged: true", "hostPID: true", "runAsUser: 0", "pod-security.kubernetes.io/enforce: privileged", "touchstone.privileges: 'privileged: this pod is root on its node",
}

// Invariant unprivileged-default: Without --privileged-agents a cluster run makes nothing privileged.
func TestPrivilegesOnlyOnRequest(t *testing.T) {
	ordinary, privileged := manifest(t, false), manifest(t, true)
	for _, line := range rights {
		if strings.Contains(ordinary, line) {
			t.Errorf("the manifest of ordinary agents has %q", line)
		}
		if !strings.Contains(privileged, line) {
			t.Errorf("the manifest of privileged agents lacks %q:\n%s", line, privileged)
		}
	}
	for _, line := range []string{"hostPath", "hostNetwork", "hostIPC"} {
		if strings.Contains(ordinary, line) || strings.Contains(privileged, line) {
			t.Errorf("a manifest has %s, which no agent needs", line)
		}
	}
	// A privileged agent makes no pods.
	if strings.Contains(privileged, "- create") || !strings.Contains(ordinary, "- create") {
		t.Error("the role of privileged agents allows to create objects, or the role of ordinary agents does not")
	}
}

func parse(t *testing.T, targets string) plan.Plan {
	t.Helper()
	p, err := plan.Parse("plan.yaml", []byte("version: 1\ntargets: ["+targets+"]\nbenchmarks: [operations]\n"))
	must.Do(t, err)
	return p
}

func TestKindOfTargets(t *testing.T) {
	if _, err := cluster.ResolveMachine(parse(t, "native, 'oci/*'")); err != nil {
		t.Errorf("privileged agents refuse targets of a machine: %v", err)
	}
	const pods = "measure k8s/runc by a plan of its own, without --privileged-agents"
	if _, err := cluster.ResolveMachine(parse(t, "native, k8s/runc")); err == nil || !strings.Contains(err.Error(), pods) {
		t.Errorf("privileged agents with pods: %v, want %q", err, pods)
	}
	const machine = "--privileged-agents measures the nodes themselves"
	if _, _, err := cluster.Resolve(parse(t, "native"), nil); err == nil || !strings.Contains(err.Error(), machine) {
		t.Errorf("ordinary agents with native: %v, want %q", err, machine)
	}
}
