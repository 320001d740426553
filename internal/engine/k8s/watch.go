package k8s

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/kube"
)

// watcher follows the measured pods of one agent, and their events if the agent may read them.
//
// The reflectors of client-go list and watch, begin anew when the API server has closed a watch or its version has expired, and pass each
// change on in the goroutine that has received it. So a stage is stamped at once. A change that arrives by a new watch is late, and stamps none.
type watcher struct {
	config   Config
	selector string
	cancel   context.CancelFunc
	workers  sync.WaitGroup

	mu      sync.Mutex
	tracked map[string]*pod
	lastErr error // of the last list or watch; nil if it worked
}

// watchLife is the least time of a watch before the client opens it anew.
const watchLife = time.Hour

// newWatcher lists the pods once, and begins to follow them.
func newWatcher(ctx context.Context, config Config) (*watcher, error) {
	w := &watcher{config: config, tracked: map[string]*pod{}}
	w.selector = labels.SelectorFromSet(labels.Set{engine.Label: config.Fleet, NodeLabel: labelOf(config.Node)}).String()
	if _, err := w.list(ctx); err != nil {
		return nil, fmt.Errorf("list the measured pods: %w", err)
	}
	life, cancel := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), logr.Discard()))
	w.cancel = cancel
	podSync := make(chan struct{})
	w.follow(life, &corev1.Pod{}, &podStore{watcher: w, synced: podSync}, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = w.selector
			return noted(w, func() (*corev1.PodList, error) { return w.pods().List(ctx, o) })
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = w.selector
			w.blur()
			return noted(w, func() (watch.Interface, error) { return w.pods().Watch(ctx, o) })
		},
	})
	syncs := []chan struct{}{podSync}
	if w.config.Events = w.config.Events && w.mayReadEvents(ctx); w.config.Events {
		eventSync := make(chan struct{})
		syncs = append(syncs, eventSync)
		ofPods := fields.OneTermEqualSelector("involvedObject.kind", "Pod").String()
		w.follow(life, &corev1.Event{}, &eventStore{watcher: w, synced: eventSync}, &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				o.FieldSelector = ofPods
				return w.events().List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				o.FieldSelector = ofPods
				return w.events().Watch(ctx, o)
			},
		})
	}
	for _, synced := range syncs {
		select {
		case <-synced:
		case <-ctx.Done():
			w.close()
			return nil, context.Cause(ctx)
		}
	}
	return w, nil
}

// follow runs a reflector until the watcher is closed.
func (w *watcher) follow(ctx context.Context, kind runtime.Object, store cache.ReflectorStore, source *cache.ListWatch) {
	pause := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Steps: 4, Cap: 2 * time.Second, Jitter: 0.5}
	r := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(source, w.config.Client), kind, store, cache.ReflectorOptions{
		MinWatchTimeout: watchLife, Backoff: &pause,
	})
	w.workers.Go(func() { r.RunWithContext(ctx) })
}

// close ends the watches.
func (w *watcher) close() {
	w.cancel()
	w.workers.Wait()
}

func (w *watcher) pods() kube.Pods { return w.config.Client.Pods(w.config.Namespace) }

func (w *watcher) events() kube.Events { return w.config.Client.Events(w.config.Namespace) }

// mayReadEvents reports whether the role of the agent has the optional right.
func (w *watcher) mayReadEvents(ctx context.Context) bool {
	_, err := w.events().List(ctx, metav1.ListOptions{Limit: 1})
	return err == nil
}

// list reads the measured pods.
func (w *watcher) list(ctx context.Context) ([]corev1.Pod, error) {
	l, err := w.pods().List(ctx, metav1.ListOptions{LabelSelector: w.selector})
	if err != nil {
		return nil, explain(err)
	}
	return l.Items, nil
}

// find reads one pod; nil if it does not exist. The role of the agent has no right to get a pod by its name.
func (w *watcher) find(ctx context.Context, name string) (*corev1.Pod, error) {
	l, err := w.pods().List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
	if err != nil {
		return nil, explain(err)
	}
	for i := range l.Items { // a server may ignore the selector
		if l.Items[i].Name == name {
			return &l.Items[i], nil
		}
	}
	return nil, nil
}

