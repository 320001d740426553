package store

import (
	"context"
	"slices"
)

// This file lets writes that wait for the write lock share one transaction and one flush: a coordinator of a cluster records a thousand runs at the
// same time, and a commit costs more than a trial.

// pending is a write that waits for its transaction.
type pending struct {
	ctx    context.Context //nolint:containedctx // the caller that has the turn executes the writes of others, each with its own context
	do     func(*transaction) error
	isDone bool
	err    error
}

// write calls do in a transaction of its own, like transact. When it returns nil, the writes of do are on the disk.
func (s *Store) write(ctx context.Context, do func(*transaction) error) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.turn }()
	return s.writeNow(ctx, do)
}

func (s *Store) writeNow(ctx context.Context, do func(*transaction) error) error {
	if err := s.transact(ctx, do); err != nil {
		return err
	}
	return s.flush()
}

// share is write in a transaction with others: the first caller that gets the turn executes all waiting writes. It may call do twice.
func (s *Store) share(ctx context.Context, do func(*transaction) error) error {
	entry := &pending{ctx: ctx, do: do}
	s.mu.Lock()
	s.waiting = append(s.waiting, entry)
	s.mu.Unlock()
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		if s.withdraw(entry) {
			return ctx.Err()
		}
		s.turn <- struct{}{} // another caller is executing it
	}
	defer func() { <-s.turn }()
	if !entry.isDone {
		s.mu.Lock()
		group := s.waiting
		s.waiting = nil
		s.mu.Unlock()
		s.writeGroup(group) //nolint:contextcheck // each write has its own context
	}
	return entry.err
}

// withdraw removes a write that has not begun, and reports whether it has.
func (s *Store) withdraw(entry *pending) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting, entry)
	if i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	return i >= 0
}

// writeGroup executes writes in one transaction. If one of them fails, each gets a transaction of its own: an error can end the whole transaction, and it
// must concern only its own write.
func (s *Store) writeGroup(group []*pending) {
	if len(group) > 1 && s.transactAll(group) == nil {
		err := s.flush()
		for _, w := range group {
			w.isDone, w.err = true, err
		}
		return
	}
	for _, w := range group {
		w.isDone, w.err = true, s.writeNow(w.ctx, w.do)
	}
}

// transactAll executes all writes in one transaction, or none of them.
func (s *Store) transactAll(group []*pending) error {
	return s.transact(context.WithoutCancel(group[0].ctx), func(tx *transaction) error {
		for _, w := range group {
			if err := w.ctx.Err(); err != nil {
				return err
			}
			if err := w.do(tx); err != nil {
				return err
			}
		}
		return nil
	})
}
