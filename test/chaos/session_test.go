package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/touchstone-bench/touchstone/test/cells"
	"github.com/touchstone-bench/touchstone/test/chaos/script"
	"github.com/touchstone-bench/touchstone/test/record"
)

// elsewhere runs a session of root in a mount namespace with other directories for runs, and checks its exit code. prepare is a script.
func (h *host) elsewhere(prepare, verb string) {
	h.Helper()
	args := verb
	if verb == "benchmark" {
		args = strings.Join(benchmarkArgs("--targets", "oci/crun", "--filter", lifecycle, "--runs", "1", "--warmup", "0"), " ")
	}
	p := h.start(h.newDir(), func(c *exec.Cmd) {
		c.Path, c.Args = "/bin/sh", []string{"sh", "-ec", prepare + "; exec touchstone " + args}
		c.SysProcAttr.Unshareflags = unix.CLONE_NEWNS | unix.CLONE_NEWUTS
	})
	p.ends(0)
	h.tried(1)
	left, losses := h.differences()
	h.differs(left, losses, "after touchstone %s of another session (%s)\n%s", verb, prepare, p.output())
}

// TestOtherSessions: a session with other directories for runs shares one of them with a living run, and must not remove the run.
//
// Invariant dead-runs.
func TestOtherSessions(t *testing.T) {
	cells.Need(t, "chaos/sessions")
	onHost(t, 1, "sessions with other directories for runs", func(h *host) {
		h.need("runc", "crun")
		const (
			hideRun    = "mount -t tmpfs none /run" // as in a container that shares /var/lib
			runOnDisk  = "mkdir -p /var/tmp/run; mount --bind /var/tmp/run /run"
			hideShared = "mkdir -p /var/lib/touchstone; mount -t tmpfs -o mode=700 none /var/lib/touchstone"
		)
		h.must(os.Mkdir("/var/tmp/run", 0o755))
		h.watch()
		l := h.liveRun("oci")
		for _, prepare := range []string{hideRun, runOnDisk, hideShared} {
			for _, verb := range []string{"cleanup", "benchmark"} {
				h.elsewhere(prepare, verb)
			}
		}
		l.finish()

		// A run of another host on a shared file system is never swept, not even if it is dead. The name and the boot ID are another host's.
		w := h.wrap(script.Rule{Verb: "start", From: 2, Fault: script.Hold})
		victim := h.benchmark(h.newDir(), append(w.flag("held"), "--targets", "oci/held", "--filter", lifecycle, "--runs", "1", "--warmup", "0")...)
		w.reached(victim)
		victim.signal(syscall.SIGKILL)
		victim.ends(-1)
		h.accept()
		disguise := "hostname other; echo 00000000-0000-4000-8000-000000000000 >/chaos/tmp/boot; mount --bind /chaos/tmp/boot /proc/sys/kernel/random/boot_id; " +
			"echo 00000000000000000000000000000000 >/chaos/tmp/machine; mount --bind /chaos/tmp/machine /etc/machine-id; mount -t tmpfs none /run"
		if _, err := os.Stat("/etc/machine-id"); err != nil {
			disguise = strings.Replace(disguise, "mount --bind /chaos/tmp/machine /etc/machine-id; ", "", 1)
		}
		h.elsewhere(disguise, "cleanup")
		h.touchstone(h.newDir(), 0, "cleanup")
		h.before = l.base
	})
}

// TestLyingDaemons: CRI and Docker servers ignore filters, so they return objects of others. A run and a clean-up must not remove them.
//
// Invariant dead-runs.
func TestLyingDaemons(t *testing.T) {
	cells.Need(t, "chaos/daemons")
	onHost(t, 2, "CRI and Docker servers that return foreign objects", func(h *host) {
		h.need("runc", "containerd", "ctr")
		h.bystanders()
		h.userDaemon()
		userSocket := h.userContainerd()
		criSocket, criLied := h.criProxy(userSocket)
		dockerSocket, dockerLied := h.dockerProxy(userDockerSocket)
		h.watch()
		l := h.liveRun("oci")
		for _, v := range []struct {
			target string
			args   []string
			env    string
			lied   *atomic.Int64
		}{
			{"containerd/runc", []string{"--cri", "containerd=" + criSocket}, "", criLied},
			{"docker/runc", nil, "DOCKER_HOST=unix://" + dockerSocket, dockerLied},
		} {
			for _, kill := range []bool{false, true} {
				args := append([]string{"--targets", v.target, "--filter", lifecycle, "--runs", "2", "--warmup", "0"}, v.args...)
				if kill {
					args = append(args, "--runs", "200")
				}
				env := func(c *exec.Cmd) { c.Env = append(os.Environ(), v.env) }
				p := h.start(h.newDir(), env, benchmarkArgs(args...)...)
				if kill {
					h.awaitTrial(p)
					p.signal(syscall.SIGKILL)
					p.ends(-1)
					h.cleanUp(env)
				} else {
					p.ends(0)
				}
				h.tried(1)
				left, losses := h.differences()
				left, shims := h.shimsWithoutPods(left, userSocket)
				if kill && len(left) > 0 && len(losses) == 0 {
					// The daemon has finished a request of the killed client after the clean-up.
					record.Repeat(h, fmt.Sprintf("touchstone cleanup has left %d objects, such as %s", len(left), left[0]))
					h.cleanUp(env)
					left, losses = h.differences()
					left, shims = h.shimsWithoutPods(left, userSocket)
				}
				if len(shims) > 0 && kill {
					h.Logf("the user's containerd has left a shim without a pod, because its client was killed in a request:\n%s", strings.Join(shims, "\n"))
					h.remove(shims)
				} else {
					left = append(left, shims...)
				}
				h.differs(left, losses, "after a run on %s, killed: %t\n%s", v.target, kill, p.output())
				h.accept()
			}
			if v.lied.Load() == 0 {
				h.wrong("%s was never queried with a filter, so the case shows nothing", v.target)
			}
		}
		l.finish()
	})
}

