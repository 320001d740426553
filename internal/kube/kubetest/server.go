// Package kubetest imitates the API server of a cluster for tests: it keeps objects in memory and answers with real JSON over HTTP. It checks no
// object, and nothing acts on its objects: a test plays the kubelet by Set.
package kubetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/touchstone-bench/touchstone/internal/kube"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// Hook is a function of a test, which may replace it while the server answers.
type Hook[F any] struct{ function atomic.Pointer[F] }

// Set replaces the function.
func (h *Hook[F]) Set(f F) { h.function.Store(&f) }

// Function returns the function.
func (h *Hook[F]) Function() F { return *h.function.Load() }

// Server is an imitated API server.
type Server struct {
	// Fault returns the answer to a request that fails; nil for a request that the server answers itself. The path has no query. At first no request
	// fails.
	Fault Hook[func(method, path string) *metav1.Status]
	// Allowed decides about a right, spelled as in "create pods/log". At first all rights are granted.
	Allowed Hook[func(right string) bool]
	// Created is called in a goroutine after the creation of an object by a request.
	Created Hook[func(path string)]
	// Log writes the log of a pod until its end or the end of the request. At first logs are empty.
	Log Hook[func(w io.Writer, pod string, request *http.Request)]

	http *httptest.Server

	mu       sync.Mutex
	version  int
	objects  map[string]map[string]any // by path
	watchers map[chan change]string    // the path of the collection
}

// change is a change of an object.
type change struct {
	Type   string         `json:"type"`
	Object map[string]any `json:"object"`
}

// New starts a server, which ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{objects: map[string]map[string]any{}, watchers: map[chan change]string{}}
	s.Fault.Set(func(string, string) *metav1.Status { return nil })
	s.Allowed.Set(func(string) bool { return true })
	s.Created.Set(func(string) {})
	s.Log.Set(func(io.Writer, string, *http.Request) {})
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s
}

// Config is the configuration of a client.
func (s *Server) Config() *rest.Config { return &rest.Config{Host: s.http.URL} }

// Client returns a client of the server.
func (s *Server) Client(t testing.TB) *kube.Client {
	t.Helper()
	c, err := kube.New(s.Config(), "test")
	must.Do(t, err)
	return c
}

// Disconnect ends all connections, as a restart does.
func (s *Server) Disconnect() { s.http.CloseClientConnections() }

// Set creates or replaces an object at a path such as /api/v1/nodes/n.
func (s *Server) Set(t testing.TB, path string, object any) {
	t.Helper()
	text, err := json.Marshal(object)
	must.Do(t, err)
	var o map[string]any
	must.Do(t, json.Unmarshal(text, &o))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(path, o)
}

// Read reads the object at a path into a value, and reports whether it exists.
func (s *Server) Read(t testing.TB, path string, value any) bool {
	t.Helper()
	s.mu.Lock()
	text, err := json.Marshal(s.objects[path])
	exists := s.objects[path] != nil
	s.mu.Unlock()
	must.Do(t, err)
	if exists {
		must.Do(t, json.Unmarshal(text, value))
	}
	return exists
}

// Remove removes the object at a path.
func (s *Server) Remove(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(path)
}

// Paths lists the objects in order.
func (s *Server) Paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

// meta is the metadata of an object, which it gets if it has none.
func meta(o map[string]any) map[string]any {
	m, ok := o["metadata"].(map[string]any)
	if !ok {
		m = map[string]any{}
		o["metadata"] = m
	}
	return m
}

// put keeps an object and tells the watchers. The caller holds the lock.
func (s *Server) put(path string, o map[string]any) {
	kind := "ADDED"
	if s.objects[path] != nil {
		kind = "MODIFIED"
	}
	s.version++
	m := meta(o)
	m["resourceVersion"] = fmt.Sprint(s.version)
	if m["uid"] == nil {
		m["uid"] = fmt.Sprintf("uid-%d", s.version)
	}
	s.objects[path] = o
	s.tell(path, change{kind, o})
}

