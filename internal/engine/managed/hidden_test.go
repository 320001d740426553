package managed

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// TestAppArmorIsHidden: a private daemon sees no AppArmor, so it loads no profile into the kernel.
//
// Invariant apparmor: A private daemon loads no AppArmor profile into the kernel.
func TestAppArmorIsHidden(t *testing.T) {
	root := t.TempDir()
	if diff := cmp.Diff([]string{"/run", "/var/lib"}, hiddenDirs(root)); diff != "" {
		t.Errorf("without AppArmor (-want +got):\n%s", diff)
	}
	must.Do(t, os.MkdirAll(filepath.Join(root, "sys/kernel/security/apparmor"), 0o755))
	if diff := cmp.Diff([]string{"/run", "/var/lib", "/sys/kernel/security"}, hiddenDirs(root)); diff != "" {
		t.Errorf("with AppArmor (-want +got):\n%s", diff)
	}
}
