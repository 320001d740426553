package workload_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

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
