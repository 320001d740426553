package chaos

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/test/cells"
)

const (
	// hostileTime and hostileMemory are the largest CPU time and memory for a hostile file.
	hostileTime   = 30 * time.Second
	hostileMemory = 512 << 20

	endlessPipe = "a pipe without a writer"
)

// TestHostileFiles gives each reader of files hostile ones. A reader refuses them with a message, within a time and a size.
func TestHostileFiles(t *testing.T) {
	cells.Need(t, "chaos/files")
	onHost(t, 11, "hostile files for every reader", func(h *host) {
		files := h.hostileFiles()
		h.watch()
		var wg sync.WaitGroup
		for name, file := range files {
			wg.Go(func() { h.hostileFile(name, file) })
		}
		wg.Wait()
	})
}

// hostileFile gives a file to each reader.
func (h *host) hostileFile(name, file string) {
	h.Helper()
	for _, args := range [][]string{{"benchmark", "-f", file}, {"import", file}, {"image", "load", file}} {
		if name != endlessPipe { // a shell's <(command) is such a pipe
			h.hostile(name, h.newDir(), nil, args...)
		}
	}
	for _, verb := range []string{"runs", "report", "export", "index"} {
		dir := h.newDir()
		h.put(filepath.Join(dir, "out", "touchstone.db"), file)
		h.hostile(name, dir, nil, verb)
	}
	home := h.newDir()
	h.put(filepath.Join(home, ".config", "touchstone", "runtimes.yaml"), file)
	h.hostile(name, home, []string{"HOME=" + home}, "benchmark", "--targets", "fake/a", "--filter", lifecycle, "--runs", "1", "--warmup", "0")
}

// put makes a link to a hostile file.
func (h *host) put(path, file string) {
	h.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.Link(file, path)
	}
	if err != nil {
		err = os.Symlink(file, path) // a directory or a device
	}
	h.must(err)
}

// hostile runs touchstone on a hostile file.
func (h *host) hostile(name, dir string, env []string, args ...string) {
	h.Helper()
	p := h.start(dir, func(c *exec.Cmd) { c.Env = append(os.Environ(), env...) }, args...)
	took := p.exited()
	h.tried(1)
	what := fmt.Sprintf("touchstone %s with %s", args[0], name)
	if env != nil {
		what = "runtimes.yaml is " + name
	}
	code := p.cmd.ProcessState.ExitCode()
	codes := []int{1, 2}
	if env != nil && name == "an empty file" { // which names no runtimes
		codes = []int{0}
	}
	if !slices.Contains(codes, code) {
		h.wrong("%s: exit code %d after %v, want one of %v\n%s", what, code, took.Round(time.Second), codes, p.output())
	}
	output := p.stderr.String() + p.stdout.String()
	if strings.Contains(output, "goroutine ") {
		h.wrong("%s: crash\n%s", what, p.output())
	}
	if i := strings.IndexFunc(output, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x202e
	}); i >= 0 {
		h.wrong("%s: the output has a control character: %q", what, output[max(0, i-20):min(len(output), i+20)])
	}
	if spent := p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime(); spent > hostileTime {
		h.wrong("%s: %v of CPU time", what, spent.Round(time.Second))
	}
	if usage, ok := p.cmd.ProcessState.SysUsage().(*syscall.Rusage); ok && usage.Maxrss<<10 > hostileMemory {
		h.wrong("%s: %d MiB of memory", what, usage.Maxrss>>10)
	}
}

// hostileFiles writes hostile files and returns their paths.
func (h *host) hostileFiles() map[string]string {
	h.Helper()
	dir := h.newDir()
	files := map[string]string{"an endless file": "/dev/zero", "a directory": dir}
	write := func(name string, content func(w io.Writer)) {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(len(files))))
		h.must(err)
		w := bufio.NewWriter(f)
		content(w)
		h.must(w.Flush())
		h.must(f.Close())
		files[name] = f.Name()
	}
	text := func(parts ...string) func(io.Writer) {
		return func(w io.Writer) { _, _ = io.WriteString(w, strings.Join(parts, "")) }
	}
	archive := func(entries ...tar.Header) func(io.Writer) {
		return func(w io.Writer) {
			tw := tar.NewWriter(w)
			for _, e := range entries {
				_ = tw.WriteHeader(&e)
				_, _ = tw.Write(bytes.Repeat([]byte{'{'}, int(e.Size)))
			}
			_ = tw.Close()
		}
	}
	write("an empty file", text())
	write("deep brackets", text(strings.Repeat("[", 1<<20)))
	write("deep braces", text(strings.Repeat(`{"a":`, 1<<18)))
	write("escapes", text("version: 1\ntargets: [\"\x1b[31m\u202e\u009b31m\"]\n"))
	write("many empty trials", func(w io.Writer) {
		_, _ = io.WriteString(w, `{"version":1,"runs":[{"id":"20260101-000000-aaaa","trials":[{}`)
		for range 3_000_000 {
			_, _ = io.WriteString(w, ",{}")
		}
		_, _ = io.WriteString(w, "]}]}")
	})
	write("many aliases", func(w io.Writer) {
		_, _ = io.WriteString(w, "a: &a [x,x,x,x,x,x,x,x,x]\n")
		for c := 'b'; c <= 'j'; c++ {
			_, _ = fmt.Fprintf(w, "%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
		}
	})
	write("a compressed gigabyte", func(w io.Writer) {
		z := gzip.NewWriter(w)
		for range 1 << 10 {
			_, _ = z.Write(make([]byte, 1<<20))
		}
		_ = z.Close()
	})
	write("an archive with paths outside", archive(
		tar.Header{Name: "../../../etc/hostile", Size: 1, Mode: 0o644}, tar.Header{Name: "index.json", Typeflag: tar.TypeSymlink, Linkname: "/etc/shadow"},
		tar.Header{Name: "manifest.json", Size: 100, Mode: 0o644}, tar.Header{Name: "oci-layout", Size: 100, Mode: 0o644}))
	write("a database with garbage", text("SQLite format 3\x00", strings.Repeat("\xff", 1<<16)))
	pipe := filepath.Join(dir, "pipe")
	h.must(unix.Mkfifo(pipe, 0o600))
	files[endlessPipe] = pipe
	return files
}
