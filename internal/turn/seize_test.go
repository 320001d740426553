package turn

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// trustsRoot trusts the user of the test only, as host tune trusts root.
func trustsRoot(uid int) bool { return uid == os.Getuid() }

// TestSeizeFromOtherUsers: no socket of another user prevents a change of the machine, and a run of a trusted user does.
//
// Invariant host-tune-attack: No other user prevents `host tune` or `host restore`, and no signal reaches a process that is not root's irqbalance.
func TestSeizeFromOtherUsers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can start processes of other users")
	}
	n := newNames()
	pid, _ := other(t, n, runA, nobody)
	mine, counting, rest, err := n.seize(t.Context(), runB, trustsRoot, false)
	if err != nil || mine == nil || len(counting) != 0 || len(rest) != 1 || rest[0].PID != pid || rest[0].UID != nobody {
		t.Fatalf("beside a run of another user: %v, %v, %v, %v", mine, counting, rest, err)
	}
	mine.End()
	_, kill := other(t, n, runC, 0)
	mine, counting, rest, err = n.seize(t.Context(), runB, trustsRoot, false)
	if err != nil || mine != nil || len(counting) != 1 || counting[0].ID != runC || len(rest) != 1 {
		t.Fatalf("beside a run of a trusted user: %v, %v, %v, %v", mine, counting, rest, err)
	}
	mine, counting, _, err = n.seize(t.Context(), runB, trustsRoot, true)
	if err != nil || mine == nil || len(counting) != 1 {
		t.Fatalf("beside it on request: %v, %v, %v", mine, counting, err)
	}
	mine.End()
	kill()
}

// TestSeizeJoins: a run whose machine changes is told, so that its report has the caveat.
func TestSeizeJoins(t *testing.T) {
	n := newNames()
	run := mustTake(t, n, runA, false)
	mine, counting, _, err := n.seize(t.Context(), runB, trustsRoot, true)
	if err != nil || mine == nil || len(counting) != 1 {
		t.Fatalf("beside a run on request: %v, %v, %v", mine, counting, err)
	}
	if partners, err := run.Joined(); err != nil || len(partners) != 1 || partners[0] != runB {
		t.Errorf("beside the run were %q, %v; want %q", partners, err, runB)
	}
	mine.End()
	run.End()
}

// TestSeizeWithoutTheStart: another user holds the socket of the start, and root does not wait for it. A full queue hides its user.
//
// Invariant host-tune-attack.
func TestSeizeWithoutTheStart(t *testing.T) {
	n := newNames()
	start, err := listen(t.Context(), n.start())
	must.Do(t, err)
	defer func() { _ = start.Close() }()
	nobodyIsTrusted := func(int) bool { return false }
	mine, _, _, err := n.seize(t.Context(), runA, nobodyIsTrusted, false)
	if err != nil || mine == nil {
		t.Fatalf("beside a start of another user: %v, %v", mine, err)
	}
	mine.End()
	for {
		conn, err := dial(t.Context(), n.start())
		if err != nil {
			if !errors.Is(err, syscall.EAGAIN) {
				t.Skipf("the test cannot fill the queue (net.core.somaxconn): %v", err)
			}
			break
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	if mine, _, _, err = n.seize(t.Context(), runA, trustsRoot, false); err != nil || mine == nil {
		t.Fatalf("beside a start with a full queue: %v, %v", mine, err)
	}
	mine.End()
}
