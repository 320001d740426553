package fake

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
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

// Behaviour is the behaviour of a process: it runs for a time, writes its output and exits.
type Behaviour struct {
	Took           time.Duration
	Stdout, Stderr string
	// Log, if it is not empty, is written to Stderr at once. The process then runs until it is killed.
	Log  string
	Exit engine.Exit
	// Lines, if it is not nil, makes the process run until it is killed, and write the nth of these lines, from 1, after
	// n times Every. Containers with such programs share one imagined CPU: with two of them, each takes twice as long.
	Lines func(n int) string
	Every time.Duration
}

// echo writes its arguments, so that plans with fake targets can produce any output.
func echo(args []string, _ engine.Spec) Behaviour {
	return Behaviour{Stdout: strings.Join(args, " ") + "\n"}
}

// env writes its environment.
func env(_ []string, spec engine.Spec) Behaviour {
	return Behaviour{Stdout: strings.Join(spec.Process.Env, "\n") + "\n"}
}

// behaviour is the behaviour of a process of the probe.
type behaviour struct {
	Behaviour
	first   string  // written to Stdout at once
	last    string  // written to Stdout at the deletion of the running container
	endless bool    // it waits, and exits with code 0 on SIGTERM
	server  *server // answers from the first instruction to the exit; nil for most
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
		b.Behaviour = p.scripted(p.args, p.spec)
		b.endless = b.Log != ""
	} else {
		b = p.plan(func(name string) float64 { return e.noise(name, index) / e.script.score })
	}
	if slices.Contains(e.script.garbage, number) {
		const garbage = "\x00\xff{\"metric\": gar\n"
		switch {
		case b.Log != "":
			b.Log = garbage
		case b.first != "" || b.Stdout == "": // also for a process without output
			b.first = garbage
		}
		if b.Stdout != "" {
			b.Stdout = garbage
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
		if b.endless {
			return engine.Exit{}, true
		}
	}
	return engine.Exit{Signal: signal}, true
}

// slowness returns the ratio of a result with this name to a bare machine's.
type slowness func(name string) float64

// plan imitates the probe. The reports are made up: plausible values of a bare machine, divided or multiplied by the slowness of
// their name. Unlike the probe it does not check the ranges of options, and accepts each option for all commands.
func (p program) plan(slowdown slowness) behaviour {
	if len(p.args) == 0 {
		return fails(2, "usage: probe COMMAND [OPTION]...")
	}
	command := p.args[0]
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	ms := flags.Uint("ms", 1000, "") // the probe's default
	lines := flags.Bool("lines", false, "")
	runOnce := flags.Bool("once", false, "")
	signal := flags.Bool("signal", false, "")
	flags.Bool("stdin", false, "")
	maximum := flags.Uint("most", 0, "")
	copies := flags.Uint("copies", 1, "")
	mib := flags.Uint("mib", 1, "")
	port := flags.Uint("port", 0, "")
	dir := flags.String("dir", "", "")
	call := flags.String("call", "", "")
	samples := flags.Uint("samples", 10_000, "")
	for _, flagName := range []string{"writers", "rewriters", "commenters", "readers", "seed", "blogbench"} {
		flags.Uint64(flagName, 0, "")
	}
	if err := flags.Parse(p.args[1:]); err != nil {
		return fails(2, "%s: %v", command, err)
	}
	if words := map[string]int{"exit": 1, "write": 1}[command]; flags.NArg() > words && command != "sequence" {
		return fails(2, "%s: unexpected argument %s", command, flags.Arg(words))
	}
	length := time.Duration(*ms) * time.Millisecond
	switch command {
	case "exit":
		code, err := strconv.ParseUint(cmp.Or(flags.Arg(0), "0"), 10, 8)
		if err != nil {
			return fails(2, "exit: CODE must be a whole number from 0 to 255, not %s", flags.Arg(0))
		}
		return behaviour{Behaviour: Behaviour{Exit: engine.Exit{Code: int(code)}}}
	case "write": // the file is never read
		if !p.writable(path.Dir(flags.Arg(0))) {
			return fails(1, "write: make the file %s: EROFS (30)", flags.Arg(0))
		}
		return behaviour{}
	case "sequence":
		return p.sequence(*dir, flags.Args())
	case "tick":
		return behaviour{first: "tick 1\n", Behaviour: Behaviour{Every: length, Lines: func(n int) string { return fmt.Sprint("tick ", n+1) }}}
	case "ready":
		b := behaviour{first: "ready\n", endless: true}
		if *signal {
			b.last = "signal\n"
		}
		return b
	case "serve":
		s, err := serve(p.spec.Network, int(*port))
		if err != nil {
			return fails(1, "serve: %v", err)
		}
		return behaviour{first: fmt.Sprintf("ready port=%d\n", s.port), endless: true, server: s}
	case "syscall":
		if limit := p.spec.Resources.PIDs; limit > 0 && int64(*copies) >= limit { // the probe itself is a process too
			return fails(1, "syscall: fork a worker: EAGAIN (11)")
		}
		rate := 1.5e6 * float64(*copies) / slowdown("LoopsPerSecond")
		return reports(length, metric("LoopsPerSecond", rate, "1/s"), metric("Index", rate/1500, "score"))
	case "stream":
		if *lines {
			line := fmt.Sprintf("moved %d", 10<<20**mib)
			return behaviour{Behaviour: Behaviour{Every: 13 * time.Millisecond, Lines: func(int) string { return line }}}
		}
		var results []string
		for i, name := range []string{"Copy", "Scale", "Add", "Triad"} {
			rate := []float64{26e9, 25e9, 27e9, 26.5e9}[i] * float64(*copies)
			results = append(results, metric(name, rate/slowdown(name), "B/s"))
		}
		return reports(length, results...)
	case "latency":
		if *call != "" {
			return singleCall(*call, int(*samples), slowdown)
		}
		return reports(length, latencies(slowdown)...)
	case "cpus":
		return writes(cmp.Or(p.spec.Resources.CPUSet, "0"))
	case "rights":
		return rights()
	case "drills":
		return drills()
	case "grow":
		return grow(int64(*mib), p.spec.Resources.Memory)
	case "forks":
		return forks(int64(*maximum), p.spec.Resources.PIDs, *runOnce)
	case "files":
		if !p.writable(*dir) {
			return fails(1, "files: make directory in %s: EROFS (30)", *dir)
		}
		read, writeRate := 24000/slowdown("ReadScore"), 130/slowdown("WriteScore")
		return reports(length,
			metric("ReadScore", read, "score"), metric("WriteScore", writeRate, "score"),
			metric("BlogsRead", read*length.Seconds(), "count"), metric("BlogsWritten", writeRate*length.Seconds(), "count"))
	case "version":
		return writes("touchstone-probe fake")
	}
	return fails(2, "probe: unknown command %s", command)
}

