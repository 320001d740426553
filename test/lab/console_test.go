package lab

import (
	"bytes"
	"strings"
	"sync"
	"unicode"

	"github.com/touchstone-bench/touchstone/test/lab/job"
)

// consoleKept and consoleEnd are sizes in bytes: of the console output in the log, and of its end in an error.
const (
	consoleKept = 1 << 20
	consoleEnd  = 4 << 10
)

// console receives the output of a machine's console. It keeps the last bytes, and passes on the lines with job.Prefix.
type console struct {
	limit    int           // the number of bytes to keep
	up       chan struct{} // closed when the machine is up
	progress func(line string)

	mu     sync.Mutex
	end    []byte
	line   []byte
	isUp   bool
	reason string // the reason of a kernel panic
}

// Write never fails.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end = append(c.end, p...)
	c.end = c.end[max(0, len(c.end)-c.limit):]
	c.line = append(c.line, p...)
	for {
		line, rest, ok := bytes.Cut(c.line, []byte("\n"))
		if !ok {
			break
		}
		c.line = rest
		c.parse(printable(line))
	}
	c.line = c.line[max(0, len(c.line)-c.limit):]
	return len(p), nil
}

func (c *console) parse(line string) {
	if _, reason, ok := strings.Cut(line, "Kernel panic - "); ok && c.reason == "" {
		c.reason = reason
	}
	_, message, ok := strings.Cut(line, job.Prefix)
	switch {
	case !ok:
	case message == job.Up && !c.isUp:
		c.isUp = true
		close(c.up)
	default:
		c.progress(message)
	}
}

// printable removes the terminal control characters of the firmware from a line.
func printable(line []byte) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, string(line)))
}

// text returns the last bytes of the output, at most limit bytes, without control characters and empty lines.
func (c *console) text(limit int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var lines []string
	for line := range bytes.Lines(c.end[max(0, len(c.end)-limit):]) {
		if text := printable(line); text != "" {
			lines = append(lines, text)
		}
	}
	return strings.Join(lines, "\n")
}

// panicked returns the reason of a kernel panic as a suffix for an error message. It is empty without a panic.
func (c *console) panicked() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reason == "" {
		return ""
	}
	return "; its kernel panicked: " + c.reason
}
