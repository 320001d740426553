package agent

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/touchstone-bench/touchstone/internal/cluster"
	"github.com/touchstone-bench/touchstone/internal/engine/k8s"
	"github.com/touchstone-bench/touchstone/internal/kube/kubetest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// station is a node with its agent's pod and an imitated API server.
type station struct {
	outages
	server  *kubetest.Server
	path    string
	samples atomic.Int64 // placed ones
	reasons chan string
	// fault is the answer to the creation of a sample; nil creates it.
	fault atomic.Pointer[metav1.Status]
	// refusals is the number of samples that were not created.
	refusals atomic.Int64
}

func newStation(t *testing.T) *station {
	t.Helper()
	s := &station{server: kubetest.New(t), reasons: make(chan string, 100)}
	fleet := cluster.Fleet{ID: "20261129-120000-abcd", Namespace: "ns", Image: "i", Lease: time.Hour}
	node := cluster.Node{Node: result.Node{Name: "n1"}}
	agent := fleet.Agent(node)
	s.path = "/api/v1/namespaces/ns/pods/" + agent.Name
	s.server.Set(t, s.path, agent)
	s.server.Fault.Set(func(method, _ string) *metav1.Status {
		fault := s.fault.Load()
		if method != http.MethodPost || fault == nil {
			return nil
		}
		s.refusals.Add(1)
		go s.update(func() {}) // the next attempt is now
		return fault
	})
	s.server.Created.Set(func(path string) { // a kubelet that takes each pod
		var sample corev1.Pod
		if s.server.Read(t, path, &sample) {
			s.samples.Add(1)
			sample.Status.Phase = corev1.PodSucceeded
			s.server.Set(t, path, &sample)
		}
	})
	sample := fleet.Sample(node, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: agent.Name, UID: "uid"})
	s.outages = outages{newPod(s.server.Client(t).Pods("ns"), agent.Name, time.Hour, sample), func(reason string) { s.reasons <- reason }}
	return s
}

// setReady sets the condition that the control plane sets for the pods of a lost node.
func (s *station) setReady(t *testing.T, status corev1.ConditionStatus) {
	t.Helper()
	var pod corev1.Pod
	s.server.Read(t, s.path, &pod)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}
	s.server.Set(t, s.path, &pod)
}

// left fails the test if a sample exists.
func (s *station) left(t *testing.T) {
	t.Helper()
	if paths := s.server.Paths(); len(paths) != 1 {
		t.Errorf("left are %q, want the agent's pod", paths)
	}
}

var errTrial = errors.New("the program printed nonsense")

// A failure on a node that takes pods is the target's.
func TestFailureWithoutOutage(t *testing.T) {
	s := newStation(t)
	if reason := s.Begin(t.Context())(t.Context(), errTrial); reason != "" || s.samples.Load() != 1 {
		t.Errorf("the failure is explained by %q after %d samples, want no reason after one", reason, s.samples.Load())
	}
	s.left(t)
	s.fault.Store(kubetest.Refusal(http.StatusForbidden, metav1.StatusReasonForbidden, "exceeded quota"))
	if reason := s.Begin(t.Context())(t.Context(), errTrial); reason != "" || s.refusals.Load() != 1 {
		t.Errorf("a refusal is taken for the outage %q after %d requests", reason, s.refusals.Load())
	}
}

// A node without room for a pod is not away, and a cordoned one is.
func TestUnschedulableSample(t *testing.T) {
	for message, want := range map[string]string{"0/1 nodes are available: 1 Too many pods.": "", "0/1 nodes are available: 1 node(s) were unschedulable.": "1 node(s) were unschedulable"} {
		s := newStation(t)
		take := s.server.Created.Function()
		s.server.Created.Set(func(path string) {
			if s.refusals.Add(1) > 1 { // the node is uncordoned
				take(path)
				return
			}
			var sample corev1.Pod
			s.server.Read(t, path, &sample)
			sample.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: message}}
			s.server.Set(t, path, &sample)
		})
		s.tell = func(string) {}
		if reason := s.Begin(t.Context())(t.Context(), errTrial); !strings.Contains(reason, want) || (reason == "") != (want == "") {
			t.Errorf("%s: the reason is %q, want %q", message, reason, want)
		}
		s.left(t)
	}
}

