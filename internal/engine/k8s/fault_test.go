package k8s_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/k8s"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// opened opens the class c on a healthy node of the server.
func opened(t *testing.T, a *api) engine.Engine {
	t.Helper()
	a.mu.Lock()
	a.run = a.works
	a.mu.Unlock()
	e, err := k8s.NewDriver(a.config()).Open(t.Context(), target.Target{Engine: target.Kubernetes, Runtime: "c"}, engine.Session{RunID: fleet + "-n"})
	must.Do(t, err)
	t.Cleanup(func() { must.Do(t, e.Close()) })
	return e
}

// created makes a container.
func created(t *testing.T, e engine.Engine, name string) engine.Container {
	t.Helper()
	c, err := e.Create(t.Context(), engine.Spec{ID: engine.Prefix + fleet + "-" + name, Image: "image", Process: engine.Process{Args: probe.Ready()}})
	must.Do(t, err)
	return c
}

// checkError checks that an error has a text, and that nothing of the container is left.
func checkError(t *testing.T, a *api, c engine.Container, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("the error is %v, want %q", err, text)
	}
	must.Do(t, c.Delete(t.Context()))
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.pods) > 0 {
		t.Errorf("%d pods are left", len(a.pods))
	}
}

// isOutage reports whether the class had no part in an error.
func isOutage(err error) bool {
	fault, ok := errors.AsType[*k8s.FaultError](err)
	return ok && fault.Outage
}

// A request that the API server refuses is an error with the server's reason and a remedy, at once.
func TestRefusedPods(t *testing.T) {
	for _, tt := range []struct {
		name, message, want string
		code                int
		reason              metav1.StatusReason
		causes              []metav1.StatusCause
		isOutage            bool
	}{
		{"no class", `pods "x" is forbidden: pod rejected: RuntimeClass "nosuch" not found`, "touchstone cluster check lists the classes", 403, metav1.StatusReasonForbidden, nil, false},
		{"quota", "exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=1", "raise the quota", 403, metav1.StatusReasonForbidden, nil, false},
		{"Pod Security", `violates PodSecurity "restricted:latest": x`, "stricter than the restricted level", 403, metav1.StatusReasonForbidden, nil, false},
		{"role", `cannot create resource "pods" in API group "" in the namespace "ns"`, "bind the printed role", 403, metav1.StatusReasonForbidden, nil, false},
		{"namespace", "unable to create new content in namespace ns because it is being terminated", "the namespace is being deleted", 403, metav1.StatusReasonForbidden, []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}, false},
		{"credentials", "Unauthorized", "the token of the agent has expired", 401, metav1.StatusReasonUnauthorized, nil, false},
		{"broken", "etcdserver: no leader", "the control plane is overloaded or broken", 500, metav1.StatusReasonInternalError, nil, true},
		{"hostile", "x\x1b[2J\n" + strings.Repeat("y", 10_000), "the API server refuses the request: x [2J", 400, metav1.StatusReasonBadRequest, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newAPI(t)
			e := opened(t, a)
			a.mu.Lock()
			a.refuse = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPost {
					refusal(w, tt.code, tt.reason, tt.message, tt.causes...)
				}
				return r.Method == http.MethodPost
			}
			a.mu.Unlock()
			c := created(t, e, "x")
			err := c.Start(t.Context())
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			if isOutage(err) != tt.isOutage {
				t.Errorf("%v is an outage: %v, want %v", err, isOutage(err), tt.isOutage)
			}
			checkError(t, a, c, err, tt.want)
			if n := a.count("DELETE"); n != 1 { // of the first pod
				t.Errorf("%d requests to delete, although no pod exists", n-1)
			}
		})
	}
}

