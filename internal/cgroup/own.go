package cgroup

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// OwnThreadFiles returns the v1 tasks files of this process's own groups. A thread that has joined another group through
// [Group.ThreadFiles] returns with them.
func (h *Hierarchy) OwnThreadFiles() ([]string, error) {
	// /proc/self/cgroup shows the groups of the main thread, which never joins another group.
	text, err := os.ReadFile(h.own)
	if err != nil {
		return nil, fmt.Errorf("find the cgroups of this process: %w", err)
	}
	var files []string
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		fields := strings.SplitN(lines.Text(), ":", 3)
		if len(fields) != 3 {
			continue
		}
		controller, _, _ := strings.Cut(fields[1], ",")
		m, ok := h.Controller(controller)
		if !ok || m.V2 || !m.joined() {
			continue
		}
		rel, err := filepath.Rel(m.root, fields[2])
		if err != nil || !filepath.IsLocal(rel) {
			return nil, fmt.Errorf("find the cgroups of this process: %s is not below %s", fields[2], m.Dir)
		}
		files = append(files, filepath.Join(m.Dir, rel, "tasks"))
	}
	return files, nil
}
