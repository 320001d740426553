package docker_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/docker"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/refusal"
)

// listen makes a socket, and serves it if there is a handler.
func listen(t *testing.T, socket string, answer http.HandlerFunc) net.Listener {
	t.Helper()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if answer != nil {
		server := &http.Server{Handler: answer}
		t.Cleanup(func() { _ = server.Close() })
		go func() { _ = server.Serve(l) }()
	}
	return l
}

// An error about a named socket contains the cause.
func TestWrongSocket(t *testing.T) {
	s := enginetest.Session(t, oci.LauncherOptions)
	for _, tt := range []struct {
		name string
		make func(t *testing.T, socket string)
		want string
	}{
		{"none", func(*testing.T, string) {}, "the socket does not exist"},
		{"file", func(t *testing.T, socket string) {
			if err := os.WriteFile(socket, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "the file is not a socket"},
		{"left", func(t *testing.T, socket string) {
			l := listen(t, socket, nil).(*net.UnixListener)
			l.SetUnlinkOnClose(false)
			_ = l.Close()
		}, "no process listens on the socket"},
		{"silent", func(t *testing.T, socket string) { listen(t, socket, nil) }, "no answer within 5s"},
		{"other", func(t *testing.T, socket string) {
			listen(t, socket, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "{}") })
		}, "the process behind the address is not Docker"},
		{"old", func(t *testing.T, socket string) {
			listen(t, socket, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Api-Version", "1.24") })
		}, "API version 1.24 is not supported"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			socket := filepath.Join(s.State, tt.name)
			tt.make(t, socket)
			s := s
			s.Sockets = map[string]string{"docker": "unix://" + socket}
			var candidates []engine.Candidate
			var both sync.WaitGroup // both wait for a silent socket at the same time
			both.Go(func() { candidates = docker.NewDriver().Candidates(t.Context(), s) })
			_, err := docker.NewDriver().Open(t.Context(), parse(t, "docker/runc"), s)
			if !engine.Unsupported(err) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), socket) {
				t.Errorf("open: %v; want a refusal with %q and the socket", err, tt.want)
			}
			both.Wait()
			if len(candidates) == 0 || candidates[0].Err == nil || !strings.Contains(candidates[0].Err.Error(), tt.want) {
				t.Errorf("candidates: %v; want all with %q", candidates, tt.want)
			}
		})
	}
}

func TestWrongAddress(t *testing.T) {
	s := enginetest.Session(t, oci.LauncherOptions)
	for _, address := range []string{"ssh://user@host", "docker.sock", "tcp://127.0.0.1:1", "tcp://localhost:1"} {
		s.Sockets = map[string]string{"docker": address}
		if _, err := docker.NewDriver().Open(t.Context(), parse(t, "docker/runc"), s); !engine.Unsupported(err) || !strings.Contains(err.Error(), address+":") {
			t.Errorf("open with address %q: %v; want a refusal with the address", address, err)
		}
	}
}

// A private daemon in the place of the user's own has the reason in its notes.
func TestUnusedDaemonIsNamed(t *testing.T) {
	s := enginetest.Session(t, oci.LauncherOptions)
	socket := filepath.Join(s.State, "user")
	docker.SetDefaultSocket(t, socket)
	listen(t, socket, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no luck today", http.StatusInternalServerError)
	})
	e, err := docker.NewDriver().Open(t.Context(), parse(t, "docker/runc"), s)
	enginetest.Require(t, "docker/runc", err)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	want := "a private daemon of this run, since the user's own cannot be used: the daemon at unix://" + socket + ": "
	found := slices.ContainsFunc(e.Info().Notes, func(note string) bool {
		return strings.HasPrefix(note, want) && strings.Contains(note, "no luck today")
	})
	if !found {
		t.Errorf("notes: %q; want one with %q and the daemon's error", e.Info().Notes, want)
	}
}

// The user is not in the socket's group.
func TestSocketOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make a socket of another user")
	}
	s := enginetest.Session(t, oci.LauncherOptions)
	dir := t.TempDir()
	socket := filepath.Join(dir, "sock")
	listen(t, socket, nil)
	if err := os.Chmod(socket, 0o660); err != nil {
		t.Fatal(err)
	}
	s.Sockets = map[string]string{"docker": socket}
	runtime.LockOSThread() // the thread gets another user for files, without root's rights
	defer runtime.UnlockOSThread()
	if err := unix.Setfsuid(65534); err != nil {
		t.Fatal(err)
	}
	_, err := docker.NewDriver().Open(t.Context(), parse(t, "docker/runc"), s)
	_ = unix.Setfsuid(0)
	advice := refusal.Rights("run as root, or as a member of the socket's group") // the thread alone has another user
	if !engine.Unsupported(err) || !strings.Contains(err.Error(), "permission denied") || !strings.Contains(err.Error(), advice) {
		t.Errorf("open: %v; want a refusal because of missing permission, with the advice %q", err, advice)
	}
}

// The daemon runs on another machine.
func TestRemoteDaemon(t *testing.T) {
	s := enginetest.Session(t, oci.LauncherOptions)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		if strings.HasSuffix(r.URL.Path, "/info") {
			_, _ = fmt.Fprint(w, `{"ServerVersion": "28.0.0", "Name": "elsewhere"}`)
		}
	})}
	t.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.Serve(l) }()
	s.Sockets = map[string]string{"docker": "tcp://" + l.Addr().String()}
	_, err = docker.NewDriver().Open(t.Context(), parse(t, "docker/runc"), s)
	if !engine.Unsupported(err) || !strings.Contains(err.Error(), "runs on elsewhere") {
		t.Errorf("open: %v; want a refusal that names the other host", err)
	}
}

