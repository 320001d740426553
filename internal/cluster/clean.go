package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/kube"
)

// Find returns the cluster runs with objects in the cluster, the newest first: the runs in a namespace, or those with a namespace of their own if it is
// empty. A run whose coordinator was killed after it made the namespace has nothing but its ID.
func Find(ctx context.Context, client *kube.Client, namespace string) ([]Fleet, error) {
	namespaces := map[string]string{namespace: ""} // with the ID of the run that has made the namespace
	if namespace == "" {
		list, err := client.Namespaces().List(ctx, metav1.ListOptions{LabelSelector: engine.Label})
		if err != nil {
			return nil, fmt.Errorf("list the namespaces of cluster runs: %w; without this right name the namespace with --namespace", client.Explain(err))
		}
		namespaces = map[string]string{}
		for _, n := range list.Items {
			namespaces[n.Name] = n.Labels[engine.Label]
		}
	}
	var fleets []Fleet
	for name, id := range namespaces {
		list, err := client.ConfigMaps(name).List(ctx, metav1.ListOptions{LabelSelector: engine.Label})
		if err != nil {
			return nil, fmt.Errorf("list the config maps of namespace %q: %w", name, client.Explain(err))
		}
		count := len(fleets)
		for i := range list.Items {
			if f, ok := fleetOf(&list.Items[i]); ok {
				fleets = append(fleets, f)
			}
		}
		if bare := (Fleet{ID: id, Namespace: name, OwnNamespace: true}); len(fleets) == count && name == bare.name() {
			fleets = append(fleets, bare)
		}
	}
	slices.SortFunc(fleets, func(a, b Fleet) int { return strings.Compare(b.ID, a.ID) })
	return fleets, nil
}

// fleetOf reads the fleet in the config map of a coordinator. It is false for any other config map.
func fleetOf(m *corev1.ConfigMap) (Fleet, bool) {
	var f Fleet
	if json.Unmarshal([]byte(m.Data[FleetFile]), &f) != nil || f.ID == "" || m.Labels[engine.Label] != f.ID || m.Namespace != f.Namespace || m.Name != f.coordinatorName() {
		return Fleet{}, false
	}
	return f, true
}

// isOurs reports whether an object belongs to the fleet by its label and its name. Nothing else is ever removed.
func (f *Fleet) isOurs(meta *metav1.ObjectMeta) bool {
	return meta.Labels[engine.Label] == f.ID && (meta.Name == f.name() || strings.HasPrefix(meta.Name, f.name()+"-"))
}

// removeLimit is the longest wait for the end of a removed object.
const removeLimit = 2 * time.Minute

// Clean removes all objects of a fleet, and returns after they are gone. It checks each object before its removal, and keeps a namespace with objects of
// others. The list has what was removed.
func Clean(ctx context.Context, client *kube.Client, f *Fleet) (removals []string, err error) {
	ours := metav1.ListOptions{LabelSelector: engine.Label + "=" + f.ID}
	delete := func(kind string, meta *metav1.ObjectMeta, request func(ctx context.Context, name string, o metav1.DeleteOptions) error) error {
		if !f.isOurs(meta) {
			return nil
		}
		options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(meta.UID))}
		err := kube.Retry(ctx, nil, func(ctx context.Context) error { return request(ctx, meta.Name, options) })
		if err == nil {
			removals = append(removals, kind+" "+meta.Name)
		}
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("remove %s %q: %w", kind, meta.Name, client.Explain(err))
	}
	if f.Privileged {
		if err := f.cleanNodes(ctx, client); err != nil {
			return nil, err
		}
	}
	if f.OwnNamespace {
		stranger, fault := f.foreign(ctx, client)
		if fault != nil || stranger == "" {
			if fault == nil {
				fault = f.removeNamespace(ctx, client, &removals)
			}
			return removals, fault
		}
		defer func() {
			if err == nil {
				err = fmt.Errorf("namespace %q stays: %s in it is not of this run; remove it first", f.Namespace, stranger)
			}
		}()
	}
	pods, err := listObjects(ctx, client.Pods(f.Namespace).List, ours)
	if err != nil {
		return removals, fmt.Errorf("list the pods of the run: %w", client.Explain(err))
	}
	for i := range pods.Items {
		if err := delete("pod", &pods.Items[i].ObjectMeta, client.Pods(f.Namespace).Delete); err != nil {
			return removals, err
		}
	}
	maps, err := listObjects(ctx, client.ConfigMaps(f.Namespace).List, ours)
	if err != nil {
		return removals, fmt.Errorf("list the config maps of the run: %w", client.Explain(err))
	}
	bindings, err := listObjects(ctx, client.RoleBindings(f.Namespace).List, ours)
	if err != nil {
		return removals, fmt.Errorf("list the role bindings of the run: %w", client.Explain(err))
	}
	roles, err := listObjects(ctx, client.Roles(f.Namespace).List, ours)
	if err != nil {
		return removals, fmt.Errorf("list the roles of the run: %w", client.Explain(err))
	}
	accounts, err := listObjects(ctx, client.ServiceAccounts(f.Namespace).List, ours)
	if err != nil {
		return removals, fmt.Errorf("list the service accounts of the run: %w", client.Explain(err))
	}
	for i := range bindings.Items {
		if err := delete("role binding", &bindings.Items[i].ObjectMeta, client.RoleBindings(f.Namespace).Delete); err != nil {
			return removals, err
		}
	}
	for i := range roles.Items {
		if err := delete("role", &roles.Items[i].ObjectMeta, client.Roles(f.Namespace).Delete); err != nil {
			return removals, err
		}
	}
	for i := range accounts.Items {
		if err := delete("service account", &accounts.Items[i].ObjectMeta, client.ServiceAccounts(f.Namespace).Delete); err != nil {
			return removals, err
		}
	}
	if err := f.awaitPods(ctx, client); err != nil {
		return removals, err
	}
	// The config map of the coordinator is the last one: with it, another call finds the rest.
	slices.SortFunc(maps.Items, func(a, b corev1.ConfigMap) int { return rank(f, &a) - rank(f, &b) })
	for i := range maps.Items {
		if err := delete("config map", &maps.Items[i].ObjectMeta, client.ConfigMaps(f.Namespace).Delete); err != nil {
			return removals, err
		}
	}
	return removals, nil
}

