package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/kube"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// PrivilegedText says in plain words which rights privileged agents have. The command line prints it before a run, and each pod has it as an annotation.
const PrivilegedText = "privileged: this pod is root on its node. It leaves its container, can read and change all files, processes and networks of the node, " +
	"and starts container runtimes and daemons there. At the end it removes all that it made on the node"

// PrivilegedAnnotation has PrivilegedText in a pod that may do that.
const PrivilegedAnnotation = "touchstone.privileges"

// PrivilegedGrace is the time that a privileged pod gets to end in order and to clean its node.
const PrivilegedGrace = time.Minute

// NodeDir is the directory on a node that holds the results files of privileged agents during their runs, one directory a cluster run.
const NodeDir = "/var/lib/touchstone-agent"

// privilege makes a pod of the fleet privileged.
func privilege(pod *corev1.Pod) {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[PrivilegedAnnotation] = PrivilegedText
	yes, root, grace := true, int64(0), int64(PrivilegedGrace/time.Second)
	pod.Spec.TerminationGracePeriodSeconds = &grace
	// The host's processes lead to its other namespaces and its files.
	pod.Spec.HostPID = true
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: &root, RunAsGroup: &root}
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: &yes, ReadOnlyRootFilesystem: &yes}
}

// ResolveMachine checks a plan for privileged agents, which resolve its targets on their nodes.
func ResolveMachine(p plan.Plan) (plan.Plan, error) {
	if err := checkVariables(p); err != nil {
		return p, err
	}
	for _, t := range p.Targets {
		if t.Engine == target.Kubernetes {
			return p, &PlanError{fmt.Errorf("privileged agents measure their nodes without the kubelet, and the target %s is a pod of it: "+
				"one plan has either pods or targets of a machine, because a run has one way to create containers; measure %[1]s by a plan of its own, without --privileged-agents", t)}
		}
	}
	return p, nil
}

// checkVariables refuses a plan with variables from the environment of its user.
func checkVariables(p plan.Plan) error {
	for _, w := range p.Workloads {
		if len(w.FromEnv) > 0 {
			return &PlanError{fmt.Errorf("workload %q takes variables from the environment (%s), and agents in a cluster do not have it; leave out from-env", w.Name, strings.Join(w.FromEnv, ", "))}
		}
	}
	return nil
}

// cleaner is a pod that removes the leftovers of the run from a node.
func (f *Fleet) cleaner(node Node) *corev1.Pod {
	pod := f.plain(node, engine.Prefix+f.RunID(node.Name)+"-clean", []string{Program, "agent", "clean", f.ID})
	privilege(pod)
	return pod
}

// nodesLimit is the longest time for the agents to end with their clean-up, and for the pods that clean up in their place.
const nodesLimit = 2 * time.Minute

// cleanNodes removes what privileged agents have made on their nodes: the agents end and do it themselves, and a pod does it on the nodes whose
// agent did not.
func (f *Fleet) cleanNodes(ctx context.Context, client *kube.Client) error {
	watch, end := context.WithCancel(ctx)
	r := newRoster(func(error) {})
	var group sync.WaitGroup
	defer group.Wait()
	defer end()
	group.Go(func() {
		_ = kube.Follow(watch, client.Pods(f.Namespace), metav1.ListOptions{LabelSelector: engine.Label + "=" + f.ID}, r)
	})
	limit, cancel := context.WithTimeout(ctx, nodesLimit)
	defer cancel()
	await(limit, r.listed)
	maps, err := f.configMaps(limit, client)
	if err != nil {
		return err
	}
	errs := make([]error, len(f.Nodes))
	places := make(chan struct{}, maxTries)
	var nodes sync.WaitGroup
	for i, node := range f.Nodes {
		nodes.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			if err := f.cleanNode(limit, client, r, node, maps); err != nil {
				errs[i] = fmt.Errorf("node %s may have leftovers of the run: %w", node.Name, err)
			}
		})
	}
	nodes.Wait()
	return errors.Join(errs...)
}

// configMaps returns the names of the config maps of the fleet. Those with earlier parts of runs are for the successors of lost agents.
func (f *Fleet) configMaps(ctx context.Context, client *kube.Client) (map[string]bool, error) {
	list, err := listObjects(ctx, client.ConfigMaps(f.Namespace).List, metav1.ListOptions{LabelSelector: engine.Label + "=" + f.ID})
	if err != nil {
		return nil, fmt.Errorf("list the config maps of the run: %w", client.Explain(err))
	}
	names := map[string]bool{}
	for i := range list.Items {
		names[list.Items[i].Name] = true
	}
	return names, nil
}

// cleanNode removes what the agents of a node have made there. maps has the config maps of the fleet.
func (f *Fleet) cleanNode(ctx context.Context, client *kube.Client, r *roster, node Node, maps map[string]bool) error {
	name := f.AgentName(node.Name)
	if agent, _ := r.pod(name); agent != nil && !started(agent) && !maps[f.earlierName(node.Name)] {
		return nil // no agent has run on the node
	}
	if err := f.annotate(ctx, client, kube.Retry, name, EndAnnotation, EndCollected); err != nil {
		return err
	}
	phase, reason := awaitEnd(ctx, r, name)
	if phase == corev1.PodSucceeded {
		return nil
	}
	if phase != corev1.PodRunning {
		err := f.startCleaner(ctx, client, r, node)
		if apierrors.IsNotFound(err) { // without the namespace no agent was made
			return nil
		}
		if err != nil {
			return client.Explain(err)
		}
		phase, reason = awaitEnd(ctx, r, f.cleaner(node).Name)
	}
	if phase == corev1.PodSucceeded {
		return nil
	}
	return fmt.Errorf("%s; the objects of the run stay, and touchstone cluster cleanup %s tries again when the node is there; without that, remove %s/%[2]s on the node by hand", reason, f.ID, NodeDir)
}

// startCleaner creates the pod that cleans a node, in place of one of an earlier attempt.
func (f *Fleet) startCleaner(ctx context.Context, client *kube.Client, r *roster, node Node) error {
	pods, pod := client.Pods(f.Namespace), f.cleaner(node)
	err := kube.Retry(ctx, nil, func(ctx context.Context) error {
		return pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	})
	if err == nil {
		err = awaitGone(ctx, r, pod.Name)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return kube.Retry(ctx, nil, func(ctx context.Context) error {
		answer, err := pods.Create(ctx, pod, metav1.CreateOptions{})
		if err == nil {
			r.Seen(answer)
		}
		return err
	})
}

// awaitEnd waits for the end of a pod. Without an end it returns the reason: the pod or its node is gone, or the pod cannot start, or ctx has ended.
func awaitEnd(ctx context.Context, r *roster, name string) (phase corev1.PodPhase, reason string) {
	for {
		pod, change := r.pod(name)
		if pod == nil {
			return "", "its pod is gone"
		}
		problem, final := startProblem(pod)
		switch {
		case pod.Status.Phase == corev1.PodSucceeded:
			return pod.Status.Phase, ""
		case pod.Status.Phase == corev1.PodFailed:
			return pod.Status.Phase, failure(pod)
		case final || strings.HasPrefix(problem, imageProblem):
			return pod.Status.Phase, problem
		case LostNode(pod) != "":
			return pod.Status.Phase, LostNode(pod)
		case ctx.Err() != nil:
			return pod.Status.Phase, cmp.Or(problem, "its pod has not ended")
		}
		await(ctx, change)
	}
}

// awaitGone waits for the absence of a pod.
func awaitGone(ctx context.Context, r *roster, name string) error {
	for {
		pod, change := r.pod(name)
		if pod == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		await(ctx, change)
	}
}