// If a program of a private daemon is missing, the candidates have its name in their errors.
func TestNoPrograms(t *testing.T) {
	s := enginetest.Session(t, oci.LauncherOptions)
	s.Managed = true
	s.Engines = map[string]string{"containerd": filepath.Join(s.State, "no-such-file")}
	for _, c := range docker.NewDriver().Candidates(t.Context(), s) {
		if !engine.Unsupported(c.Err) || !strings.Contains(c.Err.Error(), "containerd is missing") && !strings.Contains(c.Err.Error(), "dockerd is missing") {
			t.Errorf("candidate %s: %v; want a refusal that names the missing program", c.Target, c.Err)
		}
	}
	if _, err := docker.NewDriver().Open(t.Context(), parse(t, "docker/runc"), s); !engine.Unsupported(err) {
		t.Errorf("open: %v; want a refusal", err)
	}
}

// A private daemon that does not start is tried once for all targets. The error contains its log.
func TestPrivateDaemonFails(t *testing.T) {
	s, _ := private(t)
	script := filepath.Join(s.State, "dockerd")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho started >> "+s.State+"/starts\necho no luck today >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.Engines = map[string]string{"dockerd": script}
	driver := docker.NewDriver()
	for range 2 {
		_, err := driver.Open(t.Context(), parse(t, "docker/runc"), s)
		if !engine.Unsupported(err) || !strings.Contains(err.Error(), "no luck today") {
			t.Errorf("open: %v; want a refusal with the end of the daemon's log", err)
		}
	}
	if starts, err := os.ReadFile(filepath.Join(s.State, "starts")); err != nil || string(starts) != "started\n" {
		t.Errorf("the daemon was started %q times, %v; want once", starts, err)
	}
}

// Missing images, and images without space on the disk, are errors.
func TestPullFails(t *testing.T) {
	small := t.TempDir()
	// This precedes the session, whose launcher may not see later mounts.
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=24m"); err != nil {
		t.Skip("needs the right to mount: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(small, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s, _ := private(t)
	s.Data = small
	e := enginetest.Open(t, docker.NewDriver(), "docker/runc", s)
	p := e.(engine.Puller)

	missing := s.Registry.Addr() + "/touchstone/no-such-image:latest"
	if err := p.Pull(t.Context(), missing); err == nil || !strings.Contains(err.Error(), missing) || !strings.Contains(err.Error(), "not found") && !strings.Contains(err.Error(), "unknown") {
		t.Errorf("pull a missing image: %v", err)
	}
	if _, err := e.Create(t.Context(), engine.Spec{ID: engine.Prefix + s.RunID + "-no", Image: missing}); err == nil || !strings.Contains(err.Error(), "o such image") {
		t.Errorf("create from a missing image: %v", err)
	}
	large, err := s.Registry.Fresh(t.Context(), 32<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Pull(t.Context(), large); err == nil || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("pull an image without space for it: %v", err)
	}
	// The other image still works.
	c := enginetest.Running(t, e, enginetest.Spec(s, "after"))
	if err := c.Delete(t.Context()); err != nil {
		t.Error(err)
	}
}

// A daemon that is killed fails the trial, and is restarted once, for the next trial.
func TestKilledDaemonIsRestartedOnce(t *testing.T) {
	s, _ := private(t)
	e := enginetest.Open(t, docker.NewDriver(), "docker/runc", s)
	die := func(name string) {
		t.Helper()
		c, err := e.Create(t.Context(), enginetest.Spec(s, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(e.(engine.DaemonBacked).Daemon().PIDs[0], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if exit, err := c.Wait(t.Context()); err == nil {
			t.Errorf("Wait = %v although the daemon was killed", exit)
		}
		// The connections break a little before the exit is known.
		for err = nil; t.Context().Err() == nil && !strings.Contains(fmt.Sprint(err), "signal 9"); runtime.Gosched() {
			_, err = e.Create(t.Context(), enginetest.Spec(s, name+"-next"))
		}
		if !strings.Contains(fmt.Sprint(err), "the end of its log") {
			t.Errorf("Create without a daemon: %v; want the end of its log", err)
		}
		_ = c.Delete(t.Context()) // the daemon cannot remove it; the runner empties the trial's cgroup
		group, err := s.Cgroups.Open("/" + engine.Prefix + s.RunID)
		if err != nil {
			t.Fatal(err)
		}
		if err := group.Kill(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	place := func() error { return e.(engine.CgroupPlacer).SetCgroupParent("/" + engine.Prefix + s.RunID + "/trial") }
	die("first")
	if err := place(); err != nil {
		t.Fatalf("the daemon was not restarted: %v", err)
	}
	sp := enginetest.Spec(s, "again")
	c := enginetest.Running(t, e, sp)
	if err := c.Delete(t.Context()); err != nil {
		t.Error(err)
	}
	die("second")
	if err := place(); err == nil || !strings.Contains(err.Error(), "restarted once before") {
		t.Errorf("after a second kill: %v", err)
	}
}

// A daemon that does not answer after a timeout is killed and started once more. The next container works.
func TestHangingDaemonIsStartedAgain(t *testing.T) {
	s, _ := private(t)
	e := enginetest.Open(t, docker.NewDriver(), "docker/runc", s)
	recoverer := e.(engine.Recoverer)
	if killed, err := recoverer.Recover(t.Context()); killed || err != nil {
		t.Fatalf("Recover of a daemon that works: %v, %v", killed, err)
	}
	enginetest.Hang(t, e)
	if killed, err := recoverer.Recover(t.Context()); !killed || err != nil {
		t.Fatalf("Recover of a stopped daemon: %v, %v", killed, err)
	}
	c := enginetest.Running(t, e, enginetest.Spec(s, "again"))
	if err := c.Delete(t.Context()); err != nil {
		t.Error(err)
	}
}
