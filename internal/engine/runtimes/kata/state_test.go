package kata

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

func TestSandboxOf(t *testing.T) {
	id := strings.Repeat("0a", 32)
	for group, want := range map[string]string{
		"kata_" + id: id, "kata_crio-" + id: id, "crio-" + id: "", id: "", "kata_" + id + "0": "", "kata_../etc": "", "kata_": "", "kata_" + strings.ToUpper(id): "",
	} {
		if got := SandboxOf(group); got != want {
			t.Errorf("SandboxOf(%q) = %q, want %q", group, got, want)
		}
	}
}

// RemoveState removes the files of one sandbox, and none below a mount.
func TestRemoveState(t *testing.T) {
	id, stranger := strings.Repeat("0a", 32), strings.Repeat("0b", 32)
	const address = "/tmp/ts1316087438/containerd/c.sock"
	// As containerd 2.4.2 logged it for Kata 3.32.0.
	logged := "run/containerd/s/6ebb40432ce579126bab94139d33bc8356ce4306298a64e83e39f285b85450c4"
	if got := socketOf(address, "bcf3326cef5a8a1c62be43088492af219006f578495253e81916eea75672c63d"); got != logged {
		t.Errorf("the shim's socket is %s, want %s", got, logged)
	}
	files := []string{socketOf(address, id), socketOf(address, stranger)}
	for _, dir := range stateDirs {
		files = append(files, filepath.Join(dir, id, "a/b"), filepath.Join(dir, stranger, "a"))
	}
	const line = "30 1 0:26 / /run/kata-containers/shared/sandboxes/"
	const rest = " rw,relatime - tmpfs tmpfs rw\n"
	for _, c := range []struct {
		name, mounts, id, want string
		left                   int
	}{
		{name: "none mounted", mounts: line + stranger + rest, id: id, left: len(stateDirs) + 1},
		{name: "a mount", mounts: line + id + "/shared" + rest, id: id, left: len(files), want: id + "/shared is a mount"},
		{name: "unknown", id: strings.Repeat("0c", 32), left: len(files)},
		{name: "no ID", id: "../sbs", left: len(files)},
		{name: "an empty ID", left: len(files)},
	} {
		t.Run(c.name, func(t *testing.T) {
			proc := t.TempDir()
			for _, file := range append([]string{"../mountinfo"}, files...) {
				file = filepath.Join(proc, "root", file)
				must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
				must.Do(t, os.WriteFile(file, []byte(c.mounts), 0o600))
			}
			err := RemoveState(proc, address, c.id)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("RemoveState: %v, want %q", err, c.want)
			}
			left := 0
			walk := func(_ string, d fs.DirEntry, err error) error {
				if err == nil && d.Type().IsRegular() {
					left++
				}
				return err
			}
			must.Do(t, filepath.WalkDir(filepath.Join(proc, "root"), walk))
			if left != c.left {
				t.Errorf("%d files are left, want %d", left, c.left)
			}
		})
	}
	if err := RemoveState(filepath.Join(t.TempDir(), "none"), address, id); err != nil {
		t.Errorf("a process that has exited: %v", err)
	}
}
