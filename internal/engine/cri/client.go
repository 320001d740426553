package cri

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"time"

	introspection "github.com/containerd/containerd/api/services/introspection/v1"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/diagnosis"
	"github.com/touchstone-bench/touchstone/internal/engine/managed"
	"github.com/touchstone-bench/touchstone/internal/refusal"
)

// answerLimit is the longest time in which a running engine may describe itself.
const answerLimit = 5 * time.Second

var errNoAnswer = fmt.Errorf("no answer within %v", answerLimit)

// maxMessageSize bounds an answer, in bytes: engines cut the output of ExecSync at 16 MiB for each stream.
const maxMessageSize = 40 << 20

// client is a CRI client of the engine at one socket. Its methods may be called from several goroutines.
type client struct {
	api.RuntimeServiceClient
	images api.ImageServiceClient
	conn   *grpc.ClientConn
	socket string // path
	about
}

// connect connects to the engine at a socket and reads its description. An error that needs the user's action is an
// *engine.UnsupportedError. name is for messages.
func connect(ctx context.Context, name, socket string) (*client, error) {
	path, err := socketPath(socket)
	if err != nil {
		return nil, &engine.UnsupportedError{What: name, Reason: err.Error(), Advice: "name the path of the engine's CRI socket"}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, answerLimit, errNoAnswer)
	defer cancel()
	if err := managed.Reach(ctx, path); err != nil {
		return nil, unreachable(name, path, err)
	}
	c, err := dial(path)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", path, err)
	}
	if err := c.ask(ctx); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, errors.Join(unreachable(name, path, c.explainLack(ctx, err)), c.close())
	}
	return c, nil
}

// dial makes a client without a request.
func dial(path string) (*client, error) {
	conn, err := grpc.NewClient("unix://"+path,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithUnaryInterceptor(keepDeadline),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageSize)),
		// A private engine that restarts is ready within a second.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: answerLimit,
		}),
	)
	if err != nil {
		return nil, err
	}
	return &client{RuntimeServiceClient: api.NewRuntimeServiceClient(conn), images: api.NewImageServiceClient(conn), conn: conn, socket: path}, nil
}

// keepDeadline traces a call, and keeps its deadline on this side, which then cancels the call. An engine that
// knows the deadline may report its end before this side's context has ended.
func keepDeadline(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	engine.Trace(ctx, method)
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	return call(inner, method, request, reply, conn, opts...)
}

// ask reads the engine's description of itself.
func (c *client) ask(ctx context.Context, opts ...grpc.CallOption) error {
	version, err := c.Version(ctx, &api.VersionRequest{Version: "v1"}, opts...)
	if err != nil {
		return err
	}
	answer, err := c.Status(ctx, &api.StatusRequest{Verbose: true})
	if err != nil {
		return err
	}
	if c.about, err = readStatus(version, answer); err != nil {
		return err
	}
	// Engines before 2023 lack this call, and have the cgroup driver in their status.
	if config, err := c.RuntimeConfig(ctx, &api.RuntimeConfigRequest{}); err == nil && config.GetLinux() != nil {
		c.systemd = config.GetLinux().GetCgroupDriver() == api.CgroupDriver_SYSTEMD
	}
	return nil
}

// connectToMeasure is connect for an engine that runs containers. It refuses an engine with a pod of a kubelet. The kubelet would delete the run's
// pods within seconds, since its cluster does not know them, and its load would be in the measured times.
func connectToMeasure(ctx context.Context, name, socket string) (*client, error) {
	c, err := connect(ctx, name, socket)
	if err != nil {
		return nil, err
	}
	limit, cancel := context.WithTimeoutCause(ctx, answerLimit, errNoAnswer)
	defer cancel()
	if err := c.refuseKubelet(limit); err != nil {
		if limit.Err() != nil {
			err = context.Cause(limit)
		}
		return nil, errors.Join(unreachable(name, c.socket, err), c.close())
	}
	return c, nil
}

func (c *client) refuseKubelet(ctx context.Context) error {
	ready := &api.PodSandboxStateValue{State: api.PodSandboxState_SANDBOX_READY}
	list, err := c.ListPodSandbox(ctx, &api.ListPodSandboxRequest{Filter: &api.PodSandboxFilter{State: ready}})
	if err != nil {
		return err
	}
	for _, pod := range list.GetItems() {
		if pod.GetLabels()["io.kubernetes.pod.uid"] != "" {
			return &engine.UnsupportedError{
				Reason: fmt.Sprintf("a kubelet uses it, as the pod %s/%s shows, and deletes each pod that its cluster does not know", pod.GetMetadata().GetNamespace(), pod.GetMetadata().GetName()),
				Advice: "use --managed for a private engine with the same programs",
			}
		}
	}
	return nil
}

