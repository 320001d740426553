package image

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// MinimalCode is the exit code of the program in a minimal image. Runtimes report their own failures with other codes.
const MinimalCode = 42

// machine describes the minimal program of an architecture.
type machine struct {
	elf   elf.Machine
	class elf.Class
	flags uint32
	// code calls exit_group(MinimalCode), whatever the arguments of the program are.
	code []byte
}

// machines are the architectures of minimal images in Go's naming. The numbers of exit_group are from the kernel's tables
// (arch/*/entry/syscalls, asm-generic/unistd.h). The listings are the output of objdump.
var machines = map[string]machine{
	"386": {elf.EM_386, elf.ELFCLASS32, 0, []byte{
		0xbb, MinimalCode, 0, 0, 0, // mov $42, %ebx
		0xb8, 252, 0, 0, 0, // mov $252, %eax
		0xcd, 0x80, // int $0x80
	}},
	"amd64": {elf.EM_X86_64, elf.ELFCLASS64, 0, []byte{
		0xbf, MinimalCode, 0, 0, 0, // mov $42, %edi
		0xb8, 231, 0, 0, 0, // mov $231, %eax
		0x0f, 0x05, // syscall
	}},
	// The flags are EF_ARM_EABI_VER5. The kernel refuses other programs.
	"arm": {elf.EM_ARM, elf.ELFCLASS32, 0x0500_0000, words(
		0xe3a0_0000|MinimalCode, // mov r0, #42
		0xe3a0_70f8,             // mov r7, #248
		0xef00_0000,             // svc 0
	)},
	"arm64": {elf.EM_AARCH64, elf.ELFCLASS64, 0, words(
		0xd280_0000|MinimalCode<<5, // mov x0, #42
		0xd280_0bc8,                // mov x8, #94
		0xd400_0001,                // svc #0
	)},
	"riscv64": {elf.EM_RISCV, elf.ELFCLASS64, 0, words(
		0x0000_0513|MinimalCode<<20, // li a0, 42
		0x05e0_0893,                 // li a7, 94
		0x0000_0073,                 // ecall
	)},
}

// words encodes instructions of 32 bits.
func words(instructions ...uint32) (code []byte) {
	for _, i := range instructions {
		code = binary.LittleEndian.AppendUint32(code, i)
	}
	return code
}

// MinimalArchitectures lists the architectures of minimal images, in Go's naming.
func MinimalArchitectures() []string { return slices.Sorted(maps.Keys(machines)) }

// The only segment of a minimal program contains the whole file. Its address is above the kernel's vm.mmap_min_addr and aligned for
// pages of 64 KiB.
const (
	minimalAddress   = 0x40_0000
	minimalAlignment = 0x1_0000
)

// MinimalProgram returns a static ELF executable for an architecture. It exits at once with MinimalCode.
//
// It is generated, and not compiled, so that each binary of Touchstone has it for each architecture. A released binary may embed
// the probe for its own architecture only.
func MinimalProgram(arch string) ([]byte, error) {
	m, ok := machines[arch]
	if !ok {
		return nil, fmt.Errorf("make a program for architecture %q: the known ones are %q", arch, MinimalArchitectures())
	}
	headers := m.headers(0)
	program := append(m.headers(uint64(len(headers)+len(m.code))), m.code...)
	return program, nil
}

// headers returns the headers of a program whose file has size bytes: the header of the file, a segment for its content, and
// a stack without permission to execute.
func (m machine) headers(size uint64) []byte {
	ident := [elf.EI_NIDENT]byte{elf.EI_CLASS: byte(m.class), elf.EI_DATA: byte(elf.ELFDATA2LSB), elf.EI_VERSION: byte(elf.EV_CURRENT)}
	copy(ident[:], elf.ELFMAG)
	const segments = 2
	var file, load, stack any
	if m.class == elf.ELFCLASS64 {
		head, segment := uint64(binary.Size(elf.Header64{})), uint64(binary.Size(elf.Prog64{}))
		file = elf.Header64{
			Ident: ident, Type: uint16(elf.ET_EXEC), Machine: uint16(m.elf), Version: uint32(elf.EV_CURRENT),
			Entry: minimalAddress + head + segments*segment, Phoff: head, Flags: m.flags, Ehsize: uint16(head), Phentsize: uint16(segment), Phnum: segments,
		}
		load = elf.Prog64{
			Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X),
			Vaddr: minimalAddress, Paddr: minimalAddress, Filesz: size, Memsz: size, Align: minimalAlignment,
		}
		stack = elf.Prog64{Type: uint32(elf.PT_GNU_STACK), Flags: uint32(elf.PF_R | elf.PF_W)}
	} else {
		head, segment := uint32(binary.Size(elf.Header32{})), uint32(binary.Size(elf.Prog32{}))
		file = elf.Header32{
			Ident: ident, Type: uint16(elf.ET_EXEC), Machine: uint16(m.elf), Version: uint32(elf.EV_CURRENT),
			Entry: minimalAddress + head + segments*segment, Phoff: head, Flags: m.flags, Ehsize: uint16(head), Phentsize: uint16(segment), Phnum: segments,
		}
		load = elf.Prog32{
			Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X),
			Vaddr: minimalAddress, Paddr: minimalAddress, Filesz: uint32(size), Memsz: uint32(size), Align: minimalAlignment,
		}
		stack = elf.Prog32{Type: uint32(elf.PT_GNU_STACK), Flags: uint32(elf.PF_R | elf.PF_W)}
	}
	var out bytes.Buffer
	for _, header := range []any{file, load, stack} {
		_ = binary.Write(&out, binary.LittleEndian, header) // writes to memory do not fail
	}
	return out.Bytes()
}

// Minimal publishes the minimal image for an architecture, and writes its file system to the new directory dir. It returns the
// reference for Forget, and the program.
func (r *Registry) Minimal(ctx context.Context, arch, dir string) (ref string, program []byte, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("create a minimal image for %s: %w", arch, err)
		}
	}()
	program, err = MinimalProgram(arch)
	if err != nil {
		return "", nil, err
	}
	image, err := imageOf(arch, program)
	if err != nil {
		return "", nil, err
	}
	if err := unpackImage(ctx, image, dir, limits{bytes: 1 << 20, entries: 100}); err != nil {
		return "", nil, err
	}
	r.mu.Lock()
	r.made++
	tag := fmt.Sprintf("minimal:%d", r.made)
	r.mu.Unlock()
	ref, err = r.Publish(ctx, tag, image)
	return ref, program, err
}
