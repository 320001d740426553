package probe_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/ports"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

// firstLine starts a command and gives its first line; the command is killed at
// the end of the test.
func firstLine(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	must.Do(t, err)
	must.Do(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("first line %q: %v", line, err)
	}
	return line
}

func wantTermination(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	must.Do(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v, want code 0", err)
	}
}

// A sandbox's process has no output to write to.
func TestProbePause(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `exec "$0" "$@" <&- >&- 2>&-`, binary(t))
	cmd.Args = append(cmd.Args, probe.Pause()[1:]...)
	must.Do(t, cmd.Start())
	name := ""
	for range 1_000_000 {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/comm")
		must.Do(t, err)
		if name = strings.TrimSpace(string(text)); name == probe.PauseName {
			break
		}
		runtime.Gosched()
	}
	if name != probe.PauseName {
		t.Errorf("its name is %q, want %q", name, probe.PauseName)
	}
	wantTermination(t, cmd)
}

// The first process of a pid namespace, which a container's is, gets no signals but
// those that it handles. It must do so when the first line is complete.
func TestProbeReadyAsFirstProcess(t *testing.T) {
	needRoot(t, "make a pid namespace")
	for range 20 {
		cmd := exec.CommandContext(t.Context(), binary(t), probe.Ready()[1:]...)
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
		{probe.Serve, "127.0.0.1", []string{"127.0.0.1:%d/", "127.0.0.1:%d/" + strings.Repeat("long", 1000)}},
		{probe.ServeAny, "0.0.0.0", []string{"127.0.0.1:%d", "127.9.9.9:%d"}},
	} {
		cmd := exec.CommandContext(t.Context(), binary(t), tt.serve(0)[1:]...)
		port, err := probe.ParseServing(strings.TrimSuffix(firstLine(t, cmd), "\n"))
		must.Do(t, err)
		for _, path := range tt.paths {
			status, body, err := get(t, "http://"+fmt.Sprintf(path, port))
			if err != nil || status != http.StatusOK || body != probe.ServeBody {
				t.Errorf("on %s, GET %.20s: %d %q, %v; want 200 and %q", tt.on, path, status, body, err, probe.ServeBody)
			}
		}
		if result := runProbe(t, tt.serve(port)...); result.code != 1 || result.stderr != "serve: listen on "+tt.on+": EADDRINUSE (98)\n" {
			t.Errorf("a second server on the port: %+v", result)
		}
		wantTermination(t, cmd)
	}
}

// A client that begins before its server waits for it, and not without end.
func TestProbeReach(t *testing.T) {
	address, listen := ports.Reserve(t)
	if got := runProbe(t, probe.Reach(address, time.Second)...); got.code != 1 || got.stderr != "reach: connect in time to 127.0.0.1: ECONNREFUSED (111)\n" {
		t.Errorf("without a server: %+v", got)
	}
	client := exec.CommandContext(t.Context(), binary(t), probe.Reach(address, time.Minute)[1:]...)
	must.Do(t, client.Start())
	listen()
	if err := client.Wait(); err != nil {
		t.Errorf("a client that was early: %v", err)
	}
	if got := runProbe(t, probe.Reach(address, time.Minute)...); got != (result{}) {
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
	return exec.CommandContext(t.Context(), binary(t), p.Args[1:]...)
}

func TestProbeSequence(t *testing.T) {
	dir := t.TempDir()
	var first, second, output string
	p := probe.Sequence(dir, says("echo one > file; echo done", &first), says("sleep 0.02; cat file", &second), says(":", &output))
	cmd := sequence(t, p)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	r := run(t, cmd)
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("code %d, stderr %q", r.code, r.stderr)
	}
	values, err := p.Parse([]byte(r.stdout))
	must.Do(t, err)
	if first != "done\n" || second != "one\n" || output != "" {
		t.Errorf("the programs wrote %q, %q, %q", first, second, output)
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
		p := probe.Sequence(t.TempDir(), good, tt.bad, good)
		r := run(t, sequence(t, p))
		if r.code != tt.code || !strings.Contains(r.stderr, tt.stderr) {
			t.Errorf("%s: code %d, stderr %q; want %d, %q", tt.name, r.code, r.stderr, tt.code, tt.stderr)
		}
		if n := strings.Count(r.stdout, "good"); n != 1 {
			t.Errorf("%s: %d programs ran beside it, want the first alone", tt.name, n)
		}
	}
	r := run(t, sequence(t, probe.Sequence(filepath.Join(t.TempDir(), "none"), good)))
	if r.code != 1 || !strings.Contains(r.stderr, "change to") || r.stdout != "" {
		t.Errorf("in a directory that does not exist: code %d, %q, %q", r.code, r.stdout, r.stderr)
	}
}