func fails(code int, format string, args ...any) behaviour {
	return behaviour{Behaviour: Behaviour{Stderr: fmt.Sprintf(format, args...) + "\n", Exit: engine.Exit{Code: code}}}
}

func writes(lines ...string) behaviour {
	return behaviour{Behaviour: Behaviour{Stdout: strings.Join(lines, "\n") + "\n"}}
}

// reports writes the results of a measurement, and a last line with their count.
func reports(took time.Duration, lines ...string) behaviour {
	b := writes(append(lines, fmt.Sprintf(`{"done":true,"metrics":%d}`, len(lines)))...)
	b.Took = took
	return b
}

func metric(name string, value float64, unit string) string {
	return fmt.Sprintf(`{"metric":%q,"value":%.3f,"unit":%q}`, name, value, unit)
}

// singleCall imitates the times of single calls: each is the same but for the last, which takes twice as long.
func singleCall(name string, samples int, slowdown slowness) behaviour {
	const limit = 4000
	ns := max(1, int(200*slowdown(name)))
	var tail []string
	for i := max(0, samples-limit); i < samples-1; i++ {
		tail = append(tail, fmt.Sprintf("[%d,%d]", i, ns))
	}
	tail = append(tail, fmt.Sprintf("[%d,%d]", samples-1, 2*ns))
	line := fmt.Sprintf(`{"call":%q,"unit":"ns","count":%d,"k":1,"min":%[3]d,"p50":%[3]d,"p90":%[3]d,"p99":%[3]d,"max":%[4]d,"hist":[[%[3]d,%[5]d],[%[4]d,1]],"tail":[%[6]s]}`,
		name, samples, ns, 2*ns, samples-1, strings.Join(tail, ","))
	return reports(time.Duration(samples*ns), line)
}

func latencies(slowdown slowness) (lines []string) {
	for _, c := range []struct {
		name string
		ns   float64
	}{
		{"getpid", 100},
		{"getppid", 100},
		{"getuid", 100},
		{"umask", 100},
		{"uname", 200},
		{"getcwd", 200},
		{"clock_gettime", 170},
		{"sched_yield", 230},
		{"getrandom", 300},
		{"rt_sigaction", 140},
		{"rt_sigprocmask", 130},
		{"dup+close", 260},
		{"read /dev/zero", 140},
		{"write /dev/null", 130},
		{"lseek+read file", 370},
		{"lseek", 120},
		{"fstat", 190},
		{"stat", 460},
		{"open+close", 900},
		{"write+read pipe", 390},
		{"ppoll", 210},
		{"futex wake", 130},
		{"mmap+munmap", 1500},
		{"mmap+touch+munmap", 4500},
		{"fork+exit+wait", 36000},
	} {
		p50 := c.ns * slowdown(c.name)
		bucket := 1
		for float64(2*bucket) <= p50 {
			bucket *= 2
		}
		lines = append(lines, fmt.Sprintf(
			`{"call":%q,"unit":"ns","count":1000,"k":100,"min":%.3f,"p50":%.3f,"p90":%.3f,"p99":%.3f,"max":%.3f,"hist":[[%d,10]]}`,
			c.name, 0.9*p50, p50, 1.1*p50, 1.5*p50, 8*p50, bucket))
	}
	return lines
}

