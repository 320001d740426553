package debian

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// defaultMirror is Debian's own, which redirects to a nearby mirror.
const defaultMirror = "http://deb.debian.org/debian"

// hostMirror returns the mirror of the host's apt if the host is Debian, else the default.
func hostMirror(root string) string {
	release, err := os.ReadFile(filepath.Join(root, "etc/os-release"))
	if err != nil || !slices.Contains(strings.Split(string(release), "\n"), "ID=debian") {
		return defaultMirror
	}
	files := []string{filepath.Join(root, "etc/apt/sources.list")}
	for _, pattern := range []string{"*.sources", "*.list"} {
		found, _ := filepath.Glob(filepath.Join(root, "etc/apt/sources.list.d", pattern)) // the pattern is valid
		files = append(files, found...)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // the default remains
		}
		lines := bufio.NewScanner(strings.NewReader(string(content)))
		for lines.Scan() {
			if mirror := mirrorIn(lines.Text()); mirror != "" {
				return mirror
			}
		}
	}
	return defaultMirror
}

// mirrorIn returns the mirror of Debian in a line of apt's sources, in either format: sources.list(5).
func mirrorIn(line string) string {
	fields := strings.Fields(line)
	if len(fields) < 2 || fields[0] != "deb" && !strings.EqualFold(fields[0], "URIs:") {
		return ""
	}
	for _, f := range fields[1:] {
		scheme, rest, ok := strings.Cut(f, "://")
		if !ok || scheme != "http" && scheme != "https" {
			continue
		}
		// The URLs of security updates and of other archives have other names.
		if rest = strings.TrimSuffix(rest, "/"); strings.HasSuffix(rest, "/debian") {
			return scheme + "://" + rest
		}
	}
	return ""
}