// A pod that cannot start is an error with its reason, at once and not at a time limit.
func TestPodsThatCannotStart(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		run        func(a *api, name string)
	}{
		{"cordoned", "1 node(s) were unschedulable; uncordon the node", func(a *api, name string) {
			a.set(name, func(p *corev1.Pod) {
				conditioned(p, corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, "0/1 nodes are available: 1 node(s) were unschedulable")
			})
		}},
		{"no image", "ErrImageNeverPull: Container image is not present; bring the image to the nodes", func(a *api, name string) {
			a.set(name, place1)
			a.set(name, func(p *corev1.Pod) { wait(p, "ErrImageNeverPull", "Container image is not present") })
		}},
		{"no handler", `no runtime for "c" is configured; install the handler`, func(a *api, name string) {
			a.set(name, place1)
			a.set(name, func(p *corev1.Pod) { wait(p, "ContainerCreating", "") })
			a.event(name, "FailedCreatePodSandBox", corev1.EventTypeWarning, `unable to get OCI runtime for sandbox "x": no runtime for "c" is configured`, time.Now())
		}},
		{"preempted", "PreemptionByScheduler: preempting to accommodate", func(a *api, name string) {
			a.set(name, place1)
			a.set(name, func(p *corev1.Pod) {
				conditioned(p, corev1.DisruptionTarget, corev1.ConditionTrue, "PreemptionByScheduler", "preempting to accommodate a higher priority pod")
				terminate(p, 0, "Completed", "")
			})
		}},
		{"evicted", "the pod has failed: Evicted: The node was low on resource: memory", func(a *api, name string) {
			a.set(name, place1)
			a.set(name, func(p *corev1.Pod) {
				p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory"
			})
		}},
		{"no program", "StartError: exec: no such file", func(a *api, name string) {
			a.set(name, place1)
			a.set(name, func(p *corev1.Pod) { terminate(p, 128, "StartError", "exec: no such file") })
		}},
		{"deleted", "the pod is deleted by another", func(a *api, name string) {
			a.set(name, place1)
			a.remove(name)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newAPI(t)
			e := opened(t, a)
			a.mu.Lock()
			a.run = func(name string) { tt.run(a, name) }
			a.mu.Unlock()
			c := created(t, e, "x")
			err := c.Start(t.Context())
			var fault *k8s.FaultError
			if !errors.As(err, &fault) {
				t.Errorf("the error is no fault of a pod: %v", err)
			}
			checkError(t, a, c, err, tt.want)
		})
	}
}

// A drained pod whose program handles SIGTERM has succeeded by its phase. The trial must not take that for a result.
func TestDisruptionPrecedesThePhase(t *testing.T) {
	a := newAPI(t)
	c := created(t, opened(t, a), "x")
	must.Do(t, c.Start(t.Context()))
	a.set(c.ID(), func(p *corev1.Pod) {
		conditioned(p, corev1.DisruptionTarget, corev1.ConditionTrue, "EvictionByEvictionAPI", "Eviction API: evicting")
		terminate(p, 0, "Completed", "")
	})
	_, err := c.Wait(t.Context())
	if !isOutage(err) {
		t.Errorf("%v is the fault of the class", err)
	}
	checkError(t, a, c, err, "EvictionByEvictionAPI: Eviction API: evicting")
}

func TestExits(t *testing.T) {
	for code, want := range map[int32]string{0: "exit code 0", 3: "exit code 3", 128: "exit code 128", 137: "killed by signal 9 (killed)", 255: "exit code 255"} {
		a := newAPI(t)
		c := created(t, opened(t, a), "x")
		must.Do(t, c.Start(t.Context()))
		a.set(c.ID(), func(p *corev1.Pod) { terminate(p, code, "Error", "") })
		exit, err := c.Wait(t.Context())
		if exit.String() != want || err != nil {
			t.Errorf("code %d: %s, %v; want %s", code, exit, err, want)
		}
		must.Do(t, c.Delete(t.Context()))
	}
}

// A watch that the server closes, or whose version it has forgotten, begins anew. Stages that the new watch reports are late, and are not taken.
func TestWatchesEnd(t *testing.T) {
	for _, tt := range []struct {
		name    string
		expires bool
	}{{"closed", false}, {"expired", true}} {
		t.Run(tt.name, func(t *testing.T) {
			a := newAPI(t)
			e := opened(t, a)
			var expired atomic.Bool
			a.mu.Lock()
			a.run = func(name string) {
				a.set(name, place1)
				expired.Store(tt.expires)
				a.closeWatches()
				a.set(name, run)
				a.write(name, time.Now().UTC().Format(time.RFC3339Nano)+" ready\n")
			}
			a.refuse = func(w http.ResponseWriter, r *http.Request) bool {
				isRefused := r.URL.Query().Has("watch") && strings.HasSuffix(r.URL.Path, "/pods") && expired.Swap(false)
				if isRefused {
					refusal(w, http.StatusGone, metav1.StatusReasonExpired, "too old resource version")
				}
				return isRefused
			}
			a.mu.Unlock()
			var m marks
			ctx := engine.WithMarker(t.Context(), &m)
			c := created(t, e, "x")
			must.Do(t, c.Start(ctx))
			must.Do(t, c.Delete(ctx))
			m.mu.Lock()
			defer m.mu.Unlock()
			if _, ok := m.times[engine.StageRunning]; ok {
				t.Error("a stage that was seen by a second watch is taken")
			}
			if _, ok := m.times[engine.StageFirstLine]; !ok {
				t.Error("the time of the first line is missing, which comes from the log")
			}
		})
	}
}

