package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/store"
	"github.com/touchstone-bench/touchstone/test/chaos/script"
	"github.com/touchstone-bench/touchstone/test/record"
)

// patience is the time after which a program counts as hanging, also on a busy machine.
const patience = 5 * time.Minute

// lifecycle is the benchmark of most cases.
const lifecycle = "operations.container.lifecycle"

// program is a running touchstone.
type program struct {
	h      *host
	dir    string
	cmd    *exec.Cmd
	began  time.Time
	stdout bytes.Buffer
	stderr lockedBuffer
	done   chan struct{} // closed after the exit
	took   time.Duration // valid after the exit
}

// lockedBuffer can be read while a program writes to it.
type lockedBuffer struct {
	sync.Mutex
	b bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.Lock()
	defer b.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.Lock()
	defer b.Unlock()
	return b.b.String()
}

// newDir makes a directory for the output of a run.
func (h *host) newDir() string {
	h.Helper()
	dir, err := os.MkdirTemp(h.dir, "run")
	h.must(err)
	return dir
}

// start starts touchstone in a directory. change may change the command before.
func (h *host) start(dir string, change func(*exec.Cmd), args ...string) *program {
	h.Helper()
	return h.startFor(patience, dir, change, args...)
}

func (h *host) startFor(limit time.Duration, dir string, change func(*exec.Cmd), args ...string) *program {
	h.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	h.Cleanup(cancel)
	p := &program{h: h, dir: dir, cmd: exec.CommandContext(ctx, "touchstone", args...), done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, &p.stdout, &p.stderr
	p.cmd.WaitDelay = 10 * time.Second // a leftover may hold the pipes
	p.cmd.SysProcAttr = &syscall.SysProcAttr{}
	if change != nil {
		change(p.cmd)
	}
	p.began = time.Now()
	h.must(p.cmd.Start())
	go func() {
		_ = p.cmd.Wait() // ends checks the state
		p.took = time.Since(p.began)
		close(p.done)
	}()
	h.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have exited
		p.exited()
	})
	return p
}

// touchstone runs touchstone and checks its exit code.
func (h *host) touchstone(dir string, code int, args ...string) *program {
	h.Helper()
	p := h.start(dir, nil, args...)
	p.ends(code)
	return p
}

// benchmark starts a benchmark beside others.
func (h *host) benchmark(dir string, args ...string) *program {
	h.Helper()
	return h.start(dir, nil, benchmarkArgs(args...)...)
}

// benchmarkArgs are the arguments of a benchmark beside others.
func benchmarkArgs(args ...string) []string {
	return append([]string{"benchmark", "--allow-concurrent"}, args...)
}

// ends waits for the exit and checks its code, which is -1 after a signal.
func (p *program) ends(codes ...int) time.Duration {
	p.h.Helper()
	took := p.exited()
	if got := p.cmd.ProcessState.ExitCode(); !slices.Contains(codes, got) {
		p.h.wrong("touchstone %s exited with code %d (%v) after %v, want %v\n%s", strings.Join(p.cmd.Args[1:], " "), got, p.cmd.ProcessState, took.Round(time.Second), codes, p.output())
	}
	if strings.Contains(p.stderr.String(), "goroutine ") {
		p.h.wrong("touchstone %s crashed\n%s", p.cmd.Args[1], p.output())
	}
	return took
}

// exited waits for the exit, and returns how long the program ran.
func (p *program) exited() time.Duration {
	<-p.done
	return p.took
}

// output returns the end of the program's messages.
func (p *program) output() string {
	text := p.stderr.String()
	return text[max(0, len(text)-4000):]
}

func (p *program) signal(s syscall.Signal) {
	p.h.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.h.Fatal(err)
	}
}

// cleanUp removes the leftovers of killed runs. A daemon that still works on a request of a killed client may refuse a removal. The clean-up then
// fails with the reason, and another one must work.
func (h *host) cleanUp(change func(*exec.Cmd)) *program {
	h.Helper()
	cleanup := h.start(h.newDir(), change, "cleanup")
	cleanup.exited()
	if code := cleanup.cmd.ProcessState.ExitCode(); code == 1 {
		record.Repeat(h, fmt.Sprintf("touchstone cleanup exited with code %d: %s", code, cleanup.output()))
		cleanup = h.start(h.newDir(), change, "cleanup")
	}
	cleanup.ends(0)
	return cleanup
}

