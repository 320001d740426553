package debian

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"time"

	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/workload"
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
func makeClip(ctx context.Context, launcher *process.Launcher, t *tree, arch architecture, dir, to string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, clipLimit, fmt.Errorf("it did not exit within %v", clipLimit))
	defer cancel()
	argv, err := unpackProgram(t, arch, encoder, filepath.Join(dir, "encoder"))
	if err != nil {
		return fmt.Errorf("unpack the clip's encoder: %w", err)
	}
	argv = append(argv, "-i", "stdin", "-b", to, "--preset", "10", "--crf", "35", "--progress", "0",
		"--lp", "2") // more threads take much memory and save little time
	if err := encode(ctx, launcher, argv); err != nil {
		return fmt.Errorf("encode the clip: %w", err)
	}
	return checkClip(to)
}

// encode pipes the pattern into the encoder.
func encode(ctx context.Context, launcher *process.Launcher, argv []string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	var output process.Output
	if err := output.Open(nil, nil); err != nil {
		return errors.Join(err, r.Close(), w.Close())
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin = r
	output.Set(cmd)
	child, err := launcher.Spawn(cmd)
	err = errors.Join(err, r.Close(), output.Close())
	if err != nil {
		return errors.Join(err, w.Close())
	}
	// It fails if the encoder exits early; the encoder's error then comes first.
	writing := errors.Join(writePattern(w, workload.ClipFrames), w.Close())
	exit := child.Wait()
	waiting := output.Wait(ctx)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case exit.Status != 0:
		return fmt.Errorf("%w: %s", &process.ExitError{Command: encoder, Exit: exit}, output.Tail())
	default:
		return errors.Join(writing, waiting)
	}
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

// unpackProgram writes a program and its libraries to a directory, and returns the beginning of its command line.
func unpackProgram(t *tree, arch architecture, program, dir string) ([]string, error) {
	c := newClosure(t, arch, func(string) bool { return false })
	if err := c.add(program); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	linker := ""
	for _, name := range c.list() {
		to, _, err := t.resolve(name)
		if err != nil {
			return nil, err
		}
		content, err := t.open(to)
		if err != nil {
			return nil, err
		}
		// The linker finds libraries by name, so one directory has them all.
		file := filepath.Join(dir, path.Base(name))
		if err := writeProgram(file, content); err != nil {
			return nil, err
		}
		if base := path.Base(name); len(base) > 3 && base[:3] == "ld-" {
			linker = file
		}
	}
	if linker == "" {
		return nil, errors.New("it has no dynamic linker")
	}
	return []string{linker, "--library-path", dir, filepath.Join(dir, path.Base(program))}, nil
}

func writeProgram(file string, content io.Reader) error {
	w, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, content)
	return errors.Join(err, w.Close())
}
