package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A roster keeps the state of a pod, and wakes those who wait for it: not at the renewal of its lease, but at each change of its state.
func TestRoster(t *testing.T) {
	r := newRoster(func(error) {})
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Annotations: map[string]string{LeaseAnnotation: "1"}, ManagedFields: []metav1.ManagedFieldsEntry{{}}},
		Spec:       corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	isAwake := func(change <-chan struct{}) bool {
		select {
		case <-change:
			return true
		default:
			return false
		}
	}
	for _, tt := range []struct {
		name   string
		change func()
		want   bool
	}{
		{"the first state", func() {}, true},
		{"the renewal of the lease", func() { pod.Annotations[LeaseAnnotation] = "2" }, false},
		{"another phase", func() { pod.Status.Phase = corev1.PodRunning }, true},
		{"a deletion", func() { pod.DeletionTimestamp = &metav1.Time{} }, true},
	} {
		_, change := r.pod("p")
		tt.change()
		r.Seen(pod.DeepCopy())
		if isAwake(change) != tt.want {
			t.Errorf("%s wakes: %t, want %t", tt.name, !tt.want, tt.want)
		}
	}
	state, change := r.pod("p")
	if state.UID != "u" || state.Status.Phase != corev1.PodRunning || state.Spec.NodeName != "" || state.Annotations != nil || state.ManagedFields != nil {
		t.Errorf("the roster keeps %+v", state)
	}
	r.add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}})
	if current, _ := r.pod("p"); current != state {
		t.Error("the answer to the creation of a pod replaces a newer state")
	}
	r.wakeAll()
	if !isAwake(change) {
		t.Error("the wait goes on")
	}
	_, change = r.pod("p")
	r.Gone("p")
	if state, _ = r.pod("p"); state != nil || !isAwake(change) {
		t.Errorf("the pod is gone, and the roster has %+v", state)
	}
}
