package lab

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ulikunitz/xz"
)

// module is the least of an ELF file that says on what a module depends.
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

// kernelTree is the directory of modules of a kernel's package.
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

func TestModulesComeInOrder(t *testing.T) {
	tree, to := kernelTree(t), t.TempDir()
	if err := takeModules(tree, to, []string{"virtio-mmio", "virtio_pci", "virtio", "bridge"}); err != nil {
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
		t.Errorf("a module is %.10q, %v; want it uncompressed", content, err)
	}
	if _, err := os.Stat(tree); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the tree is still there: %v", err)
	}
}

func TestModulesThatCannotBeLoaded(t *testing.T) {
	for _, name := range []string{"missing", "lone", "silent"} {
		if err := takeModules(kernelTree(t), t.TempDir(), []string{name}); err == nil {
			t.Errorf("module %s is taken", name)
		}
	}
}
