package fake_test

import (
	"bytes"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// run returns the output of a process that exits by itself.
func (l *harness) run(spec engine.Spec) (stdout, stderr string, exit engine.Exit) {
	l.Helper()
	var out, err bytes.Buffer
	spec.Process.Stdout, spec.Process.Stderr = &out, &err
	c := l.create(spec)
	l.took(func() error { return c.Start(l.Context()) })
	l.took(func() (e error) { exit, e = c.Wait(l.Context()); return e })
	l.took(func() error { return c.Delete(l.Context()) })
	return out.String(), err.String(), exit
}

func TestProgramsThatEnd(t *testing.T) {
	for _, tt := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"exit", 0, ""},
		{"exit 7", 7, ""},
		{"exit 256", 2, "exit: CODE must be a whole number from 0 to 255, not 256\n"},
		{"exit 1 2", 2, "exit: unexpected argument 2\n"},
		{"version", 0, ""},
		{"", 2, "usage: probe COMMAND [OPTION]...\n"},
		{"dance", 2, "probe: unknown command dance\n"},
		{"ready now", 2, "ready: unexpected argument now\n"},
		{"syscall --size 3", 2, "syscall: flag provided but not defined: -size\n"},
		{"syscall --ms", 2, "syscall: flag needs an argument: -ms\n"},
		{"syscall --ms x", 2, "syscall: invalid value \"x\" for flag -ms: parse error\n"},
		{"files --ms 10", 1, "files: make directory in : EROFS (30)\n"},
		{"files --dir / --ms 10", 1, "files: make directory in /: EROFS (30)\n"},
		{"files --dir /tmp/x --ms 10 --writers 2 --seed 18446744073709551615", 0, ""},
		{"files --dir /tmp/../usr --ms 10", 1, "files: make directory in /tmp/../usr: EROFS (30)\n"},
	} {
		l := newHarness(t, "fake/x")
		_, stderr, exit := l.run(l.spec(strings.Fields(tt.args)...))
		if stderr != tt.stderr || exit != (engine.Exit{Code: tt.code}) {
			t.Errorf("probe %s: %v, Stderr %q; want code %d, %q", tt.args, exit, stderr, tt.code, tt.stderr)
		}
	}
}

// values reads a report, by metric or call.
func values(t *testing.T, report string) map[string]float64 {
	t.Helper()
	out, err := probe.Parse([]byte(report))
	if err != nil {
		t.Fatalf("%v in\n%s", err, report)
	}
	results := map[string]float64{}
	for name, m := range out.Metrics {
		results[name] = m.Value
	}
	for _, c := range out.Calls {
		results[c.Name] = c.P50
	}
	return results
}

func TestScoreRaisesRatesAndLowersLatencies(t *testing.T) {
	for _, tt := range []struct {
		load   workload.Program
		metric string
		want   float64
	}{
		{probe.Syscall(1, 10*ms), "LoopsPerSecond", 2},
		{probe.Stream(32, 10*ms), "Triad", 2},
		{probe.Files(probe.PaperFilesLoad("/tmp", 1), 10*ms), "WriteScore", 2},
		{probe.Latency(10 * ms), "getpid", 0.5},
	} {
		var got []float64
		for _, name := range []string{"fake/x", "fake/x@score=2"} {
			l := newHarness(t, name)
			report, _, _ := l.run(l.spec(tt.load.Args[1:]...))
			got = append(got, values(t, report)[tt.metric])
		}
		if got[0] <= 0 || got[1] != got[0]*tt.want {
			t.Errorf("%q: score 2 takes %s from %v to %v, want %v times as much", tt.load.Args, tt.metric, got[0], got[1], tt.want)
		}
	}
}

func TestCopiesAddUp(t *testing.T) {
	l := newHarness(t, "fake/x")
	one, _, _ := l.run(l.spec("syscall", "--copies", "1"))
	four, _, _ := l.run(l.spec("syscall", "--copies", "4"))
	if a, b := values(t, one)["LoopsPerSecond"], values(t, four)["LoopsPerSecond"]; b != 4*a {
		t.Errorf("four copies do %v loops a second, one %v", b, a)
	}
}

func TestSignals(t *testing.T) {
	for _, tt := range []struct {
		args   []string
		signal syscall.Signal
		want   engine.Exit
	}{
		{[]string{"ready"}, syscall.SIGTERM, engine.Exit{}},
		{[]string{"serve"}, syscall.SIGTERM, engine.Exit{}},
		{[]string{"ready"}, syscall.SIGINT, engine.Exit{Signal: syscall.SIGINT}},
		{[]string{"syscall", "--ms", "100"}, syscall.SIGTERM, engine.Exit{Signal: syscall.SIGTERM}},
		{[]string{"syscall", "--ms", "100"}, 0, engine.Exit{}},
		{[]string{"exit", "3"}, syscall.SIGKILL, engine.Exit{Code: 3}}, // it has exited before the signal
	} {
		l := newHarness(t, "fake/x")
		c := l.create(l.spec(tt.args...))
		l.took(func() error { return c.Start(t.Context()) })
		l.took(func() error { return c.Kill(t.Context(), tt.signal) })
		if exit, err := c.Wait(t.Context()); err != nil || exit != tt.want {
			t.Errorf("probe %v, signal %v: %v, %v; want %v", tt.args, tt.signal, exit, err, tt.want)
		}
	}
}

// A scripted program takes its time, writes to both outputs and exits with its code.
func TestInstalledProgram(t *testing.T) {
	l := newHarness(t, "fake/x@exit=0s,start=0s")
	l.driver.Install("/usr/bin/sysbench", func(args []string, spec engine.Spec) fake.Behaviour {
		return fake.Behaviour{Took: 40 * ms, Stdout: strings.Join(args, "+"), Stderr: spec.Process.Env[0], Exit: engine.Exit{Code: 3}}
	})
	for program, want := range map[string]struct {
		out, complaint string
		exit           engine.Exit
		took           time.Duration
	}{
		"/usr/bin/sysbench": {"cpu+run", "LANG=C", engine.Exit{Code: 3}, 40 * ms},
		"echo":              {"cpu run\n", "", engine.Exit{}, 0},
	} {
		var out, complaint bytes.Buffer
		spec := l.spec()
		spec.Process = engine.Process{Args: []string{program, "cpu", "run"}, Env: []string{"LANG=C"}, Stdout: &out, Stderr: &complaint}
		c := l.create(spec)
		took := l.took(func() error { return c.Start(t.Context()) })
		took += l.took(func() error {
			exit, err := c.Wait(t.Context())
			if exit != want.exit {
				t.Errorf("%s ended with %v, want %v", program, exit, want.exit)
			}
			return err
		})
		if out.String() != want.out || complaint.String() != want.complaint || took != want.took {
			t.Errorf("%s wrote %q and %q within %v, want %+v", program, out.String(), complaint.String(), took, want)
		}
	}
}