func (s *Server) drop(path string) {
	if o := s.objects[path]; o != nil {
		s.version++
		delete(s.objects, path)
		s.tell(path, change{"DELETED", o})
		if space, isSpace := strings.CutPrefix(path, "/api/v1/namespaces/"); isSpace && !strings.Contains(space, "/") {
			for inner := range s.objects {
				if strings.Contains(inner, "/namespaces/"+space+"/") {
					s.drop(inner)
				}
			}
		}
	}
}

// watchBuffer is the number of changes that a watch may lag behind.
const watchBuffer = 10_000

func (s *Server) tell(path string, c change) {
	text, err := json.Marshal(c) // a copy: the object may change
	if err != nil {
		return
	}
	var clone change
	if json.Unmarshal(text, &clone) != nil {
		return
	}
	for watcher, collection := range s.watchers {
		if parent(path) == collection {
			watcher <- clone
		}
	}
}

func parent(path string) string { return path[:strings.LastIndexByte(path, '/')] }

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if status := s.Fault.Function()(r.Method, r.URL.Path); status != nil {
		refuse(w, *status)
		return
	}
	switch path := r.URL.Path; {
	case path == "/version":
		answer(w, http.StatusOK, map[string]any{"gitVersion": "v1.37.2"})
	case strings.HasSuffix(path, "/selfsubjectaccessreviews"):
		s.review(w, r)
	case strings.HasSuffix(path, "/log"):
		s.log(w, r)
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r)
	default:
		s.object(w, r)
	}
}

