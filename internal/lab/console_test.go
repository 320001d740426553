package lab

import (
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/lab/job"
)

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
	for i := range len(text) { // as it comes, in whatever pieces
		if _, err := c.Write([]byte(text[i : i+1])); err != nil {
			t.Fatal(err)
		}
		if up := strings.Contains(text[:i+1], job.Up+"\r\n"); up != isUp() {
			t.Fatalf("after %q it is up: %t", text[:i+1], isUp())
		}
	}
	if want := []string{job.Up, "step one"}; !slices.Equal(progress, want) {
		t.Errorf("it passed on %q, want %q", progress, want)
	}
	if got := c.panicked(); got != "; its kernel panicked: not syncing: the first" {
		t.Errorf("the reason of the panic is %q", got)
	}
	if got := c.text(12); got != "no newline" {
		t.Errorf("its last 12 bytes are %q", got)
	}
	end := c.text(c.limit)
	if len(end) > c.limit || !strings.HasSuffix(end, "\nno newline") || strings.Contains(end, "SeaBIOS") || strings.ContainsAny(end, "\r\x1b") {
		t.Errorf("the end is %q", end)
	}
	if _, err := c.Write([]byte(strings.Repeat("x", 1<<20))); err != nil || len(c.line) > c.limit || len(c.end) > c.limit {
		t.Errorf("of a long line it keeps %d and %d bytes, %v", len(c.line), len(c.end), err)
	}
}
