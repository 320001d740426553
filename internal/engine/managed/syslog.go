package managed

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// syslogPath is the socket of the system's log for programs in a daemon's namespace. Programs try /dev/log first, which is on
// most hosts a link into /run, and then this path. A daemon sees no /run of the host, so its programs would have no log, and
// Kata's shim refuses to work without one.
const syslogPath = "/run/log"

const (
	// maxMessage bounds a message, in bytes.
	maxMessage = 8 << 10
	// keptComplaints is the number of last errors that are kept for messages, and maxComplaint bounds each, in bytes.
	keptComplaints = 5
	maxComplaint   = 400
)

// syslog receives the messages of the programs in a daemon's namespace, and writes them to a file.
type syslog struct {
	conn  *net.UnixConn
	ended chan struct{} // closed when no more messages come

	mu         sync.Mutex
	complaints []string // the last messages of errors
}

// openSyslog makes the socket in the mount namespace of a running daemon. The namespace's own tmpfs holds it, so that it disappears
// with the namespace, and no process of the host can reach it.
func openSyslog(pid int, file string) (*syslog, error) {
	var host, daemonStat unix.Stat_t
	dir := filepath.Dir(syslogPath)
	daemonDir := fmt.Sprintf("/proc/%d/root%s", pid, dir)
	if err := errors.Join(unix.Stat(dir, &host), unix.Stat(daemonDir, &daemonStat)); err != nil {
		return nil, fmt.Errorf("make a system log: %w", err)
	}
	if host.Dev == daemonStat.Dev && host.Ino == daemonStat.Ino {
		return nil, fmt.Errorf("make a system log: process %d sees the host's %s", pid, dir)
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(daemonDir, filepath.Base(syslogPath)), Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("make a system log: %w", err)
	}
	log := &syslog{conn: conn, ended: make(chan struct{})}
	go log.receive(file)
	return log, nil
}

// receive writes the messages to a file of limited size until the socket is closed.
func (l *syslog) receive(file string) {
	defer close(l.ended)
	out := rotation{file: file}
	defer func() { _ = out.close() }()
	buffer := make([]byte, maxMessage)
	for {
		n, err := l.conn.Read(buffer)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		message := append(bytes.TrimRight(bytes.ReplaceAll(buffer[:n], []byte("\n"), []byte(" ")), " \x00"), '\n')
		l.note(string(message))
		_, _ = out.Write(message) // it returns no error
	}
}

// header is the beginning of a message: its priority and time.
var header = regexp.MustCompile(`^<(\d{1,3})>(?:\w{3} [ \d]\d [\d:]{8} |\d{4}-\S+ )?`)

// complaint is a message about an error, by its priority or in the form of Kata's programs.
func complaint(message string) (string, bool) {
	found := header.FindStringSubmatch(message)
	if found == nil {
		return "", false
	}
	text := strings.TrimSpace(message[len(found[0]):])
	priority, _ := strconv.Atoi(found[1]) // digits
	const severities, worst = 8, 3        // 3 is an error, and lower ones are worse
	isSevere := priority%severities <= worst || strings.Contains(text, "level=error") || strings.Contains(text, "level=fatal")
	return text, isSevere
}

// note keeps a message if it is a complaint, once.
func (l *syslog) note(message string) {
	text, isSevere := complaint(message)
	if !isSevere {
		return
	}
	text = strings.ToValidUTF8(text[:min(len(text), maxComplaint)], "")
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.complaints, text) {
		return
	}
	if l.complaints = append(l.complaints, text); len(l.complaints) > keptComplaints {
		l.complaints = l.complaints[1:]
	}
}

// take returns the last complaints for an error, and forgets them: they do not explain a later error.
func (l *syslog) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.complaints) == 0 {
		return ""
	}
	text := "; the last errors in its system log:\n" + strings.Join(l.complaints, "\n")
	l.complaints = nil
	return text
}

func (l *syslog) close() error {
	err := l.conn.Close()
	<-l.ended
	return err
}
