package debian

import (
	"debug/elf"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/linker"
)

// closure is the part of a tree that programs need: their files, the libraries that the dynamic linker loads, and the links to
// them. It imitates glibc's linker without its cache: ld.so(8).
type closure struct {
	tree  *tree
	arch  architecture
	files map[string]bool // paths without links, and links
	given string          // an interpreter that the image has from another source
}

func newClosure(t *tree, arch architecture, interpreter string) *closure {
	return &closure{tree: t, arch: arch, files: map[string]bool{}, given: interpreter}
}

// add adds a file and its dependencies.
func (c *closure) add(name string) error {
	file, links, err := c.tree.resolve(name)
	if err != nil {
		return err
	}
	for _, l := range links {
		c.files[l] = true
	}
	if c.files[file] {
		return nil
	}
	c.files[file] = true
	content, err := c.tree.open(file)
	if err != nil {
		return err
	}
	needs, err := linker.Read(content, "/"+path.Dir(file))
	if err == nil {
		err = c.addNeeds(needs)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// addNeeds adds the interpreter and the libraries of a file.
func (c *closure) addNeeds(f linker.File) error {
	if f.Machine != elf.EM_NONE && f.Machine != c.arch.machine {
		return fmt.Errorf("it is for %v, not for %v", f.Machine, c.arch.machine)
	}
	if f.Interpreter != "" && f.Interpreter != c.given {
		if err := c.add(f.Interpreter); err != nil {
			return err
		}
	}
	dirs := append(f.Dirs, "/lib/"+c.arch.triplet, "/usr/lib/"+c.arch.triplet, "/lib", "/usr/lib")
	for _, library := range f.Libraries {
		if err := c.addLibrary(library, dirs); err != nil {
			return err
		}
	}
	return nil
}

func (c *closure) addLibrary(library string, dirs []string) error {
	if strings.Contains(library, "/") {
		return c.add(library)
	}
	for _, dir := range dirs {
		if file := path.Join(dir, library); c.tree.has(file) {
			return c.add(file)
		}
	}
	return fmt.Errorf("library %s: %w in any package", library, fs.ErrNotExist)
}

// list returns the sorted paths.
func (c *closure) list() []string { return slices.Sorted(maps.Keys(c.files)) }

// architecture has the properties of an architecture.
type architecture struct {
	machine elf.Machine
	triplet string // the directory of libraries
}

// architectures have an image. The keys are Go's names, which are also Debian's.
var architectures = map[string]architecture{
	"amd64":   {elf.EM_X86_64, "x86_64-linux-gnu"},
	"arm64":   {elf.EM_AARCH64, "aarch64-linux-gnu"},
	"riscv64": {elf.EM_RISCV, "riscv64-linux-gnu"},
}

// Architectures lists the architectures with an image, by Go's names.
func Architectures() []string { return slices.Sorted(maps.Keys(architectures)) }
