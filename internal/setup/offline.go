package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/parts"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// fromDirectory takes a part from the directory of --from: a release with the name of the lock, the source of a build with the name of the
// lock, or a version in the store of another machine.
func (s *Setup) fromDirectory(ctx context.Context, l *process.Launcher, item *Item, isExact bool) error {
	var reasons []string
	if release, ok := item.Releases[s.Arch]; ok {
		file := filepath.Join(s.From, release.name())
		if _, err := os.Stat(file); err == nil {
			item.Origin = parts.Origin{Kind: parts.Release, Source: release.URL, Digest: "sha256:" + release.SHA256}
			item.Size, item.space = release.Size, 4*release.Size
			item.produce = func(_ context.Context, w *work) error {
				draft := filepath.Join(w.dir, release.name())
				if err := copyFile(file, draft); err != nil {
					return err
				}
				if err := verify(draft, release.SHA256); err != nil {
					return err
				}
				return unpack(draft, w.bin, item.Programs)
			}
			return nil
		}
		reasons = append(reasons, fmt.Sprintf("%s has no %s", s.From, release.name()))
	}
	if b := item.Build; b != nil && b.File != "" {
		if _, err := os.Stat(filepath.Join(s.From, b.File)); err == nil {
			return s.fromBuild(ctx, l, item, isExact)
		}
		reasons = append(reasons, fmt.Sprintf("%s has no %s", s.From, b.File))
	}
	version := item.Version
	if current, err := os.Readlink(filepath.Join(s.From, item.Name, parts.Current)); err == nil && !isExact {
		version = filepath.Base(current)
	}
	dir := filepath.Join(s.From, item.Name, version)
	part, err := parts.Read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		reasons = append(reasons, fmt.Sprintf("%s has no %s of a store", s.From, filepath.Join(item.Name, version)))
		return errors.New(strings.Join(reasons, ", "))
	}
	if err == nil && (part.Name != item.Name || part.Version != version) {
		err = fmt.Errorf("%s is the record of %s", filepath.Join(dir, parts.Record), part)
	}
	if err != nil {
		return err
	}
	item.Version, item.Licence, item.Origin, item.Programs = version, part.Licence, part.Origin, nil
	for _, p := range part.Programs {
		item.Programs = append(item.Programs, p.Name)
		if info, err := os.Stat(filepath.Join(part.Bin(), p.Name)); err == nil {
			item.Size += info.Size()
		}
	}
	item.space = item.Size
	item.produce = func(_ context.Context, w *work) error {
		for _, p := range part.Programs {
			draft := filepath.Join(w.bin, p.Name)
			if err := copyFile(filepath.Join(part.Bin(), p.Name), draft); err != nil {
				return err
			}
			if sum, err := parts.Digest(draft); err != nil || sum != p.SHA256 {
				return errors.Join(err, fmt.Errorf("%s has the SHA-256 %s, and its record has %s: it is damaged", filepath.Join(part.Bin(), p.Name), sum, p.SHA256))
			}
		}
		return nil
	}
	return nil
}

func copyFile(source, destination string) error {
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it is only read from
	return write(destination, in)
}