// An API server without an answer explains a failure, and the wait ends when it answers.
func TestUnansweredRequests(t *testing.T) {
	s := newStation(t)
	s.fault.Store(kubetest.Refusal(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "starting"))
	s.tell = func(reason string) {
		s.reasons <- reason
		s.fault.Store(nil)
	}
	reason := s.Begin(t.Context())(t.Context(), errTrial)
	if !strings.Contains(reason, "the API server does not answer") || !strings.Contains(<-s.reasons, "does not answer") || s.samples.Load() != 1 {
		t.Errorf("the reason is %q after %d samples", reason, s.samples.Load())
	}
	s.left(t)
	// The engine knows of a connection that broke although the server is back.
	fault := &k8s.FaultError{Reason: "the log was cut", Outage: true}
	if reason := s.Begin(t.Context())(t.Context(), errors.Join(errTrial, fault)); reason != fault.Reason {
		t.Errorf("the reason is %q, want %q", reason, fault.Reason)
	}
}

// An agent whose node is lost begins no trial. It goes on when the node is back and takes a pod.
func TestLostNode(t *testing.T) {
	s := newStation(t)
	defer background(t.Context(), s.follow)()
	explain := s.Begin(t.Context())
	change := s.changes()
	s.setReady(t, corev1.ConditionFalse)
	for s.lostReason() == "" {
		<-change
		change = s.changes()
	}
	start := make(chan struct{})
	go func() {
		defer close(start)
		s.Begin(t.Context())
	}()
	if reason := <-s.reasons; reason != "the control plane has lost the node" || s.samples.Load() != 0 {
		t.Errorf("the agent waits because %q, after %d samples", reason, s.samples.Load())
	}
	select {
	case <-start:
		t.Error("a trial begins on a lost node")
	default:
	}
	s.setReady(t, corev1.ConditionTrue)
	<-start
	if end := <-s.reasons; end != "" {
		t.Errorf("the agent waits on because %q", end)
	}
	if s.samples.Load() != 1 {
		t.Errorf("%d samples after the return, want 1", s.samples.Load())
	}
	s.left(t)
	// The doubt is gone.
	if reason := explain(t.Context(), errTrial); reason != "" {
		t.Errorf("a later failure is explained by %q", reason)
	}
}

// A restarted API server refuses all requests for some seconds. A refusal that stays is the trial's.
func TestRefusalsAfterARestart(t *testing.T) {
	s := newStation(t)
	s.fault.Store(kubetest.Refusal(http.StatusForbidden, metav1.StatusReasonForbidden, "RBAC: role not found"))
	s.Lost(errors.New("connection refused"))
	reason := s.Begin(t.Context())(t.Context(), errTrial)
	if s.refusals.Load() != refusalsAllowed+1 || reason != "" {
		t.Errorf("%q after %d refusals, want no reason after %d", reason, s.refusals.Load(), refusalsAllowed+1)
	}
	s.Lost(errors.New("connection refused"))
	s.tell = func(string) { s.fault.Store(nil) }
	if s.Begin(t.Context()); s.samples.Load() != 1 {
		t.Errorf("%d samples, want 1", s.samples.Load())
	}
}

// A node that comes back while the agent tries a pod was away.
func TestReturnDuringTheTry(t *testing.T) {
	s := newStation(t)
	take := s.server.Created.Function()
	s.server.Created.Set(func(path string) {
		if s.samples.Load() == 0 {
			s.Seen(lost())
			s.Seen(&corev1.Pod{})
		}
		take(path)
	})
	if reason := s.Begin(t.Context())(t.Context(), errTrial); reason != "the control plane has lost the node" {
		t.Errorf("the reason is %q", reason)
	}
}

// lost is the pod of an agent whose node is lost.
func lost() *corev1.Pod {
	return &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionFalse}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
	}}}
}

// The end of the run ends a wait.
func TestEndDuringAnOutage(t *testing.T) {
	s := newStation(t)
	s.fault.Store(kubetest.Refusal(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "starting"))
	ctx, cancel := context.WithCancel(t.Context())
	s.tell = func(string) { cancel() }
	if reason := s.Begin(ctx)(ctx, errTrial); reason == "" {
		t.Error("the failure has no reason")
	}
}
