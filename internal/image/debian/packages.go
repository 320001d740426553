package debian

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"github.com/touchstone-bench/touchstone/internal/image"
)

// Fetch fetches a mirror's current packages of Suite with their dependencies, for purposes other than the workload image. It returns
// a tar archive in dir with the unpacked packages. No program of theirs has run. The archive also has the files of the packages,
// in var/cache/apt. Fetch needs room bytes of disk space.
func Fetch(ctx context.Context, o Options, dir string, packages []string, room int64) (*os.File, error) {
	if o.Arch == "" {
		o.Arch = runtime.GOARCH
	}
	if o.Mirror == "" {
		o.Mirror = hostMirror("/")
	}
	f := &fetcher{launcher: o.Launcher, dir: dir, progress: func(step string) { o.progress("%s", step) }}
	if err := f.ready(); err != nil {
		return nil, err
	}
	if err := image.RequireSpace(dir, room); err != nil {
		return nil, err
	}
	file, err := f.fetch(ctx, request{arch: o.Arch, packages: packages, mirror: o.Mirror}, "packages.tar")
	if err != nil {
		return nil, fmt.Errorf("fetch packages for %s: %w", o.Arch, err)
	}
	return file, nil
}
