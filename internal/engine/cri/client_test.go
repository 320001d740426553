package cri

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	introspection "github.com/containerd/containerd/api/services/introspection/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/diagnosis"
	"github.com/touchstone-bench/touchstone/internal/must"
)

func TestSocketPath(t *testing.T) {
	for socket, want := range map[string]string{
		"/run/containerd/containerd.sock": "/run/containerd/containerd.sock", "unix:///run/crio/crio.sock": "/run/crio/crio.sock",
		"unix://relative": "", "relative": "", "tcp://127.0.0.1:1": "", "": "",
	} {
		got, err := socketPath(socket)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("socketPath(%q) = %q, %v; want %q", socket, got, err, want)
		}
	}
}

// listen makes a socket and passes its connections to serve.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	must.Do(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return path
}

// A socket without a usable engine is refused soon, with the reason.
func TestBadSockets(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	abandoned := filepath.Join(dir, "abandoned")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: abandoned})
	must.Do(t, err)
	l.SetUnlinkOnClose(false)
	must.Do(t, l.Close())
	for name, tt := range map[string]struct{ socket, want string }{
		"missing":           {filepath.Join(dir, "none"), "no such file"},
		"a file":            {file, "it is not a socket"},
		"no engine listens": {abandoned, "no engine listens there"},
		"not a path":        {"tcp://127.0.0.1:1", "not tcp"},
		"closes":            {listen(t, func(c net.Conn) { _ = c.Close() }), "look whether it is a CRI socket"},
		"not gRPC": {listen(t, func(c net.Conn) {
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			_ = c.Close()
		}), "look whether it is a CRI socket"},
	} {
		_, err := connect(t.Context(), "containerd", tt.socket)
		if !engine.Unsupported(err) || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "containerd: ") {
			t.Errorf("%s: %v; want a refusal with %q", name, err, tt.want)
		}
	}
}

// connect to a silent socket ends with the caller's context, and after answerLimit at the latest.
func TestSocketThatNeverAnswers(t *testing.T) {
	var conns []net.Conn
	arrivals := make(chan struct{}, 100)
	socket := listen(t, func(c net.Conn) { conns = append(conns, c); arrivals <- struct{}{} })
	t.Cleanup(func() {
		for _, c := range conns {
			_ = c.Close()
		}
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	errGone := errors.New("the caller has gone")
	go func() {
		<-arrivals
		<-arrivals // the second connection is the client's
		cancel(errGone)
	}()
	if _, err := connect(ctx, "containerd", socket); err == nil || !strings.Contains(err.Error(), errGone.Error()) {
		t.Errorf("connect to a socket that never answers: %v", err)
	}
}

// oldEngine answers as engines before CRI v1. With plugins it answers as a containerd without CRI.
type oldEngine struct {
	name    string
	plugins []*introspection.Plugin
}

func (o oldEngine) serve(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	if o.plugins != nil && method == "/containerd.services.introspection.v1.Introspection/Plugins" {
		if err := stream.RecvMsg(&introspection.PluginsRequest{}); err != nil {
			return err
		}
		return stream.SendMsg(&introspection.PluginsResponse{Plugins: o.plugins})
	}
	if o.name == "" || method != "/runtime.v1alpha2.RuntimeService/Version" {
		service, _, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
		return status.Error(codes.Unimplemented, "unknown service "+service)
	}
	if err := stream.RecvMsg(&api.VersionRequest{}); err != nil {
		return err
	}
	return stream.SendMsg(&api.VersionResponse{RuntimeName: o.name, RuntimeVersion: "1.4.0"})
}

// failed is a plug-in that did not start.
func failed(kind, id, reason string) *introspection.Plugin {
	return &introspection.Plugin{Type: kind, ID: id, InitErr: status.New(codes.Unknown, reason).Proto()}
}

func TestEnginesWithoutCRI(t *testing.T) {
	for name, tt := range map[string]struct {
		engine oldEngine
		want   []string
	}{
		"too old": {oldEngine{name: "containerd"}, []string{"containerd 1.4.0 supports CRI v1alpha2 only", "containerd 1.6"}},
		"no CRI":  {oldEngine{}, []string{"it does not serve CRI", "disabled_plugins", "--managed"}},
		"inotify": {oldEngine{plugins: []*introspection.Plugin{
			failed("io.containerd.snapshotter.v1", "zfs", "path /var/lib/containerd must be a zfs filesystem: skip plugin"),
			failed("io.containerd.grpc.v1", "cri", "failed to create CRI service: failed to create cni conf monitor for default: failed to create fsnotify watcher: too many open files"),
		}}, []string{"all inotify instances", "sysctl -w fs.inotify.max_user_instances="}},
		"containerd 2": {oldEngine{plugins: []*introspection.Plugin{
			failed("io.containerd.cri.v1", "runtime", "failed to create fsnotify watcher: too many open files"),
		}}, []string{"all inotify instances", "sysctl -w fs.inotify.max_user_instances="}},
		"another failure": {oldEngine{plugins: []*introspection.Plugin{
			failed("io.containerd.grpc.v1", "cri", "invalid plugin config: `mirrors` cannot be set when `config_path` is provided"),
		}}, []string{"its CRI plug-in did not start: invalid plugin config", diagnosis.ServiceLog("containerd")}},
		"disabled": {oldEngine{plugins: []*introspection.Plugin{
			failed("io.containerd.snapshotter.v1", "zfs", "path must be a zfs filesystem: skip plugin"), {Type: "io.containerd.grpc.v1", ID: "images"},
		}}, []string{"it does not serve CRI", "disabled_plugins"}},
	} {
		_, err := connect(t.Context(), "containerd", serve(t, grpc.NewServer(grpc.UnknownServiceHandler(tt.engine.serve))))
		for _, want := range tt.want {
			if !engine.Unsupported(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want a refusal with %q", name, err, want)
			}
		}
	}
}

// A kubelet deletes foreign pods, so its engine is measured by a private one. A clean-up still reaches the engine.
func TestEngineOfKubelet(t *testing.T) {
	pod := &api.PodSandbox{Metadata: &api.PodSandboxMetadata{Name: "web", Namespace: "shop"}, Labels: map[string]string{"io.kubernetes.pod.uid": "1"}}
	server := grpc.NewServer()
	api.RegisterRuntimeServiceServer(server, &carelessEngine{pods: []*api.PodSandbox{labelled("mine", "by-hand", deadRun, "1"), pod}})
	socket := serve(t, server)
	_, err := connectToMeasure(t.Context(), "containerd", socket)
	for _, want := range []string{"a kubelet uses it, as the pod shop/web shows", "--managed"} {
		if !engine.Unsupported(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want a refusal with %q", err, want)
		}
	}
	c, err := connect(t.Context(), "containerd", socket)
	must.Do(t, err)
	must.Do(t, c.close())
	free := grpc.NewServer()
	api.RegisterRuntimeServiceServer(free, &carelessEngine{pods: []*api.PodSandbox{labelled("mine", "by-hand", deadRun, "1")}})
	c, err = connectToMeasure(t.Context(), "containerd", serve(t, free))
	must.Do(t, err)
	must.Do(t, c.close())
}

func TestServer(t *testing.T) {
	socket := listen(t, func(c net.Conn) { _ = c.Close() })
	if pid := server(t.Context(), socket); pid != os.Getpid() {
		t.Errorf("server() = %d, want this process, %d", pid, os.Getpid())
	}
	if pid := server(t.Context(), socket+"x"); pid != 0 {
		t.Errorf("server() of no socket = %d", pid)
	}
}
