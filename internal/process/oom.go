package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// oomRaise is added to the OOM score of all children. If the host runs out of memory, the kernel kills a process of the run before
// the user's processes, which normally have a score of 0, and before this program.
const oomRaise = 500

// mostOOMScore is the kernel's highest oom_score_adj.
const mostOOMScore = 1000

// oomScore raises the OOM score of children. The kernel keeps the score for a whole process and not for a thread, and a child
// inherits it at fork. So the launcher raises the score of this program while it forks. Two writes of about a microsecond each
// enclose a fork.
//
// Rejected: a write to the child's own file after the fork, because the child's first children would have the old score; a
// configuration of each runtime and engine, because shims, monitors and daemons would keep the old score.
type oomScore struct {
	file        *os.File // nil if this program cannot change its score
	own, raised string
	children    int
}

// openOOMScore opens the score of this program. Without a writable score the children keep the score of this program.
func openOOMScore(name string) *oomScore {
	zero := &oomScore{}
	text, err := os.ReadFile(name)
	if err != nil {
		return zero
	}
	score, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return zero
	}
	file, err := os.OpenFile(name, os.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return zero
	}
	children := min(score+oomRaise, mostOOMScore)
	s := &oomScore{file: file, own: strconv.Itoa(score), raised: strconv.Itoa(children), children: children}
	if s.raise() != nil || s.lower() != nil {
		_ = file.Close()
		return &oomScore{children: score}
	}
	return s
}

func (s *oomScore) raise() error { return s.write(s.raised) }

func (s *oomScore) lower() error { return s.write(s.own) }

func (s *oomScore) write(score string) error {
	if s.file == nil {
		return nil
	}
	// WriteAt has no offset to reset; the kernel ignores it.
	if _, err := s.file.WriteAt([]byte(score), 0); err != nil {
		return fmt.Errorf("set the OOM score to %s: %w", score, err)
	}
	return nil
}

func (s *oomScore) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
}

// OOMScore is the oom_score_adj of all children. An engine must set it for containers whose daemon would set another one.
func (l *Launcher) OOMScore() int { return l.oom.children }
