package enginetest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// FileServer serves one executable file by FUSE, until Stall. It imitates the program of a user on a network file system.
type FileServer struct {
	// Path is the file.
	Path string
	// Stalled receives an item for each request that is not answered, and holds the first of them.
	Stalled chan struct{}

	device  *os.File
	content []byte
	ended   chan struct{}
	release func()

	mu      sync.Mutex
	stalled bool
}

// Serve mounts the file system. The end of the test releases and removes it.
func Serve(t *testing.T, content string) *FileServer {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounts a file system, which needs root")
	}
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ENOENT) {
		t.Skip("the kernel has no FUSE")
	}
	must.Do(t, err)
	dir := t.TempDir()
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd)
	if err := unix.Mount("touchstone-test", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		t.Fatal(errors.Join(err, unix.Close(fd)))
	}
	s := &FileServer{
		Path: filepath.Join(dir, "program"), Stalled: make(chan struct{}, 100),
		device: os.NewFile(uintptr(fd), "/dev/fuse"), content: []byte(content), ended: make(chan struct{}),
	}
	s.release = sync.OnceFunc(func() {
		_ = s.device.Close() // the kernel ends all requests
		<-s.ended
		Check(t, unix.Unmount(dir, unix.MNT_DETACH))
	})
	go s.serve()
	t.Cleanup(s.Release)
	// The kernel's first request begins the session. It must not be the one that stalls.
	if _, err := os.Stat(s.Path); err != nil {
		t.Fatal(err)
	}
	return s
}

// Stall ends all answers. A process that waits for one cannot be killed.
func (s *FileServer) Stall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stalled = true
}

// Release ends and removes the file system. Every waiting process goes on with an error. It is idempotent.
func (s *FileServer) Release() { s.release() }

// The requests of FUSE that need an answer here, by number.
const (
	fuseLookup, fuseForget, fuseGetattr, fuseOpen, fuseRead, fuseStatfs, fuseRelease      = 1, 2, 3, 14, 15, 17, 18
	fuseFlush, fuseInit, fuseOpenDir, fuseReadDir, fuseRelease2, fuseInterrupt, fuseBatch = 25, 26, 27, 28, 29, 36, 42
)

const fuseHeader = 40 // bytes before a request

func (s *FileServer) serve() {
	defer close(s.ended)
	request := make([]byte, 1<<17)
	for {
		n, err := s.device.Read(request)
		interrupted := errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENOENT)
		if err != nil && !interrupted {
			return
		}
		if interrupted || n < fuseHeader {
			continue
		}
		operation := binary.NativeEndian.Uint32(request[4:])
		if operation == fuseForget || operation == fuseInterrupt || operation == fuseBatch {
			continue // without an answer
		}
		s.mu.Lock()
		stalled := s.stalled
		s.mu.Unlock()
		if stalled && operation != fuseRelease && operation != fuseRelease2 { // the kernel does not wait for the answer to a release
			select {
			case s.Stalled <- struct{}{}:
			default: // the test counts fewer
			}
			continue
		}
		body, errno := s.answer(operation, binary.NativeEndian.Uint64(request[16:]), request[fuseHeader:n])
		answer := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body)))
		answer = binary.NativeEndian.AppendUint32(answer, uint32(-int32(errno)))
		answer = append(append(answer, request[8:16]...), body...)
		_, _ = s.device.Write(answer) // the request may have been interrupted
	}
}

// answer returns the body of an answer, or an error number.
func (s *FileServer) answer(operation uint32, node uint64, request []byte) ([]byte, unix.Errno) {
	const root, program = 1, 2
	switch operation {
	case fuseInit:
		body := make([]byte, 64)
		binary.NativeEndian.PutUint32(body[0:], 7)
		binary.NativeEndian.PutUint32(body[4:], 31)
		binary.NativeEndian.PutUint32(body[20:], 4096) // the longest write
		return body, 0
	case fuseLookup:
		if node != root || string(request) != filepath.Base(s.Path)+"\x00" {
			return nil, unix.ENOENT
		}
		// Without a time for validity the kernel repeats the request for each use of the file.
		return append(binary.NativeEndian.AppendUint64(nil, program), append(make([]byte, 32), s.attributes(program)...)...), 0
	case fuseGetattr:
		return append(make([]byte, 16), s.attributes(node)...), 0
	case fuseOpen, fuseOpenDir:
		return make([]byte, 16), 0
	case fuseRead:
		offset := min(binary.NativeEndian.Uint64(request[8:]), uint64(len(s.content)))
		size := uint64(binary.NativeEndian.Uint32(request[16:]))
		return s.content[offset:min(offset+size, uint64(len(s.content)))], 0
	case fuseStatfs:
		return make([]byte, 80), 0
	case fuseRelease, fuseRelease2, fuseFlush, fuseReadDir:
		return nil, 0
	}
	return nil, unix.ENOSYS
}

// attributes encodes the attributes of the directory or the file.
func (s *FileServer) attributes(node uint64) []byte {
	mode, size := uint32(unix.S_IFDIR|0o755), 0
	if node != 1 {
		mode, size = unix.S_IFREG|0o755, len(s.content)
	}
	body := make([]byte, 88)
	binary.NativeEndian.PutUint64(body[0:], node)
	binary.NativeEndian.PutUint64(body[8:], uint64(size))
	binary.NativeEndian.PutUint32(body[60:], mode)
	binary.NativeEndian.PutUint32(body[64:], 1) // links
	return body
}
