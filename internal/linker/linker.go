// Package linker reads the files that a program needs before it runs, from the headers of the program: the interpreter of a script; the
// dynamic linker of an ELF file, its libraries and their directories. It does not know libraries that a program opens while it
// runs (dlopen). Importers find the files, because one of them looks in a host and the other in an archive of packages.
package linker

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// File is the needs of a file. It is zero for a file that is neither a script nor an ELF file.
type File struct {
	// Class and Machine are zero for a script.
	Class   elf.Class
	Machine elf.Machine
	// Interpreter is the path of the dynamic linker (PT_INTERP), or of the interpreter of a script. It is empty for a static program
	// and for a library.
	Interpreter string
	// Libraries are the names of libraries (DT_NEEDED). A name with a slash is a path.
	Libraries []string
	// Dirs are the file's own directories of libraries (DT_RUNPATH, DT_RPATH), with $ORIGIN replaced.
	Dirs []string
}

// maxInterpreter bounds the path of a dynamic linker, in bytes.
const maxInterpreter = 4096

// scriptStart is the part of a script that the kernel reads, in bytes: execve(2).
const scriptStart = 256

// Read reads the needs of a file in the directory dir.
func Read(content io.ReaderAt, dir string) (File, error) {
	start := make([]byte, scriptStart)
	n, err := content.ReadAt(start, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return File{}, err
	}
	start = start[:n]
	if bytes.HasPrefix(start, []byte(elf.ELFMAG)) {
		return readELF(content, dir)
	}
	script, ok := bytes.CutPrefix(start, []byte("#!"))
	if !ok {
		return File{}, nil
	}
	line, _, _ := bytes.Cut(script, []byte("\n"))
	words := bytes.Fields(line)
	if len(words) == 0 {
		return File{}, errors.New("the name of the interpreter is missing")
	}
	return File{Interpreter: string(words[0])}, nil
}

func readELF(content io.ReaderAt, dir string) (File, error) {
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