// A right that is taken away ends a wait at once.
func TestRoleIsTakenAway(t *testing.T) {
	a := newAPI(t)
	e := opened(t, a)
	a.mu.Lock()
	a.run = func(string) {
		a.mu.Lock()
		a.refuse = func(w http.ResponseWriter, r *http.Request) bool {
			isRead := r.Method == http.MethodGet
			if isRead {
				refusal(w, 403, metav1.StatusReasonForbidden, `cannot list resource "pods"`)
			}
			return isRead
		}
		a.mu.Unlock()
		a.closeWatches()
	}
	a.mu.Unlock()
	c := created(t, e, "x")
	err := c.Start(t.Context())
	a.mu.Lock()
	a.refuse = nil
	a.mu.Unlock()
	checkError(t, a, c, err, "bind the printed role")
}

// An overloaded API server is asked again, as it says.
func TestOverload(t *testing.T) {
	a := newAPI(t)
	e := opened(t, a)
	var refusals atomic.Int32
	a.mu.Lock()
	a.refuse = func(w http.ResponseWriter, r *http.Request) bool {
		isRefused := r.Method == http.MethodPost && refusals.Add(1) == 1
		if isRefused {
			w.Header().Set("Retry-After", "0")
			refusal(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests")
		}
		return isRefused
	}
	a.mu.Unlock()
	c := created(t, e, "x")
	must.Do(t, c.Start(t.Context()))
	must.Do(t, c.Delete(t.Context()))
}

// The answer to a creation may be lost. The pod exists, and is removed.
func TestLostAnswer(t *testing.T) {
	a := newAPI(t)
	e := opened(t, a)
	a.mu.Lock()
	a.refuse = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost {
			return false
		}
		a.create(discarded{}, r)
		panic(http.ErrAbortHandler)
	}
	a.mu.Unlock()
	c := created(t, e, "x")
	err := c.Start(t.Context())
	if !isOutage(err) {
		t.Errorf("%v is the fault of the class", err)
	}
	checkError(t, a, c, err, "the API server does not answer")
}

// A log that a killed API server has cut is no output, and no fault of the class.
func TestCutLog(t *testing.T) {
	a := newAPI(t)
	e := opened(t, a)
	c := created(t, e, "x")
	a.mu.Lock()
	a.refuse = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/log") {
			return false
		}
		_, _ = io.WriteString(w, time.Now().UTC().Format(time.RFC3339Nano)+" ready\n")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	a.mu.Unlock()
	must.Do(t, c.Start(t.Context()))
	if _, err := c.Wait(t.Context()); !isOutage(err) || !strings.Contains(err.Error(), "the API server has cut the log: unexpected EOF") {
		t.Errorf("Wait() = %v", err)
	}
	if err := c.Delete(t.Context()); !isOutage(err) {
		t.Errorf("Delete() = %v", err)
	}
}

// discarded is an answer that gets lost.
type discarded struct{}

func (discarded) Header() http.Header         { return http.Header{} }
func (discarded) Write(p []byte) (int, error) { return len(p), nil }
func (discarded) WriteHeader(int)             {}

// The engine removes no pod of others: neither one with the name of its own, nor one with its label.
//
// Invariant foreign-objects.
func TestPodsOfOthersStay(t *testing.T) {
	a := newAPI(t)
	pod := func(name, label string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: "foreign", Labels: map[string]string{engine.Label: label, k8s.NodeLabel: "node1"}, OwnerReferences: []metav1.OwnerReference{{UID: "x"}, {UID: "y"}},
		}}
	}
	a.add(pod(engine.Prefix+fleet+"-same", ""))
	a.add(pod(engine.Prefix+fleet+"-labelled", fleet))
	leftover := pod(engine.Prefix+fleet+"-leftover", fleet)
	leftover.UID, leftover.OwnerReferences[0].UID = "leftover", owner
	a.add(leftover)
	e := opened(t, a)
	c := created(t, e, "same")
	if err := c.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("Start() = %v with the name of another pod", err)
	}
	must.Do(t, c.Delete(t.Context()))
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.pods) != 2 || a.pods[leftover.Name] != nil {
		t.Errorf("the pods are %v, want the two of others", a.pods)
	}
}