func (s *Server) review(w http.ResponseWriter, r *http.Request) {
	var review struct {
		Spec struct {
			ResourceAttributes struct{ Verb, Resource, Subresource string } `json:"resourceAttributes"`
		} `json:"spec"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		refuse(w, status(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error()))
		return
	}
	a := review.Spec.ResourceAttributes
	name := a.Verb + " " + a.Resource
	if a.Subresource != "" {
		name += "/" + a.Subresource
	}
	answer(w, http.StatusCreated, map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "status": map[string]any{"allowed": s.Allowed.Function()(name)},
	})
}

func (s *Server) log(w http.ResponseWriter, r *http.Request) {
	pod := strings.TrimSuffix(r.URL.Path, "/log")
	s.mu.Lock()
	exists := s.objects[pod] != nil
	s.mu.Unlock()
	if !exists {
		refuse(w, status(http.StatusNotFound, metav1.StatusReasonNotFound, "the pod does not exist"))
		return
	}
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	s.Log.Function()(flusher{w}, pod[strings.LastIndexByte(pod, '/')+1:], r)
}

// flusher sends each write at once.
type flusher struct{ http.ResponseWriter }

func (f flusher) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	return n, errors.Join(err, http.NewResponseController(f.ResponseWriter).Flush())
}

// matches returns the filter of a request.
func matches(r *http.Request) func(o map[string]any) bool {
	byLabel, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		byLabel = labels.Nothing()
	}
	byField, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		byField = fields.Nothing()
	}
	return func(o map[string]any) bool {
		set := labels.Set{}
		if pairs, ok := meta(o)["labels"].(map[string]any); ok {
			for key, value := range pairs {
				set[key] = fmt.Sprint(value)
			}
		}
		facts := fields.Set{"metadata.name": fmt.Sprint(meta(o)["name"])}
		if involved, ok := o["involvedObject"].(map[string]any); ok {
			facts["involvedObject.name"] = fmt.Sprint(involved["name"])
		}
		return byLabel.Matches(set) && byField.Matches(facts)
	}
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	changes := make(chan change, watchBuffer)
	s.mu.Lock()
	isCurrent := fmt.Sprint(s.version) == r.URL.Query().Get("resourceVersion")
	s.watchers[changes] = r.URL.Path
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, changes)
	}()
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(flusher{w})
	if !isCurrent { // a change between the list and the watch: the client lists again
		_ = encoder.Encode(change{"ERROR", expired()})
		return
	}
	_ = http.NewResponseController(w).Flush()
	match := matches(r)
	for {
		select {
		case c := <-changes:
			if match(c.Object) && encoder.Encode(c) != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// expired is the answer to a watch from a version that the server has forgotten.
func expired() map[string]any {
	return map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": string(metav1.StatusReasonExpired), "code": http.StatusGone,
		"message": "too old resource version",
	}
}

// collections are the plural names of the kinds with their paths' number of parts.
var collections = map[string]string{
	"pods": "Pod", "namespaces": "Namespace", "nodes": "Node", "serviceaccounts": "ServiceAccount", "configmaps": "ConfigMap", "events": "Event",
	"resourcequotas": "ResourceQuota", "roles": "Role", "rolebindings": "RoleBinding", "runtimeclasses": "RuntimeClass",
}

func (s *Server) object(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := r.URL.Path
	last := path[strings.LastIndexByte(path, '/')+1:]
	kind, isCollection := collections[last]
	o := s.objects[path]
	switch {
	case isCollection && r.Method == http.MethodGet:
		s.list(w, r, kind)
	case isCollection && r.Method == http.MethodPost:
		s.create(w, r)
	case o == nil:
		refuse(w, status(http.StatusNotFound, metav1.StatusReasonNotFound, last+" not found"))
	case r.Method == http.MethodGet:
		answer(w, http.StatusOK, o)
	case r.Method == http.MethodPatch, r.Method == http.MethodPut:
		var change map[string]any
		if err := json.NewDecoder(r.Body).Decode(&change); err != nil {
			refuse(w, status(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error()))
			return
		}
		if r.Method == http.MethodPatch {
			change = merged(o, change)
		}
		s.put(path, change)
		answer(w, http.StatusOK, change)
	case r.Method == http.MethodDelete:
		var options metav1.DeleteOptions
		_ = json.NewDecoder(r.Body).Decode(&options) // no body is no option
		if p := options.Preconditions; p != nil && p.UID != nil && string(*p.UID) != meta(o)["uid"] {
			refuse(w, status(http.StatusConflict, metav1.StatusReasonConflict, "the UID is another one"))
			return
		}
		s.drop(path)
		answer(w, http.StatusOK, o)
	}
}

func (s *Server) list(w http.ResponseWriter, r *http.Request, kind string) {
	match, items := matches(r), []any{}
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		parts := strings.Split(name, "/")
		alias := strings.Replace(name, "/namespaces/"+part(parts, 4), "", 1) // the path of the object in a list of all namespaces
		if (parent(name) == r.URL.Path || parent(alias) == r.URL.Path) && match(s.objects[name]) {
			items = append(items, s.objects[name])
		}
	}
	answer(w, http.StatusOK, map[string]any{"kind": kind + "List", "metadata": map[string]any{"resourceVersion": fmt.Sprint(s.version)}, "items": items})
}

func part(parts []string, index int) string {
	if index < len(parts) {
		return parts[index]
	}
	return ""
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	var o map[string]any
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		refuse(w, status(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error()))
		return
	}
	path := r.URL.Path + "/" + fmt.Sprint(meta(o)["name"])
	switch {
	case s.objects[path] != nil:
		refuse(w, status(http.StatusConflict, metav1.StatusReasonAlreadyExists, "it already exists"))
	case r.URL.Query().Get("dryRun") != "":
		answer(w, http.StatusCreated, o)
	default:
		s.put(path, o)
		answer(w, http.StatusCreated, o)
		go s.Created.Function()(path)
	}
}

// merged applies a merge patch.
func merged(o, patch map[string]any) map[string]any {
	result := maps.Clone(o)
	for key, value := range patch {
		inner, isMap := value.(map[string]any)
		base, _ := result[key].(map[string]any)
		if isMap {
			if base == nil {
				base = map[string]any{}
			}
			result[key] = merged(base, inner)
		} else {
			result[key] = value
		}
	}
	return result
}

// Refusal is an answer for Fault.
func Refusal(code int, reason metav1.StatusReason, message string) *metav1.Status {
	s := status(code, reason, message)
	return &s
}

func status(code int, reason metav1.StatusReason, message string) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}
}

func refuse(w http.ResponseWriter, s metav1.Status) { answer(w, int(s.Code), s) }

func answer(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value) // the client sees a broken connection
}
