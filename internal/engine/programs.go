package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// CNI is the key of Session.Engines with the folder of CNI's plug-ins.
const CNI = "cni"

// Program returns the absolute path of an engine's program: the path of the session, or else in one of the directories or by LookPath. If it is
// in none of them the error is exec.ErrNotFound.
func (s Session) Program(name string, dirs ...string) (string, error) {
	if override := s.Engines[name]; override != "" {
		if err := CheckProgram(override); err != nil {
			return "", err
		}
		return filepath.Abs(override)
	}
	if path, ok := FindIn(name, dirs); ok {
		return filepath.Abs(path)
	}
	return LookPath(name)
}

// SystemDirs are directories of programs that not every PATH has: of NixOS, Guix and Flatcar, and of k3s, RKE2, k0s and MicroK8s, which bring
// containerd and runc of their own. It is a variable for tests.
var SystemDirs = []string{
	"/run/current-system/sw/bin", "/run/current-system/profile/bin", "/run/current-system/profile/sbin", "/opt/bin",
	"/var/lib/rancher/k3s/data/current/bin", "/var/lib/rancher/rke2/bin", "/var/lib/k0s/bin",
	"/snap/microk8s/current/bin",
}

// LookPath returns the absolute path of a program: on PATH, or else in sbin beside a directory bin of PATH, or in SystemDirs. The PATH of a cron job,
// of an ordinary user and of root after a plain su has no sbin, where Debian keeps dockerd and openSUSE keeps containerd and runc. The error is
// exec.ErrNotFound if the program is in none of them.
func LookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return filepath.Abs(path)
	}
	if !errors.Is(err, exec.ErrNotFound) || strings.Contains(name, "/") {
		return "", err
	}
	if path, ok := FindIn(name, ProgramDirs(filepath.SplitList(os.Getenv("PATH")))); ok {
		return path, nil
	}
	return "", err
}

// ProgramDirs lists the directories of programs on a machine with these directories on PATH, as LookPath uses them.
func ProgramDirs(path []string) []string {
	var dirs, neighbours []string
	for _, dir := range path {
		if !filepath.IsAbs(dir) {
			continue
		}
		if dirs = append(dirs, dir); filepath.Base(dir) == "bin" {
			neighbours = append(neighbours, filepath.Join(dir, "../sbin"))
		}
	}
	return slices.Concat(dirs, neighbours, SystemDirs)
}

// FindIn returns the path of a program in the first of the directories that has it.
func FindIn(name string, dirs []string) (path string, ok bool) {
	for _, dir := range dirs {
		if path := filepath.Join(dir, name); CheckProgram(path) == nil {
			return path, true
		}
	}
	return "", false
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

// prefixes are the installations of distributions and of the administrator. families are the engines whose helpers have a directory of their own.
var (
	prefixes = []string{"/usr", "/usr/local"}
	families = []string{"podman", "crio", "docker"}
)

// Helpers lists the directories of the programs that an engine calls. Beside and a wrapper's PATH come first. Directories for helpers in the installation of
// the program and in prefixes follow: conmon is in /usr/bin, /usr/libexec/podman, /usr/libexec/crio or /usr/lib/podman.
func Helpers(program string) []string {
	dirs := Beside(program)
	var places []string
	for _, dir := range dirs {
		places = append(places, filepath.Join(dir, ".."))
	}
	dirs = append(dirs, wrapped(program)...)
	for _, place := range slices.Concat(places, prefixes) {
		for _, library := range []string{"libexec", "lib"} {
			for _, family := range families {
				dirs = append(dirs, filepath.Join(place, library, family))
			}
		}
	}
	return dirs
}

// maxWrapper bounds the size of a wrapper in bytes. Engines are larger.
const maxWrapper = 1 << 20

// storePath is a path in the store of Nix or Guix.
var storePath = regexp.MustCompile(`/(?:[\w.+-]+/)*(?:nix|gnu)/store/[\w.+?=/-]+`)

// wrapped lists the directories in the store that a wrapper of NixOS or Guix names. It adds them to PATH and calls the real program: CRI-O's conmon
// and Docker's containerd are on no other PATH. A wrapper is a script or a small program, and has the paths as text.
func wrapped(program string) (dirs []string) {
	if info, err := os.Stat(program); err != nil || info.Size() > maxWrapper {
		return nil
	}
	text, err := os.ReadFile(program)
	if err != nil {
		return nil
	}
	for _, path := range storePath.FindAllString(string(text), -1) {
		if info, err := os.Stat(path); err == nil && info.IsDir() && !slices.Contains(dirs, path) {
			dirs = append(dirs, path)
		}
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
