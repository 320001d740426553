package lab

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"
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

// parse handles one line.
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

// text returns the last bytes of the output, at most most bytes, without control characters and empty lines.
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

// panicked returns the reason of a kernel panic as a suffix for an error message. It is empty without a panic.
func (c *console) panicked() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reason == "" {
		return ""
	}
	return "; its kernel panicked: " + c.reason
}

func TestConsole(t *testing.T) {
	var progress []string
	c := &console{limit: 200, up: make(chan struct{}), progress: func(line string) { progress = append(progress, line) }}
	isUp := func() bool {
		select {
		case <-c.up:
			return true
		default:
			return false
		}
	}
	if c.text(c.limit) != "" || c.panicked() != "" {
		t.Errorf("an empty console has %q, %q", c.text(c.limit), c.panicked())
	}
	text := "\x1bc\x1b[?7lSeaBIOS\r\n" + strings.Repeat("early\r\n", 100) + "[    1.0] " + job.Prefix + job.Up + "\r\n" + job.Prefix + job.Up + "\r\n" +
		job.Prefix + "step one\r\n[    2.0] Kernel panic - not syncing: the first\r\n[    2.1] ---[ end Kernel panic - not syncing: the first ]---\r\nno newline"
	for i := range len(text) { // in pieces of one byte
		if _, err := c.Write([]byte(text[i : i+1])); err != nil {
			t.Fatal(err)
		}
		if up := strings.Contains(text[:i+1], job.Up+"\r\n"); up != isUp() {
			t.Fatalf("after %q: up is %t, want %t", text[:i+1], isUp(), up)
		}
	}
	if want := []string{job.Up, "step one"}; !slices.Equal(progress, want) {
		t.Errorf("progress messages are %q, want %q", progress, want)
	}
	if got := c.panicked(); got != "; its kernel panicked: not syncing: the first" {
		t.Errorf("panicked() is %q", got)
	}
	if got := c.text(12); got != "no newline" {
		t.Errorf("the last 12 bytes are %q", got)
	}
	end := c.text(c.limit)
	if len(end) > c.limit || !strings.HasSuffix(end, "\nno newline") || strings.Contains(end, "SeaBIOS") || strings.ContainsAny(end, "\r\x1b") {
		t.Errorf("the end is %q", end)
	}
	if _, err := c.Write([]byte(strings.Repeat("x", 1<<20))); err != nil || len(c.line) > c.limit || len(c.end) > c.limit {
		t.Errorf("a long line fills the buffers with %d and %d bytes, limit %d, %v", len(c.line), len(c.end), c.limit, err)
	}
}
