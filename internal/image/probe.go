package image

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// ErrNoProbe reports that this program has no probe for an architecture.
var ErrNoProbe = errors.New("this program has none")

// The directory contains the output of scripts/build-probe.sh.
//
//go:embed probe
var embedded embed.FS

// Probe returns the probe for an architecture in Go's naming: a static ELF executable. The error wraps ErrNoProbe if there
// is none.
func Probe(arch string) ([]byte, error) {
	binary, err := embedded.ReadFile("probe/probe-" + arch)
	if err != nil {
		return nil, fmt.Errorf("probe for architecture %q: %w", arch, ErrNoProbe)
	}
	return binary, nil
}

// WriteProbe writes the probe for the host's architecture to path, with mode 0755. It replaces the file atomically, so it may be called
// while an older probe runs.
func WriteProbe(path string) error {
	binary, err := Probe(runtime.GOARCH)
	if err != nil {
		return fmt.Errorf("write probe %q: %w", path, err)
	}
	if err := replace(path, binary, 0o755); err != nil {
		return fmt.Errorf("write probe %q: %w", path, err)
	}
	return nil
}

// replace replaces or creates a file atomically.
func replace(path string, content []byte, mode fs.FileMode) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".touchstone-*")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Chmod(mode), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}
