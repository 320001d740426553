package debian

import (
	"slices"

	"github.com/touchstone-bench/touchstone/internal/workload"
)

// base is the part of the image that does not belong to a single program: the shell, the files in /etc that the C library
// reads, and the library that it opens when a thread is cancelled.
var base = workload.Tool{
	Name:     "base",
	Packages: []string{"base-files", "busybox", "netbase"},
	Files: []string{
		"/usr/bin/busybox", "/etc/protocols", "/etc/services", "/usr/lib/os-release", "/etc/debian_version",
	},
	Libraries: []string{"libgcc_s.so.1"},
}

// wanted collects a list of every tool of the image, sorted.
func wanted(list func(workload.Tool) []string) []string {
	var all []string
	for _, tool := range append(workload.Tools(), base) {
		all = append(all, list(tool)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func wantedPackages() []string {
	return wanted(func(t workload.Tool) []string { return t.Packages })
}

func wantedFiles() []string {
	return wanted(func(t workload.Tool) []string { return t.Files })
}

func wantedLibraries() []string {
	return wanted(func(t workload.Tool) []string { return t.Libraries })
}
