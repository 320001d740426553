package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A step is one command of the suite.
type step struct {
	name string
	// after has the names of the steps that must end before.
	after []string
	// args are the command, which runs in the root of the checkout.
	args []string
	env  []string
	// late returns further variables when the step begins; nil without any.
	late func(context.Context) ([]string, error)
	// parts are the names of scripts/runtimes.sh whose directories precede PATH.
	parts []string
	// tools are the names of scripts/tools.sh whose directories precede PATH.
	tools []string
	// tests means that the command prints events of go test -json.
	tests bool
	// limit ends the step.
	limit time.Duration
	// gentle lowers the priority of the step, below the tests of engines: see gentleness.
	gentle bool
}

// outcome is the end of a step.
type outcome struct {
	step    step
	err     error
	elapsed time.Duration
	// cpu is the time of CPU of all its processes that have ended before the command.
	cpu   time.Duration
	tests results
}

// gentleness is the niceness of a gentle step. With 5 the step has a third of the weight of a program with normal priority, so that it goes on beside
// busy programs of the machine. With 10 the step has a tenth: the pure tests took more than 40 minutes for 6 minutes of CPU beside two busy loops.
const gentleness = 5

// grace is the time between SIGINT and SIGKILL. Scripts remove their files in it, the campaign its hosts, and engine tests their sessions. go test ends at once with SIGTERM, and waits
// for its tests after SIGINT. Other tests end at once: touchstone cleanup removes the rest of their runs.
const grace = 20 * time.Second

