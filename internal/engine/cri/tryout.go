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

// tryOut runs one container, and checks that its exit code and its output arrive.
func (e *Engine) tryOut(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, runtimes.AnswerLimit, runtimes.ErrNoAnswer)
	defer cancel()
	// The status of a private engine is from before it was ready. It waits for that by itself.
	if err := e.service.ready; err != nil && e.service.private == nil {
		return err
	}
	var stderr prefix
	const nonsense = "no-such-command"
	c, err := e.Create(ctx, engine.Spec{
		ID:    fmt.Sprintf("%s%s-try-%s-%s", engine.Prefix, e.session.RunID, e.service.name, filepath.Base(e.dir)),
		Image: e.service.image, Process: engine.Process{Args: []string{"/probe", nonsense}, Stderr: &stderr},
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
	if !strings.Contains(stderr.String(), nonsense) {
		return fmt.Errorf("its output %q did not arrive in the log in %s: the engine must have the same file system as this program", stderr.String(), e.dir)
	}
	return nil
}

// usageCode is the probe's exit code for wrong arguments.
const usageCode = 2

// prefix keeps the first bytes of output.
type prefix struct {
	mu   sync.Mutex
	text []byte
}

func (p *prefix) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	const most = 1 << 10
	p.text = append(p.text, data[:min(len(data), most-len(p.text))]...)
	return len(data), nil
}

func (p *prefix) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.text)
}

// advise returns the advice for a known error.
func advise(err error, h handler) string {
	text := err.Error()
	switch {
	case strings.Contains(text, "unknown version specified"):
		return "the runtime is too old for this engine: use crun 1.21 or later, named with --runtime crun=PATH"
	case errors.Is(err, runtimes.ErrNoAnswer) && h.isGVisor():
		return "choose another platform (systrap works nearly everywhere), or check whether runsc works by hand"
	case strings.Contains(text, "hybrid mode"):
		return "the engine must not see the unified hierarchy of this host: use --managed"
	case strings.Contains(text, "NetworkReady") || strings.Contains(text, "cni"):
		return "look at the engine's network configuration (CNI)"
	case strings.Contains(text, "no runtime for") || strings.Contains(text, "failed to find runtime handler"):
		return "name a runtime handler of the engine"
	case h.shim == shimRunsc:
		return "try the option shim=runc, which avoids gVisor's own shim"
	}
	return "look at the engine's log"
}
