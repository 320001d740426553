package catalogue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/runner"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// answers is the output of the drills with the answer EPERM, apart from the given answers.
func answers(t *testing.T, changes map[string]string) string {
	t.Helper()
	var b strings.Builder
	for _, name := range probe.DrillNames() {
		text, ok := changes[name]
		if !ok {
			text = "EPERM (1)"
		}
		line, err := json.Marshal(map[string]string{"fact": name, "text": text})
		must.Do(t, err)
		fmt.Fprintf(&b, "%s\n", line)
	}
	fmt.Fprintf(&b, `{"done":true,"metrics":%d}`+"\n", len(probe.DrillNames()))
	return b.String()
}

// judge is an engine whose programs write the answers of a container. Its controls write the answers of the host.
type judge struct {
	scripted
	isolation engine.Isolation
	control   string
	fault     error
}

func (j *judge) Info() engine.Info { return engine.Info{Isolation: j.isolation} }

func (j *judge) Control(context.Context, []string) ([]byte, error) { return []byte(j.control), j.fault }

// A refusal is no finding if the host refuses the call too, and a permission by a sandbox's own kernel is none of the host.
func TestDrills(t *testing.T) {
	grants := map[string]string{}
	for _, name := range probe.DrillNames() {
		grants[name] = probe.Permitted
	}
	host := answers(t, grants)
	for name, tt := range map[string]struct {
		container, control string
		isolation          engine.Isolation
		want               map[string]string
		permitted          float64
	}{
		"refused": {answers(t, nil), host, engine.SharedKernel, map[string]string{"permits": "permits nothing", "mount": "refused: EPERM (1)"}, 0},
		"permitted": {
			answers(t, map[string]string{"keys": "permitted", "bpf": "permitted"}), host, engine.SharedKernel,
			map[string]string{"permits": "permits keys, bpf", "keys": "permitted", "mount": "refused: EPERM (1)"},
			2,
		},
		"by the sandbox": {
			answers(t, map[string]string{"sysrq": "permitted"}), host, engine.UserKernel,
			map[string]string{"sysrq": "permitted by the kernel of the sandbox, within it"},
			1,
		},
		"refused on the host": {
			answers(t, map[string]string{"load a module": "ENOSYS (38)"}), answers(t, map[string]string{"mount": "permitted", "load a module": "ENOSYS (38)"}), engine.SharedKernel,
			map[string]string{"load a module": "refused: ENOSYS (38), but the host refuses it too: ENOSYS (38)", "mount": "refused: EPERM (1)"},
			0,
		},
		"killed": {
			answers(t, map[string]string{"bpf": "killed by signal 31"}), host, engine.SharedKernel, map[string]string{"bpf": "refused: killed by signal 31"}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := &judge{scripted: scripted{stdout: tt.container}, isolation: tt.isolation, control: tt.control}
			trial := mustBeOK(t, runOn(t, "surface.drills", e, still{}, nil, func(c *runner.Config) { c.Host = e }))
			for statement, want := range tt.want {
				if got := trial.Conditions[statement]; got != want {
					t.Errorf("%s: %q, want %q", statement, got, want)
				}
			}
			if v := trial.Values("Permitted"); len(v) != 1 || v[0] != tt.permitted {
				t.Errorf("Permitted is %v, want %v", v, tt.permitted)
			}
		})
	}
	t.Run("without a control", func(t *testing.T) {
		trial := mustBeOK(t, runOn(t, "surface.drills", scripted{stdout: answers(t, nil)}, still{}, nil))
		if got := trial.Conditions["mount"]; got != "refused: EPERM (1), without a control" {
			t.Errorf("mount: %q", got)
		}
	})
	for name, e := range map[string]*judge{
		"answer missing":    {scripted: scripted{stdout: strings.Replace(answers(t, nil), `"mount"`, `"amount"`, 1)}, control: host},
		"broken control":    {scripted: scripted{stdout: answers(t, nil)}, fault: errors.New("the control broke")},
		"truncated control": {scripted: scripted{stdout: answers(t, nil)}, control: host[:100]},
	} {
		text := map[string]string{"answer missing": `0 facts "mount"`, "broken control": "the control broke", "truncated control": "cut off"}[name]
		checkEnd(t, name, runOn(t, "surface.drills", e, still{}, nil, func(c *runner.Config) { c.Host = e }), result.Failed, text)
	}
}

