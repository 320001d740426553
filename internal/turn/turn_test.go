package turn

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// helper is an environment variable. It makes the test binary a process with a turn, with the names in the variable.
const helper = "TOUCHSTONE_TEST_TURN"

func TestMain(m *testing.M) {
	if n := os.Getenv(helper); n != "" {
		os.Exit(hold(names(n), os.Args[1]))
	}
	os.Exit(m.Run())
}

// hold takes a turn and keeps it until the end of its input.
func hold(n names, id string) int {
	if _, runs, err := n.take(context.Background(), id, true); err != nil {
		fmt.Println(err)
		return 1
	} else {
		fmt.Println("holds beside", len(runs))
	}
	_, _ = io.ReadAll(os.Stdin)
	return 0
}

const (
	runA, runB, runC = "20260101-000000-aaaa", "20260101-000000-bbbb", "20260101-000000-cccc"
	nobody           = 65534
)

// newNames returns names of sockets for one test. The runs on this machine stay apart.
func newNames() names { return names("@touchstone-test-" + rand.Text() + "-") }

// other starts a process with a turn. It returns its PID and a function that kills it.
func other(t *testing.T, n names, id string, user uint32) (pid int, kill func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", id) // another user cannot open the directory of the test binary
	cmd.Env = append(os.Environ(), helper+"="+string(n))
	if user != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	}
	input, err := cmd.StdinPipe()
	must.Do(t, err)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	must.Do(t, err)
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = input.Close()
	}
	t.Cleanup(kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); !strings.HasPrefix(line, "holds beside") {
		t.Fatalf("the other process prints %q, %v", line, err)
	}
	return cmd.Process.Pid, kill
}

func mustTake(t *testing.T, n names, id string, join bool, want ...string) *Turn {
	t.Helper()
	turn, runs, err := n.take(t.Context(), id, join)
	must.Do(t, err)
	var ids []string
	for _, o := range runs {
		ids = append(ids, o.ID)
	}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("run %s is beside (-want +got):\n%s", id, diff)
	}
	if wantTurn := join || len(want) == 0; wantTurn != (turn != nil) {
		t.Fatalf("run %s has a turn: %v, want %v", id, turn != nil, wantTurn)
	}
	if turn != nil {
		t.Cleanup(turn.End)
	}
	return turn
}

// A turn ends with its process, also with a killed one, and excludes processes of any user.
//
// Invariant one-run: Two runs on a machine do not measure each other in silence (ADR 31).
func TestTurnOfAnotherProcess(t *testing.T) {
	users := []uint32{uint32(os.Getuid())}
	if os.Getuid() == 0 {
		users = append(users, nobody)
	}
	for _, user := range users {
		n := newNames()
		pid, kill := other(t, n, runA, user)
		turn, runs, err := n.take(t.Context(), runB, false)
		if err != nil || turn != nil || len(runs) != 1 {
			t.Fatalf("beside another process: %v, %v, %v", turn, runs, err)
		}
		if o := runs[0]; o.ID != runA || o.PID != pid || o.User == "" {
			t.Errorf("the other run is %+v, want run %s of process %d with a user", o, runA, pid)
		}
		if text := runs[0].String(); !strings.Contains(text, runA) || !strings.Contains(text, fmt.Sprint(pid)) {
			t.Errorf("the other run is described as %q", text)
		}
		kill()
		mustTake(t, n, runB, false)
	}
}

func TestTurnEnds(t *testing.T) {
	n := newNames()
	a := mustTake(t, n, runA, false)
	mustTake(t, n, runB, false, runA)
	a.End()
	a.End()
	mustTake(t, n, runB, false)
}

// A process that waits gets its turn once all others have ended, and reports each of them before.
func TestAwait(t *testing.T) {
	n := newNames()
	a := mustTake(t, n, runA, false)
	b := mustTake(t, n, runB, true, runA)
	rivals := map[string]*Turn{runA: a, runB: b}
	var reports []string
	mine, err := n.await(t.Context(), runC, func(runs []Other) {
		reports = append(reports, List(runs))
		rivals[runs[0].ID].End()
	})
	must.Do(t, err)
	defer mine.End()
	if len(reports) != 2 || !strings.Contains(reports[0], runA+" (process") || !strings.Contains(reports[0], ") and run "+runB) || strings.Contains(reports[1], runA) {
		t.Errorf("the reports are %q, want both runs and then run %s", reports, runB)
	}
	mustTake(t, n, runA, false, runC)

	ctx, cancel := context.WithCancelCause(t.Context())
	if _, err := n.await(ctx, runA, func([]Other) { cancel(io.ErrClosedPipe) }); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("an interrupted wait ends with %v", err)
	}
}

// Two runs that join exclude a third one until both have ended, and each learns of the other.
//
// Invariant one-run.
func TestJoin(t *testing.T) {
	n := newNames()
	a := mustTake(t, n, runA, false)
	b := mustTake(t, n, runB, true, runA)
	mustTake(t, n, runC, false, runA, runB)
	for _, tt := range []struct {
		turn *Turn
		want []string
	}{{a, []string{runB}}, {a, nil}, {b, nil}} {
		if got, err := tt.turn.Joined(); err != nil || cmp.Diff(tt.want, got) != "" {
			t.Errorf("beside run %s were %q, %v; want %q", tt.turn.id, got, err, tt.want)
		}
	}
	a.End()
	mustTake(t, n, runC, false, runB)
	b.End()
	mustTake(t, n, runC, false)
}

