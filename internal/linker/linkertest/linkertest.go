// Package linkertest makes ELF files for tests of the linker's importers.
package linkertest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// File makes a 64-bit ELF file without code: a program with an interpreter, or a library without one. runpath may be empty.
func File(machine elf.Machine, interpreter, runpath string, libraries ...string) string {
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

	offset := uint64(headerSize + progSize)
	place := func(size int) uint64 {
		start := offset
		offset += uint64(size)
		return start
	}
	interpAt, dynstrAt := place(len(interp)), place(len(dynstr))
	dynamicAt, namesAt := place(16*len(dynamic)), place(len(names))
	header := elf.Header64{
		Type: uint16(elf.ET_DYN), Machine: uint16(machine), Version: 1, Phoff: headerSize, Shoff: offset, Ehsize: headerSize, Phentsize: progSize,
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
		_ = binary.Write(&b, binary.LittleEndian, part) // all parts have a fixed size, and writes to memory do not fail
	}
	return b.String()
}
