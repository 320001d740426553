package managed

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// A daemon that writes without end fills neither the memory nor the disk, and the end of its log is known at once.
//
// Invariant bounded-logs.
func TestDaemonLogIsBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	l, err := openLog(file)
	must.Do(t, err)
	if tail := l.tail(); tail != "" {
		t.Errorf("the tail of an empty log is %q", tail)
	}
	text := bytes.Repeat([]byte("time=now level=info msg=flood\n"), 1000)
	for range 1000 { // about 30 MB; a write waits while the pipe is full
		if _, err := l.write.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.write.WriteString("level=fatal msg=reason\n"); err != nil {
		t.Fatal(err)
	}
	tail := l.tail()
	if !strings.HasSuffix(tail, "level=fatal msg=reason") || len(tail) > logTail+100 {
		t.Errorf("the tail has %d bytes and ends %q", len(tail), tail[max(0, len(tail)-30):])
	}
	size := int64(0)
	for _, name := range []string{file, file + ".old"} {
		info, err := os.Stat(name)
		if err != nil || info.Size() > maxLog {
			t.Errorf("%s: %+v, %v; want at most %d bytes", name, info, err, maxLog)
			continue
		}
		size += info.Size()
	}
	if size <= maxLog {
		t.Errorf("only %d bytes of the log are kept", size)
	}
	for range 2 {
		enginetest.Check(t, l.close())
	}
	if tail := l.tail(); tail != "" {
		t.Errorf("the tail of a closed log is %q", tail)
	}
}

func TestLastOfRotation(t *testing.T) {
	r := rotation{file: filepath.Join(t.TempDir(), "log")}
	if got := r.last(10); len(got) != 0 {
		t.Errorf("the end of an empty rotation is %q", got)
	}
	line := func(n int) string { return fmt.Sprintf("%09d\n", n) }
	var text strings.Builder
	for n := range maxLog/10 + 3 { // the last lines are in two files
		text.WriteString(line(n))
		if _, err := r.Write([]byte(line(n))); err != nil {
			t.Fatal(err)
		}
	}
	want := text.String()[text.Len()-100:]
	if got := string(r.last(100)); got != want {
		t.Errorf("the end is %q, want %q", got, want)
	}
	enginetest.Check(t, r.close())
}