// A log that the kubelet has not written is no output.
func TestHostileLog(t *testing.T) {
	a := newAPI(t)
	e := opened(t, a)
	a.mu.Lock()
	a.run = func(name string) {
		a.set(name, place1)
		a.write(name, "yesterday ready\x1b[2J\n")
		a.set(name, run)
	}
	a.mu.Unlock()
	c := created(t, e, "x")
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), `a line of the log has no time`) {
		t.Errorf("Wait() = %v", err)
	}
	if err := c.Delete(t.Context()); err == nil {
		t.Error("Delete accepts a damaged log")
	}
	if err := c.Delete(t.Context()); err != nil {
		t.Errorf("the second Delete states the damage again: %v", err)
	}
}

// The output of a program is its bytes, also if they have controls, no end of a line, or the form of a record of an agent.
func TestHostileOutput(t *testing.T) {
	for name, output := range map[string]string{
		"forged record": "touchstone/1 3 trial 9f86d081884c7d65 {}\n",
		"controls":      "\x00\x1b[2J\x1b]0;x\a\r\xff\xfe\n\n",
		"forged time":   "2026-01-01T00:00:00Z ready\n",
		"no end":        strings.Repeat("x", 3<<20),
	} {
		a := newAPI(t)
		e := opened(t, a)
		a.mu.Lock()
		a.run = func(name string) {
			a.set(name, place1)
			a.set(name, run)
			stamp := time.Now().UTC().Format(time.RFC3339Nano) + " "
			a.write(name, stamp+strings.ReplaceAll(strings.TrimSuffix(output, "\n"), "\n", "\n"+stamp)+output[len(strings.TrimSuffix(output, "\n")):])
			a.set(name, func(p *corev1.Pod) { terminate(p, 0, "Completed", "") })
		}
		a.mu.Unlock()
		var got bytes.Buffer
		spec := engine.Spec{ID: engine.Prefix + fleet + "-x", Image: "image", Process: engine.Process{Args: probe.Ready(), Stdout: nopCloser{&got}}}
		c, err := e.Create(t.Context(), spec)
		must.Do(t, err, c.Start(t.Context()))
		exit, err := c.Wait(t.Context())
		must.Do(t, err, c.Delete(t.Context()))
		if !exit.OK() || got.String() != output {
			t.Errorf("%s: %s with %d bytes: %.100q", name, exit, got.Len(), got.String())
		}
	}
}

// nopCloser is a writer with an end.
type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// A cancelled start leaves nothing after Delete.
func TestCancelledStart(t *testing.T) {
	a := newAPI(t)
	e := opened(t, a)
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("enough")
	a.mu.Lock()
	a.run = func(string) { cancel(reason) }
	a.mu.Unlock()
	c := created(t, e, "x")
	checkError(t, a, c, c.Start(ctx), "enough")
}

// Open returns the reason why a class does not work, and leaves nothing.
func TestOpenRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		target     target.Target
		session    engine.Session
		refuse     func(w http.ResponseWriter, r *http.Request) bool
	}{
		{"options", "has no options", target.Target{Engine: "k8s", Runtime: "c", Options: []target.Option{{Name: "a", Value: "b"}}}, engine.Session{}, nil},
		{"seccomp", "needs a seccomp filter", target.Target{Engine: "k8s"}, engine.Session{Seccomp: engine.Unconfined}, nil},
		{"role", "bind the printed role", target.Target{Engine: "k8s"}, engine.Session{}, func(w http.ResponseWriter, _ *http.Request) bool {
			refusal(w, 403, metav1.StatusReasonForbidden, `cannot list resource "pods"`)
			return true
		}},
		{"no class", "touchstone cluster check lists", target.Target{Engine: "k8s", Runtime: "no"}, engine.Session{RunID: fleet}, func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				refusal(w, 403, metav1.StatusReasonForbidden, `RuntimeClass "no" not found`)
			}
			return r.Method == http.MethodPost
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newAPI(t)
			a.refuse = tt.refuse
			e, err := k8s.NewDriver(a.config()).Open(t.Context(), tt.target, tt.session)
			if e != nil || !engine.Unsupported(err) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Open() = %v, %v; want %q", e, err, tt.want)
			}
		})
	}
}
