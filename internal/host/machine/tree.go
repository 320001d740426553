// Package machine reads the kernel's description of a machine: /proc, /sys and /etc below a root directory, so that tests can use copies
// of real machines.
//
// It has the files that more than one package below host reads. A missing value is empty and not an error. Where the reason matters, [Tree.Value]
// returns it.
package machine

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"unicode"
)

// Tree is a machine's file system.
type Tree struct{ fs.FS }

// At returns the file system below a root: "/", or a copy in tests.
func At(root string) Tree { return Tree{os.DirFS(root)} }

// Text returns the content of a file as one line. It trims blanks, line ends, and the zero byte at the end of device-tree strings. The
// text is empty if the file cannot be read.
func (t Tree) Text(name string) string {
	b, err := fs.ReadFile(t.FS, name)
	if err != nil {
		return ""
	}
	return oneLine(string(b))
}

// oneLine is a text without blanks and control characters at its ends and control characters in it.
func oneLine(text string) string { return strings.TrimSpace(blank(text)) }

// blank replaces control characters with blanks, because reports show each value on one line.
func blank(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// Lines returns the lines of a file, or one empty line if it cannot be read.
func (t Tree) Lines(name string) []string {
	b, _ := fs.ReadFile(t.FS, name)
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	for i, line := range lines {
		lines[i] = blank(line)
	}
	return lines
}

// Glob returns the files that match a pattern, in alphabetical order.
func (t Tree) Glob(pattern string) []string {
	names, _ := fs.Glob(t.FS, pattern) // fails only for a malformed pattern
	return names
}

// Exists reports whether a file exists and can be seen.
func (t Tree) Exists(name string) bool {
	_, err := fs.Stat(t.FS, name)
	return err == nil
}

// Number returns the number in a file, or nil.
func (t Tree) Number(name string) *int64 {
	n, err := strconv.ParseInt(t.Text(name), 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// Selected returns the choice in brackets: "madvise" from "always [madvise] never".
func Selected(text string) string {
	_, rest, _ := strings.Cut(text, "[")
	choice, _, ok := strings.Cut(rest, "]")
	if !ok {
		return ""
	}
	return choice
}

// Choice is Selected, or the whole text without brackets.
func Choice(text string) string {
	if one := Selected(text); one != "" {
		return one
	}
	return text
}

// Unknown is the reason why the kernel of a machine does not show a value.
type Unknown string

// Error is the reason.
func (u Unknown) Error() string { return string(u) }

// Value returns the content of a file as one line. If the file does not exist, the error is Unknown with the given reason. It is also Unknown if
// the file is empty. Other errors mean that the file cannot be read.
func (t Tree) Value(name, reason string) (string, error) {
	b, err := fs.ReadFile(t.FS, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", Unknown(reason)
	case err != nil:
		return "", err
	}
	if text := oneLine(string(b)); text != "" {
		return text, nil
	}
	return "", Unknown("/" + name + " is empty")
}