func fact(name, text string) string { return fmt.Sprintf(`{"fact":%q,"text":%q}`, name, text) }

// rights imitates a program with few rights.
func rights() behaviour {
	return reports(0,
		fact("user", "0"), fact("users", "         0          0 4294967295"), fact("capabilities", "00000000000000c3"), fact("bounding", "00000000000000c3"),
		fact("no_new_privs", "1"), fact("seccomp", "0"), fact("label", "EINVAL (22)"), fact("device", "/dev/null"), fact("device", "/dev/zero"),
		fact("writable", "/proc/pressure/cpu"),
		metric("Files", 1200, "count"), metric("WritableFiles", 1, "count"), metric("Processes", 1, "count"), metric("CPUs", 2, "count"), metric("Memory", 8<<30, "B"))
}

// drills imitates a kernel that refuses all drills but one.
func drills() behaviour {
	var lines []string
	for _, name := range []string{
		"mount", "ptrace", "raw socket", "packet socket", "load a module", "keys", "bpf", "perf", "sysrq", "root of another", "mount namespace",
		"user namespace",
	} {
		answer := "EPERM (1)"
		if name == "keys" {
			answer = "permitted"
		}
		lines = append(lines, fact(name, answer))
	}
	return reports(0, lines...)
}

// grow takes memory up to a limit. The kill comes a MiB before the limit, because the kernel needs a part of it.
func grow(mib, limit int64) behaviour {
	var b behaviour
	if limit > 0 && mib >= limit>>20 {
		mib, b.Exit = limit>>20-1, engine.Exit{Signal: syscall.SIGKILL}
	}
	for size := range mib + 1 {
		b.first += fmt.Sprintf("held %d\n", size<<20)
	}
	return b
}

// forks makes processes up to a limit, or exits if there is none.
func forks(maximum, limit int64, runOnce bool) behaviour {
	if limit == 0 || limit > maximum {
		return fails(3, "forks: no limit refuses another process")
	}
	report := func(n int) string { return fmt.Sprintf("forks %d live %d refused %d", limit+int64(n)-1, limit, n) }
	if runOnce {
		return writes(report(1))
	}
	return behaviour{first: report(1) + "\n", Behaviour: Behaviour{Every: 50 * time.Millisecond, Lines: func(n int) string { return report(n + 1) }}}
}

// sequence imitates the probe's command sequence, which runs installed programs one after the other, on the fake clock.
func (p program) sequence(dir string, words []string) behaviour {
	if dir != "" && !p.writable(dir) {
		return fails(1, "sequence: %s cannot be written: EROFS (30)", dir)
	}
	steps := [][]string{nil}
	for _, w := range words {
		if w == "--then" {
			steps = append(steps, nil)
		} else {
			steps[len(steps)-1] = append(steps[len(steps)-1], w)
		}
	}
	var total behaviour
	for i, args := range steps {
		next, err := p.host.loadProgram(args, p.spec)
		if err != nil || next.scripted == nil {
			return fails(127, "sequence: run %q: ENOENT (2)", args)
		}
		b := next.scripted(next.args, p.spec)
		total.Took += b.Took
		total.Stdout += b.Stdout
		total.Stderr += b.Stderr
		if total.Exit = b.Exit; !b.Exit.OK() {
			break
		}
		total.Stdout += fmt.Sprintf("{\"step\":%d,\"of\":%d,\"ns\":%d}\n", i+1, len(steps), max(b.Took.Nanoseconds(), 1))
	}
	return total
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

// server is the web server of the probe's command serve. On the host's network it is a real one on the loopback interface. In a
// network of its own no client could reach it, so it does not exist.
type server struct {
	port  int
	http  *http.Server
	ended chan struct{}
}

func serve(n engine.Network, port int) (*server, error) {
	if n != engine.HostNet {
		if port == 0 {
			port = 8080
		}
		return &server{port: port}, nil
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("listen on the loopback interface: %w", err)
	}
	s := &server{
		port:  listener.Addr().(*net.TCPAddr).Port,
		ended: make(chan struct{}),
		http: &http.Server{
			ReadHeaderTimeout: 10 * time.Second,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "touchstone\n")
			}),
		},
	}
	go func() {
		defer close(s.ended)
		_ = s.http.Serve(listener) // it always returns an error after close
	}()
	return s, nil
}

// close accepts nil, the server of any other process.
func (s *server) close() {
	if s == nil || s.http == nil {
		return
	}
	_ = s.http.Close()
	<-s.ended
}
