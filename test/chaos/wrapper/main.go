// Command wrapper is a runtime that goes wrong as its script says, and otherwise executes the real runtime in its place. Each
// wrapped runtime is a copy of this program in a directory of its own, because engines start it with various environments.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/test/chaos/script"
)

// hangingVariable makes the program hang at once, as the child of script.Escape.
const hangingVariable = "CHAOS_HANGING"

func main() {
	if os.Getenv(hangingVariable) != "" {
		hang()
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "wrapper:", err)
		os.Exit(1)
	}
}

func run() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir := filepath.Dir(self)
	var s script.Script
	text, err := os.ReadFile(filepath.Join(dir, script.File))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	verb := verbOf(os.Args[1:])
	n, err := record(filepath.Join(dir, script.Calls), verb)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(s.Rules, func(r script.Rule) bool {
		return r.Verb == verb && n >= r.From && (r.Until == 0 || n <= r.Until)
	})
	if i >= 0 {
		reach(filepath.Join(dir, script.Reached))
		if done, err := apply(s.Rules[i], self); done || err != nil {
			return err
		}
	}
	return syscall.Exec(s.Real, append([]string{s.Real}, os.Args[1:]...), os.Environ())
}

var verbs = []string{"create", "run", "start", "state", "kill", "delete", "exec", "pause", "resume", "update", "ps", "list", "features"}

// verbOf returns the verb of a call: the first argument that is a verb, because flags with values may precede it.
func verbOf(args []string) string {
	for _, arg := range args {
		switch {
		case arg == "--version" || arg == "-v":
			return "version"
		case slices.Contains(verbs, arg):
			return arg
		}
	}
	return ""
}

// record appends a call to the list, and returns the number of calls of the verb so far.
func record(path, verb string) (n int, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return 0, err
	}
	line, err := json.Marshal(script.Call{Verb: verb, PID: os.Getpid(), Args: os.Args[1:]})
	if err != nil {
		return 0, err
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		return 0, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if bytes.HasPrefix(lines.Bytes(), []byte(`{"Verb":"`+verb+`"`)) {
			n++
		}
	}
	return n, lines.Err()
}

// reach writes a byte to a pipe if a process reads it.
func reach(pipe string) {
	if f, err := os.OpenFile(pipe, os.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
		_, _ = f.Write([]byte{'\n'}) // a full pipe has enough of them
		_ = f.Close()
	}
}

// apply causes the fault of a rule. done means that the call is not forwarded.
func apply(r script.Rule, self string) (done bool, err error) {
	switch r.Fault {
	case script.Lie:
		return true, nil
	case script.Fail:
		return true, errors.New("failed as the script says")
	case script.Hold:
		f, err := os.Open(filepath.Join(filepath.Dir(self), script.Go))
		if err == nil {
			_, err = f.Read(make([]byte, 1))
			_ = f.Close()
		}
		return false, err
	case script.Hang:
		hang()
	case script.Escape:
		if _, err := syscall.ForkExec(self, os.Args, &syscall.ProcAttr{
			Env: append(os.Environ(), hangingVariable+"=1"), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true},
		}); err != nil {
			return true, err
		}
		hang()
	case script.FloodOutput:
		flood(os.Stdout, r.Size)
	case script.FloodError:
		flood(os.Stderr, r.Size)
	case script.FloodLog:
		if i := slices.Index(os.Args, "--log"); i >= 0 && i+1 < len(os.Args) {
			f, err := os.OpenFile(os.Args[i+1], os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
			if err != nil {
				return true, err
			}
			flood(f, r.Size)
			return false, f.Close()
		}
	}
	return false, nil
}

// flood writes size bytes, or fewer if the reader closes the pipe.
func flood(f *os.File, size int64) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // an ignored signal would stay ignored in the runtime
	line := bytes.Repeat([]byte("flood "), 10_000)
	for size > 0 {
		n, err := f.Write(line[:min(int64(len(line)), size)])
		if err != nil {
			return
		}
		size -= int64(n)
	}
}

func hang() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals)
	for range signals {
	}
}