// shimsWithoutPods separates shims of a containerd with their sockets from other leftovers, if no pod is left. Containerd itself leaves a shim that
// it has just started when the client of a request dies. It lists no object for it, so no client can remove it.
func (h *host) shimsWithoutPods(left []string, socket string) (rest, shims []string) {
	h.Helper()
	for _, l := range left {
		switch {
		case strings.HasPrefix(l, "pod ") || strings.HasPrefix(l, "container "):
			return left, nil
		case strings.Contains(l, "containerd-shim") && strings.Contains(l, "-address "+socket), strings.HasPrefix(l, "file /run/containerd/s/"):
			shims = append(shims, l)
		default:
			rest = append(rest, l)
		}
	}
	return rest, shims
}

// remove kills listed processes and removes listed files.
func (h *host) remove(resources []string) {
	h.Helper()
	for _, r := range resources {
		var pid int
		file, isFile := strings.CutPrefix(r, "file ")
		var err error
		if isFile {
			err = os.Remove(file)
		} else if _, err = fmt.Sscanf(r, "process %d ", &pid); err == nil {
			err = unix.Kill(pid, unix.SIGKILL)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ESRCH) {
			h.Errorf("remove %s: %v", r, err)
		}
	}
}

// rawFrame is a message of gRPC that is not decoded.
type rawFrame []byte

// rawCodec passes messages on without decoding them.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) ([]byte, error) {
	frame, ok := v.(*rawFrame)
	if !ok {
		return nil, fmt.Errorf("marshal %T", v)
	}
	return *frame, nil
}

func (rawCodec) Unmarshal(data []byte, v any) error {
	frame, ok := v.(*rawFrame)
	if !ok {
		return fmt.Errorf("unmarshal %T", v)
	}
	*frame = append(rawFrame(nil), data...)
	return nil
}

// criProxy serves the CRI of another socket, without the filters of lists. It counts these lists.
func (h *host) criProxy(upstream string) (socket string, lies *atomic.Int64) {
	h.Helper()
	conn, err := grpc.NewClient("unix://"+upstream, grpc.WithTransportCredentials(insecure.NewCredentials()))
	h.must(err)
	lies = new(atomic.Int64)
	forward := func(_ any, in grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(in)
		out, err := conn.NewStream(in.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method, grpc.ForceCodec(rawCodec{}))
		if err != nil {
			return err
		}
		var request rawFrame
		if err := in.RecvMsg(&request); err != nil {
			return err
		}
		if strings.HasSuffix(method, "/ListPodSandbox") || strings.HasSuffix(method, "/ListContainers") {
			if len(request) > 0 {
				lies.Add(1)
			}
			request = nil // a request without a filter
		}
		if err := errors.Join(out.SendMsg(&request), out.CloseSend()); err != nil {
			return err
		}
		for {
			var answer rawFrame
			if err := out.RecvMsg(&answer); err != nil {
				if status.Code(err) == codes.OK || err.Error() == "EOF" {
					return nil
				}
				return err
			}
			if err := in.SendMsg(&answer); err != nil {
				return err
			}
		}
	}
	socket = filepath.Join(h.dir, "cri.sock")
	server := grpc.NewServer(grpc.ForceServerCodec(rawCodec{}), grpc.UnknownServiceHandler(forward))
	go func() { _ = server.Serve(h.listen(socket)) }()
	h.Cleanup(server.Stop)
	return socket, lies
}

func (h *host) listen(socket string) net.Listener {
	h.Helper()
	l, err := net.Listen("unix", socket)
	h.must(err)
	return l
}

// dockerProxy serves the API of another Docker socket, without the filters of lists. It counts these lists.
func (h *host) dockerProxy(upstream string) (socket string, lies *atomic.Int64) {
	h.Helper()
	lies = new(atomic.Int64)
	proxy := &httputil.ReverseProxy{
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", upstream)
		}},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: "docker"})
			q := r.Out.URL.Query()
			if q.Has("filters") && r.In.Method == http.MethodGet && !strings.HasSuffix(r.In.URL.Path, "/events") {
				lies.Add(1)
				q.Del("filters")
				r.Out.URL.RawQuery = q.Encode()
			}
		},
	}
	socket = filepath.Join(h.dir, "docker.sock")
	server := &http.Server{Handler: proxy} //nolint:gosec // only touchstone connects
	go func() { _ = server.Serve(h.listen(socket)) }()
	h.Cleanup(func() { _ = server.Close() })
	return socket, lies
}

// awaitTrial waits until a run has recorded a trial.
func (h *host) awaitTrial(p *program) {
	h.Helper()
	for {
		for _, run := range h.runs(p.dir) {
			if len(run.Trials) > 0 {
				return
			}
		}
		select {
		case <-p.done:
			h.Fatalf("touchstone ended before its first trial\n%s", p.output())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
