package managed

import (
	"os"
	"sync"
)

// maxLog bounds a file of a rotation, in bytes.
const maxLog = 1 << 20

// rotation is a writer to a file of limited size. When the file is full it becomes the old file, and the earlier old file disappears. A file
// that cannot be written loses text, and no program waits for it.
type rotation struct {
	file string

	mu   sync.Mutex
	out  *os.File // nil before the first write, and after an error
	size int
}

func (r *rotation) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for rest := p; len(rest) > 0; {
		if r.out == nil || r.size >= maxLog {
			r.turn()
		}
		part := rest[:min(len(rest), maxLog-r.size)]
		if r.out != nil {
			_, _ = r.out.Write(part)
		}
		r.size += len(part)
		rest = rest[len(part):]
	}
	return len(p), nil
}

// turn begins a new file. r.mu is held.
func (r *rotation) turn() {
	if r.out != nil {
		_ = r.out.Close()
	}
	_ = os.Rename(r.file, r.file+".old") // there may be none
	r.out, _ = os.OpenFile(r.file, os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
	r.size = 0
}

// last returns the last bytes of the text, at most n.
func (r *rotation) last(n int) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.out == nil {
		return nil
	}
	text := lastOf(r.file, n)
	if len(text) < n {
		text = append(lastOf(r.file+".old", n-len(text)), text...)
	}
	return text
}

// lastOf returns the last bytes of a file, at most n. It is empty without a file.
func lastOf(name string, n int) []byte {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // it is only read from
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	text := make([]byte, min(int64(n), info.Size()))
	got, _ := f.ReadAt(text, info.Size()-int64(len(text)))
	return text[:got]
}

func (r *rotation) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.out == nil {
		return nil
	}
	err := r.out.Close()
	r.out = nil
	return err
}
