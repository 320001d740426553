package host

import (
	"bytes"
	"errors"
	"path"
	"strconv"

	"golang.org/x/sys/unix"
)

// source is a file of the kernel that is kept open and read again and again from its
// beginning. A nil source is a file that is not there. Plain descriptors are used
// because os.File would put files that can be polled, as those of PSI and sysfs can,
// under the scheduler's watch.
type source struct{ fd int }

// openSource opens a file if it can be read. PSI that is built in but switched off
// opens, and refuses to be read.
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

// read gives the beginning of the file by one call, nothing if it cannot be read. The
// kernel's short files come whole.
func (s *source) read(most int) []byte {
	buffer := make([]byte, most)
	return buffer[:s.readAt(buffer, 0)]
}

// readLong gives the beginning of a file whose entries the kernel hands out a few at a
// time, as those of /proc/cpuinfo.
func (s *source) readLong(most int) []byte {
	buffer := make([]byte, most)
	length := 0
	for length < most {
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

// sum adds up files that each hold one number.
func sum(sources []*source) int64 {
	var total int64
	for _, s := range sources {
		if n, err := strconv.ParseInt(string(bytes.TrimSpace(s.read(32))), 10, 64); err == nil {
			total += n
		}
	}
	return total
}

// meanMHz gives the mean of files that each hold a frequency in kHz, 0 if there are
// none.
func meanMHz(sources []*source) float64 {
	if len(sources) == 0 {
		return 0
	}
	return float64(sum(sources)) / float64(len(sources)) / 1000
}

// cpuTimes are from the line for all CPUs in /proc/stat, in ticks since boot.
type cpuTimes struct{ steal, total uint64 }

// parseCPUTimes reads the first line of /proc/stat: user, nice, system, idle, iowait,
// irq, softirq, steal; then the parts of user and nice that guests took, which do not
// count again.
func parseCPUTimes(text []byte) (times cpuTimes, ok bool) {
	const steal, count = 7, 8
	line, _, _ := bytes.Cut(text, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) < 1+count || string(fields[0]) != "cpu" {
		return cpuTimes{}, false
	}
	for i, field := range fields[1 : 1+count] {
		n, err := strconv.ParseUint(string(field), 10, 64)
		if err != nil {
			return cpuTimes{}, false
		}
		times.total += n
		if i == steal {
			times.steal = n
		}
	}
	return times, true
}

// parsePressure reads from a PSI file for how many microseconds since boot some task
// has waited.
func parsePressure(text []byte) (micros uint64, ok bool) {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	if !bytes.HasPrefix(line, []byte("some ")) {
		return 0, false
	}
	_, total, _ := bytes.Cut(line, []byte(" total="))
	n, err := strconv.ParseUint(string(total), 10, 64)
	return n, err == nil
}

// parseMHz gives the mean of the lines "cpu MHz" of /proc/cpuinfo, 0 if there are none.
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

// throttleFiles gives the counters of thermal throttling events, each event once: a
// core's at its first thread, a package's at its first CPU.
func (t tree) throttleFiles() []string {
	var files []string
	packages := map[string]bool{}
	for _, cpu := range t.onlineCPUs() {
		dir := "sys/devices/system/cpu/cpu" + strconv.Itoa(cpu)
		siblings := t.cpuList(path.Join(dir, "topology/thread_siblings_list"))
		if len(siblings) == 0 || siblings[0] == cpu {
			files = append(files, path.Join(dir, "thermal_throttle/core_throttle_count"))
		}
		if id := t.text(path.Join(dir, "topology/physical_package_id")); !packages[id] {
			packages[id] = true
			files = append(files, path.Join(dir, "thermal_throttle/package_throttle_count"))
		}
	}
	return files
}
