package monitor

import (
	"os"
	"os/exec"
	"testing"
)

// BenchmarkSample measures the cost of one sample of ten processes, which must stay below 1 ms at an interval of 100 ms.
func BenchmarkSample(b *testing.B) {
	pids := sleepers(b, 10)
	s, err := NewSampler(Target{Procs: func() ([]int, error) { return pids, nil }}, "/proc")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for _, part := range []struct {
		name string
		read func() error
	}{
		{"host", func() error { _, err := s.Host(); return err }},
		{"cpu", func() error { _, err := s.CPU(); return err }},
		{"memory", func() error { _, _, err := s.Memory(); return err }},
	} {
		b.Run(part.name, func(b *testing.B) {
			for b.Loop() {
				if err := part.read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// sleepers starts processes that sleep until the end of the test.
func sleepers(t testing.TB, n int) []int {
	t.Helper()
	var pids []int
	for range n {
		cmd := exec.CommandContext(t.Context(), "sleep", "600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, cmd.Process.Pid)
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
	return append(pids, os.Getpid())
}
