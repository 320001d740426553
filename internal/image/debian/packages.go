package debian

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"github.com/touchstone-bench/touchstone/internal/image"
)

// Fetch fetches packages of Suite, as a mirror has them now, with all that they depend on, for whoever makes something else than
// the workload image of them. It gives a tar archive in dir, in which they are unpacked and nothing of them was executed; the
// files of the packages are in it too, in var/cache/apt. It takes room bytes.
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
