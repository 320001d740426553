package docker_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/docker"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/refusal"
)

// listen makes a socket, and serves it if there is a handler.
func listen(t *testing.T, socket string, answer http.HandlerFunc) net.Listener {
	t.Helper()
	l, err := net.Listen("unix", socket)
	must.Do(t, err)
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
			must.Do(t, os.WriteFile(socket, nil, 0o600))
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
			var wg sync.WaitGroup // both wait for a silent socket at the same time
			wg.Go(func() { candidates = docker.NewDriver().Candidates(t.Context(), s) })
			_, err := docker.NewDriver().Open(t.Context(), enginetest.Parse(t, "docker/runc"), s)
			if !engine.Unsupported(err) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), socket) {
				t.Errorf("open: %v; want a refusal with %q and the socket", err, tt.want)
			}
			wg.Wait()
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
		if _, err := docker.NewDriver().Open(t.Context(), enginetest.Parse(t, "docker/runc"), s); !engine.Unsupported(err) || !strings.Contains(err.Error(), address+":") {
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
	e, err := docker.NewDriver().Open(t.Context(), enginetest.Parse(t, "docker/runc"), s)
	enginetest.Require(t, "docker/runc", err)
	t.Cleanup(func() { enginetest.Check(t, e.Close()) })
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
	must.Do(t, os.Chmod(socket, 0o660))
	s.Sockets = map[string]string{"docker": socket}
	runtime.LockOSThread() // the thread gets another user for files, without root's rights
	defer runtime.UnlockOSThread()
	must.Do(t, unix.Setfsuid(65534))
	_, err := docker.NewDriver().Open(t.Context(), enginetest.Parse(t, "docker/runc"), s)
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
	must.Do(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		if strings.HasSuffix(r.URL.Path, "/info") {
			_, _ = fmt.Fprint(w, `{"ServerVersion": "28.0.0", "Name": "elsewhere"}`)
		}
	})}
	t.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.Serve(l) }()
	s.Sockets = map[string]string{"docker": "tcp://" + l.Addr().String()}
	_, err = docker.NewDriver().Open(t.Context(), enginetest.Parse(t, "docker/runc"), s)
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
	if _, err := docker.NewDriver().Open(t.Context(), enginetest.Parse(t, "docker/runc"), s); !engine.Unsupported(err) {
		t.Errorf("open: %v; want a refusal", err)
	}
}

func TestPrivateDaemonFails(t *testing.T) {
	s, _ := private(t)
	enginetest.DaemonFails(t, docker.NewDriver(), "docker/runc", s, "dockerd")
}

func TestDiskFullAtPull(t *testing.T) {
	disk := enginetest.SmallDisk(t)
	s, _ := private(t)
	s.Data = disk
	e := enginetest.Open(t, docker.NewDriver(), "docker/runc", s)
	enginetest.DiskFull(t, s, e)
	enginetest.Check(t, enginetest.Running(t, e, enginetest.Spec(s, "after")).Delete(t.Context())) // the other image still works
}

func TestKilledDaemonIsRestartedOnce(t *testing.T) {
	s, _ := private(t)
	enginetest.DaemonDies(t, s, enginetest.Open(t, docker.NewDriver(), "docker/runc", s), nil)
}

// Invariant hanging-daemon.
func TestHangingDaemonIsStartedAgain(t *testing.T) {
	s, socket := private(t)
	e := enginetest.Open(t, docker.NewDriver(), "docker/runc", s)
	enginetest.DaemonHangs(t, s, e, func() []string { return remains(t, s, socket) })
}
