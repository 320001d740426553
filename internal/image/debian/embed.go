package debian

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
)

// ErrNoLinpack reports that this binary was built without linpack for an architecture.
var ErrNoLinpack = errors.New("this binary was built without linpack for it")

// The folder has a README and the output of scripts/build-probe.sh.
//
//go:embed linpack
var embedded embed.FS

// linpack returns the program for an architecture, by Go's name: a dynamic ELF executable.
func linpack(arch string) ([]byte, error) {
	binary, err := embedded.ReadFile("linpack/linpack-" + arch)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return nil, fmt.Errorf("linpack for architecture %q: %w", arch, ErrNoLinpack)
	}
	if err != nil {
		return nil, fmt.Errorf("read embedded linpack for architecture %q: %w", arch, err)
	}
	return binary, nil
}
