package cluster

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// roster has the present states of the agents' pods. It is the observer of their watch.
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

// Seen implements kube.Observer.
func (r *roster) Seen(pod *corev1.Pod) { r.set(pod.Name, pod) }

// add keeps a pod that this process has made, unless the watch has a newer state of it already.
func (r *roster) add(pod *corev1.Pod) {
	if state, _ := r.pod(pod.Name); state == nil {
		r.set(pod.Name, pod)
	}
}

// Gone implements kube.Observer.
func (r *roster) Gone(name string) { r.set(name, nil) }

// Listed implements kube.Observer.
func (r *roster) Listed() { r.once.Do(func() { close(r.listed) }) }

// Lost implements kube.Observer.
func (r *roster) Lost(err error) { r.notify(err) }

func (r *roster) set(name string, pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods[name] = pod
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
