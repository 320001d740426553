package cluster

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// started reports whether the program of a pod has run, so that the pod may have a log.
func started(pod *corev1.Pod) bool {
	if ended(pod) {
		return true
	}
	for _, s := range pod.Status.ContainerStatuses {
		if s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil {
			return true
		}
	}
	return false
}

// restarts is the number of starts of a pod's program after the first.
func restarts(pod *corev1.Pod) int32 {
	var count int32
	for _, s := range pod.Status.ContainerStatuses {
		count += s.RestartCount
	}
	return count
}

// startProblem is the reason why a pod has not started, empty if none is known. It is final if no time will help.
func startProblem(pod *corev1.Pod) (reason string, final bool) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return fmt.Sprintf("the scheduler does not place its pod: %s", cmp.Or(c.Message, c.Reason)), false
		}
	}
	for _, s := range pod.Status.ContainerStatuses {
		w := s.State.Waiting
		if w == nil {
			continue
		}
		switch w.Reason {
		case "", "ContainerCreating", "PodInitializing":
		case "ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "SignatureValidationFailed":
			return imageProblem + fmt.Sprintf(" %s: %s; push it with touchstone cluster image push, or load it on the node", s.Image, w.Message), false
		case "ErrImageNeverPull":
			return fmt.Sprintf("its node does not have the image %s, and may not pull it: %s; load it on the node", s.Image, w.Message), true
		case "InvalidImageName":
			return fmt.Sprintf("the name of the image is not valid: %s; give another one to --image", w.Message), true
		case "CreateContainerConfigError":
			return fmt.Sprintf("%s: %s", w.Reason, w.Message), true
		default:
			return fmt.Sprintf("%s: %s", w.Reason, w.Message), false
		}
	}
	return "", false
}

// imageProblem begins the reason of a pod without its image.
const imageProblem = "its kubelet cannot pull the image"

// LostNode is the reason why the node of a running pod is lost; empty if it is there. The control plane sets Ready to False for all pods of a lost
// node, and leaves the conditions that only the kubelet knows.
func LostNode(pod *corev1.Pod) string {
	conditions := map[corev1.PodConditionType]corev1.ConditionStatus{}
	for _, c := range pod.Status.Conditions {
		conditions[c.Type] = c.Status
	}
	if conditions[corev1.PodReady] == corev1.ConditionFalse && conditions[corev1.ContainersReady] == corev1.ConditionTrue {
		return "the control plane has lost the node"
	}
	return ""
}

// disruption is the reason for the end of a pod. A drained pod may have succeeded, so the condition comes before the phase.
func disruption(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return fmt.Sprintf("%s: %s", c.Reason, c.Message)
		}
	}
	switch {
	case pod.Status.Reason != "" || pod.Status.Message != "":
		return fmt.Sprintf("%s: %s", cmp.Or(pod.Status.Reason, string(pod.Status.Phase)), pod.Status.Message)
	case pod.DeletionTimestamp != nil:
		return "a request to the API server deleted its pod"
	}
	return fmt.Sprintf("its pod was deleted in phase %s", pod.Status.Phase)
}