func TestProbeGrow(t *testing.T) {
	got := runProbe(t, probe.Grow(3)...)
	if want := "held 0\nheld 1048576\nheld 2097152\nheld 3145728\n"; got != (result{stdout: want}) {
		t.Errorf("%+v, want a line before the first MiB and after each", got)
	}
}

// The program writes numbered lines until SIGTERM. It sleeps between them: a program that does not sleep takes as much CPU time as
// wall time.
func TestProbeTick(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), binary(t), probe.Tick(5 * time.Millisecond)[1:]...)
	out, err := cmd.StdoutPipe()
	must.Do(t, err)
	must.Do(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for n := 1; n <= 20 && lines.Scan(); n++ {
		if got, err := probe.ParseTick(lines.Text()); got != n || err != nil {
			t.Errorf("line %d is %q: %d, %v", n, lines.Text(), got, err)
		}
	}
	must.Do(t, cmd.Process.Signal(syscall.SIGTERM))
	for lines.Scan() { // the lines before the signal
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	if cpuTime := cmd.ProcessState.SystemTime() + cmd.ProcessState.UserTime(); cpuTime > 40*time.Millisecond {
		t.Errorf("20 lines took %v of CPU time", cpuTime)
	}
}

func parsed[T any](parse func(string) (T, error)) func(string) (any, error) {
	return func(line string) (any, error) { return parse(line) }
}

// Each kind of line has one format.
func TestLinesOfProgress(t *testing.T) {
	for _, tt := range []struct {
		parse      func(string) (any, error)
		line, want string
		bad        []string
	}{
		{parsed(probe.ParseHeld), "held 66060288", "66060288", []string{
			"", "held", "held ", "held 1", "held -1048576", "held 1048576 ", "held +1048576", "kept 1048576", "1048576", "held 18446744073709551616",
		}},
		{parsed(probe.ParseTick), "tick 7", "7", []string{"", "tick", "tick ", "tick 0", "tick -1", "tick 1 ", "tock 1", "1"}},
		{parsed(probe.ParseServing), "ready port=65535", "65535", []string{
			"", "ready", "ready port=", "ready port=0", "ready port=65536", "ready port=-1", "ready port=80\n", "port=80",
		}},
		{parsed(programs.ParseSolved), "solved 17", "17", []string{
			"", "solved", "solved 0", "solved -1", "solved 1 ", "moved 1", "solved 1e3", strings.Repeat("9", 400),
		}},
		{parsed(probe.ParseMoved), "moved 335544320", "335544320", []string{"", "solved 1"}},
		{parsed(probe.ParseForks), "forks 300 live 256 refused 12", "{300 256 12}", []string{
			"", "forks 1 live 1", "forks 1 live x refused 1", "forks 1 live 1 refused -1", "forks 1 live 1 refused 1 more",
		}},
	} {
		if got, err := tt.parse(tt.line); fmt.Sprint(got) != tt.want || err != nil {
			t.Errorf("%q is %v, %v; want %s", tt.line, got, err, tt.want)
		}
		for _, line := range tt.bad {
			if got, err := tt.parse(line); err == nil {
				t.Errorf("%q is %v beside %q", line, got, tt.line)
			}
		}
	}
}