// listObjects lists objects for their removal. A server that is overloaded or restarts has removeLimit to answer.
func listObjects[L any](ctx context.Context, list func(context.Context, metav1.ListOptions) (L, error), options metav1.ListOptions) (objects L, err error) {
	limit, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	err = kube.Retry(limit, nil, func(ctx context.Context) (err error) {
		objects, err = list(ctx, options)
		return err
	})
	return objects, err
}

func rank(f *Fleet, m *corev1.ConfigMap) int {
	if m.Name == f.coordinatorName() {
		return 1
	}
	return 0
}

// foreign names an object of others in the namespace of the run; empty without one. The API server puts a service account and a config map into each
// namespace.
func (f *Fleet) foreign(ctx context.Context, client *kube.Client) (string, error) {
	pods, err := listObjects(ctx, client.Pods(f.Namespace).List, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("list the pods of namespace %q: %w", f.Namespace, client.Explain(err))
	}
	for i := range pods.Items {
		if !f.isOurs(&pods.Items[i].ObjectMeta) {
			return "pod " + pods.Items[i].Name, nil
		}
	}
	maps, err := listObjects(ctx, client.ConfigMaps(f.Namespace).List, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("list the config maps of namespace %q: %w", f.Namespace, client.Explain(err))
	}
	for i := range maps.Items {
		if m := &maps.Items[i]; m.Name != "kube-root-ca.crt" && !f.isOurs(&m.ObjectMeta) {
			return "config map " + m.Name, nil
		}
	}
	return "", nil
}

// removeNamespace removes the namespace of the run with all its objects.
func (f *Fleet) removeNamespace(ctx context.Context, client *kube.Client, removals *[]string) error {
	var space *corev1.Namespace
	err := kube.Retry(ctx, nil, func(ctx context.Context) (err error) {
		space, err = client.Namespaces().Get(ctx, f.Namespace, metav1.GetOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read namespace %q: %w", f.Namespace, client.Explain(err))
	}
	if !f.isOurs(&space.ObjectMeta) {
		return fmt.Errorf("namespace %q stays: it does not have the label %s=%s", f.Namespace, engine.Label, f.ID)
	}
	if space.DeletionTimestamp == nil {
		err = kube.Retry(ctx, nil, func(ctx context.Context) error {
			return client.Namespaces().Delete(ctx, f.Namespace, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(space.UID))})
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove namespace %q: %w", f.Namespace, client.Explain(err))
		}
	}
	limit, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	for {
		state, err := client.Namespaces().Get(limit, f.Namespace, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) || err == nil && state.UID != space.UID:
			*removals = append(*removals, "namespace "+f.Namespace)
			return nil
		case err == nil:
			space = state
		}
		if kube.Pause(limit, removePause) != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("namespace %q is still there after %v: %s", f.Namespace, removeLimit, stuck(space))
		}
	}
}

// removePause is the time between two questions whether an object is gone.
const removePause = 500 * time.Millisecond

// stuck is the reason why a namespace does not end.
func stuck(space *corev1.Namespace) string {
	var reasons []string
	for _, c := range space.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			reasons = append(reasons, fmt.Sprintf("%s: %s", c.Reason, c.Message))
		}
	}
	if len(reasons) == 0 {
		return "the control plane gives no reason; a pod of a lost node goes only when the node comes back"
	}
	return strings.Join(reasons, "; ")
}

// awaitPods waits until the pods of the run are gone.
func (f *Fleet) awaitPods(ctx context.Context, client *kube.Client) error {
	limit, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	rest := ""
	for {
		pods, err := client.Pods(f.Namespace).List(limit, metav1.ListOptions{LabelSelector: engine.Label + "=" + f.ID})
		if err == nil {
			rest = ""
			for i := range pods.Items {
				if f.isOurs(&pods.Items[i].ObjectMeta) {
					rest = fmt.Sprintf("pod %q on node %q", pods.Items[i].Name, pods.Items[i].Spec.NodeName)
				}
			}
			if rest == "" {
				return nil
			}
		}
		if kube.Pause(limit, removePause) != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%s is still there after %v; a pod of a lost node goes only when the node comes back", rest, removeLimit)
		}
	}
}
