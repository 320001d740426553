package turn

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Seize announces a change of the machine, which must not depend on the sockets of users who may not make it: any user can hold any name.
// trusts decides whose runs count. Unless join is set, a run of a trusted user prevents the turn and is in counting; with
// join such a run is told, as by Join. Runs of other users, and
// those whose user is unknown because their socket's queue is full, are in rest.
func Seize(ctx context.Context, id string, trusts func(uid int) bool, join bool) (mine *Turn, counting, rest []Other, err error) {
	return machine.seize(ctx, id, trusts, join)
}

func (n names) seize(ctx context.Context, id string, trusts func(uid int) bool, join bool) (mine *Turn, counting, rest []Other, err error) {
	end, err := n.lockAgainst(ctx, trusts)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("look for other runs on this machine: %w", err)
	}
	defer end()
	list, err := n.others(ctx)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("look for other runs on this machine: %w", err)
	}
	for _, o := range list {
		if o.UID >= 0 && trusts(o.UID) {
			counting = append(counting, o)
		} else {
			rest = append(rest, o)
		}
	}
	if len(counting) > 0 && !join {
		return nil, counting, rest, nil
	}
	socket, err := listen(ctx, n.run(id))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("announce the change of this machine: %w", err)
	}
	for _, o := range counting { // a socket of another user is not touched
		o.tell(ctx, id)
	}
	return &Turn{id: id, socket: socket}, counting, rest, nil
}

// lockAgainst is lock, and does not wait for a process of another user.
func (n names) lockAgainst(ctx context.Context, trusts func(uid int) bool) (end func(), err error) {
	l, err := listen(ctx, n.start())
	if err == nil {
		return func() { _ = l.Close() }, nil
	}
	if !errors.Is(err, unix.EADDRINUSE) {
		return nil, err
	}
	uid := unknownUser
	if conn, err := dial(ctx, n.start()); err == nil {
		_, uid = peer(conn)
		_ = conn.Close()
	}
	if uid < 0 || !trusts(uid) {
		return func() {}, nil
	}
	if l, err = n.lock(ctx); err != nil {
		return nil, err
	}
	return func() { _ = l.Close() }, nil
}