// sweep removes the pods that an earlier process of this agent has left.
func (w *watcher) sweep(ctx context.Context) error {
	items, err := w.list(ctx)
	if err != nil {
		return err
	}
	var leftovers []*pod
	for i := range items {
		if w.config.isOurs(&items[i]) {
			p := newPod(ctx, w, &items[i], engine.Process{})
			p.adopt(&items[i])
			leftovers = append(leftovers, p)
		}
	}
	errs := make([]error, len(leftovers))
	var removals sync.WaitGroup
	for i, p := range leftovers {
		removals.Go(func() { errs[i] = p.Delete(ctx) })
	}
	removals.Wait()
	return errors.Join(errs...)
}

// track begins to pass changes to a pod.
func (w *watcher) track(p *pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tracked[p.manifest.Name] = p
}

func (w *watcher) untrack(p *pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tracked[p.manifest.Name] == p {
		delete(w.tracked, p.manifest.Name)
	}
}

// named returns a tracked pod; nil for a pod of others.
func (w *watcher) named(name string) *pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tracked[name]
}

// all lists the tracked pods.
func (w *watcher) all() []*pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []*pod
	for _, p := range w.tracked {
		list = append(list, p)
	}
	return list
}

// blur notes that the changes of all tracked pods may be late from now on.
func (w *watcher) blur() {
	for _, p := range w.all() {
		p.update(func() { p.blurred = true })
	}
}

// noted makes a list or a watch, and keeps its error. A right that was taken away does not come back by itself, so it ends all waits.
func noted[T any](w *watcher, call func() (T, error)) (T, error) {
	answer, err := call()
	w.mu.Lock()
	w.lastErr = err
	w.mu.Unlock()
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		fault := explain(err)
		for _, p := range w.all() {
			p.fail(fault)
		}
	}
	return answer, err
}

// broken is the error of the last list or watch; nil if it worked.
func (w *watcher) broken() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return explain(w.lastErr)
}

// podStore passes the changes of pods on. It implements cache.ReflectorStore.
type podStore struct {
	*watcher
	synced chan struct{}
	once   sync.Once
}

func (s *podStore) Add(object any) error {
	if o, ok := object.(*corev1.Pod); ok {
		if p := s.named(o.Name); p != nil {
			p.see(o)
		}
	}
	return nil
}

func (s *podStore) Update(object any) error { return s.Add(object) }

func (s *podStore) Delete(object any) error {
	if o, ok := object.(*corev1.Pod); ok {
		if p := s.named(o.Name); p != nil {
			p.see(o)
			p.vanish(o.UID)
		}
	}
	return nil
}

// Replace has the pods of a new list. A tracked pod that it lacks may be younger than the list, so another one decides.
func (s *podStore) Replace(list []any, _ string) error {
	names := map[string]bool{}
	for _, object := range list {
		if o, ok := object.(*corev1.Pod); ok {
			names[o.Name] = true
			_ = s.Add(o)
		}
	}
	for _, p := range s.all() {
		if !names[p.manifest.Name] {
			s.workers.Go(p.confirm)
		}
	}
	s.once.Do(func() { close(s.synced) })
	return nil
}

func (*podStore) Resync() error { return nil }

// eventStore passes events on. It implements cache.ReflectorStore.
type eventStore struct {
	*watcher
	synced chan struct{}
	once   sync.Once
}

func (s *eventStore) Add(object any) error {
	ev, ok := object.(*corev1.Event)
	if !ok {
		return nil
	}
	if p := s.named(ev.InvolvedObject.Name); p != nil {
		p.note(ev)
	}
	return nil
}

func (s *eventStore) Update(object any) error { return s.Add(object) }
func (*eventStore) Delete(any) error          { return nil }
func (*eventStore) Resync() error             { return nil }

func (s *eventStore) Replace(list []any, _ string) error {
	for _, object := range list {
		_ = s.Add(object)
	}
	s.once.Do(func() { close(s.synced) })
	return nil
}

// timeOf is the time in the name of an event: the kubelet ends it with nanoseconds since 1970 in hexadecimal digits. It is no contract, so
// another name has no time.
func timeOf(ev *corev1.Event) (time.Time, bool) {
	ns, err := strconv.ParseInt(ev.Name[strings.LastIndexByte(ev.Name, '.')+1:], 16, 64)
	if err != nil || ns <= 0 {
		return time.Time{}, false
	}
	return time.Unix(0, ns), true
}
