package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/kube"
)

// NodeStatus is the state of a node as its agent's pod shows it.
type NodeStatus struct {
	Node string `json:"node"`
	Kind string `json:"kind"`
	State
}

// Status returns the states of all nodes of a fleet.
func Status(ctx context.Context, client *kube.Client, f *Fleet) ([]NodeStatus, error) {
	agents, err := f.agents(ctx, client)
	if err != nil {
		return nil, err
	}
	var states []NodeStatus
	for _, node := range f.Nodes {
		states = append(states, NodeStatus{node.Name, node.Kind, stateOf(agents[f.AgentName(node.Name)])})
	}
	return states, nil
}

// agents returns the pods of the agents by name.
func (f *Fleet) agents(ctx context.Context, client *kube.Client) (map[string]*corev1.Pod, error) {
	list, err := client.Pods(f.Namespace).List(ctx, metav1.ListOptions{LabelSelector: f.selector()})
	if err != nil {
		return nil, fmt.Errorf("list the agents: %w", client.Explain(err))
	}
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		pods[list.Items[i].Name] = &list.Items[i]
	}
	return pods, nil
}

// stateOf is the state of a node by its agent's pod, nil without one.
func stateOf(pod *corev1.Pod) State {
	switch {
	case pod == nil:
		return State{Phase: Waiting}
	case pod.Annotations[EndAnnotation] == EndCollected:
		return State{Phase: Complete, Text: "collected"}
	case pod.Status.Phase == corev1.PodSucceeded:
		return State{Phase: Ended, Text: "its records wait for touchstone cluster collect"}
	case pod.Status.Phase == corev1.PodFailed:
		return State{Phase: Lost, Text: disruption(pod)}
	case !started(pod):
		reason, _ := startProblem(pod)
		return State{Phase: Starting, Text: reason}
	case LostNode(pod) != "":
		return State{Phase: Lost, Text: LostNode(pod)}
	}
	return State{Phase: Measuring}
}

// Stop ends all agents of a fleet, and the trials under way, and returns their number.
func Stop(ctx context.Context, client *kube.Client, f *Fleet) (int, error) {
	agents, err := f.agents(ctx, client)
	if err != nil {
		return 0, err
	}
	count := 0
	for name, pod := range agents {
		if ended(pod) || pod.Annotations[EndAnnotation] != "" {
			continue
		}
		if err := f.annotate(ctx, client, kube.Retry, name, EndAnnotation, EndStop); err != nil {
			return count, err
		}
		count++
	}
	return count, nil
}

// Incomplete returns an error if the fleet has no agent, and lacks an object that agents need: its program was killed while it made or removed the
// objects. An object that the user may not read counts as present.
func (f *Fleet) Incomplete(ctx context.Context, client *kube.Client) error {
	agents, err := f.agents(ctx, client)
	if err != nil || len(agents) > 0 {
		return err
	}
	lack := fmt.Errorf("cluster run %s has nothing to collect, because its program was killed while it made or removed the objects: remove the rest with touchstone cluster cleanup %[1]s, and start a new run", f.ID)
	if len(f.Nodes) == 0 {
		return lack
	}
	for _, object := range f.Base() {
		err := kube.Retry(ctx, nil, func(ctx context.Context) error { return read(ctx, client, object) })
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("%w (%w)", lack, err)
		case err != nil && !apierrors.IsForbidden(err):
			return client.Explain(err)
		}
	}
	return nil
}

// read reads an object that the agents need.
func read(ctx context.Context, client *kube.Client, object any) (err error) {
	options := metav1.GetOptions{}
	switch o := object.(type) {
	case *corev1.ConfigMap:
		_, err = client.ConfigMaps(o.Namespace).Get(ctx, o.Name, options)
	case *corev1.ServiceAccount:
		_, err = client.ServiceAccounts(o.Namespace).Get(ctx, o.Name, options)
	case *rbacv1.Role:
		_, err = client.Roles(o.Namespace).Get(ctx, o.Name, options)
	case *rbacv1.RoleBinding:
		_, err = client.RoleBindings(o.Namespace).Get(ctx, o.Name, options)
	}
	return err
}

// Busy describes another cluster run that measures on one of the nodes; empty without one.
func Busy(ctx context.Context, client *kube.Client, nodes []Node) (string, error) {
	list, err := client.Pods("").List(ctx, metav1.ListOptions{LabelSelector: RoleLabel + "=" + RoleAgent})
	if err != nil {
		return "", err
	}
	for i := range list.Items {
		pod := &list.Items[i]
		isChosen := slices.ContainsFunc(nodes, func(n Node) bool { return n.Name == pod.Spec.NodeName })
		if isChosen && !ended(pod) && pod.DeletionTimestamp == nil && pod.Annotations[EndAnnotation] != EndCollected && strings.HasPrefix(pod.Name, engine.Prefix) {
			return fmt.Sprintf("cluster run %s in namespace %s measures on node %s", pod.Labels[engine.Label], pod.Namespace, pod.Spec.NodeName), nil
		}
	}
	return "", nil
}
