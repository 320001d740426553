package process_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/process"
)

// Only children see a mount in the launcher's private mount namespace; this program and the host do not.
func TestPrivateMounts(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: makes mounts")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	l, err := process.New(process.Options{Private: true})
	if err != nil {
		t.Fatal(err)
	}
	err = l.InNamespace(func() error {
		if err := syscall.Mount("touchstone-test", dir, "tmpfs", 0, ""); err != nil {
			return err
		}
		return os.WriteFile(file, nil, 0o600) // this thread is in the namespace
	})
	if err != nil {
		t.Error(err)
	}
	if err := l.Run(t.Context(), exec.Command("/bin/ls", file)); err != nil {
		t.Errorf("a child does not see the mount: %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("this program sees the mount")
	}
	mounts, err := os.ReadFile("/proc/1/mounts")
	if err != nil || strings.Contains(string(mounts), dir) {
		t.Errorf("the host's mounts (%v):\n%s", err, mounts)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
