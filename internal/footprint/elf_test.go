package footprint_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/footprint"
)

// binaryOf makes an ELF file without code: a program with an interpreter, or a library without one. runpath may be empty.
func binaryOf(machine elf.Machine, interpreter, runpath string, libraries ...string) []byte {
	const headerSize, progSize, sectionSize = 64, 56, 64
	dynstr := "\x00"
	var dynamic []elf.Dyn64
	add := func(tag elf.DynTag, text string) {
		dynamic = append(dynamic, elf.Dyn64{Tag: int64(tag), Val: uint64(len(dynstr))})
		dynstr += text + "\x00"
	}
	for _, l := range libraries {
		add(elf.DT_NEEDED, l)
	}
	if runpath != "" {
		add(elf.DT_RUNPATH, runpath)
	}
	dynamic = append(dynamic, elf.Dyn64{})
	const names = "\x00.dynstr\x00.dynamic\x00.shstrtab\x00"
	interp := interpreter + "\x00"

	at := uint64(headerSize + progSize)
	place := func(size int) uint64 {
		start := at
		at += uint64(size)
		return start
	}
	interpAt, dynstrAt := place(len(interp)), place(len(dynstr))
	dynamicAt, namesAt := place(16*len(dynamic)), place(len(names))
	header := elf.Header64{
		Type: uint16(elf.ET_DYN), Machine: uint16(machine), Version: 1, Phoff: headerSize, Shoff: at, Ehsize: headerSize, Phentsize: progSize,
		Phnum: 1, Shentsize: sectionSize, Shnum: 4, Shstrndx: 3,
	}
	copy(header.Ident[:], elf.ELFMAG)
	header.Ident[elf.EI_CLASS], header.Ident[elf.EI_DATA], header.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1
	prog := elf.Prog64{Type: uint32(elf.PT_NULL)}
	if interpreter != "" {
		prog = elf.Prog64{Type: uint32(elf.PT_INTERP), Off: interpAt, Filesz: uint64(len(interp))}
	}
	sections := []elf.Section64{
		{},
		{Name: 1, Type: uint32(elf.SHT_STRTAB), Off: dynstrAt, Size: uint64(len(dynstr))},
		{Name: 9, Type: uint32(elf.SHT_DYNAMIC), Off: dynamicAt, Size: uint64(16 * len(dynamic)), Link: 1, Entsize: 16},
		{Name: 18, Type: uint32(elf.SHT_STRTAB), Off: namesAt, Size: uint64(len(names))},
	}
	var b bytes.Buffer
	for _, part := range []any{header, prog, []byte(interp), []byte(dynstr), dynamic, []byte(names), sections} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			panic(err) // all parts have a fixed size
		}
	}
	return b.Bytes()
}

const x86 = elf.EM_X86_64

// tools is a host with programs outside of packages, in the directories of a user.
func tools(t *testing.T) string {
	root := unpack(t, debian, map[string]string{"etc/ld.so.conf": "# ours\ninclude ld.so.conf.d/*.conf\n", "etc/ld.so.conf.d/local.conf": "/opt/lib:/opt/more\n"})
	for name, content := range map[string][]byte{
		"cache/crun":                           binaryOf(x86, "/lib64/ld.so", "$ORIGIN/../own", "libown.so", "libyajl.so", "libc.so.6"),
		"own/libown.so":                        binaryOf(x86, "", "", "libmore.so", "libown.so"), // it needs itself
		"opt/lib/libmore.so":                   binaryOf(elf.EM_AARCH64, "", ""),                 // for another machine
		"opt/more/libmore.so.1":                binaryOf(x86, "", "", "libc.so.6"),
		"usr/lib/libc.so.6":                    binaryOf(x86, "", ""),
		"usr/lib/libyajl.so":                   binaryOf(x86, "", ""),
		"usr/lib64/ld.so":                      binaryOf(x86, "", ""),
		"cache/debian":                         binaryOf(x86, "", "", "libmulti.so"),
		"usr/lib/x86_64-linux-gnu/libmulti.so": binaryOf(x86, "", "", "libc.so.6"),
		"cache/broken":                         binaryOf(x86, "/lib64/ld.so", "", "libnone.so"),
		"cache/no-interpreter":                 binaryOf(x86, "/lib64/none.so", ""),
		"cache/cut-off":                        binaryOf(x86, "/lib64/ld.so", "", "libc.so.6")[:100],
		"cache/other-machine":                  binaryOf(elf.EM_AARCH64, "", "", "libc.so.6"),
		"cache/absolute":                       binaryOf(x86, "", "", "/opt/more/libmore.so.1"),
		"cache/empty-directory":                binaryOf(x86, "", ":", "libc.so.6"),
		"cache/script-of-nobody":               []byte("#!   \n"),
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, content, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		"lib64": "/usr/lib64", "opt/more/libmore.so": "libmore.so.1", "bin/tool": "/etc/alternatives/tool", "etc/alternatives/tool": "/cache/crun", "loop": "/loop",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, file); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestLibraries(t *testing.T) {
	host := footprint.NewHost(tools(t))
	for _, tt := range []struct {
		program              string
		unpackaged, packages []string
	}{
		{"/cache/crun", []string{"/cache/crun", "/opt/more/libmore.so.1", "/own/libown.so", "/usr/lib64/ld.so"}, []string{"gcc-base", "libc", "libgcc", "yajl"}},
		{"/usr/bin/tool", []string{"/cache/crun", "/opt/more/libmore.so.1", "/own/libown.so", "/usr/lib64/ld.so"}, []string{"gcc-base", "libc", "libgcc", "yajl"}},
		{"/cache/absolute", []string{"/cache/absolute", "/opt/more/libmore.so.1"}, []string{"gcc-base", "libc", "libgcc"}},
		{"/cache/debian", []string{"/cache/debian", "/usr/lib/x86_64-linux-gnu/libmulti.so"}, []string{"gcc-base", "libc", "libgcc"}},
		{"/cache/empty-directory", []string{"/cache/empty-directory"}, []string{"gcc-base", "libc", "libgcc"}},
	} {
		f, err := host.Of([]string{tt.program})
		if err != nil {
			t.Fatalf("%s: %v", tt.program, err)
		}
		if !slices.Equal(f.Unpackaged, tt.unpackaged) || !slices.Equal(names(f.Packages, all), tt.packages) {
			t.Errorf("%s has the files %q and the packages %q; want %q and %q", tt.program, f.Unpackaged, names(f.Packages, all), tt.unpackaged, tt.packages)
		}
		// runtime needs yajl, too.
		if added := names(f.Packages, added); len(added) > 0 {
			t.Errorf("%s adds the packages %q", tt.program, added)
		}
	}
}

func TestUnknownLibraries(t *testing.T) {
	host := footprint.NewHost(tools(t))
	for program, want := range map[string]string{
		"/cache/broken":           "/cache/broken needs the library libnone.so, which is in none of /opt/lib, /opt/more, /lib/x86_64-linux-gnu, /usr/lib/x86_64-linux-gnu, /lib,",
		"/cache/no-interpreter":   "the dynamic linker of /cache/no-interpreter",
		"/cache/cut-off":          "/cache/cut-off",
		"/cache/other-machine":    "needs the library libc.so.6",
		"/cache/script-of-nobody": "the name of the interpreter is missing",
		"/loop":                   "too many levels of symbolic links",
	} {
		if _, err := host.Of([]string{program}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error of %s is %v, want one with %q", program, err, want)
		}
	}
}
