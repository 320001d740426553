package oci

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/process"
)

// layer is a writable root file system over a shared one: an overlay with its directories on the run's disk. Only the
// processes of the launcher see the mount. The host therefore keeps no mount when this program is killed.
type layer struct {
	launcher *process.Launcher
	dir      string
	mounted  bool
}

// newLayer makes a layer over lower in a new directory.
func newLayer(l *process.Launcher, dir, lower string) (*layer, error) {
	y := &layer{launcher: l, dir: dir}
	if err := y.mount(lower); err != nil {
		return nil, errors.Join(fmt.Errorf("make a writable root file system: %w", err), y.remove())
	}
	return y, nil
}

func (y *layer) mount(lower string) error {
	if err := os.MkdirAll(filepath.Dir(y.dir), 0o700); err != nil {
		return err
	}
	upper, work := filepath.Join(y.dir, "upper"), filepath.Join(y.dir, "work")
	for _, dir := range []string{y.dir, upper, work, y.root()} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	options := "lowerdir=" + escape(lower) + ",upperdir=" + escape(upper) + ",workdir=" + escape(work)
	err := y.launcher.InNamespace(func() error { return unix.Mount("overlay", y.root(), "overlay", 0, options) })
	if err != nil {
		return &os.PathError{Op: "mount overlay", Path: y.root(), Err: err}
	}
	y.mounted = true
	return nil
}

// escape quotes a path for the options of an overlay.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `:`, `\:`, `,`, `\,`).Replace(path)
}

// root is the path of the file system for the runtime.
func (y *layer) root() string { return filepath.Join(y.dir, "root") }

// remove removes the layer with all its files. It is idempotent.
func (y *layer) remove() error {
	if y.mounted {
		err := y.launcher.InNamespace(func() error { return unix.Unmount(y.root(), unix.MNT_DETACH) })
		if err != nil {
			return &os.PathError{Op: "unmount", Path: y.root(), Err: err}
		}
		y.mounted = false
	}
	return os.RemoveAll(y.dir)
}

// tryLayer reports why layers do not work here: the upper directory of an overlay cannot lie on another overlay, as in a
// container.
func (e *Engine) tryLayer() error {
	y, err := newLayer(e.Session.Launcher, filepath.Join(e.layers, "try"), e.Session.Rootfs)
	if err != nil {
		return err
	}
	return y.remove()
}
