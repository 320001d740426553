package kube_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/touchstone-bench/touchstone/internal/kube"
	"github.com/touchstone-bench/touchstone/internal/kube/kubetest"
	"github.com/touchstone-bench/touchstone/internal/must"
)

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "n", Labels: map[string]string{"l": "x"}},
	}
}

func podPath(name string) string { return "/api/v1/namespaces/n/pods/" + name }

// Requests and their answers have the types of the API.
func TestRequests(t *testing.T) {
	s := kubetest.New(t)
	s.Allowed.Set(func(right string) bool { return right == "get pods/log" })
	client := s.Client(t)
	ctx := t.Context()
	object, err := client.Pods("n").Create(ctx, pod("p"), metav1.CreateOptions{})
	must.Do(t, err)
	if object.Name != "p" || object.UID == "" {
		t.Errorf("created %+v", object.ObjectMeta)
	}
	list, err := client.Pods("n").List(ctx, metav1.ListOptions{LabelSelector: "l=x"})
	must.Do(t, err)
	if len(list.Items) != 1 || list.Items[0].Labels["l"] != "x" {
		t.Errorf("listed %+v", list.Items)
	}
	for right, want := range map[string]bool{"log": true, "": false} {
		ok, _, err := client.Allowed(ctx, authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: right, Namespace: "n"})
		if err != nil || ok != want {
			t.Errorf("get pods/%s: %t, %v; want %t", right, ok, err, want)
		}
	}
	info, err := client.Version(ctx)
	if err != nil || info.GitVersion != "v1.37.2" {
		t.Errorf("version %+v, %v", info, err)
	}
}

