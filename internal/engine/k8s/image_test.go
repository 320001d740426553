package k8s_test

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/touchstone-bench/touchstone/internal/engine/k8s"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/kube/kubetest"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// The digest of the image is the digest that the kubelet reports, in the forms of all container engines.
func TestImageDigest(t *testing.T) {
	const agent = "/api/v1/namespaces/ns/pods/agent"
	pod := func(id string) *corev1.Pod {
		return &corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: "ns"},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "agent", ImageID: id}}},
		}
	}
	config := func(server *kubetest.Server) *k8s.Config {
		return &k8s.Config{Client: server.Client(t), Namespace: "ns", Owner: metav1.OwnerReference{Name: "agent"}}
	}
	number := strings.Repeat("0123456789abcdef", 4)
	for id, want := range map[string]string{
		"registry.example.org/bench/touchstone@sha256:" + number: "sha256:" + number,
		"docker-pullable://touchstone@sha256:" + number:          "sha256:" + number,
		"sha256:" + number:       "sha256:" + number,
		number:                   "sha256:" + number,
		"i@sha256:" + number[1:]: "",
		"\x1b[31m":               "",
	} {
		server := kubetest.New(t)
		server.Set(t, agent, pod(id))
		digest, err := config(server).ImageDigest(t.Context())
		if digest != want || (err == nil) != (want != "") {
			t.Errorf("ImageDigest() for %q is %q, %v, want %q", id, digest, err, want)
		}
	}

	server := kubetest.New(t)
	server.Set(t, agent, pod(""))
	count := 0
	server.Fault.Set(func(string, string) *metav1.Status {
		if count++; count == 2 {
			server.Set(t, agent, pod(number))
		}
		return nil
	})
	digest, err := config(server).ImageDigest(t.Context())
	must.Do(t, err)
	expect.Equal(t, "the digest of a late status", "sha256:"+number, digest)

	server.Fault.Set(func(string, string) *metav1.Status {
		return kubetest.Refusal(http.StatusForbidden, metav1.StatusReasonForbidden, "pods is forbidden")
	})
	if _, err := config(server).ImageDigest(t.Context()); err == nil || !strings.Contains(err.Error(), "pods is forbidden") {
		t.Errorf("ImageDigest() without the right is %v", err)
	}
}
