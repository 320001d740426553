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

	stopped  chan struct{} // closed once the run is to end
	stopOnce sync.Once
}

func newRoster(notify func(error)) *roster {
	return &roster{notify: notify, pods: map[string]*corev1.Pod{}, change: map[string]chan struct{}{}, listed: make(chan struct{}), stopped: make(chan struct{})}
}

// essence is the part of a pod that a coordinator reads.
func essence(pod *corev1.Pod) *corev1.Pod {
	m, s := &pod.ObjectMeta, &pod.Status
	part := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, UID: m.UID, DeletionTimestamp: m.DeletionTimestamp},
		Status:     corev1.PodStatus{Phase: s.Phase, Reason: s.Reason, Message: s.Message, Conditions: s.Conditions, ContainerStatuses: s.ContainerStatuses},
	}
	if end := m.Annotations[EndAnnotation]; end != "" {
		part.Annotations = map[string]string{EndAnnotation: end}
	}
	return part
}

// Seen implements kube.Observer.
func (r *roster) Seen(pod *corev1.Pod) {
	r.set(pod.Name, essence(pod))
	r.obey(pod)
}

// obey ends the run if an agent has the request to stop, which another program may have made.
func (r *roster) obey(pod *corev1.Pod) {
	if pod.Annotations[EndAnnotation] == EndStop {
		r.stop()
	}
}

// stop is the request that the run ends.
func (r *roster) stop() { r.stopOnce.Do(func() { close(r.stopped) }) }

// isStopped reports whether the run is to end.
func (r *roster) isStopped() bool {
	select {
	case <-r.stopped:
		return true
	default:
		return false
	}
}

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
	return r.list(func(*corev1.Pod) bool { return true })
}

// working returns the names of all pods that exist and have no request to end.
func (r *roster) working() []string {
	return r.list(func(pod *corev1.Pod) bool { return pod.Annotations[EndAnnotation] == "" })
}

func (r *roster) list(matches func(*corev1.Pod) bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for name, pod := range r.pods {
		if pod != nil && matches(pod) {
			names = append(names, name)
		}
	}
	return names
}
