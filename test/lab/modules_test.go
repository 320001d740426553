package lab

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"
)

// extractModules writes kernel modules with their dependencies to a directory, uncompressed and named in load order. It replaces depmod
// and modprobe: a kernel package has no modules.dep, but each module lists its dependencies.
func extractModules(tree, to string, wanted []string) error {
	m := moduleTree{files: map[string]string{}, done: map[string]bool{}, to: to}
	if err := m.index(tree); err != nil {
		return fmt.Errorf("look for modules of the kernel: %w", err)
	}
	for _, name := range wanted {
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

// module returns a minimal ELF file with a .modinfo section.
func module(t *testing.T, info string) []byte {
	t.Helper()
	names := "\x00.modinfo\x00.shstrtab\x00"
	const head, section = 64, 64
	at := uint64(head + len(info) + len(names))
	h := elf.Header64{Type: uint16(elf.ET_REL), Machine: uint16(elf.EM_X86_64), Version: 1, Ehsize: head, Shoff: at, Shentsize: section, Shnum: 3, Shstrndx: 2}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1
	var b bytes.Buffer
	for _, part := range []any{
		h, []byte(info), []byte(names),
		elf.Section64{},
		elf.Section64{Name: 1, Type: uint32(elf.SHT_PROGBITS), Off: head, Size: uint64(len(info))},
		elf.Section64{Name: 10, Type: uint32(elf.SHT_STRTAB), Off: head + uint64(len(info)), Size: uint64(len(names))},
	} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func compressed(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := xz.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// kernelTree returns a directory like the module tree of a kernel package.
func kernelTree(t *testing.T) string {
	t.Helper()
	tree := filepath.Join(t.TempDir(), "modules")
	for name, content := range map[string][]byte{
		"6.1/modules.builtin":                        []byte("kernel/fs/ext4/ext4.ko\nkernel/drivers/virtio/virtio-mmio.ko\n"),
		"6.1/kernel/drivers/virtio/virtio_pci.ko.xz": compressed(t, module(t, "license=GPL\x00depends=virtio,virtio-ring,ext4\x00name=virtio_pci\x00")),
		"6.1/kernel/drivers/virtio/virtio_ring.ko":   module(t, "depends=virtio\x00"),
		"6.1/kernel/drivers/virtio/virtio.ko":        module(t, "depends=\x00"),
		"6.1/kernel/net/bridge/bridge.ko":            module(t, "name=bridge\x00"),
		"6.1/kernel/odd/lone.ko":                     module(t, "depends=nothing\x00"),
		"6.1/kernel/odd/silent.ko":                   []byte("no ELF file"),
	} {
		file := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

func TestModulesAreInLoadOrder(t *testing.T) {
	tree, to := kernelTree(t), t.TempDir()
	if err := extractModules(tree, to, []string{"virtio-mmio", "virtio_pci", "virtio", "bridge"}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(to)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if want := []string{"001-virtio.ko", "002-virtio_ring.ko", "003-virtio_pci.ko", "004-bridge.ko"}; !slices.Equal(got, want) {
		t.Errorf("the modules are %q, want %q", got, want)
	}
	if content, err := os.ReadFile(filepath.Join(to, "003-virtio_pci.ko")); err != nil || !bytes.HasPrefix(content, []byte(elf.ELFMAG)) {
		t.Errorf("the module begins with %.10q, %v; want an uncompressed ELF file", content, err)
	}
}

func TestUnusableModules(t *testing.T) {
	for _, name := range []string{"missing", "lone", "silent"} {
		if err := extractModules(kernelTree(t), t.TempDir(), []string{name}); err == nil {
			t.Errorf("module %s is accepted", name)
		}
	}
}