// An error of the server comes with its remedy.
func TestExplain(t *testing.T) {
	s := kubetest.New(t)
	client := s.Client(t)
	for _, tt := range []struct {
		status    *metav1.Status
		advice    string
		transient bool
	}{
		{kubetest.Refusal(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "expired"), "log in again", false},
		{kubetest.Refusal(http.StatusForbidden, metav1.StatusReasonForbidden, "no"), "touchstone cluster check", false},
		{kubetest.Refusal(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "later"), "try again", true},
		{kubetest.Refusal(http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcd"), "try again", true},
		{kubetest.Refusal(http.StatusNotFound, metav1.StatusReasonNotFound, "no such pod"), "", false},
	} {
		s.Fault.Set(func(string, string) *metav1.Status { return tt.status })
		_, err := client.Pods("n").Get(t.Context(), "p", metav1.GetOptions{})
		explanation := client.Explain(err)
		if err == nil || !strings.Contains(explanation.Error(), tt.status.Message) || !strings.Contains(explanation.Error(), tt.advice) || kube.IsTransient(err) != tt.transient {
			t.Errorf("%d: %v, transient %t; want %q and %t", tt.status.Code, explanation, kube.IsTransient(err), tt.advice, tt.transient)
		}
		if !errors.Is(explanation, err) || client.Explain(explanation) != explanation { //nolint:errorlint // the same error, not one around it
			t.Errorf("%d: the error is explained twice or lost", tt.status.Code)
		}
	}
	outage, err := kube.New(&rest.Config{Host: "http://127.0.0.1:1"}, "test")
	must.Do(t, err)
	_, err = outage.Version(t.Context())
	if !kube.IsTransient(err) || !strings.Contains(outage.Explain(err).Error(), "no answer from the API server http://127.0.0.1:1") {
		t.Errorf("without a server: %v", outage.Explain(err))
	}
}

// A request is made again while the server is overloaded or restarts, and not after a refusal.
func TestRetry(t *testing.T) {
	s := kubetest.New(t)
	client := s.Client(t)
	var requests atomic.Int64
	s.Fault.Set(func(string, string) *metav1.Status {
		if requests.Add(1) < 3 {
			return kubetest.Refusal(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "later")
		}
		return nil
	})
	notes := 0
	create := func(ctx context.Context) error {
		_, err := client.Pods("n").Create(ctx, pod("p"), metav1.CreateOptions{})
		return err
	}
	must.Do(t, kube.Retry(t.Context(), func(error) { notes++ }, create))
	if requests.Load() != 3 || notes != 1 {
		t.Errorf("%d requests and %d notes, want 3 and 1", requests.Load(), notes)
	}
	requests.Store(0)
	s.Fault.Set(func(string, string) *metav1.Status {
		requests.Add(1)
		return kubetest.Refusal(http.StatusForbidden, metav1.StatusReasonForbidden, "no")
	})
	if err := kube.Retry(t.Context(), nil, create); err == nil || requests.Load() != 1 {
		t.Errorf("a refusal: %v after %d requests, want an error after 1", err, requests.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.Fault.Set(func(string, string) *metav1.Status {
		cancel()
		return kubetest.Refusal(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "later")
	})
	if err := kube.Retry(ctx, nil, create); err == nil {
		t.Error("a cancelled request succeeded")
	}
}

// sightings collects what an observer receives.
type sightings struct {
	mu     sync.Mutex
	list   []string
	change chan struct{}
}

func newSightings() *sightings { return &sightings{change: make(chan struct{}, 1)} }

func (s *sightings) add(text string) {
	s.mu.Lock()
	s.list = append(s.list, text)
	s.mu.Unlock()
	select {
	case s.change <- struct{}{}:
	default:
	}
}

func (s *sightings) Seen(p *corev1.Pod) { s.add("seen " + p.Name + string(p.Status.Phase)) }
func (s *sightings) Gone(name string)   { s.add("gone " + name) }
func (s *sightings) Listed()            { s.add("listed") }
func (s *sightings) Lost(error)         { s.add("lost") }

// await waits until the observer has received a text.
func (s *sightings) await(t *testing.T, text string) {
	t.Helper()
	limit, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		s.mu.Lock()
		list := fmt.Sprint(s.list)
		s.mu.Unlock()
		if strings.Contains(list, text) {
			return
		}
		select {
		case <-s.change:
		case <-limit.Done():
			t.Fatalf("%q did not come: %s", text, list)
		}
	}
}

// An observation goes on over restarts of the server and forgotten versions, and misses no pod.
func TestFollow(t *testing.T) {
	s := kubetest.New(t)
	s.Set(t, podPath("a"), pod("a"))
	observer := newSightings()
	ctx, cancel := context.WithCancel(t.Context())
	end := make(chan error, 1)
	pods := s.Client(t).Pods("n")
	go func() {
		err := kube.Follow(ctx, pods, metav1.ListOptions{LabelSelector: "l=x"}, observer)
		observer.add(fmt.Sprint("ended ", err))
		end <- err
	}()
	observer.await(t, "seen a")
	observer.await(t, "listed")
	s.Set(t, podPath("b"), pod("b"))
	observer.await(t, "seen b")
	stranger := pod("other")
	stranger.Labels = nil
	s.Set(t, podPath("other"), stranger)
	var outage atomic.Bool
	outage.Store(true)
	s.Fault.Set(func(string, string) *metav1.Status {
		if outage.Load() {
			return kubetest.Refusal(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "restarts")
		}
		return nil
	})
	s.Disconnect()
	observer.await(t, "lost")
	s.Remove(podPath("a"))
	s.Set(t, podPath("c"), pod("c"))
	outage.Store(false)
	observer.await(t, "gone a")
	observer.await(t, "seen c")
	if strings.Contains(fmt.Sprint(observer.list), "other") {
		t.Errorf("a pod without the label was seen: %v", observer.list)
	}
	cancel()
	if err := <-end; !errors.Is(err, context.Canceled) {
		t.Errorf("the observation ended with %v", err)
	}
	s.Fault.Set(func(string, string) *metav1.Status {
		return kubetest.Refusal(http.StatusForbidden, metav1.StatusReasonForbidden, "the right is gone")
	})
	if err := kube.Follow(t.Context(), s.Client(t).Pods("n"), metav1.ListOptions{}, observer); err == nil || !strings.Contains(err.Error(), "the right is gone") {
		t.Errorf("without the right: %v", err)
	}
}

// A missing or wrong configuration names the flags.
func TestPlace(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	_, _, err := kube.Place{}.Load()
	if _, ok := errors.AsType[*kube.NoClusterError](err); !ok || !strings.Contains(err.Error(), "--kubeconfig") {
		t.Errorf("without a configuration: %v", err)
	}
	file := filepath.Join(t.TempDir(), "config")
	must.Do(t, os.WriteFile(file, []byte("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: http://c}}]\ncontexts: [{name: x, context: {cluster: c, namespace: mine}}]\n"), 0o600))
	config, namespace, err := kube.Place{Kubeconfig: file, Context: "x"}.Load()
	if err != nil || config.Host != "http://c" || namespace != "mine" {
		t.Errorf("loaded %+v in %q: %v", config, namespace, err)
	}
	if _, _, err := (kube.Place{Kubeconfig: file, Context: "y"}).Load(); err == nil || !strings.Contains(err.Error(), "--context") {
		t.Errorf("an unknown context: %v", err)
	}
}
