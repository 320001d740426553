package cri

import (
	"context"
	"net"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// carelessEngine is an engine that ignores the filters of all lists.
type carelessEngine struct {
	api.UnimplementedRuntimeServiceServer
	api.UnimplementedImageServiceServer
	pods     []*api.PodSandbox
	names    []string // of images
	touched  []string // the IDs of stopped and removed pods, and the names of removed images
	combined bool     // all names belong to one image
}

func (*carelessEngine) Version(context.Context, *api.VersionRequest) (*api.VersionResponse, error) {
	return &api.VersionResponse{RuntimeName: "careless", RuntimeVersion: "1", RuntimeApiVersion: "v1"}, nil
}

func (*carelessEngine) Status(context.Context, *api.StatusRequest) (*api.StatusResponse, error) {
	return &api.StatusResponse{Status: &api.RuntimeStatus{}}, nil
}

func (e *carelessEngine) ListPodSandbox(context.Context, *api.ListPodSandboxRequest) (*api.ListPodSandboxResponse, error) {
	return &api.ListPodSandboxResponse{Items: e.pods}, nil
}

func (e *carelessEngine) StopPodSandbox(_ context.Context, r *api.StopPodSandboxRequest) (*api.StopPodSandboxResponse, error) {
	e.touched = append(e.touched, "stop "+r.GetPodSandboxId())
	return &api.StopPodSandboxResponse{}, nil
}

func (e *carelessEngine) RemovePodSandbox(_ context.Context, r *api.RemovePodSandboxRequest) (*api.RemovePodSandboxResponse, error) {
	e.touched = append(e.touched, "remove "+r.GetPodSandboxId())
	return &api.RemovePodSandboxResponse{}, nil
}

func (e *carelessEngine) ListImages(context.Context, *api.ListImagesRequest) (*api.ListImagesResponse, error) {
	if e.combined {
		return &api.ListImagesResponse{Images: []*api.Image{{RepoTags: e.names}}}, nil
	}
	list := &api.ListImagesResponse{}
	for _, name := range e.names {
		list.Images = append(list.Images, &api.Image{RepoTags: []string{name}})
	}
	return list, nil
}

func (e *carelessEngine) RemoveImage(_ context.Context, r *api.RemoveImageRequest) (*api.RemoveImageResponse, error) {
	e.touched = append(e.touched, "remove "+r.GetImage().GetImage())
	return &api.RemoveImageResponse{}, nil
}

func (e *carelessEngine) serve(t *testing.T) string {
	t.Helper()
	server := grpc.NewServer()
	api.RegisterRuntimeServiceServer(server, e)
	api.RegisterImageServiceServer(server, e)
	return serve(t, server)
}

// serve serves a socket to the end of the test.
func serve(t *testing.T, server *grpc.Server) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	must.Do(t, err)
	done := make(chan error)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		enginetest.Check(t, <-done)
	})
	return socket
}

const deadRun = "20260101-000000-aaaa"

// labelled returns a pod with the labels of a container with this ID.
func labelled(pod, name, run, id string) *api.PodSandbox {
	return &api.PodSandbox{Id: pod, Metadata: &api.PodSandboxMetadata{Name: name}, Labels: map[string]string{runLabel: run, idLabel: id}}
}

// podsOfAll are pods of a dead run, of other runs and of other programs.
func podsOfAll() []*api.PodSandbox {
	mine := engine.Prefix + deadRun
	return []*api.PodSandbox{
		{Id: "foreign", Metadata: &api.PodSandboxMetadata{Name: "web"}, Labels: map[string]string{"app": "web"}},
		{Id: "bare"},
		labelled("mine", mine+"-t1-00001", deadRun, mine+"-t1-00001"),
		labelled("name alone", mine+"-t1-00002", "", ""),
		labelled("label alone", "web-2", deadRun, ""),
		labelled("other run", engine.Prefix+"20260101-000000-bbbb-t1-00001", "20260101-000000-bbbb", ""),
		labelled("other label", mine+"-t1-00003", "20260101-000000-bbbb", ""),
		labelled("longer ID", mine+"x-t1-00001", deadRun, ""),
		labelled("mine too", mine+"-t1-00004", deadRun, mine+"-t1-00004"),
	}
}

// Sweep checks each object itself, because an engine may ignore the filter.
//
// Invariant foreign-objects.
func TestSweepOfCarelessEngine(t *testing.T) {
	image := "127.0.0.1:1234/touchstone/" + deadRun + "/probe:latest"
	e := &carelessEngine{pods: podsOfAll(), names: []string{"docker.io/library/web:1", image, "127.0.0.1:1234/touchstone/20260101-000000-bbbb/probe:latest"}}
	s := engine.Session{RunID: deadRun, Sockets: map[string]string{"containerd": e.serve(t)}}
	count, err := NewContainerd().Sweep(t.Context(), s)
	if err != nil || count != 3 {
		t.Errorf("Sweep = %d, %v; want 3", count, err)
	}
	want := []string{"stop mine", "remove mine", "stop mine too", "remove mine too", "remove " + image}
	if diff := cmp.Diff(want, e.touched); diff != "" {
		t.Errorf("the sweep touched (-want +got):\n%s", diff)
	}
	e.touched = nil
	s.RunID = "" // labels of foreign pods are equal to it
	if count, err := NewContainerd().Sweep(t.Context(), s); err != nil || count != 0 || len(e.touched) > 0 {
		t.Errorf("Sweep without a run = %d, %v; it touched %q", count, err, e.touched)
	}
}

// An image with a name of another program or run stays: containerd removes all names of an image together.
func TestSweepKeepsSharedImage(t *testing.T) {
	image := "127.0.0.1:1234/touchstone/" + deadRun + "/probe:latest"
	e := &carelessEngine{names: []string{image, "example.org/mine:1"}, combined: true}
	s := engine.Session{RunID: deadRun, Sockets: map[string]string{"containerd": e.serve(t)}}
	count, err := NewContainerd().Sweep(t.Context(), s)
	if want := "image " + image + " stays, because it is also example.org/mine:1"; err == nil || err.Error() != want || count != 0 || len(e.touched) > 0 {
		t.Errorf("Sweep = %d, %v; it touched %q; want the error %q", count, err, e.touched, want)
	}
}

// A creation without a response is undone by the labels of its pod. The engine may return other pods, too.
//
// Invariant foreign-objects.
func TestUndoOnCarelessEngine(t *testing.T) {
	for _, mine := range []bool{true, false} {
		e := &carelessEngine{pods: podsOfAll()}
		if !mine {
			e.pods = slices.DeleteFunc(e.pods, func(p *api.PodSandbox) bool { return p.GetId() == "mine" })
		}
		client, err := connect(t.Context(), "containerd", e.serve(t))
		must.Do(t, err)
		c := &container{
			e:  &Engine{service: &service{client: client}, session: engine.Session{RunID: deadRun}},
			id: engine.Prefix + deadRun + "-t1-00001", dir: t.TempDir(),
		}
		enginetest.Check(t, c.undo(t.Context()))
		want := []string{"stop mine", "remove mine"}
		if !mine {
			want = nil
		}
		if diff := cmp.Diff(want, e.touched); diff != "" {
			t.Errorf("undo touched (-want +got):\n%s", diff)
		}
		enginetest.Check(t, client.close())
	}
}
