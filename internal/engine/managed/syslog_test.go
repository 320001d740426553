package managed_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine/managed"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// dialSyslog connects to the socket in a daemon's namespace, as Kata's shim does.
func dialSyslog(t *testing.T, d *managed.Daemon) net.Conn {
	t.Helper()
	conn, err := net.Dial("unixgram", fmt.Sprintf("/proc/%d/root/run/log", d.Daemon().PIDs[0]))
	must.Do(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// The programs of a daemon have a system log of their own, whose errors are kept.
func TestSyslog(t *testing.T) {
	s := session(t)
	baseline, hostErr := os.Lstat("/run/log")
	c := daemon(t, s, `echo ready >"$FIFO"; sleep 100`)
	c.Syslog = true
	d := start(t, s, c)
	if d.Complaints() != "" {
		t.Errorf("complaints of a new daemon: %s", d.Complaints())
	}
	conn := dialSyslog(t, d)
	for _, message := range []string{
		"<30>Nov 22 23:00:00 kata[12]: time=\"x\" level=info msg=\"all is well\"\n",
		"<27>2026-11-22T23:00:00Z host kata[12]: the agent does not answer\nat all\x00",
		"<30>Nov  2 23:00:00 kata[12]: level=error msg=\"qemu exited\"",
		"no header", "<", "",
	} {
		if _, err := conn.Write([]byte(message)); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 { // equal ones count once
		if _, err := fmt.Fprintf(conn, "<3>again"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := fmt.Fprintf(conn, "<3>the end"); err != nil {
		t.Fatal(err)
	}
	if !d.WaitSyslog("the end") {
		t.Fatalf("complaints %q lack %q", d.Complaints(), "the end")
	}
	got := d.Complaints()
	for _, want := range []string{"the agent does not answer at all", `level=error msg="qemu exited"`} {
		if !strings.Contains(got, want) {
			t.Errorf("complaints %q lack %q", got, want)
		}
	}
	if strings.Contains(got, "well") || strings.Count(got, "again") != 1 {
		t.Errorf("complaints %q, want errors only, and each once", got)
	}
	if repeat := d.Complaints(); repeat != "" {
		t.Errorf("the second call returns the complaints again: %q", repeat)
	}
	if text, err := os.ReadFile(filepath.Join(d.Dirs().State, "syslog")); err != nil || !strings.Contains(string(text), "all is well") {
		t.Errorf("the file of messages has %q, %v", text, err)
	}
	if info, err := os.Lstat("/run/log"); (err == nil) != (hostErr == nil) || err == nil && !os.SameFile(baseline, info) {
		t.Errorf("the host's /run/log changed: %v, %v before", err, hostErr)
	}
}

// The messages of a program that writes without end fill neither the disk nor the memory.
func TestSyslogIsBounded(t *testing.T) {
	s := session(t)
	c := daemon(t, s, `echo ready >"$FIFO"; sleep 100`)
	c.Syslog = true
	d := start(t, s, c)
	conn := dialSyslog(t, d)
	line := []byte("<3>" + strings.Repeat("x", 7000))
	for i := range 400 { // 2.8 MB
		if _, err := conn.Write(append(line, byte('0'+i%10))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Write([]byte("<3>last")); err != nil {
		t.Fatal(err)
	}
	if !d.WaitSyslog("last") {
		t.Fatalf("complaints %q lack %q", d.Complaints(), "last")
	}
	if got := d.Complaints(); len(got) > 5*400+200 {
		t.Errorf("complaints of %d bytes", len(got))
	}
	var size int64
	for _, name := range []string{"syslog", "syslog.old"} {
		info, err := os.Stat(filepath.Join(d.Dirs().State, name))
		must.Do(t, err)
		size += info.Size()
	}
	if size > 3<<20 {
		t.Errorf("the files have %d bytes", size)
	}
}

// The children of a killed daemon are killed before it is restarted. The new one has a log again, in its new namespace.
func TestRestart(t *testing.T) {
	s := session(t)
	c := daemon(t, s, `sleep 1000 & echo ready >"$FIFO"; wait`)
	c.Syslog = true
	d := start(t, s, c)
	if victims := restart(t, d); s.Cgroups != nil && lives(t, victims[1]) || d.Daemon().PIDs[0] == victims[0] {
		t.Errorf("the processes are %v, and the killed daemon had %v", d.Daemon().PIDs, victims)
	}
	conn := dialSyslog(t, d)
	if _, err := conn.Write([]byte("<3>after the restart")); err != nil {
		t.Fatal(err)
	}
	if !d.WaitSyslog("after the restart") {
		t.Fatalf("complaints %q lack %q", d.Complaints(), "after the restart")
	}
}
