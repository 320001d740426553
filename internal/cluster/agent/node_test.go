package agent

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/touchstone-bench/touchstone/internal/cluster"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/execution"
	"github.com/touchstone-bench/touchstone/internal/kube/kubetest"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

// A delegate follows the wishes of its agent until the agent ends.
func TestWishes(t *testing.T) {
	p := newPod(nil, "", cluster.DefaultLease, nil)
	wishes, agent := io.Pipe()
	end := make(chan struct{})
	go func() {
		defer close(end)
		p.hear(wishes)
	}()
	send := func(text string) {
		change := p.changes()
		_, err := io.WriteString(agent, text+"\n")
		must.Do(t, err)
		<-change
	}
	send(`{"renewal": "1", "replay": "7/now", "end": ""}`)
	if got, want := p.wish(), (wish{"1", "7/now", ""}); got != want {
		t.Errorf("the wishes are %+v, want %+v", got, want)
	}
	if first, second := p.missing(), p.missing(); first != 7 || second != 0 {
		t.Errorf("the missing records begin with %d and then %d, want 7 and 0", first, second)
	}
	if p.ending() != nil || p.released() {
		t.Error("the run ends without a request")
	}
	send(`{"renewal": "2", "end": "` + cluster.EndCollected + `"}`)
	if !errors.Is(p.ending(), errStopped) || !p.released() {
		t.Errorf("after the collection the run ends with %v, released: %v", p.ending(), p.released())
	}
	must.Do(t, agent.Close())
	<-end
}

// The run of a node has the digest of the image that its privileged agent runs.
func TestImageOfAgent(t *testing.T) {
	s := kubetest.New(t)
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	s.Set(t, "/api/v1/namespaces/ns/pods/p", &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{ImageID: "registry/touchstone@" + digest}}},
	})
	root := t.TempDir()
	files := filepath.Join(root, cluster.PlanDir)
	fleet := cluster.Fleet{ID: "f", Namespace: "ns", Image: "registry/touchstone:1", Privileged: true}
	must.Do(t, os.MkdirAll(files, 0o700), os.WriteFile(filepath.Join(files, cluster.FleetFile), []byte(fleet.Facts()), 0o600),
		os.WriteFile(filepath.Join(files, cluster.PlanFile), []byte("version: 1\nbenchmarks: [operations]\n"), 0o600))
	variables := map[string]string{cluster.NodeVariable: "n1", cluster.PodVariable: "p", cluster.FactVariable: `{"name": "n1"}`}
	config := Config{Client: s.Client(t), Root: root, Getenv: func(name string) string { return variables[name] }}
	a := &agent{Config: config}
	must.Do(t, a.read())
	list, err := a.delegateVariables(t.Context())
	must.Do(t, err)
	for _, variable := range list {
		name, value, _ := strings.Cut(variable, "=")
		variables[name] = value
	}
	delegate := &agent{Config: config}
	must.Do(t, delegate.read())
	var task execution.Config
	delegate.onNode(&task)
	if want := (result.Image{Name: "registry/touchstone:1", Digest: digest}); !slices.Equal(task.Images, []result.Image{want}) {
		t.Errorf("the delegate records the images %+v, want %+v", task.Images, want)
	}
}

// The workload image of a node has the files of the agent's image, without the agent and without the mounts of its container.
func TestProgramsOfAgent(t *testing.T) {
	process := t.TempDir()
	a := &agent{Config: Config{Root: filepath.Join(process, "root")}}
	if _, err := a.programs(t.Context(), t.TempDir()); !engine.Unsupported(err) || !strings.Contains(err.Error(), "--probe-only") {
		t.Errorf("an image without programs: %v, want the way to make one", err)
	}
	for _, name := range []string{programs.Busybox, cluster.Program, "/proc/1", "/etc/hosts"} {
		path := filepath.Join(a.Root, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(name), 0o600))
	}
	const mounts = `1 0 0:1 / / rw - overlay overlay rw
2 1 0:2 / /proc rw - proc proc rw
3 1 0:3 / /etc/hosts rw - ext4 /dev/vda rw
`
	must.Do(t, os.WriteFile(filepath.Join(process, "mountinfo"), []byte(mounts), 0o600))
	img, err := a.programs(t.Context(), t.TempDir())
	must.Do(t, err)
	layers, err := img.Layers()
	must.Do(t, err)
	names := layerNames(t, layers[0])
	var want []string
	for dir := filepath.Dir(programs.Busybox[1:]); dir != "."; dir = filepath.Dir(dir) {
		want = append(want, dir+"/")
	}
	want = append(want, programs.Busybox[1:], "etc/", "proc/")
	slices.Sort(want)
	if want := strings.Join(want, " "); names != want {
		t.Errorf("the image has %s, want %s", names, want)
	}
}

// layerNames lists the files of a layer.
func layerNames(t *testing.T, layer v1.Layer) string {
	t.Helper()
	content, err := layer.Uncompressed()
	must.Do(t, err)
	var names []string
	for r := tar.NewReader(content); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			slices.Sort(names)
			return strings.Join(names, " ")
		}
		must.Do(t, err)
		names = append(names, header.Name)
	}
}
