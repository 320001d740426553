package diagnosis

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

func TestServiceLog(t *testing.T) {
	root := t.TempDir()
	if got := serviceLog(root, "containerd"); got != "cat /var/log/containerd.log" {
		t.Errorf("without systemd: %q", got)
	}
	must.Do(t, os.MkdirAll(filepath.Join(root, "run/systemd/system"), 0o700))
	if got := serviceLog(root, "crio"); got != "journalctl -u crio" {
		t.Errorf("with systemd: %q", got)
	}
}