// The words for rights name each right, and no right twice.
func TestRights(t *testing.T) {
	const output = `{"fact":"user","text":"0"}
{"fact":"users","text":"0 100000 65536"}
{"fact":"capabilities","text":"8000000000200000"}
{"fact":"bounding","text":"0000000000000000"}
{"fact":"no_new_privs","text":"0"}
{"fact":"seccomp","text":"2"}
{"fact":"label","text":"docker-default (enforce)"}
{"fact":"device","text":"/dev/zero"}
{"fact":"device","text":"/dev/null"}
{"fact":"writable","text":"/proc/sys/kernel/a"}
{"fact":"writable","text":"/proc/sys/kernel/b"}
{"metric":"Files","value":5,"unit":"count"}
{"metric":"WritableFiles","value":2,"unit":"count"}
{"metric":"Processes","value":1,"unit":"count"}
{"metric":"CPUs","value":4,"unit":"count"}
{"metric":"Memory","value":2147483648,"unit":"B"}
{"done":true,"metrics":16}
`
	trial := mustBeOK(t, runOn(t, "surface.rights", scripted{stdout: output}, still{}, nil, func(c *runner.Config) {
		c.Work[0].Limits = engine.Resources{CPU: 0.5, Memory: 64 << 20}
	}))
	for statement, want := range map[string]string{
		"user":            "user 0, 65536 users from 0 are 100000 outside",
		"capabilities":    "2: number 63 sys_admin",
		"bounding set":    "none",
		"can gain rights": "yes, by a program with the set-user-ID bit (no_new_privs is 0)",
		"seccomp":         "a filter",
		"security label":  "docker-default (enforce)",
		"devices":         "2: /dev/null /dev/zero",
		"writable files":  "2: /proc/sys/kernel",
		"sees":            "4 CPUs (limit: 0.5), 2048 MiB of memory (limit: 64 MiB)",
	} {
		if got := trial.Conditions[statement]; got != want {
			t.Errorf("%s: %q, want %q", statement, got, want)
		}
	}
	for metric, want := range map[string]float64{"Capabilities": 2, "Devices": 2, "WritableFiles": 2, "VisibleFiles": 5, "VisibleProcesses": 1} {
		if v := trial.Values(metric); len(v) != 1 || v[0] != want {
			t.Errorf("%s is %v, want %v", metric, v, want)
		}
	}
	for name, change := range map[string][2]string{
		"fact missing":      {`{"fact":"seccomp","text":"2"}`, `{"fact":"another","text":"2"}`},
		"fact twice":        {`{"fact":"device","text":"/dev/zero"}`, `{"fact":"user","text":"1"}`},
		"no mask":           {"8000000000200000", "EPERM (1)"},
		"no mask of bounds": {"0000000000000000", "x"},
		"metric missing":    {`{"metric":"CPUs"`, `{"metric":"GPUs"`},
	} {
		e := scripted{stdout: strings.Replace(output, change[0], change[1], 1)}
		if trial := runOn(t, "surface.rights", e, still{}, bench.Params{}); trial.Status != result.Failed {
			t.Errorf("%s: %s, want a failure", name, trial.Status)
		}
	}
}

// caller is an engine whose containers execute further programs. It keeps their arguments.
type caller struct {
	scripted
	programs *[]string
	exit     engine.Exit
}

type calledContainer struct {
	engine.Container
	caller
}

func (e caller) Create(ctx context.Context, s engine.Spec) (engine.Container, error) {
	c, err := e.scripted.Create(ctx, s)
	return &calledContainer{c, e}, err
}

func (c *calledContainer) Exec(_ context.Context, p engine.Process) (engine.Exit, error) {
	*c.programs = append(*c.programs, strings.Join(p.Args[:2], " "))
	p.CloseOutput()
	return c.exit, nil
}

// counted is a tracer with given counts.
type counted struct{ counts []result.TraceCounts }

func (counted) Step(string) error                             { return nil }
func (c counted) Stop() ([]result.TraceCounts, error)         { return slices.Clone(c.counts), nil }
func (counted) Timeline() *result.TraceTimeline               { return nil }
func (c counted) start(monitor.Target) (runner.Tracer, error) { return c, nil }

