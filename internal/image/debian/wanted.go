package debian

import (
	"embed"
	"errors"
	"fmt"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

// base is the part of the image that does not belong to a single program: the shell, the files in /etc that the C library
// reads, and the library that it opens when a thread is cancelled.
var base = programs.Tool{
	Name:     "base",
	Packages: []string{"base-files", "busybox", "netbase"},
	Files: []string{
		programs.Busybox, "/etc/protocols", "/etc/services", "/usr/lib/os-release", "/etc/debian_version",
	},
	Libraries: []string{"libgcc_s.so.1"},
}

// wanted returns the packages, files and libraries of all tools of the image, sorted.
func wanted() programs.Tool {
	var union programs.Tool
	for _, tool := range append(programs.Tools(), base) {
		union.Packages = append(union.Packages, tool.Packages...)
		union.Files = append(union.Files, tool.Files...)
		union.Libraries = append(union.Libraries, tool.Libraries...)
	}
	for _, list := range []*[]string{&union.Packages, &union.Files, &union.Libraries} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return union
}

// ErrNoLinpack reports that this program has no linpack for an architecture.
var ErrNoLinpack = errors.New("this program has none")

// The folder has the output of scripts/build-probe.sh.
//
//go:embed linpack
var embedded embed.FS

// linpack returns the program for an architecture, by Go's name: a dynamic ELF executable.
func linpack(arch string) ([]byte, error) {
	binary, err := embedded.ReadFile("linpack/linpack-" + arch)
	if err != nil {
		return nil, fmt.Errorf("linpack for architecture %q: %w", arch, ErrNoLinpack)
	}
	return binary, nil
}
