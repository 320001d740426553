package cri

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/runtimes"
)

// tryOut runs one container through its life, and looks whether its exit code and its output arrive.
func (e *Engine) tryOut(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, runtimes.AnswerLimit, runtimes.ErrNoAnswer)
	defer cancel()
	// A private engine is asked while it is still about to be ready, and waits for that by itself.
	if err := e.service.ready; err != nil && e.service.private == nil {
		return err
	}
	var complaint first
	const nonsense = "no-such-command"
	c, err := e.Create(ctx, engine.Spec{
		ID:    fmt.Sprintf("%s%s-try-%s-%s", engine.Prefix, e.session.RunID, e.service.name, filepath.Base(e.dir)),
		Image: e.service.image, Process: engine.Process{Args: []string{"/probe", nonsense}, Stderr: &complaint},
	})
	if err != nil {
		return err
	}
	err = e.meet(ctx, c.(*container))
	if err == nil {
		err = engine.RunToExit(ctx, c, usageCode)
	}
	if undo := c.(*container).undo(ctx); err != nil || undo != nil {
		return errors.Join(err, undo)
	}
	if !strings.Contains(complaint.String(), nonsense) {
		return fmt.Errorf("its output %q did not arrive in the log in %s: the engine must have the same file system as this program", complaint.String(), e.dir)
	}
	return nil
}

// usageCode is what the probe exits with when it is not called as it should be.
const usageCode = 2

// first keeps the beginning of what is written.
type first struct {
	mu   sync.Mutex
	text []byte
}

func (f *first) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	const most = 1 << 10
	f.text = append(f.text, p[:min(len(p), most-len(f.text))]...)
	return len(p), nil
}

func (f *first) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return string(f.text)
}

// advise says what may help against an error that is known.
func advise(err error, h handler) string {
	text := err.Error()
	switch {
	case strings.Contains(text, "unknown version specified"):
		return "the runtime is too old for this engine: use crun 1.21 or later, named with --runtime crun=PATH"
	case errors.Is(err, runtimes.ErrNoAnswer) && h.isGVisor():
		return "choose another platform (systrap works nearly everywhere), or look whether runsc works by hand"
	case strings.Contains(text, "hybrid mode"):
		return "the engine must not see the unified hierarchy of this host: use --managed"
	case strings.Contains(text, "NetworkReady") || strings.Contains(text, "cni"):
		return "look at the engine's network configuration (CNI)"
	case strings.Contains(text, "no runtime for") || strings.Contains(text, "failed to find runtime handler"):
		return "name a runtime handler that the engine has"
	case h.shim == shimRunsc:
		return "try the option shim=runc, which leaves gVisor's own shim out"
	}
	return "look at the engine's log"
}
