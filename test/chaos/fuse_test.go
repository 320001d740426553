package chaos

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// fuse is a file system with one program, like one on a network. After stop its server answers no request.
type fuse struct {
	h       *host
	path    string // of the program
	mount   string
	dev     *os.File
	program []byte
	stopped atomic.Bool
	closed  bool
}

// The requests of FUSE that a program needs: see include/uapi/linux/fuse.h.
const (
	fuseLookup, fuseForget, fuseGetattr           = 1, 2, 3
	fuseOpen, fuseRead, fuseStatfs                = 14, 15, 17
	fuseRelease, fuseFlush, fuseInit              = 18, 25, 26
	fuseOpendir, fuseReaddir, fuseReleaseD        = 27, 28, 29
	fuseInterrupt, fuseBatchForget                = 36, 42
	fuseRoot, fuseFile                     uint64 = 1, 2
)

// mountFuse mounts a file system that has a copy of a program.
func (h *host) mountFuse(program string) *fuse {
	h.Helper()
	text, err := os.ReadFile(program)
	if err != nil {
		h.Fatal(err)
	}
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		h.skip("open /dev/fuse: %v", err)
	}
	f := &fuse{h: h, program: text, mount: h.newDir()}
	f.path = filepath.Join(f.mount, "runtime")
	options := fmt.Sprintf("fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other", fd)
	if err := unix.Mount("chaos", f.mount, "fuse", unix.MS_NODEV, options); err != nil {
		h.skip("mount a FUSE file system: %v", err)
	}
	f.dev = os.NewFile(uintptr(fd), "fuse") // after the mount, because before it the kernel never reports the device as readable
	go f.serve()
	h.Cleanup(f.close)
	return f
}

// stop makes all further requests wait.
func (f *fuse) stop() { f.stopped.Store(true) }

// close ends all waiting requests with an error, and removes the file system. It is idempotent.
func (f *fuse) close() {
	f.h.Helper()
	if f.closed {
		return
	}
	f.closed = true
	if err := errors.Join(f.dev.Close(), unix.Unmount(f.mount, unix.MNT_DETACH)); err != nil {
		f.h.Fatal(err)
	}
}

// serve answers requests until the device is closed.
func (f *fuse) serve() {
	request := make([]byte, 1<<20)
	for {
		n, err := f.dev.Read(request)
		switch {
		case errors.Is(err, syscall.EINTR) || errors.Is(err, syscall.ENOENT):
			continue
		case err != nil:
			return
		case f.stopped.Load() || n < 40:
			continue
		}
		opcode, unique, node := binary.NativeEndian.Uint32(request[4:]), binary.NativeEndian.Uint64(request[8:]), binary.NativeEndian.Uint64(request[16:])
		answer, errno := f.answer(opcode, node, request[40:n])
		if opcode == fuseForget || opcode == fuseBatchForget || opcode == fuseInterrupt {
			continue
		}
		var out bytes.Buffer
		put := func(v any) { _ = binary.Write(&out, binary.NativeEndian, v) } // a buffer never fails
		put(uint32(16 + len(answer)))
		put(-int32(errno))
		put(unique)
		out.Write(answer)
		_, _ = f.dev.Write(out.Bytes()) // the caller may have been killed
	}
}

func (f *fuse) answer(opcode uint32, node uint64, body []byte) ([]byte, syscall.Errno) {
	var out bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			_ = binary.Write(&out, binary.NativeEndian, v)
		}
	}
	attr := func(node uint64) {
		mode, size := uint32(unix.S_IFDIR|0o755), uint64(0)
		if node == fuseFile {
			mode, size = unix.S_IFREG|0o755, uint64(len(f.program))
		}
		put(node, size, (size+511)/512, [3]uint64{}, [3]uint32{}, mode, uint32(1), [2]uint32{}, uint32(0), uint32(4096), uint32(0))
	}
	switch opcode {
	case fuseInit:
		put(uint32(7), uint32(23), uint32(1<<17), uint32(0), uint16(16), uint16(12), uint32(1<<17), uint32(1), [9]uint32{})
	case fuseLookup:
		if name := string(bytes.TrimRight(body, "\x00")); name != filepath.Base(f.path) {
			return nil, syscall.ENOENT
		}
		put(fuseFile, uint64(0), [2]uint64{}, [2]uint32{}) // valid for no time: each use sends a request
		attr(fuseFile)
	case fuseGetattr:
		put(uint64(0), uint32(0), uint32(0))
		attr(node)
	case fuseOpen, fuseOpendir:
		put(uint64(0), uint32(0), uint32(0))
	case fuseRead:
		offset, size := binary.NativeEndian.Uint64(body[8:]), uint64(binary.NativeEndian.Uint32(body[16:]))
		if end := uint64(len(f.program)); offset < end {
			out.Write(f.program[offset:min(end, offset+size)])
		}
	case fuseStatfs:
		put([5]uint64{}, uint32(4096), uint32(255), uint32(4096), [7]uint32{})
	case fuseReaddir, fuseRelease, fuseReleaseD, fuseFlush:
	default:
		return nil, syscall.ENOSYS
	}
	return out.Bytes(), 0
}
