package process

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// score reads an oom_score_adj.
func score(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestChildrenHaveHigherOOMScore(t *testing.T) {
	own := score(t, "/proc/self/oom_score_adj")
	l, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := min(own+oomRaise, mostOOMScore)
	var spawned bytes.Buffer
	cmd := exec.Command("/bin/cat", "/proc/self/oom_score_adj")
	cmd.Stdout = &spawned
	if err := l.Run(t.Context(), cmd); err != nil {
		t.Error(err)
	}
	called, err := os.Create(filepath.Join(t.TempDir(), "score"))
	if err != nil {
		t.Fatal(err)
	}
	// The child of the child inherits the score.
	program := Program{Args: []string{"/bin/sh", "-c", "cat /proc/self/oom_score_adj; true"}, Stdout: called, Stderr: called}
	if exit, err := l.Call(t.Context(), program); err != nil || exit.Status != 0 {
		t.Errorf("Call() = %+v, %v", exit, err)
	}
	if got := strings.TrimSpace(spawned.String()); got != strconv.Itoa(want) {
		t.Errorf("a spawned command has OOM score %s, want %d", got, want)
	}
	if got := score(t, called.Name()); got != want || l.OOMScore() != want {
		t.Errorf("a called program has OOM score %d, and OOMScore() is %d; want %d", got, l.OOMScore(), want)
	}
	if err := l.Run(t.Context(), exec.Command("/does/not/exist")); err == nil {
		t.Error("a missing program started")
	}
	if got := score(t, "/proc/self/oom_score_adj"); got != own {
		t.Errorf("this program has OOM score %d, want its old one, %d", got, own)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// The highest score is 1000. Without a writable score the children keep the score of this program.
func TestOOMScoreOfOthers(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		text     string
		children int
		writable bool
	}{{"0\n", 500, true}, {"-1000\n", -500, true}, {"700\n", 1000, true}, {"none\n", 0, false}} {
		file := filepath.Join(dir, "score")
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := openOOMScore(file)
		if s.children != tt.children || (s.file != nil) != tt.writable {
			t.Errorf("score %q: children have %d, writable is %v; want %d, %v", tt.text, s.children, s.file != nil, tt.children, tt.writable)
		}
		s.close()
	}
	if s := openOOMScore(filepath.Join(dir, "missing")); s.raise() != nil || s.lower() != nil || s.children != 0 {
		t.Errorf("a missing score gives %+v", s)
	}
}

// BenchmarkOOMScore measures the time that a fork takes longer.
func BenchmarkOOMScore(b *testing.B) {
	s := openOOMScore("/proc/self/oom_score_adj")
	defer s.close()
	for b.Loop() {
		if s.raise() != nil || s.lower() != nil {
			b.Fatal("the score cannot be changed")
		}
	}
}
