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

// extractModules writes kernel modules with their dependencies to a directory, uncompressed and named in load order. It replaces depmod
// and modprobe: a kernel package has no modules.dep, but each module lists its dependencies.
func extractModules(tree, destination string, names []string) error {
	m := moduleTree{files: map[string]string{}, done: map[string]bool{}, to: destination}
	if err := m.index(tree); err != nil {
		return fmt.Errorf("look for modules of the kernel: %w", err)
	}
	for _, name := range names {
		if err := m.add(name); err != nil {
			return fmt.Errorf("module %s: %w", name, err)
		}
	}
	return nil
}

// moduleTree is a kernel's directory of modules.
type moduleTree struct {
	files map[string]string // paths by module name
	done  map[string]bool   // modules that are built in or already added
	to    string
	count int
}

// moduleName returns the module name for a path. Like modprobe, it treats hyphens as underscores.
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
				m.done[moduleName(line)] = true
			}
		case strings.HasSuffix(base, ".ko"), strings.HasSuffix(base, ".ko.xz"):
			m.files[moduleName(path)] = path
		}
		return nil
	})
}

// add writes a module after its dependencies.
func (m *moduleTree) add(name string) error {
	name = strings.ReplaceAll(name, "-", "_")
	if m.done[name] {
		return nil
	}
	path, ok := m.files[name]
	if !ok {
		return fmt.Errorf("%w in the kernel package", fs.ErrNotExist)
	}
	content, err := readModule(path)
	if err != nil {
		return err
	}
	deps, err := dependencies(content)
	if err != nil {
		return err
	}
	m.done[name] = true
	for _, dep := range deps {
		if err := m.add(dep); err != nil {
			return fmt.Errorf("dependency %s: %w", dep, err)
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

// dependencies reads the comma-separated dependencies in a module's .modinfo section.
func dependencies(content []byte) ([]string, error) {
	file, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	section := file.Section(".modinfo")
	if section == nil {
		return nil, errors.New("section .modinfo is missing")
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
