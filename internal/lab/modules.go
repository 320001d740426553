package lab

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ulikunitz/xz"
)

// takeModules writes modules of a kernel with all that they depend on to a directory, uncompressed, with names in the order in which
// they have to be loaded, and removes the tree of modules. It stands for depmod and modprobe: a kernel's package has no
// modules.dep, but each module says on what it depends.
func takeModules(tree, to string, wanted []string) error {
	m := moduleTree{files: map[string]string{}, there: map[string]bool{}, to: to}
	if err := m.index(tree); err != nil {
		return fmt.Errorf("look for modules of the kernel: %w", err)
	}
	for _, name := range wanted {
		if err := m.add(name); err != nil {
			return fmt.Errorf("module %s: %w", name, err)
		}
	}
	return os.RemoveAll(tree)
}

// moduleTree is a kernel's directory of modules.
type moduleTree struct {
	files map[string]string // paths, by the modules' names
	there map[string]bool   // those that are built in or have been added
	to    string
	count int
}

// moduleName is the name of a module whose file has a path: modprobe makes no difference between hyphens and underscores.
func moduleName(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	return strings.ReplaceAll(name, "-", "_")
}

func (m *moduleTree) index(tree string) error {
	return filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		switch base := filepath.Base(path); {
		case base == "modules.builtin":
			list, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, line := range strings.Fields(string(list)) {
				m.there[moduleName(line)] = true
			}
		case strings.HasSuffix(base, ".ko"), strings.HasSuffix(base, ".ko.xz"):
			m.files[moduleName(path)] = path
		}
		return nil
	})
}

// add writes a module after those that it depends on.
func (m *moduleTree) add(name string) error {
	name = strings.ReplaceAll(name, "-", "_")
	if m.there[name] {
		return nil
	}
	path, ok := m.files[name]
	if !ok {
		return fmt.Errorf("%w in the kernel's package", fs.ErrNotExist)
	}
	content, err := readModule(path)
	if err != nil {
		return err
	}
	needed, err := dependencies(content)
	if err != nil {
		return err
	}
	m.there[name] = true
	for _, n := range needed {
		if err := m.add(n); err != nil {
			return fmt.Errorf("it depends on %s: %w", n, err)
		}
	}
	m.count++
	return os.WriteFile(filepath.Join(m.to, fmt.Sprintf("%03d-%s.ko", m.count, name)), content, 0o644)
}

// maxModule bounds the size of a module, in bytes.
const maxModule = 64 << 20

func readModule(path string) (content []byte, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var r io.Reader = file
	if strings.HasSuffix(path, ".xz") {
		if r, err = xz.NewReader(file); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(io.LimitReader(r, maxModule))
}

// dependencies reads from a module's .modinfo on which others it depends, by commas.
func dependencies(content []byte) ([]string, error) {
	file, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	section := file.Section(".modinfo")
	if section == nil {
		return nil, errors.New("it does not say on what it depends")
	}
	info, err := section.Data()
	if err != nil {
		return nil, err
	}
	for field := range bytes.SplitSeq(info, []byte{0}) {
		if list, ok := bytes.CutPrefix(field, []byte("depends=")); ok && len(list) > 0 {
			return strings.Split(string(list), ","), nil
		}
	}
	return nil, nil
}
