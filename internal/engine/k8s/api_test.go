package k8s_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/touchstone-bench/touchstone/internal/engine/k8s"
	"github.com/touchstone-bench/touchstone/internal/kube"
	"github.com/touchstone-bench/touchstone/internal/must"
)

const (
	fleet = "20260101-000000-ab12"
	owner = "agent-uid"
)

// api is an API server with one namespace: the requests of the engine, and no others. A test is its scheduler, its kubelet and its faults.
type api struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	changed  chan struct{} // closed at each change
	version  int
	pods     map[string]*corev1.Pod
	changes  []change
	closed   int // watches below this number are closed
	watches  int
	requests []string
	// refuse answers a request instead of the server; nil or false leaves it to the server.
	refuse func(w http.ResponseWriter, r *http.Request) bool
	// run is called with each new pod.
	run  func(name string)
	logs map[string]string
}

// change is a change of an object, as a watch has it.
type change struct {
	version int
	kind    string // pods or events
	line    string
}

func newAPI(t *testing.T) *api {
	a := &api{t: t, changed: make(chan struct{}), pods: map[string]*corev1.Pod{}, logs: map[string]string{}}
	a.Server = httptest.NewServer(a)
	t.Cleanup(func() {
		a.CloseClientConnections()
		a.Close()
	})
	return a
}

// config is the place of an agent with this server.
func (a *api) config() k8s.Config {
	client, err := kube.New(&rest.Config{Host: a.URL}, "test")
	must.Do(a.t, err)
	return k8s.Config{
		Client: client, Namespace: "ns", Node: "node1", Fleet: fleet, Image: "image", KubeletVersion: "v1.37.2", Events: true,
		Owner: metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "agent", UID: owner},
	}
}

// set changes a pod and tells all watches.
func (a *api) set(name string, update func(p *corev1.Pod)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.pods[name]; p != nil {
		update(p)
		a.publish("pods", "MODIFIED", p)
	}
}

// remove removes a pod.
func (a *api) remove(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.pods[name]; p != nil {
		delete(a.pods, name)
		a.publish("pods", "DELETED", p)
	}
}

// add stores a pod.
func (a *api) add(p *corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pods[p.Name] = p
	a.publish("pods", "ADDED", p)
}

// event publishes an event of the kubelet about a pod.
func (a *api) event(name, reason, kind, message string, moment time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.pods[name]
	if p == nil {
		return
	}
	a.publish("events", "ADDED", &corev1.Event{
		TypeMeta:       metav1.TypeMeta{Kind: "Event", APIVersion: "v1"},
		ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", name, moment.UnixNano()), Namespace: "ns"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: name, UID: p.UID}, Reason: reason, Type: kind, Message: message,
		Source: corev1.EventSource{Component: "kubelet"},
	})
}

// closeWatches ends all watches. The next ones see only what happens after the list before them.
func (a *api) closeWatches() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = a.watches
	a.wake()
}

func (a *api) wake() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// publish is called with the mutex.
func (a *api) publish(kind, action string, object metav1.Object) {
	a.version++
	object.SetResourceVersion(strconv.Itoa(a.version))
	line, err := json.Marshal(map[string]any{"type": action, "object": object})
	must.Do(a.t, err)
	a.changes = append(a.changes, change{a.version, kind, string(line) + "\n"})
	a.wake()
}

// count counts the requests that begin with a text.
func (a *api) count(prefix string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, r := range a.requests {
		if strings.HasPrefix(r, prefix) {
			n++
		}
	}
	return n
}

// refusal answers as the API server does.
func refusal(w http.ResponseWriter, code int, reason metav1.StatusReason, message string, causes ...metav1.StatusCause) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Reason: reason, Message: message,
		Details: &metav1.StatusDetails{Causes: causes},
	})
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rest := strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/ns/")
	kind, name, _ := strings.Cut(rest, "/")
	name, sub, _ := strings.Cut(name, "/")
	a.mu.Lock()
	what := r.Method + " " + rest
	if r.URL.Query().Has("watch") {
		what = "WATCH " + rest
	}
	a.requests = append(a.requests, what)
	refuse := a.refuse
	a.mu.Unlock()
	if refuse != nil && refuse(w, r) {
		return
	}
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Has("watch"):
		a.watch(w, r, kind)
	case r.Method == http.MethodGet && sub == "log":
		a.log(w, r, name)
	case r.Method == http.MethodGet && name == "":
		a.list(w, r, kind)
	case r.Method == http.MethodPost && kind == "pods":
		a.create(w, r)
	case r.Method == http.MethodDelete && kind == "pods":
		a.delete(w, r, name)
	default:
		refusal(w, http.StatusForbidden, metav1.StatusReasonForbidden, r.Method+" "+rest+" is not in the role")
	}
}

