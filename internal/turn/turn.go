// Package turn lets one run at a time measure on a machine, because two runs would measure each other.
//
// A run is an abstract Unix socket with the run's ID in its name. The kernel lists these sockets for every user, and removes
// them when their process ends, however it ends. So no turn is stale, no file is left behind, and no other user's file is opened. Runs of
// root and of other users see each other, with any state directory. A process that waits for a run connects to its socket and reads:
// the kernel ends the read when the socket disappears. The run under way does nothing meanwhile.
//
// Abstract sockets belong to a network namespace. Runs in another network namespace, for example in a container, and runs outside of a
// virtual machine are not seen. Any user can hold a turn, like any user can load the machine.
//
// Rejected: a lock on a file. No directory is writable by all users on every distribution and shared by their sessions, other users
// can create the file first, and a waiting process would poll or hold the lock's queue.
package turn

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"regexp"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Turn is the announcement of a run to the other processes of this machine.
type Turn struct {
	id     string
	socket *net.UnixListener
	// waiting are connections of processes that wait for the end of the run. If one is closed, its process looks for runs again at once.
	waiting []int
}

// Other is a run of another process.
type Other struct {
	ID string
	// PID is 0 if the process is in another PID namespace.
	PID int
	// User is the name or the ID of the process's user; empty if unknown. UID is unknownUser then.
	User string
	UID  int

	names names
}

// String describes the run for a message.
func (o Other) String() string {
	switch {
	case o.User == "":
		return "run " + o.ID
	case o.PID == 0:
		return fmt.Sprintf("run %s (user %s)", o.ID, o.User)
	}
	return fmt.Sprintf("run %s (process %d, user %s)", o.ID, o.PID, o.User)
}

// names is the beginning of the sockets' names.
type names string

// machine is the beginning of the names on a machine.
const machine names = "@touchstone-"

// start is held while a process looks for runs and announces its own.
func (n names) start() string { return string(n) + "start" }

func (n names) run(id string) string { return string(n) + "run-" + id }

// startLimit bounds the wait for other processes that are about to announce a run. Each takes less than a millisecond.
const startLimit = 5 * time.Second

var errStart = fmt.Errorf("another process is about to start a run, and has not finished within %v", startLimit)

// Take announces a run, unless others are under way: then it returns them and no turn.
func Take(ctx context.Context, id string) (*Turn, []Other, error) {
	return machine.take(ctx, id, false)
}

// Await is Take after the end of all other runs. report receives them before each wait.
func Await(ctx context.Context, id string, report func(runs []Other)) (*Turn, error) {
	return machine.await(ctx, id, report)
}

func (n names) await(ctx context.Context, id string, report func(runs []Other)) (*Turn, error) {
	for {
		t, runs, err := n.take(ctx, id, false)
		if t != nil || err != nil {
			return t, err
		}
		report(runs)
		if err := runs[0].Wait(ctx); err != nil {
			return nil, err
		}
	}
}

// Join announces a run also if others are under way. It returns them. Their Joined returns this run.
func Join(ctx context.Context, id string) (*Turn, []Other, error) { return machine.take(ctx, id, true) }

func (n names) take(ctx context.Context, id string, join bool) (*Turn, []Other, error) {
	start, err := n.lock(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("look for other runs on this machine: %w", err)
	}
	defer func() { _ = start.Close() }()
	runs, err := n.others(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("look for other runs on this machine: %w", err)
	}
	if len(runs) > 0 && !join {
		return nil, runs, nil
	}
	socket, err := listen(ctx, n.run(id))
	if err != nil {
		return nil, nil, fmt.Errorf("announce run %s on this machine: %w", id, err)
	}
	for _, o := range runs {
		o.tell(ctx, id)
	}
	return &Turn{id: id, socket: socket}, runs, nil
}

// lock waits until no other process is about to announce a run.
func (n names) lock(ctx context.Context) (*net.UnixListener, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, errStart)
	defer cancel()
	for {
		l, err := listen(ctx, n.start())
		if !errors.Is(err, unix.EADDRINUSE) {
			return l, err
		}
		if err := wait(ctx, n.start()); err != nil {
			return nil, err
		}
	}
}

func listen(ctx context.Context, name string) (*net.UnixListener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", name)
	if err != nil {
		return nil, err
	}
	return l.(*net.UnixListener), nil
}

