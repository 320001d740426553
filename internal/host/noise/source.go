package noise

import (
	"bytes"
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// source is an open file of the kernel for repeated reads from its beginning. A nil source is a missing file. It uses a plain
// descriptor, because os.File would add files that can be polled, such as PSI and sysfs, to Go's poller.
type source struct{ fd int }

// openSource opens a file and tests whether it can be read. If PSI is built in but disabled, open succeeds and read fails.
func openSource(name string) *source {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	s := &source{fd}
	if len(s.read(1)) == 0 {
		s.close()
		return nil
	}
	return s
}

// read returns the beginning of the file with one system call, or nothing after an error. That is enough for the kernel's short
// files.
func (s *source) read(limit int) []byte {
	buffer := make([]byte, limit)
	return buffer[:s.readAt(buffer, 0)]
}

// readLong returns the beginning of a file with several system calls, because one read of a file such as /proc/cpuinfo returns only a few
// entries.
func (s *source) readLong(limit int) []byte {
	buffer := make([]byte, limit)
	length := 0
	for length < limit {
		n := s.readAt(buffer[length:], int64(length))
		if n == 0 {
			break
		}
		length += n
	}
	return buffer[:length]
}

func (s *source) readAt(buffer []byte, offset int64) int {
	if s == nil {
		return 0
	}
	for {
		n, err := unix.Pread(s.fd, buffer, offset)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0
		default:
			return n
		}
	}
}

func (s *source) close() {
	if s != nil && s.fd >= 0 {
		_ = unix.Close(s.fd)
		s.fd = -1
	}
}

// sum returns the sum over files with one number each.
func sum(sources []*source) int64 {
	var total int64
	for _, s := range sources {
		if n, err := strconv.ParseInt(string(bytes.TrimSpace(s.read(32))), 10, 64); err == nil {
			total += n
		}
	}
	return total
}

// meanMHz returns the mean over files with a frequency in kHz each, or 0 without files.
func meanMHz(sources []*source) float64 {
	if len(sources) == 0 {
		return 0
	}
	return float64(sum(sources)) / float64(len(sources)) / 1000
}

// parsePressure reads the microseconds since boot while at least one task waited, from a PSI file.
func parsePressure(text []byte) (micros uint64, ok bool) {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	if !bytes.HasPrefix(line, []byte("some ")) {
		return 0, false
	}
	_, total, _ := bytes.Cut(line, []byte(" total="))
	n, err := strconv.ParseUint(string(total), 10, 64)
	return n, err == nil
}

// parseMHz returns the mean of the lines "cpu MHz" in /proc/cpuinfo, or 0 without such lines.
func parseMHz(text []byte) float64 {
	var total, count float64
	for line := range bytes.Lines(text) {
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || string(bytes.TrimSpace(name)) != "cpu MHz" {
			continue
		}
		if v, err := strconv.ParseFloat(string(bytes.TrimSpace(value)), 64); err == nil && v > 0 {
			total += v
			count++
		}
	}
	if count == 0 {
		return 0
	}
	return total / count
}