func (a *api) list(w http.ResponseWriter, r *http.Request, kind string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	meta := metav1.ListMeta{ResourceVersion: strconv.Itoa(a.version)}
	if kind == "events" {
		_ = json.NewEncoder(w).Encode(corev1.EventList{TypeMeta: metav1.TypeMeta{Kind: "EventList", APIVersion: "v1"}, ListMeta: meta})
		return
	}
	l := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: meta}
	_, field, hasField := strings.Cut(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	for _, p := range a.pods {
		if !hasField || p.Name == field {
			l.Items = append(l.Items, *p)
		}
	}
	_ = json.NewEncoder(w).Encode(l)
}

func (a *api) watch(w http.ResponseWriter, r *http.Request, kind string) {
	if r.URL.Query().Has("sendInitialEvents") { // as a server before 1.34
		refusal(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
		return
	}
	version, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.Header().Set("Content-Type", "application/json")
	w.(http.Flusher).Flush()
	a.mu.Lock()
	number := a.watches
	a.watches++
	a.mu.Unlock()
	for {
		a.mu.Lock()
		var lines []string
		for _, c := range a.changes {
			if c.version > version {
				version = c.version
				if c.kind == kind {
					lines = append(lines, c.line)
				}
			}
		}
		isClosed, wakeup := number < a.closed, a.changed
		a.mu.Unlock()
		if isClosed {
			return
		}
		for _, line := range lines {
			_, _ = io.WriteString(w, line)
		}
		w.(http.Flusher).Flush()
		select {
		case <-wakeup:
		case <-r.Context().Done():
			return
		}
	}
}

func (a *api) create(w http.ResponseWriter, r *http.Request) {
	p := &corev1.Pod{}
	must.Do(a.t, json.NewDecoder(r.Body).Decode(p))
	a.mu.Lock()
	if a.pods[p.Name] != nil {
		a.mu.Unlock()
		refusal(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, `pods "`+p.Name+`" already exists`)
		return
	}
	p.UID = types.UID("uid-" + strconv.Itoa(a.version))
	a.pods[p.Name] = p
	a.publish("pods", "ADDED", p)
	body, err := json.Marshal(p)
	must.Do(a.t, err)
	run := a.run
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(body)
	if run != nil {
		go run(p.Name)
	}
}

// delete removes a pod like a kubelet whose program handles SIGTERM.
func (a *api) delete(w http.ResponseWriter, r *http.Request, name string) {
	var o metav1.DeleteOptions
	must.Do(a.t, json.NewDecoder(r.Body).Decode(&o))
	a.mu.Lock()
	p := a.pods[name]
	a.mu.Unlock()
	switch {
	case p == nil:
		refusal(w, http.StatusNotFound, metav1.StatusReasonNotFound, `pods "`+name+`" not found`)
		return
	case o.Preconditions != nil && o.Preconditions.UID != nil && *o.Preconditions.UID != p.UID:
		refusal(w, http.StatusConflict, metav1.StatusReasonConflict, "the UID in the precondition does not match")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(p)
	go func() {
		moment := metav1.Now()
		a.set(name, func(p *corev1.Pod) {
			p.DeletionTimestamp = &moment
			terminate(p, 0, "Completed", "")
		})
		a.remove(name)
	}()
}

// log writes the log of a pod, and ends when the pod is removed.
func (a *api) log(w http.ResponseWriter, r *http.Request, name string) {
	for position := 0; ; {
		a.mu.Lock()
		text, isOver, wakeup := a.logs[name], a.pods[name] == nil, a.changed
		a.mu.Unlock()
		_, _ = io.WriteString(w, text[position:])
		w.(http.Flusher).Flush()
		position = len(text)
		if isOver {
			return
		}
		select {
		case <-wakeup:
		case <-r.Context().Done():
			return
		}
	}
}

// write adds a text to the log of a pod.
func (a *api) write(name, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.logs[name] += text
	a.wake()
}

// conditioned sets a condition of a pod.
func conditioned(p *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message})
}

func place1(p *corev1.Pod) {
	p.Spec.NodeName = "node1"
	conditioned(p, corev1.PodScheduled, corev1.ConditionTrue, "", "")
}

// wait lets the container of a pod wait.
func wait(p *corev1.Pod, reason, message string) {
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "program", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
	}}
}

func run(p *corev1.Pod) {
	conditioned(p, corev1.PodReadyToStartContainers, corev1.ConditionTrue, "", "")
	conditioned(p, corev1.PodReady, corev1.ConditionTrue, "", "")
	p.Status.Phase = corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "program", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
}

func terminate(p *corev1.Pod, code int32, reason, message string) {
	p.Status.Phase = corev1.PodSucceeded
	if code != 0 {
		p.Status.Phase = corev1.PodFailed
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "program", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}},
	}}
}

// works is a scheduler and a kubelet of a healthy node.
func (a *api) works(name string) {
	a.set(name, place1)
	a.event(name, "Pulled", corev1.EventTypeNormal, "", time.Now())
	a.event(name, "Created", corev1.EventTypeNormal, "", time.Now())
	a.write(name, time.Now().UTC().Format(time.RFC3339Nano)+" ready\n")
	a.set(name, run)
	a.event(name, "Started", corev1.EventTypeNormal, "", time.Now())
}