// choose returns the named steps and all steps before them, in the order of the list.
func choose(steps []step, names []string) ([]step, error) {
	if len(names) == 0 {
		return steps, nil
	}
	selection := make(map[string]bool)
	var add func(name string) error
	add = func(name string) error {
		n := slices.IndexFunc(steps, func(s step) bool { return s.name == name })
		if n < 0 {
			var options []string
			for _, s := range steps {
				options = append(options, s.name)
			}
			return fmt.Errorf("no step is named %q; the steps are %s", name, strings.Join(options, ", "))
		}
		selection[name] = true
		for _, predecessor := range steps[n].after {
			if !strings.HasPrefix(predecessor, orderOnly) {
				if err := add(predecessor); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, name := range names {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(slices.Clone(steps), func(s step) bool { return !selection[s.name] }), nil
}

// orderOnly marks a step in step.after that only comes first: its failure does not matter, and -only does not select it.
const orderOnly = "~"

// runAll runs the steps, each as soon as the steps before it have ended. It returns their outcomes in the order of the list.
func (s *suite) runAll(ctx context.Context, steps []step) []outcome {
	outcomes := make([]outcome, len(steps))
	ends := make(map[string]chan struct{})
	index := make(map[string]int)
	for n, st := range steps {
		ends[st.name], index[st.name] = make(chan struct{}), n
	}
	var wg sync.WaitGroup
	for n, st := range steps {
		wg.Go(func() {
			defer close(ends[st.name])
			outcomes[n].step = st
			for _, predecessor := range st.after {
				name, order := strings.CutPrefix(predecessor, orderOnly)
				ch, ok := ends[name]
				if !ok {
					continue
				}
				<-ch
				if outcomes[index[name]].err != nil && !order {
					outcomes[n].err = fmt.Errorf("not run, because step %s failed", name)
					return
				}
			}
			if ctx.Err() != nil {
				outcomes[n].err = errors.New("not run, because the suite is interrupted")
				return
			}
			outcomes[n] = s.runStep(ctx, st)
		})
	}
	wg.Wait()
	return outcomes
}

// runStep runs one step, with its output in a file.
func (s *suite) runStep(ctx context.Context, st step) outcome {
	start := time.Now()
	s.log.printf("%s begins", st.name)
	file := filepath.Join(s.out, st.name+".log")
	o := outcome{step: st}
	o.tests, o.cpu, o.err = s.execute(ctx, st, file)
	o.elapsed = time.Since(start)
	if o.err == nil {
		s.log.printf("%s ended, %s", st.name, seconds(o.elapsed))
		return o
	}
	s.log.printf("%s FAILED after %s: %v", st.name, seconds(o.elapsed), o.err)
	if len(o.tests.failures) == 0 {
		s.log.text(tail(file, 40))
	}
	return o
}

func (s *suite) execute(ctx context.Context, st step, file string) (tests results, cpu time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, st.limit, fmt.Errorf("it took longer than its limit of %v", st.limit))
	defer cancel()
	path, err := s.path(ctx, st)
	if err != nil {
		return results{}, 0, err
	}
	env := st.env
	if st.late != nil {
		variables, err := st.late(ctx)
		if err != nil {
			return results{}, 0, err
		}
		env = append(slices.Clone(env), variables...)
	}
	log, err := os.Create(file)
	if err != nil {
		return results{}, 0, err
	}
	defer func() { _ = log.Close() }()
	args := st.args
	if st.gentle {
		args = append([]string{"nice", "-n", strconv.Itoa(gentleness)}, args...)
	}
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Dir = s.root
	command.Env = append(append(os.Environ(), "PATH="+path), env...)
	command.Stdout, command.Stderr = log, log
	// The group is signalled as a whole: go test, its test binaries, and the programs of scripts.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGINT) }
	command.WaitDelay = grace
	defer func() {
		if command.Process != nil {
			_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) // no process of the step outlives it
		}
	}()
	run := func() error {
		err := command.Run()
		if state := command.ProcessState; state != nil {
			cpu = state.UserTime() + state.SystemTime()
		}
		if err != nil && ctx.Err() != nil {
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return err
	}
	if !st.tests {
		err = run()
		return tests, cpu, err
	}
	r, w := io.Pipe()
	command.Stdout = w
	found := make(chan results)
	go func() {
		found <- readEvents(r, log, func(f failure) { s.log.text(f.String()) })
	}()
	err = run()
	_ = w.Close()
	tests = <-found
	switch {
	case err != nil:
	case tests.passed+len(tests.failures)+tests.skipped == 0:
		err = errors.New("no test ran")
	case len(tests.failures) > 0:
		err = fmt.Errorf("%d tests failed", len(tests.failures))
	}
	return tests, cpu, err
}

// path returns PATH with the directories of the step's parts, which are installed, and of its tools, which are built.
func (s *suite) path(ctx context.Context, st step) (string, error) {
	path := filepath.Join(s.root, "bin") + ":" + os.Getenv("PATH")
	if len(st.parts) > 0 {
		dirs, err := s.installed(ctx, st.parts...)
		if err != nil {
			return "", err
		}
		path = dirs + ":" + path
	}
	if len(st.tools) > 0 {
		dirs, err := exec.CommandContext(ctx, filepath.Join(s.root, "scripts/tools.sh"), st.tools...).Output()
		if err != nil {
			return "", fmt.Errorf("find the tools %s: %w", strings.Join(st.tools, " "), err)
		}
		path = strings.TrimSpace(string(dirs)) + ":" + path
	}
	return path, nil
}

// installed returns the directories of parts that are installed, joined as in PATH.
func (s *suite) installed(ctx context.Context, parts ...string) (string, error) {
	output, err := exec.CommandContext(ctx, filepath.Join(s.root, "scripts/runtimes.sh"), append([]string{"--cached"}, parts...)...).Output()
	if err != nil {
		return "", fmt.Errorf("find the runtimes %s: %w", strings.Join(parts, " "), err)
	}
	return strings.TrimSpace(string(output)), nil
}

// containerds returns the variable that names further versions of containerd for the tests: Debian's, and the one before the newest.
func (s *suite) containerds(ctx context.Context) ([]string, error) {
	const variable = "TOUCHSTONE_CONTAINERDS"
	if _, exists := os.LookupEnv(variable); exists || !s.runs("containerd/versions") {
		return nil, nil
	}
	dir, err := s.installed(ctx, earlierContainerd)
	if err != nil {
		return nil, err
	}
	binaries := filepath.Join(dir, "containerd")
	if debian, err := exec.LookPath("containerd"); err == nil {
		binaries = debian + ":" + binaries // the oldest comes first
	}
	return []string{variable + "=" + binaries}, nil
}

// tail returns the last lines of a file.
func tail(file string, lines int) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error() + "\n"
	}
	parts := strings.SplitAfter(string(text), "\n")
	return strings.Join(parts[max(0, len(parts)-lines):], "")
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }
