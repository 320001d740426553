package managed

import (
	"context"
	"sync"
)

// Shared is a daemon with several users: the targets of one engine. It starts for the first and is
// stopped after the last. The zero value is ready for use.
type Shared struct {
	mu     sync.Mutex
	daemon *Daemon
	users  int
	failed error
}

// Acquire gives the daemon, which start starts if nobody uses it. The caller must call release
// once it has no containers any more; release is idempotent. A start that failed is not tried again: it would
// fail for each target in turn, and each time take long.
func (s *Shared) Acquire(ctx context.Context, start func(context.Context) (*Daemon, error)) (d *Daemon, release func() error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return nil, nil, s.failed
	}
	if s.daemon == nil {
		if s.daemon, err = start(ctx); err != nil {
			s.daemon = nil
			if ctx.Err() == nil {
				s.failed = err
			}
			return nil, nil, err
		}
	}
	s.users++
	return s.daemon, sync.OnceValue(s.release), nil
}

func (s *Shared) release() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users > 0 {
		return nil
	}
	d := s.daemon
	s.daemon = nil
	return d.Stop(context.Background())
}
