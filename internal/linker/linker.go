// Package linker reads the needs of an ELF file from its headers: the dynamic linker, the libraries, and the directories in
// which the file asks for them. It does not know libraries that a program opens while it runs (dlopen).
package linker

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"path"
	"strings"
)

// File is an ELF file's needs.
type File struct {
	Class   elf.Class
	Machine elf.Machine
	// Interpreter is the path of the dynamic linker (PT_INTERP). It is empty for a static program and for a library.
	Interpreter string
	// Libraries are the names of libraries (DT_NEEDED). A name with a slash is a path.
	Libraries []string
	// Dirs are the file's own directories of libraries (DT_RUNPATH, DT_RPATH), with $ORIGIN replaced.
	Dirs []string
}

// maxInterpreter bounds the path of a dynamic linker, in bytes.
const maxInterpreter = 4096

// Is reports whether a file begins like an ELF file.
func Is(beginning []byte) bool { return bytes.HasPrefix(beginning, []byte(elf.ELFMAG)) }

// Read reads the headers of a file in the directory dir.
func Read(content io.ReaderAt, dir string) (File, error) {
	f, err := elf.NewFile(content)
	if err != nil {
		return File{}, err
	}
	out := File{Class: f.Class, Machine: f.Machine}
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		interpreter := make([]byte, min(p.Filesz, maxInterpreter))
		if _, err := io.ReadFull(p.Open(), interpreter); err != nil {
			return File{}, fmt.Errorf("read the name of the dynamic linker: %w", err)
		}
		out.Interpreter = string(bytes.TrimRight(interpreter, "\x00"))
	}
	if out.Libraries, err = f.ImportedLibraries(); err != nil {
		return File{}, fmt.Errorf("read the names of libraries: %w", err)
	}
	origin := strings.NewReplacer("${ORIGIN}", dir, "$ORIGIN", dir)
	for _, tag := range []elf.DynTag{elf.DT_RUNPATH, elf.DT_RPATH} {
		lists, err := f.DynString(tag)
		if err != nil {
			return File{}, fmt.Errorf("read its search path of libraries: %w", err)
		}
		for _, list := range lists {
			for d := range strings.SplitSeq(list, ":") {
				if d != "" { // the working directory
					out.Dirs = append(out.Dirs, path.Clean(origin.Replace(d)))
				}
			}
		}
	}
	return out, nil
}