// wait returns when the socket with this name has disappeared.
func wait(ctx context.Context, name string) error {
	conn, err := dial(ctx, name)
	if errors.Is(err, unix.ECONNREFUSED) {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })() // long ago
	_, _ = conn.Read(make([]byte, 1))                                                    // it ends with an error or a closed connection
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func dial(ctx context.Context, name string) (*net.UnixConn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", name)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}

// Wait returns when the run has ended.
func (o Other) Wait(ctx context.Context) error {
	if err := wait(ctx, o.names.run(o.ID)); err != nil {
		return fmt.Errorf("wait for the end of %v: %w", o, err)
	}
	return nil
}

// others lists the announced runs.
func (n names) others(ctx context.Context) ([]Other, error) {
	// The main thread, which /proc/net shows, may be in another network namespace.
	f, err := os.Open("/proc/thread-self/net/unix")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	pattern := regexp.MustCompile(" " + regexp.QuoteMeta(n.run("")) + idPattern + "$")
	var ids []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// Unaccepted connections of a socket have its name, too.
		if m := pattern.FindStringSubmatch(lines.Text()); m != nil && !slices.Contains(ids, m[1]) {
			ids = append(ids, m[1])
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	slices.Sort(ids)
	var runs []Other
	for _, id := range ids {
		o := Other{ID: id, UID: unknownUser, names: n}
		switch conn, err := dial(ctx, n.run(id)); {
		case errors.Is(err, unix.ECONNREFUSED):
			continue // it has just ended
		case err == nil:
			o.PID, o.UID = peer(conn)
			o.User = userName(o.UID)
			_ = conn.Close()
		}
		runs = append(runs, o)
	}
	return runs, nil
}

// idPattern is the form of run IDs. Other users may choose any name for a socket.
const idPattern = `([0-9]{8}-[0-9]{6}-[a-z2-7]{4})`

// unknownUser stands for the user of a socket that the kernel does not name.
const unknownUser = -1

// peer returns the process that made the socket, and its user, from the kernel.
func peer(conn *net.UnixConn) (pid, uid int) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, unknownUser
	}
	uid = unknownUser
	_ = raw.Control(func(fd uintptr) {
		if c, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid, uid = int(c.Pid), int(c.Uid)
		}
	})
	return pid, uid
}

func userName(uid int) string {
	if uid == unknownUser {
		return ""
	}
	id := strconv.Itoa(uid)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

// joined begins the message of a run that joins another one.
const joined = "joined "

// tell sends a message to the run. It fails if the run has just ended, or if many processes have connected to it. The message waits in
// the socket's queue until Joined.
func (o Other) tell(ctx context.Context, id string) {
	conn, err := dial(ctx, o.names.run(o.ID))
	if err != nil {
		return
	}
	_, _ = conn.Write([]byte(joined + id))
	_ = conn.Close()
}

// maxConnections bounds the connections that one call of Joined reads.
const maxConnections = 10_000

// Joined lists the runs that have joined since the last call. It is for the end of the measurement.
func (t *Turn) Joined() ([]string, error) {
	raw, err := t.socket.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("list the runs beside run %s: %w", t.id, err)
	}
	var ids []string
	message := regexp.MustCompile("^" + joined + idPattern + "$")
	text := make([]byte, 64)
	// The socket is not blocking, so the calls return at once.
	err = raw.Control(func(fd uintptr) {
		for range maxConnections {
			conn, _, err := unix.Accept4(int(fd), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
			if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ECONNABORTED) {
				continue
			}
			if err != nil {
				return
			}
			n, err := unix.Read(conn, text)
			if errors.Is(err, unix.EAGAIN) {
				t.waiting = append(t.waiting, conn)
				continue
			}
			_ = unix.Close(conn)
			if m := message.FindSubmatch(text[:max(n, 0)]); m != nil && !slices.Contains(ids, string(m[1])) {
				ids = append(ids, string(m[1]))
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list the runs beside run %s: %w", t.id, err)
	}
	return ids, nil
}

// End ends the turn. It is idempotent.
func (t *Turn) End() {
	_ = t.socket.Close()
	for _, conn := range t.waiting {
		_ = unix.Close(conn)
	}
	t.waiting = nil
}

// List joins the descriptions of runs for a message.
func List(runs []Other) string {
	var texts []string
	for _, o := range runs {
		texts = append(texts, o.String())
	}
	return wording.Listed(texts)
}

// UnderWay states that the runs are under way.
func UnderWay(runs []Other) string {
	verb := "is"
	if len(runs) > 1 {
		verb = "are"
	}
	return fmt.Sprintf("%s on this machine %s under way", List(runs), verb)
}
