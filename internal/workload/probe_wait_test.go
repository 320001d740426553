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
	"path/filepath"
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

// says runs a shell script and stores its output. The script is the name of its time.
func says(script string, output *string) workload.Program {
	return workload.Program{Args: []string{"/bin/sh", "-c", script}, Elapsed: script, Parse: func(stdout []byte) (workload.Values, error) {
		*output = string(stdout)
		return workload.Values{}, nil
	}}
}

func sequence(t *testing.T, p workload.Program) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), probe(t), p.Args[1:]...)
}

func TestProbeSequence(t *testing.T) {
	dir := t.TempDir()
	var first, second, third string
	p := workload.Sequence(dir, says("echo one > file; echo done", &first), says("sleep 0.02; cat file", &second), says(":", &third))
	cmd := sequence(t, p)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	r := run(t, cmd)
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("code %d, stderr %q", r.code, r.stderr)
	}
	values, err := p.Parse([]byte(r.stdout))
	if err != nil {
		t.Fatal(err)
	}
	if first != "done\n" || second != "one\n" || third != "" {
		t.Errorf("the programs wrote %q, %q, %q", first, second, third)
	}
	if took := values["sleep 0.02; cat file"]; took < 0.02 || took > 60 {
		t.Errorf("a script that sleeps for 20 ms took %v s", took)
	}
	if len(values) != 3 {
		t.Errorf("values %v", values)
	}
	if _, err := os.Stat(filepath.Join(dir, "file")); err != nil {
		t.Errorf("the programs did not run in the directory: %v", err)
	}
}

// A program that fails ends the sequence, with the exit code of the program.
func TestProbeSequenceFails(t *testing.T) {
	var output string
	good := says("echo good", &output)
	for _, tt := range []struct {
		name   string
		bad    workload.Program
		code   int
		stderr string
	}{
		{"code", says("exit 3", &output), 3, "step 2 of 3, /bin/sh, ended with code 3"},
		{"signal", says("kill -9 $$", &output), 137, "ended with code 137"},
		{"no such program", workload.Program{Args: []string{"/no/such"}}, 127, "run /no/such: ENOENT"},
	} {
		p := workload.Sequence(t.TempDir(), good, tt.bad, good)
		r := run(t, sequence(t, p))
		if r.code != tt.code || !strings.Contains(r.stderr, tt.stderr) {
			t.Errorf("%s: code %d, stderr %q; want %d, %q", tt.name, r.code, r.stderr, tt.code, tt.stderr)
		}
		if n := strings.Count(r.stdout, "good"); n != 1 {
			t.Errorf("%s: %d programs ran beside it, want the first alone", tt.name, n)
		}
	}
	r := run(t, sequence(t, workload.Sequence(filepath.Join(t.TempDir(), "none"), good)))
	if r.code != 1 || !strings.Contains(r.stderr, "change to") || r.stdout != "" {
		t.Errorf("in a directory that does not exist: code %d, %q, %q", r.code, r.stdout, r.stderr)
	}
}
