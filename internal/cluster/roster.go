package cluster

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// roster has the present states of the agents' pods. It is the observer of their watch, and keeps only the parts of a pod that a
// coordinator reads.
type roster struct {
	notify func(error)

	mu     sync.Mutex
	pods   map[string]*corev1.Pod
	change map[string]chan struct{} // closed at the next change of a pod
	listed chan struct{}            // closed once all pods are known
	once   sync.Once
}

func newRoster(notify func(error)) *roster {
	return &roster{notify: notify, pods: map[string]*corev1.Pod{}, change: map[string]chan struct{}{}, listed: make(chan struct{})}
}

// essence is the part of a pod that a coordinator reads.
func essence(pod *corev1.Pod) *corev1.Pod {
	m, s := &pod.ObjectMeta, &pod.Status
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, UID: m.UID, DeletionTimestamp: m.DeletionTimestamp},
		Status:     corev1.PodStatus{Phase: s.Phase, Reason: s.Reason, Message: s.Message, Conditions: s.Conditions, ContainerStatuses: s.ContainerStatuses},
	}
}

// Seen implements kube.Observer.
func (r *roster) Seen(pod *corev1.Pod) { r.set(pod.Name, essence(pod)) }

// add keeps a pod that this process has made, unless the watch has a newer state of it already.
func (r *roster) add(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pods[pod.Name] == nil {
		r.pods[pod.Name] = essence(pod)
		r.wake(pod.Name)
	}
}

// Gone implements kube.Observer.
func (r *roster) Gone(name string) { r.set(name, nil) }

// Listed implements kube.Observer.
func (r *roster) Listed() { r.once.Do(func() { close(r.listed) }) }

// Lost implements kube.Observer.
func (r *roster) Lost(err error) { r.notify(err) }

// set changes the state of a pod. A change of something else, such as the renewal of its lease, ends no wait.
func (r *roster) set(name string, pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !equality.Semantic.DeepEqual(r.pods[name], pod) {
		r.pods[name] = pod
		r.wake(name)
	}
}

// wakeAll wakes all who wait for a change of a pod.
func (r *roster) wakeAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.change {
		r.wake(name)
	}
}

// wake wakes those who wait for a change of a pod. The caller holds the lock.
func (r *roster) wake(name string) {
	if change := r.change[name]; change != nil {
		close(change)
		delete(r.change, name)
	}
}

// pod returns the present state of a pod, nil without one, and a channel that is closed at its next change.
func (r *roster) pod(name string) (*corev1.Pod, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.change[name] == nil {
		r.change[name] = make(chan struct{})
	}
	return r.pods[name], r.change[name]
}

// names returns the names of all pods that exist.
func (r *roster) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for name, pod := range r.pods {
		if pod != nil {
			names = append(names, name)
		}
	}
	return names
}