// answers sends the cheapest request.
func (c *client) answers(ctx context.Context) error {
	_, err := c.Version(ctx, &api.VersionRequest{})
	return err
}

// explainLack finds the reason why an engine lacks CRI v1.
func (c *client) explainLack(ctx context.Context, err error) error {
	if status.Code(err) != codes.Unimplemented {
		return err
	}
	// The messages of the old version are the same so far.
	var version api.VersionResponse
	if old := c.conn.Invoke(ctx, "/runtime.v1alpha2.RuntimeService/Version", &api.VersionRequest{}, &version); old == nil {
		return &engine.UnsupportedError{
			Reason: fmt.Sprintf("%s %s supports CRI v1alpha2 only", version.GetRuntimeName(), version.GetRuntimeVersion()),
			Advice: "CRI v1 needs containerd 1.6 or CRI-O 1.23 at least",
		}
	}
	if failed := c.failedPlugin(ctx); failed != nil {
		f := diagnosis.Facts{Engine: "containerd"}.Here()
		explanation := diagnosis.Explain(failed, f, "its CRI plug-in did not start",
			"look at the log of the engine: "+diagnosis.ServiceLog("containerd")+" | grep 'failed to load plugin'")
		return &explanation
	}
	return &engine.UnsupportedError{
		Reason: "it does not serve CRI: " + status.Convert(err).Message(),
		Advice: `if it is containerd take "cri" out of disabled_plugins in its config.toml, or use --managed for a private one`,
	}
}

// failedPlugin returns the error of containerd's plug-ins for CRI. It is nil if they are disabled, and for other engines.
func (c *client) failedPlugin(ctx context.Context) error {
	answer, err := introspection.NewIntrospectionClient(c.conn).Plugins(ctx, &introspection.PluginsRequest{})
	if err != nil {
		return nil //nolint:nilerr // another engine has no such service
	}
	for _, p := range answer.GetPlugins() {
		isCRI := p.GetType() == "io.containerd.cri.v1" || p.GetType() == "io.containerd.grpc.v1" && p.GetID() == "cri"
		if text := p.GetInitErr().GetMessage(); isCRI && text != "" {
			return errors.New(text)
		}
	}
	return nil
}

func (c *client) close() error { return c.conn.Close() }

// socketPath reads the address of a CRI socket: a path, or a URL with unix://.
func socketPath(socket string) (string, error) {
	path := socket
	if scheme, rest, isURL := strings.Cut(socket, "://"); isURL {
		if scheme != "unix" {
			return "", fmt.Errorf("%s is not the address of a CRI socket: it must be a Unix socket, not %s", socket, scheme)
		}
		path = rest
	}
	if !strings.HasPrefix(path, "/") {
		return "", fmt.Errorf("%s is not an absolute path of a socket", socket)
	}
	return path, nil
}

// unreachable explains why no CRI engine answers at a socket, with advice.
func unreachable(name, path string, err error) error {
	u := &engine.UnsupportedError{What: name}
	var cause *engine.UnsupportedError
	switch {
	case errors.As(err, &cause):
		u.Reason, u.Advice = cause.Reason, cause.Advice
	case errors.Is(err, fs.ErrNotExist):
		u.Reason, u.Advice = "no such file", "correct the path of the socket, or start the engine"
	case errors.Is(err, syscall.ENOTSOCK):
		u.Reason, u.Advice = "it is not a socket", "name the engine's CRI socket"
	case errors.Is(err, fs.ErrPermission):
		u.Reason, u.Advice = "permission denied", refusal.Rights("run as root")
	case errors.Is(err, syscall.ECONNREFUSED):
		u.Reason, u.Advice = "no engine listens there", "start the engine"
	case errors.Is(err, errNoAnswer):
		u.Reason, u.Advice = err.Error(), "look whether it is a CRI socket and the engine works: crictl --runtime-endpoint unix://"+path+" version"
	default:
		u.Reason, u.Advice = message(err), "look whether it is a CRI socket: crictl --runtime-endpoint unix://"+path+" version"
	}
	u.Reason = "the socket " + path + ": " + u.Reason
	return u
}

// message is the message of an error without gRPC's prefix.
func message(err error) string {
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}

// server returns the process that listens at a socket; 0 if it cannot be determined, as with a socket that systemd
// has made.
func server(ctx context.Context, path string) int {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return 0
	}
	defer func() { _ = conn.Close() }() // nothing was written
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0
	}
	pid := 0
	if err := raw.Control(func(fd uintptr) {
		if peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil && peer.Pid > 1 {
			pid = int(peer.Pid)
		}
	}); err != nil {
		return 0
	}
	return pid
}
