package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/touchstone-bench/touchstone/internal/kube"
)

// Agent is the place of an agent for the test process: a namespace with a role, and a pod on a node that owns the measured pods. The test process
// measures in its place. That is no difference for the clocks, because all nodes are this machine.
type Agent struct {
	Client                 *kube.Client
	Namespace, Node, Fleet string
	Owner                  metav1.OwnerReference
}

// agentObjects are the objects of an agent: its namespace with the restricted level of Pod Security, exactly the rights that it needs, and its pod.
const agentObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: NAMESPACE, labels: {pod-security.kubernetes.io/enforce: restricted}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: agent, namespace: NAMESPACE}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: agent, namespace: NAMESPACE}
rules:
- {apiGroups: [""], resources: [pods], verbs: [create, delete, list, watch]}
- {apiGroups: [""], resources: [pods/log], verbs: [get]}
- {apiGroups: [""], resources: [events], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: agent, namespace: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: agent}
subjects: [{kind: ServiceAccount, name: agent, namespace: NAMESPACE}]
---
apiVersion: v1
kind: Pod
metadata: {name: agent, namespace: NAMESPACE}
spec:
  nodeSelector: {kubernetes.io/hostname: NODE}
  automountServiceAccountToken: false
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: agent
    image: ` + ProbeImage + `
    command: [/probe, pause]
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`

// Agent makes the place of an agent on a node. The end of the test removes it.
func (c *Cluster) Agent(t testing.TB, node int) Agent {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fleet := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	a := Agent{Namespace: "touchstone-" + fleet, Node: fmt.Sprintf("node%d", node), Fleet: fleet}
	c.Apply(t, strings.NewReplacer("NAMESPACE", a.Namespace, "NODE", a.Node).Replace(agentObjects))
	var pod corev1.Pod
	check(json.Unmarshal([]byte(c.Kubectl(t, "get", "pod", "agent", "--namespace", a.Namespace, "--output", "json")), &pod))
	a.Owner = metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
	config, _, err := kube.Place{Kubeconfig: c.Kubeconfig}.Load()
	check(err)
	admin, err := kube.New(config, "touchstone-test")
	check(err)
	t.Cleanup(func() { // the test's context has ended
		check(admin.Namespaces().Delete(context.WithoutCancel(t.Context()), a.Namespace, metav1.DeleteOptions{}))
	})
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = strings.TrimSpace(c.Kubectl(t, "create", "token", "agent", "--namespace", a.Namespace))
	a.Client, err = kube.New(config, "touchstone-agent")
	check(err)
	return a
}
