package docker

import (
	"os"
	"path/filepath"
	"testing"
)

// The directory that dockerd's containerd makes on the host is removed, unless it is the user's or has files.
func TestOptDirIsRemoved(t *testing.T) {
	for name, tt := range map[string]struct {
		before, file, left bool
	}{
		"new":            {},
		"the user's":     {before: true, left: true},
		"with a program": {file: true, left: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "containerd")
			fill := func() {
				for _, part := range []string{"bin", "lib"} {
					if err := os.MkdirAll(filepath.Join(dir, part), 0o711); err != nil {
						t.Fatal(err)
					}
				}
			}
			if tt.before {
				fill()
			}
			opt := newOptDir(dir)
			fill()
			program := filepath.Join(dir, "bin", "program")
			if tt.file {
				if err := os.WriteFile(program, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := opt.remove(); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(dir); (err == nil) != tt.left {
				t.Errorf("the directory: %v; left should be %v", err, tt.left)
			}
			if _, err := os.Lstat(program); (err == nil) != tt.file {
				t.Errorf("the program: %v", err)
			}
		})
	}
	if err := newOptDir(filepath.Join(t.TempDir(), "none")).remove(); err != nil {
		t.Errorf("without the directory: %v", err)
	}
}
