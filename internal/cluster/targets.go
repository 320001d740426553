package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/touchstone-bench/touchstone/internal/kube"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// Classes returns the RuntimeClasses of the cluster, in the order of their names.
func Classes(ctx context.Context, client *kube.Client) ([]nodev1.RuntimeClass, error) {
	list, err := client.RuntimeClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the RuntimeClasses: %w", client.Explain(err))
	}
	slices.SortFunc(list.Items, func(a, b nodev1.RuntimeClass) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// PlanError reports a plan that cannot be measured in a cluster.
type PlanError struct{ Err error }

func (e *PlanError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *PlanError) Unwrap() error { return e.Err }

// Resolve names the targets of a plan: agents may not list RuntimeClasses, so no pattern remains. A plan without targets measures the default class and
// each RuntimeClass. It returns the handlers of the classes.
func Resolve(p plan.Plan, classes []nodev1.RuntimeClass) (plan.Plan, map[string]string, error) {
	found := []target.Target{{Engine: target.Kubernetes}}
	handlers := map[string]string{}
	var names []string
	for _, c := range classes {
		found = append(found, target.Target{Engine: target.Kubernetes, Runtime: c.Name})
		handlers[c.Name] = c.Handler
		names = append(names, c.Name)
	}
	refuse := func(format string, args ...any) (plan.Plan, map[string]string, error) {
		return p, nil, &PlanError{fmt.Errorf(format, args...)}
	}
	if p.Pinning.Workload != "" || p.Pinning.Engines != "" || p.Pinning.Touchstone != "" {
		return refuse("pinning does not work in a cluster: the kubelet chooses the CPUs of a pod; leave it out")
	}
	if err := checkVariables(p); err != nil {
		return p, nil, err
	}
	patterns := p.Targets
	p.Targets = nil
	add := func(t target.Target) {
		exact := plan.Pattern(t)
		if !slices.ContainsFunc(p.Targets, func(o plan.Pattern) bool { return o.String() == exact.String() }) {
			p.Targets = append(p.Targets, exact)
		}
	}
	if patterns == nil {
		for _, t := range found {
			add(t)
		}
	}
	for _, pattern := range patterns {
		exact, isExact := pattern.Exact()
		switch {
		case isExact && exact.Engine != target.Kubernetes:
			return refuse("the target %s is no target of a cluster; write %s/CLASS with a RuntimeClass, or %[2]s for the default class; --privileged-agents measures the nodes themselves", exact, target.Kubernetes)
		case isExact && exact.Runtime != "" && !slices.Contains(names, exact.Runtime):
			return refuse("the cluster has no RuntimeClass %q; it has %s", exact.Runtime, listed(names))
		case isExact:
			add(exact)
			continue
		}
		count := len(p.Targets)
		for _, t := range found {
			if match, ok := pattern.Select(t); ok {
				add(match)
			}
		}
		if len(p.Targets) == count {
			return refuse("the pattern %s selects no RuntimeClass; the cluster has %s", pattern, listed(names))
		}
	}
	if len(p.Targets) == 0 {
		return p, nil, &PlanError{errors.New("the plan has no target")}
	}
	// The agents read the plan with the names of all classes.
	if _, err := plan.Parse("plan", p.YAML()); err != nil {
		return refuse("a class of the cluster cannot be a target: %w; name the other classes by the key targets or --targets", err)
	}
	for name := range handlers {
		if !slices.ContainsFunc(p.Targets, func(t plan.Pattern) bool { return t.Runtime == name }) {
			delete(handlers, name)
		}
	}
	return p, handlers, nil
}

// listed spells names for a message.
func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
