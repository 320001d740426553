// Package binfmt finds the interpreter that the kernel starts for a program of another architecture. A trial under emulation measures the emulator.
package binfmt

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Handler is an interpreter that the kernel starts for programs of another format (binfmt_misc), such as QEMU for programs of another
// architecture. Documentation/admin-guide/binfmt-misc.rst describes it.
type Handler struct {
	Name        string
	Interpreter string // its path
	// Flags are letters. F means that the kernel has opened the interpreter at the registration. Without it the kernel looks for
	// the path in the container.
	Flags string
}

// ErrNotMounted reports that the registrations of the kernel cannot be read.
var ErrNotMounted = errors.New("binfmt_misc is not mounted; mount -t binfmt_misc none /proc/sys/fs/binfmt_misc makes the emulators of this host visible")

// Find returns the enabled handler below root for a program with this beginning. The error wraps fs.ErrNotExist if none is
// registered, and ErrNotMounted if the registrations are not visible. Of several handlers for the program it returns the first in
// the order of names.
func Find(root string, program []byte) (Handler, error) {
	dir := filepath.Join(root, "proc/sys/fs/binfmt_misc")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return Handler{}, fmt.Errorf("read the kernel's handlers of programs: %w", err) // without the directory the kernel has none
	}
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Handler{}, ErrNotMounted
	case err != nil:
		return Handler{}, fmt.Errorf("read the kernel's handlers of programs: %w", err)
	case strings.TrimSpace(string(status)) != "enabled":
		return Handler{}, fmt.Errorf("binfmt_misc is disabled: %w", fs.ErrNotExist)
	}
	for _, e := range entries {
		if e.Name() == "status" || e.Name() == "register" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was removed meanwhile
		}
		if err != nil {
			return Handler{}, fmt.Errorf("read a handler of programs: %w", err)
		}
		if r := parseRegistration(text); r.enabled && r.matches(program) {
			return Handler{Name: e.Name(), Interpreter: r.interpreter, Flags: r.flags}, nil
		}
	}
	return Handler{}, fmt.Errorf("a handler for the program: %w", fs.ErrNotExist)
}

// registration is a file of binfmt_misc.
type registration struct {
	enabled            bool
	interpreter, flags string
	offset             int
	magic, mask        []byte // without magic it handles file names
}

// parseRegistration reads a registration. It ignores unknown lines. A line that cannot be read leaves its field empty, and the
// registration matches nothing.
func parseRegistration(text []byte) registration {
	var r registration
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), " ")
		var err error
		switch key {
		case "enabled":
			r.enabled = true
		case "interpreter":
			r.interpreter = value
		case "flags:":
			r.flags = strings.TrimSpace(value)
		case "offset":
			r.offset, err = strconv.Atoi(value)
		case "magic":
			r.magic, err = hex.DecodeString(value)
		case "mask":
			r.mask, err = hex.DecodeString(value)
		}
		if err != nil {
			return registration{}
		}
	}
	return r
}

// matches reports whether the kernel starts the interpreter for a program with this beginning.
func (r registration) matches(program []byte) bool {
	if len(r.magic) == 0 || r.offset < 0 || r.offset+len(r.magic) > len(program) || len(r.mask) > 0 && len(r.mask) != len(r.magic) {
		return false
	}
	for i, want := range r.magic {
		got := program[r.offset+i]
		if len(r.mask) > 0 {
			got, want = got&r.mask[i], want&r.mask[i]
		}
		if got != want {
			return false
		}
	}
	return true
}
