package engine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// CNI is the key of Session.Engines with the folder of CNI's plug-ins.
const CNI = "cni"

// Program returns the absolute path of an engine's program: the path of the session, or else in one of the directories or on PATH. If it is
// in none of them the error is exec.ErrNotFound.
func (s Session) Program(name string, dirs ...string) (string, error) {
	if override := s.Engines[name]; override != "" {
		if err := CheckProgram(override); err != nil {
			return "", err
		}
		return filepath.Abs(override)
	}
	for _, dir := range dirs {
		if path := filepath.Join(dir, name); CheckProgram(path) == nil {
			return filepath.Abs(path)
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// Journal returns the last lines of a unit of systemd, such as the daemon of an engine, for a report about a failure. It is empty on a machine
// without a journal.
func (s Session) Journal(ctx context.Context, unit string) string {
	program, err := s.Program("journalctl")
	if err != nil {
		return ""
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, program, "--no-pager", "--quiet", "--output=cat", "--lines=50", "--unit="+unit)
	cmd.Stdout = &out
	if err := s.Launcher.Run(ctx, cmd); err != nil {
		return err.Error()
	}
	return out.String()
}

// CheckProgram returns an error for a file that cannot be executed.
func CheckProgram(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", path)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not executable", path)
	}
	return nil
}

// Beside lists the directories of a program: with its name, and behind links.
func Beside(program string) []string {
	dirs := []string{filepath.Dir(program)}
	if real, err := filepath.EvalSymlinks(program); err == nil && filepath.Dir(real) != dirs[0] {
		dirs = append(dirs, filepath.Dir(real))
	}
	return dirs
}

// ProgramPath makes a directory with links to programs, by the names that an engine looks up on its PATH: a path from --engine-bin may have any
// name. It returns a PATH of the directory, of those beside the engine's own program, of fallbacks, and of this program's PATH.
func ProgramPath(dir, program string, links map[string]string, fallbacks ...string) (path string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	for name, file := range links {
		if file == "" {
			continue // the engine finds it, or reports that it is missing
		}
		if err := os.Symlink(file, filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	dirs := slices.Concat([]string{dir}, Beside(program), fallbacks, []string{os.Getenv("PATH")})
	return strings.Join(slices.Compact(dirs), string(os.PathListSeparator)), nil
}
