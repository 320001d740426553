package debian

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
)

// ErrNoLinpack says that this binary was built without linpack for an architecture.
var ErrNoLinpack = errors.New("this binary was built without linpack for it")

// The folder holds a README and what scripts/build-probe.sh has built.
//
//go:embed linpack
var embedded embed.FS

// linpack is the program for an architecture, named as Go does: a dynamic ELF executable.
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
