package footprint_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/footprint"
)

// The size of each package of dpkg's own footprint is the sum over the files that dpkg itself lists.
func TestRealDpkg(t *testing.T) {
	program, err := exec.LookPath("dpkg")
	if err != nil {
		t.Skip("needs a host with dpkg")
	}
	f, err := footprint.NewHost("/", t.TempDir()).Of([]string{program})
	if err != nil {
		t.Fatal(err)
	}
	if f.Manager != "dpkg" || len(f.Packages) < 2 || len(f.Unpackaged) > 0 || f.Minimal.Bytes <= f.Programs.Bytes || f.Recommended.Bytes < f.Minimal.Bytes {
		t.Errorf("the footprint is %+v", f)
	}
	for _, p := range f.Packages {
		list, err := exec.CommandContext(t.Context(), program, "-L", p.Name).Output()
		if err != nil {
			t.Fatal(err)
		}
		var bytes int64
		seen := []os.FileInfo{}
	files:
		for file := range strings.Lines(string(list)) {
			info, err := os.Lstat(strings.TrimSuffix(file, "\n"))
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			for _, other := range seen {
				if os.SameFile(info, other) {
					continue files
				}
			}
			seen = append(seen, info)
			bytes += info.Size()
		}
		if bytes != p.Bytes {
			t.Errorf("%s has %d bytes, and dpkg lists files with %d", p.Name, p.Bytes, bytes)
		}
	}
}
