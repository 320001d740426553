package lab

import (
	"bytes"
	"strings"
	"sync"
	"unicode"

	"github.com/touchstone-bench/touchstone/internal/lab/job"
)

// consoleKept is how much of what a machine writes to its console is kept, consoleEnd how much of the end of that is part of an
// error; in bytes.
const (
	consoleKept = 1 << 20
	consoleEnd  = 4 << 10
)

// console takes what a machine writes to its console: it keeps the end, and passes on what is for the host.
type console struct {
	limit    int           // what is kept, in bytes
	up       chan struct{} // closed when the machine is up
	progress func(line string)

	mu     sync.Mutex
	end    []byte
	line   []byte
	isUp   bool
	reason string // of a panic
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
		c.see(printable(line))
	}
	c.line = c.line[max(0, len(c.line)-c.limit):]
	return len(p), nil
}

// see looks at a line.
func (c *console) see(line string) {
	if _, reason, ok := strings.Cut(line, "Kernel panic - "); ok && c.reason == "" {
		c.reason = reason
	}
	_, said, ok := strings.Cut(line, job.Prefix)
	switch {
	case !ok:
	case said == job.Up && !c.isUp:
		c.isUp = true
		close(c.up)
	default:
		c.progress(said)
	}
}

// printable is a line without what firmware writes for terminals.
func printable(line []byte) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, string(line)))
}

// text is the end of what was written, of at most so many bytes, without what is for terminals.
func (c *console) text(most int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var lines []string
	for line := range bytes.Lines(c.end[max(0, len(c.end)-most):]) {
		if text := printable(line); text != "" {
			lines = append(lines, text)
		}
	}
	return strings.Join(lines, "\n")
}

// panicked is the reason of a panic of the kernel, to follow another one.
func (c *console) panicked() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reason == "" {
		return ""
	}
	return "; its kernel panicked: " + c.reason
}
