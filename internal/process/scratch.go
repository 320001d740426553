package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// scratchSize bounds the files of a Scratch together, in bytes.
const scratchSize = 16 << 20

// longestPrint bounds the output of a command that is kept in memory, in bytes. It is a state of a few lines, or a message.
const longestPrint = 1 << 20

// Scratch is a directory in memory for the output and the logs of runtimes. A program that writes without end gets the error "no space
// left" at scratchSize, and no more of the host's memory.
//
// Without a private mount namespace the directory is an ordinary one, and only the files of Blank are limited.
type Scratch struct {
	l       *Launcher
	dir     string   // as children see it
	root    *os.File // the same for this program, which does not see the children's mounts
	mounted bool
	blanks  sync.Pool // empty files of Blank
}

// NewScratch makes a directory, whose parent exists.
func (l *Launcher) NewScratch(dir string) (*Scratch, error) {
	s := &Scratch{l: l, dir: dir, mounted: l.private}
	err := os.Mkdir(dir, 0o700)
	if err == nil && s.mounted {
		err = l.InNamespace(func() (err error) {
			options := "mode=700,size=" + strconv.Itoa(scratchSize)
			if err = unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, options); err == nil {
				s.root, err = os.Open(dir)
			}
			return err
		})
	} else if err == nil {
		s.root, err = os.Open(dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a directory of limited size: %w", err), s.Close())
	}
	return s, nil
}

// Dir is the path of the directory for children.
func (s *Scratch) Dir() string { return s.dir }

// Path is the path of a file in the directory for this program.
func (s *Scratch) Path(name string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", s.root.Fd(), name)
}

// Blank returns an empty file without a name for the output of a command. A file is better than a pipe in a timed region: a pipe would need a
// reader beside the command, which is one more thread to wake.
func (s *Scratch) Blank() (*os.File, error) {
	if file, ok := s.blanks.Get().(*os.File); ok {
		return file, nil
	}
	if !s.mounted {
		return NewBlank()
	}
	fd, err := unix.Openat(int(s.root.Fd()), ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make a file for output: %w", os.NewSyscallError("openat", err))
	}
	return os.NewFile(uintptr(fd), "printed"), nil
}

// Printed returns the content of a file of Blank, and releases the file. Most commands print nothing, and their file is used again.
func (s *Scratch) Printed(file *os.File) []byte {
	text := Printed(file)
	if end, _ := file.Seek(0, io.SeekCurrent); end == 0 && len(text) == 0 {
		s.blanks.Put(file)
	} else {
		_ = file.Close() // it is in memory
	}
	return text
}

// Close removes the directory. It is idempotent.
func (s *Scratch) Close() error {
	if s.root == nil {
		return nil
	}
	var err error
	if s.mounted {
		err = s.l.InNamespace(func() error { return unix.Unmount(s.dir, unix.MNT_DETACH) })
	}
	err = errors.Join(err, s.root.Close(), os.RemoveAll(s.dir))
	s.root = nil
	return err
}

// NewBlank returns a file in memory for the output of a command. It cannot grow beyond longestPrint.
func NewBlank() (*os.File, error) {
	fd, err := unix.MemfdCreate("printed", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("make a file for output: %w", os.NewSyscallError("memfd_create", err))
	}
	file := os.NewFile(uintptr(fd), "printed")
	// The seal forbids growth, so the file has its final size from the beginning, and takes no memory for it.
	if err = file.Truncate(longestPrint); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_GROW)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("limit a file for output: %w", err), file.Close())
	}
	return file, nil
}

// Printed returns the output in a file of NewBlank. A read error only shortens a message.
func Printed(file *os.File) []byte {
	first := []byte{0}
	if n, _ := file.ReadAt(first, 0); n == 0 || first[0] == 0 {
		return nil
	}
	text, _ := io.ReadAll(io.NewSectionReader(file, 0, longestPrint))
	return bytes.TrimRight(text, "\x00")
}
