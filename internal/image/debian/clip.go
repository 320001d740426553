package debian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

// encoder is the program that encodes the clip, from the package clipPackage.
const (
	encoder     = "/usr/bin/SvtAv1EncApp"
	clipPackage = "svt-av1"
)

// clipSHA256 is the checksum of the clip. The encoder's output does not depend on the number of threads or on the instructions of an
// x86-64 CPU. Other CPUs were not tested.
const clipSHA256 = "1dd31068a82b7f782f027cd424b41252dcbc7aa94139422bb4abad4050a7306d"

// clipLimit bounds the encoding of the clip, which takes seconds.
const clipLimit = 15 * time.Minute

// makeClip encodes the clip to a file. The encoder comes from a tree of the host's architecture and runs with that tree's dynamic
// linker. It needs neither a chroot nor root.
func makeClip(ctx context.Context, launcher *process.Launcher, t *tree, arch architecture, dir, file string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, clipLimit, fmt.Errorf("it did not exit within %v", clipLimit))
	defer cancel()
	argv, err := unpackProgram(t, arch, encoder, filepath.Join(dir, "encoder"))
	if err != nil {
		return fmt.Errorf("unpack the clip's encoder: %w", err)
	}
	argv = append(argv, "-i", "stdin", "-b", file, "--preset", "10", "--crf", "35", "--progress", "0",
		"--lp", "2") // more threads take much memory and save little time
	if err := encode(ctx, launcher, argv); err != nil {
		return fmt.Errorf("encode the clip: %w", err)
	}
	return checkClip(file)
}

// encode pipes the pattern into the encoder. If the pipe breaks, the clip has another checksum.
func encode(ctx context.Context, launcher *process.Launcher, argv []string) error {
	r, w := io.Pipe()
	defer func() { _ = r.Close() }() // this ends writePattern if the encoder exits early
	go func() { _ = w.CloseWithError(writePattern(w, programs.ClipFrames)) }()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stderr = r, &stderr
	err := launcher.Run(ctx, cmd)
	if failed := (*process.ExitError)(nil); errors.As(err, &failed) {
		return fmt.Errorf("%w: %s", &process.ExitError{Command: encoder, Exit: failed.Exit}, stderr.Bytes())
	}
	return err
}

// checkClip returns an error if a file is not the clip.
func checkClip(file string) error {
	sum, err := sumOf(file)
	if err != nil {
		return err
	}
	if sum != clipSHA256 {
		return fmt.Errorf("the clip has the checksum %s instead of %s: the encoder's output differs on this machine; %s",
			sum, clipSHA256, "load an image that was saved on another machine: touchstone image load FILE")
	}
	return nil
}

// maxProgram bounds the size of the encoder, and of each of its libraries, in bytes.
const maxProgram = 64 << 20

// unpackProgram writes a program and its libraries to a directory, and returns the beginning of its command line.
func unpackProgram(t *tree, arch architecture, program, dir string) ([]string, error) {
	c := newClosure(t, arch, "")
	if err := c.add(program); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	linker := ""
	for _, name := range c.list() {
		source, _, err := t.resolve(name)
		if err != nil {
			return nil, err
		}
		content, err := t.read(source, maxProgram)
		if err != nil {
			return nil, err
		}
		// The linker finds libraries by name, so one directory has them all.
		file := filepath.Join(dir, path.Base(name))
		if err := os.WriteFile(file, content, 0o755); err != nil {
			return nil, err
		}
		if strings.HasPrefix(path.Base(name), "ld-") {
			linker = file
		}
	}
	if linker == "" {
		return nil, errors.New("it has no dynamic linker")
	}
	return []string{linker, "--library-path", dir, filepath.Join(dir, path.Base(program))}, nil
}