// Only calls of the container and of its sandbox count, and only while the programs run.
func TestReachedCalls(t *testing.T) {
	work := func(step, component string, names ...string) result.TraceCounts {
		calls := map[string]int64{}
		for _, name := range names {
			calls[name] = 7
		}
		return result.TraceCounts{Step: step, Component: component, Calls: calls}
	}
	counts := counted{[]result.TraceCounts{
		work("create", "container", "pivot_root"), work("", "sentry", "bpf"), work("start", "container", "bind"),
		work("network", "container", "connect", "close"), work("network", "runtime", "setns"), work("network", "sentry", "sendmsg"),
		work("files", "gofer", "openat", "close"), work("files", "daemon", "epoll_wait"),
		work("processes", "container", "clone", "execve", "wait4"),
		work("memory", "hypervisor", "mmap"),
	}}
	run := func(t *testing.T, e caller, c counted) (result.Trial, []result.Trace) {
		var traces []result.Trace
		*e.programs = nil
		trial := runOn(t, "surface.calls", e, still{}, nil, func(config *runner.Config) {
			config.Tracing = runner.Tracing{Start: c.start, Record: func(trace result.Trace) error {
				traces = append(traces, trace)
				return nil
			}}
		})
		return trial, traces
	}
	e := caller{scripted{stdout: "ready port=1234\n"}, new([]string), engine.Exit{}}
	trial, traces := run(t, e, counts)
	mustBeOK(t, trial)
	got := map[string][]float64{}
	for _, m := range find(t, "surface.calls").Metrics {
		got[m.Name] = trial.Values(m.Name)
	}
	expect.Equal(t, "the metrics", map[string][]float64{
		"HostCallsReached": {8}, "ReachedByNetwork": {3}, "ReachedByFiles": {2}, "ReachedByProcesses": {3}, "ReachedByMemory": {1},
	}, got)
	expect.Equal(t, "the programs", []string{"/probe reach", "/probe files", "/probe sequence", "/probe grow"}, *e.programs)
	if len(traces) != 1 || len(traces[0].Counts) != 5 {
		t.Errorf("the run keeps the traces %v", traces)
	}
	trial, _ = run(t, e, counted{counts.counts[:3]})
	checkEnd(t, "no call", trial, result.Failed, "no system call of the container")
	e.exit = engine.Exit{Code: 1}
	trial, traces = run(t, e, counts)
	checkEnd(t, "a program fails", trial, result.Failed, "run the program for network")
	e.exit, e.stdout = engine.Exit{}, "ready\n"
	trial, _ = run(t, e, counts)
	checkEnd(t, "no server", trial, result.Failed, "read the server's first line")
	if len(traces) > 0 {
		t.Errorf("a failed trial has the traces %v", traces)
	}
}

// observed is a tracer of functions with given counts.
type observed struct{ counted }

func (o observed) start(monitor.Target) (runner.Tracer, error) { return o, nil }

func (observed) Attach() (int, time.Duration, error) { return 40000, 3 * time.Second, nil }

// A function that two components enter is one function, and the runtime's do not count. Each part of the kernel has its number, and modules count among the others.
func TestReachedFunctions(t *testing.T) {
	work := func(component string, functions map[string]int64) result.TraceCounts {
		return result.TraceCounts{Step: "programs", Component: component, Functions: functions}
	}
	counts := []result.TraceCounts{
		work("runtime", map[string]int64{"fs/do_mount": 1}),
		work("sentry", map[string]int64{"fs/vfs_read": 9, "net/tcp_sendmsg": 2, "overlay/ovl_open": 1, "block/submit_bio": 1}),
		work("container", map[string]int64{"fs/vfs_read": 3, "fs/vfs_write": 1, "drivers/tty_read": 1, "unclear/f": 1}),
	}
	run := func(counts []result.TraceCounts) result.Trial {
		return runOn(t, "surface.functions", caller{scripted{stdout: "ready port=1234\n"}, new([]string), engine.Exit{}}, still{}, nil, func(config *runner.Config) {
			config.Tracing = runner.Tracing{StartFunctions: observed{counted{counts}}.start, Record: func(result.Trace) error { return nil }}
		})
	}
	trial := mustBeOK(t, run(counts))
	got := map[string]float64{}
	for _, m := range find(t, "surface.functions").Metrics {
		got[m.Name] = sample(t, trial, m.Name)
	}
	expect.Equal(t, "the metrics", map[string]float64{
		"HostFunctionsReached": 7, "FunctionsFiles": 2, "FunctionsNetwork": 1, "FunctionsDrivers": 2, "FunctionsOther": 2,
		"FunctionsArchitecture": 0, "FunctionsKernel": 0, "FunctionsMemory": 0, "FunctionsSecurity": 0, "FunctionsLibrary": 0,
	}, got)
	for name, want := range map[string]string{"the tracer attached in": "3s", "functions that the tracer observes": "40000"} {
		if got := trial.Conditions[name]; got != want {
			t.Errorf("%s: %q, want %s", name, got, want)
		}
	}
	checkEnd(t, "no function", run(counts[:1]), result.Failed, "no function of the kernel")
}
