package managed

import (
	"context"
	"sync"
)

// Shared is a value that the targets of one engine share: a private daemon, or the connection to the user's. It begins with
// its first user and ends with the last. The zero value is ready for use.
type Shared[T any] struct {
	mu     sync.Mutex
	value  T
	users  int
	failed error
}

// Acquire returns the value. The first user makes it with begin. Every user must call release after the last use; it is
// idempotent, and the last release calls end. A failed begin is not repeated, because it would fail slowly for each target in
// turn.
func (s *Shared[T]) Acquire(ctx context.Context, begin func(context.Context) (T, error), end func(T) error) (value T, release func() error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var zero T
	if s.failed != nil {
		return zero, nil, s.failed
	}
	if s.users == 0 {
		if s.value, err = begin(ctx); err != nil {
			if ctx.Err() == nil {
				s.failed = err
			}
			return zero, nil, err
		}
	}
	s.users++
	return s.value, sync.OnceValue(func() error { return s.release(end) }), nil
}

func (s *Shared[T]) release(end func(T) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users > 0 {
		return nil
	}
	var zero T
	value := s.value
	s.value = zero
	return end(value)
}
