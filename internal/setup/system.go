package setup

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/touchstone-bench/touchstone/internal/process"
)

// answerLimit is the deadline for the version of a program.
const answerLimit = time.Minute

// systemCopy returns the system's copy of a part and its version if the copy is recent enough. Else it returns the reason, which is empty
// without a copy.
func (s *Setup) systemCopy(ctx context.Context, l *process.Launcher, r Recipe) (path, version, reason string) {
	path, ok := s.System(r.Programs[0], r.Dirs)
	if !ok {
		return "", "", ""
	}
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	text, err := output(ctx, l, path, "--version")
	if err != nil {
		return "", "", fmt.Sprintf("the system's %s does not work: %v", path, err)
	}
	if version = r.number(text); version == "" {
		return "", "", fmt.Sprintf("the system's %s prints no version", path)
	}
	if !r.isRecent(version) {
		return "", "", fmt.Sprintf("the system's %s is version %s, and %s is the least", path, version, r.least())
	}
	return path, version, ""
}

// output returns the standard output of a program.
func output(ctx context.Context, l *process.Launcher, name string, args ...string) (string, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = environment()
	cmd.Stdout = &out
	err := l.Run(ctx, cmd)
	return out.String(), err
}