// runs returns the recorded runs of a directory, none if there is no database yet, or an empty one.
func (h *host) runs(dir string) []result.Run {
	h.Helper()
	if _, err := os.Stat(filepath.Join(dir, "out", "touchstone.db")); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	list := h.start(dir, nil, "runs", "-o", "json")
	if list.exited(); list.cmd.ProcessState.ExitCode() == 1 && strings.Contains(list.stderr.String(), store.ErrEmpty.Error()) {
		return nil // the run was killed before its record
	}
	list.ends(0)
	var ids []struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(list.stdout.Bytes(), &ids); err != nil {
		h.Fatalf("read the list of runs: %v\n%s", err, &list.stdout)
	}
	var runs []result.Run
	for _, run := range ids {
		p := h.start(dir, nil, "export", run.ID)
		p.ends(0)
		document, err := result.Decode(&p.stdout)
		h.must(err)
		runs = append(runs, document.Runs...)
	}
	return runs
}

// run returns the only recorded run of a directory.
func (h *host) run(dir string) result.Run {
	h.Helper()
	runs := h.runs(dir)
	if len(runs) != 1 {
		h.Fatalf("%d runs are recorded in %s, want one", len(runs), dir)
	}
	return runs[0]
}

func count(run result.Run, target string) map[result.Status]int {
	n := map[result.Status]int{}
	for i := range run.Trials {
		if t := &run.Trials[i]; t.Target == target && !t.Warmup {
			n[t.Status]++
		}
	}
	return n
}

type wrapped struct {
	h         *host
	real      string
	dir, path string
}

// wrap makes a runtime that goes wrong by rules, and is runc otherwise.
func (h *host) wrap(rules ...script.Rule) *wrapped {
	h.Helper()
	real, err := exec.LookPath("runc")
	if err != nil {
		h.skip("%v", err)
	}
	r := &wrapped{h: h, real: real, dir: h.newDir()}
	r.path = filepath.Join(r.dir, "wrapped")
	r.rules(rules...)
	for _, pipe := range []string{script.Reached, script.Go} {
		if err == nil {
			err = unix.Mkfifo(filepath.Join(r.dir, pipe), 0o600)
		}
	}
	if err == nil {
		var program []byte
		if program, err = os.ReadFile(filepath.Join(programs, "wrapper")); err == nil {
			err = os.WriteFile(r.path, program, 0o700)
		}
	}
	h.must(err)
	return r
}

func (r *wrapped) rules(rules ...script.Rule) {
	r.h.Helper()
	text, err := json.Marshal(script.Script{Real: r.real, Rules: rules})
	if err == nil {
		err = os.WriteFile(filepath.Join(r.dir, script.File), text, 0o600)
	}
	r.h.must(err)
}

func (r *wrapped) flag(name string) []string { return []string{"--runtime", name + "=" + r.path} }

func (r *wrapped) calls(verb string) (calls []script.Call) {
	r.h.Helper()
	f, err := os.Open(filepath.Join(r.dir, script.Calls))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	r.h.must(err)
	defer func() { _ = f.Close() }()
	for d := json.NewDecoder(f); d.More(); {
		var c script.Call
		r.h.must(d.Decode(&c))
		if verb == "" || c.Verb == verb {
			calls = append(calls, c)
		}
	}
	return calls
}

// reached waits until a rule applies.
func (r *wrapped) reached(p *program) {
	r.h.Helper()
	// A pipe that is opened for writing too supports a deadline.
	f, err := os.OpenFile(filepath.Join(r.dir, script.Reached), os.O_RDWR, 0)
	if err == nil {
		defer func() { _ = f.Close() }()
		err = f.SetReadDeadline(time.Now().Add(patience))
	}
	if err == nil {
		go func() {
			<-p.done
			_ = f.SetReadDeadline(time.Now())
		}()
		_, err = f.Read(make([]byte, 1))
	}
	if err != nil {
		_ = p.cmd.Process.Kill()
		p.exited()
		r.h.Fatalf("wait for a call of the wrapped runtime: %v: %v\n%s", err, p.cmd.ProcessState, p.output())
	}
}

// release lets a held call continue. It does not wait for the call, which may have been killed.
func (r *wrapped) release() {
	r.h.Helper()
	f, err := os.OpenFile(filepath.Join(r.dir, script.Go), os.O_RDWR, 0)
	if err == nil {
		_, err = f.Write([]byte{'\n'})
		r.h.Cleanup(func() { _ = f.Close() }) // the pipe loses the byte without a reader
	}
	r.h.must(err)
}
