package setup

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/parts"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// candidateLine is the line of `apt-cache policy` with the version that APT would install.
var candidateLine = regexp.MustCompile(`(?m)^  Candidate: (\S+)$`)

// fileLine is a line of `apt-get download --print-uris`: the URL, the name of the file, the size and the checksum.
var fileLine = regexp.MustCompile(`(?m)^'([^']+)' (\S+) (\d+) SHA256:([0-9a-f]{64})$`)

// fromPackage takes a package of the distribution, without its installation. APT's signed lists have the checksum, and APT has its own
// settings of proxies and mirrors.
func (s *Setup) fromPackage(ctx context.Context, l *process.Launcher, item *Item, isExact bool) error {
	if item.Package == "" {
		return errors.New("no distribution packages it")
	}
	if s.isForeign() {
		return errors.New("packages are only for the architecture of this machine")
	}
	lacks := func(program string) bool {
		_, err := exec.LookPath(program)
		return err != nil
	}
	if slices.ContainsFunc([]string{"apt-cache", "apt-get", "dpkg-deb"}, lacks) {
		return errors.New("this system has no APT")
	}
	text, err := output(ctx, l, "apt-cache", "policy", item.Package)
	found := candidateLine.FindStringSubmatch(text)
	if err != nil || found == nil || found[1] == "(none)" {
		return fmt.Errorf("APT knows no package %s (apt-get update renews its lists)", item.Package)
	}
	candidate := found[1]
	_, epochless, hasEpoch := strings.Cut(candidate, ":")
	if !hasEpoch {
		epochless = candidate
	}
	switch {
	case isExact && item.number(epochless) != item.Version:
		return fmt.Errorf("the package %s is version %s", item.Package, candidate)
	case !item.isRecent(epochless):
		return fmt.Errorf("the package %s is version %s, and %s is the least", item.Package, candidate, item.least())
	}
	name := item.Package + "=" + candidate
	if text, err = output(ctx, l, "apt-get", "download", "--print-uris", name); err != nil {
		return fmt.Errorf("APT cannot download %s: %w", name, err)
	}
	file := fileLine.FindStringSubmatch(text)
	if file == nil {
		return fmt.Errorf("APT has no SHA-256 of %s", name)
	}
	item.Version = epochless
	item.Origin = parts.Origin{Kind: parts.Package, Source: file[1], Digest: "sha256:" + file[4]}
	item.Size, _ = strconv.ParseInt(file[3], 10, 64) // digits
	item.space = 10 * item.Size
	item.produce = func(ctx context.Context, w *work) error {
		s.Step("fetching " + item.Title())
		// The user _apt may not write to the directory.
		if err := w.run(ctx, command{args: []string{"apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", name}}); err != nil {
			return err
		}
		archive := filepath.Join(w.dir, file[2])
		if err := verify(archive, file[4]); err != nil {
			return err
		}
		tree := filepath.Join(w.dir, "tree")
		if err := w.run(ctx, command{args: []string{"dpkg-deb", "--extract", archive, tree}}); err != nil {
			return err
		}
		return collect(tree, w.bin, item.Programs)
	}
	return nil
}

// collect moves programs from the usual directories of a tree to a directory. Other programs may be elsewhere, or missing.
func collect(tree, bin string, programs []string) error {
	for _, name := range programs {
		for _, dir := range []string{"usr/bin", "usr/sbin", "bin", "sbin", "usr/libexec", "usr/lib"} {
			if ok, err := move(filepath.Join(tree, dir, name), filepath.Join(bin, name)); ok || err != nil {
				if err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}
