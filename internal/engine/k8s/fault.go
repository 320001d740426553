package k8s

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// FaultError is the reason why a pod does not run, or no longer runs.
type FaultError struct {
	Reason, Advice string
	// Transient is set if another attempt may succeed.
	Transient bool
	// Outage is set if the class had no part in it: the API server did not answer, or the cluster took the pod away.
	Outage bool
	cause  error
}

func (e *FaultError) Error() string {
	if e.Advice == "" {
		return e.Reason
	}
	return e.Reason + "; " + e.Advice
}

// Unwrap returns the error of the API server; nil if a pod's status has the reason.
func (e *FaultError) Unwrap() error { return e.cause }

// excerpt bounds a text of a pod or of the API server in an error, without control characters: names, messages and logs are of others.
func excerpt(text string) string {
	const limit = 600
	line := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, " "))
	if len(line) > limit {
		line = strings.ToValidUTF8(line[:limit], "") + "…"
	}
	return strings.TrimSpace(line)
}

// refusals are the reasons of the API server for a refused request, by a part of its message, with the remedy.
var refusals = []struct{ part, advice string }{
	{"RuntimeClass", "create the RuntimeClass, or take another target; touchstone cluster check lists the classes"},
	{"exceeded quota", "raise the quota of the namespace, or take another namespace"},
	{"violates PodSecurity", "an admission rule of the cluster is stricter than the restricted level of Pod Security: exempt the namespace"},
	{"is being terminated", "the namespace is being deleted: start the run again when it is gone, or take another namespace"},
	{"cannot", "bind the printed role to the agent's service account: touchstone cluster run --manifest prints it"},
	{"LimitRange", "change the LimitRange of the namespace, or take another namespace"},
}

// explain adds the remedy to an error of the API server. It returns nil without an error.
func explain(err error) error {
	if err == nil {
		return nil
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return &FaultError{
			Reason: "the API server does not answer: " + excerpt(err.Error()), Advice: "look at the control plane, and at the network of the node",
			Transient: true, Outage: true, cause: err,
		}
	}
	s := status.Status()
	fault := &FaultError{Reason: "the API server refuses the request: " + excerpt(cmp.Or(s.Message, string(s.Reason))), cause: err}
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		fault.Advice = refusals[3].advice
	case s.Code == http.StatusForbidden, s.Code == http.StatusUnprocessableEntity:
		for _, r := range refusals {
			if strings.Contains(s.Message, r.part) {
				fault.Advice = r.advice
				break
			}
		}
	case s.Code == http.StatusUnauthorized:
		fault.Advice = "the token of the agent has expired or was revoked: start the run again"
	case s.Code == http.StatusTooManyRequests, s.Code >= http.StatusInternalServerError:
		fault.Advice, fault.Transient, fault.Outage = "the control plane is overloaded or broken: look at its API server", true, true
	}
	return fault
}

// waits are the reasons of a container that is on its way. Every other reason of a waiting container is a fault.
var waits = map[string]bool{"": true, "ContainerCreating": true, "PodInitializing": true}

// stateOf is the state of the program's container; nil before the kubelet has reported any.
func stateOf(p *corev1.Pod) *corev1.ContainerState {
	for i := range p.Status.ContainerStatuses {
		if s := &p.Status.ContainerStatuses[i]; s.Name == containerName {
			return &s.State
		}
	}
	return nil
}

// condition is a condition of a pod; nil without it.
func condition(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == kind {
			return c
		}
	}
	return nil
}

func hasCondition(p *corev1.Pod, kind corev1.PodConditionType) bool {
	c := condition(p, kind)
	return c != nil && c.Status == corev1.ConditionTrue
}

// faultOf is the fault that the status of a pod shows; nil without one.
//
// DisruptionTarget precedes the phase: a drained or preempted pod whose program handles SIGTERM has succeeded by its phase.
func faultOf(p *corev1.Pod) *FaultError {
	if c := condition(p, corev1.DisruptionTarget); c != nil && c.Status == corev1.ConditionTrue {
		return &FaultError{
			Reason: fmt.Sprintf("the pod was taken away: %s: %s", excerpt(c.Reason), excerpt(c.Message)),
			Advice: "keep drains and pods of a higher priority away from the node during the run", Transient: true, Outage: true,
		}
	}
	state := stateOf(p)
	if state == nil || state.Terminated == nil {
		if p.Status.Phase == corev1.PodFailed {
			return &FaultError{Reason: fmt.Sprintf("the pod has failed: %s", excerpt(cmp.Or(p.Status.Reason, "without a reason")+": "+p.Status.Message)), Transient: true}
		}
	}
	if c := condition(p, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
		return &FaultError{
			Reason: "the scheduler finds no place for the pod on the node: " + excerpt(c.Message),
			Advice: "uncordon the node, wait until it is ready, or tolerate its taints in the plan", Transient: true,
		}
	}
	switch {
	case state == nil:
	case state.Waiting != nil && !waits[state.Waiting.Reason]:
		return waitingFault(state.Waiting)
	case state.Terminated != nil && p.Status.Reason == "Evicted":
		return &FaultError{Reason: "the kubelet has evicted the pod: " + excerpt(p.Status.Message), Advice: "the node lacks a resource: free it, or measure another node"}
	case state.Terminated != nil && startFailures[state.Terminated.Reason]:
		return &FaultError{Reason: fmt.Sprintf("the container did not start: %s: %s", state.Terminated.Reason, excerpt(state.Terminated.Message))}
	}
	return nil
}

// startFailures are the reasons of a container that has ended without its program, or whose end the node has not seen.
var startFailures = map[string]bool{"StartError": true, "ContainerCannotRun": true, "ContainerStatusUnknown": true}

// waitingFault is the fault of a container that waits for a thing that will not come by itself.
func waitingFault(w *corev1.ContainerStateWaiting) *FaultError {
	fault := &FaultError{Reason: fmt.Sprintf("the container cannot start: %s: %s", excerpt(w.Reason), excerpt(w.Message))}
	switch w.Reason {
	case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable":
		fault.Advice = "bring the image to the nodes: touchstone cluster image shows the ways"
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		fault.Advice = "read the log of the kubelet and of the container engine on the node"
	}
	return fault
}

// eventFaults are the reasons of events of the kubelet that show in no field of the pod.
var eventFaults = map[string]string{
	"FailedCreatePodSandBox": "install the handler of the class in the container engine of the node, or leave the node out",
	"FailedMount":            "read the log of the kubelet on the node",
	"NetworkNotReady":        "the network of the node is not ready: look at its CNI plug-in",
}

// eventFault is the fault that an event reports; nil for any other event.
func eventFault(ev *corev1.Event) *FaultError {
	advice, ok := eventFaults[ev.Reason]
	if !ok || ev.Type != corev1.EventTypeWarning {
		return nil
	}
	return &FaultError{Reason: excerpt(ev.Reason) + ": " + excerpt(ev.Message), Advice: advice}
}

// isOurs reports whether a pod belongs to this agent: by its label, its name and its owner. Each object is checked before its removal.
//
// Invariant foreign-objects.
func (c Config) isOurs(p *corev1.Pod) bool {
	isOwner := func(o metav1.OwnerReference) bool { return o.UID == c.Owner.UID }
	return c.Fleet != "" && p.Labels[engine.Label] == c.Fleet && strings.HasPrefix(p.Name, engine.Prefix+c.Fleet+"-") &&
		slices.ContainsFunc(p.OwnerReferences, isOwner)
}
