package fake

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
)

// program is a command line of the probe, or of an installed program.
type program struct {
	args     []string // after the program's own name
	spec     engine.Spec
	scripted Program // nil for the probe
	host     *host
}

// Program is a program of a test, other than the probe.
type Program func(args []string, spec engine.Spec) Behaviour

// Behaviour is the behaviour of a scripted process: it runs for a time, writes its output and exits.
type Behaviour struct {
	Took           time.Duration
	Stdout, Stderr string
	Exit           engine.Exit
}

// echo writes its arguments, so that plans with fake targets can produce any output.
func echo(args []string, _ engine.Spec) Behaviour {
	return Behaviour{Stdout: strings.Join(args, " ") + "\n"}
}

// behaviour is the behaviour of a process.
type behaviour struct {
	first     string // written to Stdout at once
	length    time.Duration
	endless   bool
	result    string // written to Stdout at the exit
	complaint string // written to Stderr at the exit
	exit      engine.Exit
	server    *server // answers from the first instruction to the exit; nil for most
	graceful  bool    // exits with code 0 on SIGTERM
}

// probe is the path of the probe in images.
const probe = "/probe"

// loadProgram finds the program in the imagined root file system. A missing program is an error before the process runs, as with a
// runtime.
func (h *host) loadProgram(args []string, spec engine.Spec) (program, error) {
	if len(args) == 0 {
		return program{}, fmt.Errorf("the process has no arguments")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	scripted, ok := h.programs[args[0]]
	if !ok && args[0] != probe {
		return program{}, fmt.Errorf("execute %q: no such file or directory: the fake engine has only %s",
			args[0], strings.Join(append([]string{probe}, slices.Sorted(maps.Keys(h.programs))...), ", "))
	}
	return program{args: args[1:], spec: spec, scripted: scripted, host: h}, nil
}

// begin returns the behaviour of process number of e, in a container with the given index. A server starts to listen here.
func (p program) begin(e *Engine, index, number int) behaviour {
	var b behaviour
	if p.scripted != nil {
		scripted := p.scripted(p.args, p.spec)
		b = behaviour{length: scripted.Took, result: scripted.Stdout, complaint: scripted.Stderr, exit: scripted.Exit}
	} else {
		b = p.plan(func(name string) float64 { return e.noise(name, index) / e.script.score })
	}
	if slices.Contains(e.script.garbage, number) {
		const garbage = "\x00\xff{\"metric\": gar\n"
		if b.first != "" || b.result == "" { // also for a process without output
			b.first = garbage
		}
		if b.result != "" {
			b.result = garbage
		}
	}
	return b
}

// killed returns the exit of the process after a signal, and whether the signal ends it.
func (b behaviour) killed(signal syscall.Signal) (engine.Exit, bool) {
	switch signal {
	case 0, syscall.SIGCHLD, syscall.SIGCONT, syscall.SIGURG, syscall.SIGWINCH:
		return engine.Exit{}, false
	case syscall.SIGTERM:
		if b.graceful {
			return engine.Exit{}, true
		}
	}
	return engine.Exit{Signal: signal}, true
}

// plan imitates the probe.
func (p program) plan(slow slowness) behaviour {
	if len(p.args) == 0 {
		return fails(2, "usage: probe COMMAND [OPTION]...")
	}
	command := p.args[0]
	switch command {
	case "exit":
		return planExit(p.args[1:])
	case "write":
		return p.planWrite()
	case "sequence":
		return p.planSequence()
	}
	allowed, ok := commands()[command]
	if !ok {
		return fails(2, "probe: unknown command %s", command)
	}
	o, err := readOptions(p.args[1:], allowed)
	if err != nil {
		return fails(2, "%s: %v", command, err)
	}
	length := time.Duration(o.number("--ms", 1000)) * time.Millisecond // the probe's default
	switch command {
	case "ready":
		return behaviour{first: "ready\n", endless: true, graceful: true}
	case "serve":
		return planServe(p.spec.Network, o.number("--port", 0))
	case "syscall":
		return behaviour{length: length, result: syscallReport(slow, o.number("--copies", 1))}
	case "stream":
		return behaviour{length: length, result: streamReport(slow)}
	case "latency":
		return behaviour{length: length, result: latencyReport(slow)}
	case "cpus":
		return behaviour{result: cmp.Or(p.spec.Resources.CPUSet, "0") + "\n"}
	case "grow":
		return planGrow(o.number("--mib", 1), p.spec.Resources.Memory)
	case "files":
		if dir := o["--dir"]; !p.writable(dir) {
			return fails(1, "files: make directory in %s: EROFS (30)", dir)
		}
		return behaviour{length: length, result: filesReport(slow)}
	}
	return behaviour{first: "touchstone-probe fake\n"} // version
}

// span is the range of a number.
type span struct{ low, high uint64 }

// commands returns the options of the probe's commands, except for exit and write, which have an argument. An option without a span
// is text.
func commands() map[string]map[string]span {
	ms := span{1, 3_600_000}
	workers := span{0, 64}
	return map[string]map[string]span{
		"cpus":    nil,
		"grow":    {"--mib": {1, 1 << 20}},
		"ready":   nil,
		"serve":   {"--port": {0, 65535}},
		"syscall": {"--copies": {1, 256}, "--ms": ms},
		"stream":  {"--mib": {1, 1 << 16}, "--ms": ms},
		"latency": {"--ms": ms},
		"files": {
			"--dir": {}, "--ms": ms, "--writers": {1, 64}, "--rewriters": workers,
			"--commenters": workers, "--readers": workers, "--seed": {0, math.MaxUint64},
		},
		"version": nil,
	}
}

// settings are options with their values.
type settings map[string]string

// readOptions refuses options as the probe does: unknown options, and values that are not numbers or too large.
func readOptions(args []string, allowed map[string]span) (settings, error) {
	o := settings{}
	for ; len(args) > 0; args = args[2:] {
		name := args[0]
		span, ok := allowed[name]
		switch {
		case !strings.HasPrefix(name, "-"):
			return nil, fmt.Errorf("unexpected argument %s", name)
		case !ok:
			return nil, fmt.Errorf("unknown option %s", name)
		case len(args) == 1:
			return nil, fmt.Errorf("a value is missing after %s", name)
		}
		n, err := strconv.ParseUint(args[1], 10, 64)
		if span.high > 0 && (err != nil || n < span.low || n > span.high) {
			return nil, fmt.Errorf("%s must be a whole number from %d to %d, not %s", name, span.low, span.high, args[1])
		}
		o[name] = args[1]
	}
	return o, nil
}

// number returns the value of an option that readOptions has accepted.
func (o settings) number(name string, otherwise int) int {
	n, err := strconv.Atoi(o[name])
	if err != nil {
		return otherwise
	}
	return n
}

func fails(code int, format string, args ...any) behaviour {
	return behaviour{complaint: fmt.Sprintf(format, args...) + "\n", exit: engine.Exit{Code: code}}
}

func planExit(args []string) behaviour {
	switch len(args) {
	case 0:
		return behaviour{}
	case 1:
		if code, err := strconv.Atoi(args[0]); err == nil && code >= 0 && code <= 255 {
			return behaviour{exit: engine.Exit{Code: code}}
		}
		return fails(2, "exit: CODE must be a whole number from 0 to 255, not %s", args[0])
	}
	return fails(2, "exit: unexpected argument %s", args[1])
}

// planWrite imitates a file that is never read.
func (p program) planWrite() behaviour {
	switch {
	case len(p.args) != 2:
		return fails(2, "write: one file is wanted")
	case !p.writable(path.Dir(p.args[1])):
		return fails(1, "write: make the file %s: EROFS (30)", p.args[1])
	}
	return behaviour{}
}

func planServe(n engine.Network, port int) behaviour {
	s, err := serve(n, port)
	if err != nil {
		return fails(1, "serve: %v", err)
	}
	return behaviour{first: fmt.Sprintf("ready port=%d\n", s.port), endless: true, graceful: true, server: s}
}

// planGrow takes memory up to a limit. The kill comes a MiB before the limit, because the kernel needs a part of it.
func planGrow(mib int, limit int64) behaviour {
	var b behaviour
	most := int64(mib)
	if limit > 0 && most >= limit>>20 {
		most, b.exit = limit>>20-1, engine.Exit{Signal: syscall.SIGKILL}
	}
	var out strings.Builder
	for held := range most + 1 {
		fmt.Fprintf(&out, "held %d\n", held<<20)
	}
	b.first = out.String()
	return b
}

// writable reports whether dir is writable: it is in /tmp, in an innermost mount that is not read-only, or in a writable root.
func (p program) writable(dir string) bool {
	if !path.IsAbs(dir) {
		return false
	}
	for dir = path.Clean(dir); dir != "/"; dir = path.Dir(dir) {
		for _, m := range p.spec.Mounts {
			if path.Clean(m.Target) == dir {
				return !m.ReadOnly
			}
		}
		if dir == "/tmp" {
			return true
		}
	}
	return p.spec.Writable
}