// The run that was joined is told so, also if the other one has ended before.
func TestJoinedRunHasEnded(t *testing.T) {
	n := newNames()
	a := mustTake(t, n, runA, false)
	_, kill := other(t, n, runB, 0)
	kill()
	if got, err := a.Joined(); err != nil || cmp.Diff([]string{runB}, got) != "" {
		t.Errorf("beside run %s were %q, %v; want %s", runA, got, err, runB)
	}
}

func TestWait(t *testing.T) {
	n := newNames()
	_, kill := other(t, n, runA, 0)
	_, runs, err := n.take(t.Context(), runB, false)
	if err != nil || len(runs) != 1 {
		t.Fatalf("others are %v, %v", runs, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	errGone := errors.New("the user has gone")
	result := make(chan error)
	go func() { result <- runs[0].Wait(ctx) }()
	cancel(errGone)
	if err := <-result; !errors.Is(err, errGone) || !strings.Contains(err.Error(), runA) {
		t.Errorf("a cancelled Wait returns %v", err)
	}
	waitResult := make(chan error)
	for range 3 {
		go func() { waitResult <- runs[0].Wait(t.Context()) }()
	}
	kill()
	for range 3 {
		must.Do(t, <-waitResult)
	}
	if err := runs[0].Wait(t.Context()); err != nil {
		t.Errorf("Wait for a run that has ended: %v", err)
	}
}

// A process that waits for a run waits until its end, also if the run asks before whether others have joined.
func TestJoinedKeepsOthersWaiting(t *testing.T) {
	n := newNames()
	a := mustTake(t, n, runA, false)
	conn, err := dial(t.Context(), n.run(runA))
	must.Do(t, err)
	defer func() { _ = conn.Close() }()
	if partners, err := a.Joined(); len(partners) > 0 || err != nil {
		t.Errorf("beside the run were %v, %v", partners, err)
	}
	must.Do(t, conn.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the wait ended before the run: %v", err)
	}
	must.Do(t, conn.SetReadDeadline(time.Time{}))
	a.End()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection has data")
	}
}

// Of many processes that start at once, exactly one has the turn at a time.
func TestConcurrentTake(t *testing.T) {
	n := newNames()
	const runs = 20
	holders := make(chan struct{}, 1)
	result := make(chan error)
	for i := range runs {
		id := fmt.Sprintf("20260101-0000%02d-aaaa", i)
		go func() {
			result <- func() error {
				for {
					turn, neighbours, err := n.take(t.Context(), id, false)
					if err != nil {
						return err
					}
					if turn != nil {
						select {
						case holders <- struct{}{}:
						default:
							return errors.New("two runs have the turn")
						}
						<-holders
						turn.End()
						return nil
					}
					if err := neighbours[0].Wait(t.Context()); err != nil {
						return err
					}
				}
			}()
		}()
	}
	for range runs {
		must.Do(t, <-result)
	}
}

// Other users choose names and messages as they like.
func TestForgedNamesAndMessages(t *testing.T) {
	n := newNames()
	for _, name := range []string{"", "x", "../" + runA, runA + "x", runA + " ", "\x1b[31m"} {
		l, err := listen(t.Context(), n.run(name))
		must.Do(t, err)
		t.Cleanup(func() { _ = l.Close() })
	}
	a := mustTake(t, n, runA, false)
	for _, message := range []string{"", "joined ", "joined " + runB + "\n" + runC, "joined \x1b[31m", strings.Repeat("x", 100_000), "joined " + runC} {
		conn, err := dial(t.Context(), n.run(runA))
		must.Do(t, err)
		_, _ = conn.Write([]byte(message))
		t.Cleanup(func() { _ = conn.Close() })
	}
	if got, err := a.Joined(); err != nil || cmp.Diff([]string{runC}, got) != "" {
		t.Errorf("beside the run were %q, %v; want only %s", got, err, runC)
	}
}

// A full queue of connections hides the process of a run, and not the run.
func TestFullQueue(t *testing.T) {
	n := newNames()
	a := mustTake(t, n, runA, false)
	for {
		conn, err := dial(t.Context(), n.run(runA))
		if errors.Is(err, syscall.EAGAIN) {
			break
		}
		if err != nil {
			t.Skipf("the test cannot fill the queue (net.core.somaxconn): %v", err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	_, runs, err := n.take(t.Context(), runB, false)
	if err != nil || len(runs) != 1 || runs[0].ID != runA || runs[0].PID != 0 {
		t.Errorf("beside a run with a full queue: %v, %v", runs, err)
	}
	if got := runs[0].String(); got != "run "+runA {
		t.Errorf("it is described as %q", got)
	}
	if _, err := a.Joined(); err != nil {
		t.Error(err)
	}
	mustTake(t, n, runB, false, runA)
}

// A process that stops while it starts a run does not block others forever.
func TestStartThatHangs(t *testing.T) {
	n := newNames()
	start, err := n.lock(t.Context())
	must.Do(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	errGone := errors.New("the user has gone")
	result := make(chan error)
	go func() {
		_, _, err := n.take(ctx, runA, true)
		result <- err
	}()
	cancel(errGone)
	if err := <-result; !errors.Is(err, errGone) {
		t.Errorf("a cancelled start: %v", err)
	}
	_ = start.Close()
	mustTake(t, n, runA, false)
}
