package workload_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

// firstLine starts a command and gives its first line; the command is killed at
// the end of the test.
func firstLine(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("first line %q: %v", line, err)
	}
	return line
}

// wantTermination ends a command with SIGTERM.
func wantTermination(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v, want code 0", err)
	}
}

// A sandbox's process has no output to write to.
func TestProbePause(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `exec "$0" "$@" <&- >&- 2>&-`, probe(t))
	cmd.Args = append(cmd.Args, workload.Pause()[1:]...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	name := ""
	for range 1_000_000 {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/comm")
		if err != nil {
			t.Fatal(err)
		}
		if name = strings.TrimSpace(string(text)); name == workload.PauseName {
			break
		}
		runtime.Gosched()
	}
	if name != workload.PauseName {
		t.Errorf("its name is %q, want %q", name, workload.PauseName)
	}
	wantTermination(t, cmd)
}

func TestProbeReady(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), probe(t), workload.Ready()[1:]...)
	if line := firstLine(t, cmd); line != workload.ReadyLine+"\n" {
		t.Errorf("first line %q", line)
	}
	wantTermination(t, cmd)
}

// The first process of a pid namespace, which a container's is, gets no signals but
// those that it handles. It must do so when the first line is complete.
func TestProbeReadyAsFirstProcess(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make a pid namespace")
	}
	for range 20 {
		cmd := exec.CommandContext(t.Context(), probe(t), workload.Ready()[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
		firstLine(t, cmd)
		wantTermination(t, cmd)
	}
}

// On all addresses means that others than 127.0.0.1 answer too.
func TestProbeServe(t *testing.T) {
	for _, tt := range []struct {
		serve func(port int) []string
		on    string
		paths []string
	}{
		{workload.Serve, "127.0.0.1", []string{"127.0.0.1:%d/", "127.0.0.1:%d/" + strings.Repeat("long", 1000)}},
		{workload.ServeAny, "0.0.0.0", []string{"127.0.0.1:%d", "127.9.9.9:%d"}},
	} {
		cmd := exec.CommandContext(t.Context(), probe(t), tt.serve(0)[1:]...)
		port, err := workload.ParseServing(strings.TrimSuffix(firstLine(t, cmd), "\n"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range tt.paths {
			status, body, err := get(t, "http://"+fmt.Sprintf(path, port))
			if err != nil || status != http.StatusOK || body != workload.ServeBody {
				t.Errorf("on %s, GET %.20s: %d %q, %v; want 200 and %q", tt.on, path, status, body, err, workload.ServeBody)
			}
		}
		if taken := runProbe(t, tt.serve(port)...); taken.code != 1 || taken.stderr != "serve: listen on "+tt.on+": EADDRINUSE (98)\n" {
			t.Errorf("a second server on the port: %+v", taken)
		}
		wantTermination(t, cmd)
	}
}

// A client that begins before its server waits for it, and not without end.
func TestProbeReach(t *testing.T) {
	free, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := netip.MustParseAddrPort(free.Addr().String())
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	if got := runProbe(t, workload.Reach(address, time.Second)...); got.code != 1 || got.stderr != "reach: connect in time to 127.0.0.1: ECONNREFUSED (111)\n" {
		t.Errorf("without a server: %+v", got)
	}
	early := exec.CommandContext(t.Context(), probe(t), workload.Reach(address, time.Minute)[1:]...)
	if err := early.Start(); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp4", address.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	if err := early.Wait(); err != nil {
		t.Errorf("a client that was early: %v", err)
	}
	if got := runProbe(t, workload.Reach(address, time.Minute)...); got != (result{}) {
		t.Errorf("with a server: %+v", got)
	}
}

func get(t *testing.T, url string) (status int, body string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}
