package plan

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// listed is a catalogue that lists some benchmarks and has scalability.runtime.N for every N.
type listed []bench.Benchmark

func (l listed) All() []bench.Benchmark { return l }

func (l listed) Lookup(name string) (bench.Benchmark, bool) {
	if i := slices.IndexFunc(l, func(b bench.Benchmark) bool { return b.Name == name }); i >= 0 {
		return l[i], true
	}
	if n, ok := strings.CutPrefix(name, "scalability.runtime."); ok && bench.IntRange(1, 1000)(n) == nil {
		return runtimeN(name), true
	}
	return bench.Benchmark{}, false
}

func runtimeN(name string) bench.Benchmark {
	return bench.Benchmark{Name: name, Params: []bench.Param{
		{Name: "mode", Quick: "sequential", Paper: "sequential", Check: bench.OneOf("sequential", "parallel")},
	}}
}

func testCatalogue() listed {
	duration := func(v string) error { _, err := time.ParseDuration(v); return err }
	return listed{
		{Name: "operations.container.lifecycle"},
		{Name: "operations.container.exec"},
		{Name: "operations.container.pause"},
		{Name: "operations.image.pull"},
		{Name: "operations.service.ready"},
		runtimeN("scalability.runtime.5"),
		runtimeN("scalability.runtime.10"),
		runtimeN("scalability.runtime.50"),
		{Name: "performance.syscall.unixbench", Params: []bench.Param{
			{Name: "copies", Quick: "1", Paper: "4", Check: bench.IntRange(1, 1024)},
			{Name: "duration", Quick: "1s", Paper: "10s", Check: duration},
		}},
		{Name: "performance.syscall.latency"},
		{Name: "performance.memory.stream"},
		{Name: "performance.disk.blog", Image: bench.WorkloadImage},
		{Name: "limits.memory.oom"},
	}
}

// spell returns the name and the parameters of each work.
func spell(work []Work) []string {
	var list []string
	for _, w := range work {
		list = append(list, strings.TrimSpace(w.Benchmark.Name+" "+w.Key()))
	}
	return list
}

// ownOne is a section with a workload of the user's.
const ownOne = "workloads:\n  - {name: app.start.cold, image: workload, argv: [/a], parse: [{metric: A, json: a, unit: s, better: lower}]}\n"

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		name, keys string
		want       []string
	}{
		{"a whole suite, in the catalogue's order", "benchmarks: [operations]", []string{
			"operations.container.lifecycle", "operations.container.exec", "operations.container.pause", "operations.image.pull", "operations.service.ready",
		}},
		{"whole components", "benchmarks: [scalability.runtime.5]", []string{"scalability.runtime.5 mode=sequential"}},
		{"the file's order", "benchmarks: [performance.memory, operations.service]", []string{"performance.memory.stream", "operations.service.ready"}},
		{"a name with a number that is not listed", "benchmarks: [scalability.runtime.37]", []string{"scalability.runtime.37 mode=sequential"}},
		{"quick values", "benchmarks: [performance.syscall.unixbench]", []string{"performance.syscall.unixbench copies=1 duration=1s"}},
		{"the paper's values", "parameters: paper\nbenchmarks: [performance.syscall.unixbench]", []string{"performance.syscall.unixbench copies=4 duration=10s"}},
		{"a parameter over the paper's value", "parameters: paper\nbenchmarks: [{name: performance.syscall.unixbench, params: {copies: 2}}]", []string{"performance.syscall.unixbench copies=2 duration=10s"}},
		{"parameters for a group", "benchmarks: [{name: scalability, params: {mode: parallel}}]", []string{
			"scalability.runtime.5 mode=parallel", "scalability.runtime.10 mode=parallel", "scalability.runtime.50 mode=parallel",
		}},
		{"the same twice", "benchmarks: [scalability.runtime.5, scalability.runtime, {name: scalability.runtime.5, params: {mode: sequential}}, {name: scalability.runtime.5, params: {mode: parallel}}]", []string{
			"scalability.runtime.5 mode=sequential", "scalability.runtime.10 mode=sequential", "scalability.runtime.50 mode=sequential", "scalability.runtime.5 mode=parallel",
		}},
		{"of an image", "benchmarks: [{name: operations, image: probe}, {name: performance, image: workload}]", []string{
			"operations.container.lifecycle", "operations.container.exec", "operations.container.pause", "operations.image.pull", "operations.service.ready", "performance.disk.blog",
		}},
		{"a name with a number of an image", "benchmarks: [{name: scalability.runtime.37, image: probe}]", []string{"scalability.runtime.37 mode=sequential"}},
		{"a workload of the user's", "benchmarks: [performance.memory, app]\n" + ownOne, []string{"performance.memory.stream", "app.start.cold"}},
		{"one workload of several", "benchmarks: [app.stop]\n" + ownOne + strings.ReplaceAll(strings.TrimPrefix(ownOne, "workloads:\n"), "start", "stop"), []string{"app.stop.cold"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			work, err := mustParse(t, "p", "version: 1\n"+c.keys+"\n").Resolve(testCatalogue())
			must.Do(t, err)
			expect.Equal(t, "the result", c.want, spell(work))
		})
	}
}

func TestResolveSelectsAllByDefault(t *testing.T) {
	work, err := mustParse(t, "p", "version: 1\n").Resolve(testCatalogue())
	must.Do(t, err)
	if len(work) != len(testCatalogue()) {
		t.Errorf("a plan without benchmarks resolves to %q", spell(work))
	}
	work, err = mustParse(t, "p", "version: 1\n"+ownOne).Resolve(testCatalogue())
	must.Do(t, err)
	if len(work) != len(testCatalogue())+1 || work[len(work)-1].Benchmark.Name != "app.start.cold" {
		t.Errorf("a plan without benchmarks and with a workload resolves to %q", spell(work))
	}
}

func TestResolveRefuses(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"a near name", "version: 1\nbenchmarks:\n  - operation\n  - operations.container.exce\n", []string{
			`p:3:5: no benchmark or group has the name "operation"; did you mean operations?`,
			`p:4:5: no benchmark or group has the name "operations.container.exce"; did you mean operations.container.exec?`,
		}},
		{"half a component", "version: 1\nbenchmarks: [operations.cont]\n", []string{
			`p:2:14: no benchmark or group has the name "operations.cont"; touchstone list shows all names; a filter consists of whole components of a name`,
		}},
		{"a number out of range", "version: 1\nbenchmarks: [scalability.runtime.0]\n", []string{
			`p:2:14: no benchmark or group has the name "scalability.runtime.0"; did you mean scalability.runtime.10?`,
		}},
		{"parameters", "version: 1\nbenchmarks:\n  - name: performance.syscall.unixbench\n    params:\n      copys: 4\n      duration: long\n      copies: 4\n", []string{
			`p:5:14: parameter copys=4 of performance.syscall.unixbench: unknown name; the benchmark has copies, duration; did you mean copies?`,
			`p:6:17: parameter duration=long of performance.syscall.unixbench: time: invalid duration "long"`,
		}},
		{"a parameter that not all of a group have", "version: 1\nbenchmarks: [{name: performance.syscall, params: {copies: 2}}]\n", []string{
			`p:2:59: parameter copies=2 of performance.syscall.latency: unknown name; the benchmark has no parameters`,
		}},
		{"nothing of an image", "version: 1\nbenchmarks: [{name: operations, image: workload}, {name: scalability.runtime.37, image: workload}]\n", []string{
			`p:2:21: no benchmark of "operations" has programs from the image workload; leave image out`,
			`p:2:58: no benchmark of "scalability.runtime.37" has programs from the image workload; leave image out`,
		}},
		{"a workload with a name of ours", "version: 1\n" + strings.ReplaceAll(ownOne, "app.start.cold", "performance.disk.blog") + strings.ReplaceAll(strings.TrimPrefix(ownOne, "workloads:\n"), "app.start.cold", "scalability.runtime.37"), []string{
			`p:3:12: workloads: "performance.disk.blog" is a benchmark of Touchstone's; give the workload another name`,
			`p:4:12: workloads: "scalability.runtime.37" is a benchmark of Touchstone's; give the workload another name`,
		}},
		{"a near name of a workload", "version: 1\nbenchmarks: [app.strat]\n" + ownOne, []string{
			`p:2:14: no benchmark or group has the name "app.strat"; did you mean app.start?`,
		}},
		{"TouchStone's half components", "oci: [runc]\nfilter:\n- scalability.run\n", []string{
			`p:3:3: no benchmark or group has the name "scalability.run"; touchstone list shows all names; a filter consists of whole components of a name`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			work, err := mustParse(t, "p", c.text).Resolve(testCatalogue())
			checkLines(t, err, c.want)
			if work != nil {
				t.Errorf("work comes beside the error: %q", spell(work))
			}
		})
	}
}

func TestResolveWithoutLocations(t *testing.T) {
	p := Quick()
	p.Benchmarks = []Item{{Name: "nothing"}, {Name: "scalability.runtime.5", Params: bench.Params{"mode": "odd"}}}
	_, err := p.Resolve(testCatalogue())
	checkLines(t, err, []string{
		`no benchmark or group has the name "nothing"; touchstone list shows all names; a filter consists of whole components of a name`,
		`parameter mode=odd of scalability.runtime.5: must be one of sequential, parallel`,
	})
}

func TestResolveFlags(t *testing.T) {
	p, err := Quick().Apply(Overrides{Filters: []string{"operatoins"}})
	must.Do(t, err)
	_, err = p.Resolve(testCatalogue())
	checkLines(t, err, []string{`--filter: no benchmark or group has the name "operatoins"; did you mean operations?`})
	if e := (*Error)(nil); !errors.As(err, &e) || e.Flag != "--filter" || e.Value != "operatoins" {
		t.Errorf("%T is not the *Error wanted", err)
	}
}

func TestPin(t *testing.T) {
	p := mustParse(t, "p", "version: 1\nparameters: paper\nbenchmarks: [operations.service, performance.syscall.unixbench]\n")
	work, err := p.Resolve(testCatalogue())
	must.Do(t, err)
	pin := p.Pin([]target.Target{mustTarget(t, "native"), mustTarget(t, "oci/runc")}, work, 42)
	if p.Seed != nil || p.Targets != nil {
		t.Errorf("Pin has changed the plan: %+v", p)
	}
	want := "version: 1\nname: p\ntargets:\n- native\n- oci/runc\nbenchmarks:\n- name: operations.service.ready\n- name: performance.syscall.unixbench\n" +
		"  params:\n    copies: \"4\"\n    duration: 10s\nparameters: paper\nblocks: 20\nwarmup: 1\ntimeout:\n  trial: 30m\n  call: 30s\nseed: 42\n"
	expect.Equal(t, "the result", want, string(pin.YAML()))
	echo, err := mustParse(t, "p", string(pin.YAML())).Resolve(testCatalogue())
	must.Do(t, err)
	expect.Equal(t, "the pinned plan resolves to other work", spell(work), spell(echo))
}

func TestBlocksOfWork(t *testing.T) {
	p := mustParse(t, "p", "version: 1\nblocks: 9\nbenchmarks: [operations.container.exec, {name: performance.memory, blocks: 3}]\n")
	for range 2 {
		work, err := p.Resolve(testCatalogue())
		must.Do(t, err)
		for _, w := range work {
			want := 0
			if w.Benchmark.Suite() == "performance" {
				want = 3
			}
			if w.Blocks != want {
				t.Errorf("%s has %d blocks of its own, want %d", w.Benchmark.Name, w.Blocks, want)
			}
		}
		// The plan that a run keeps has the same meaning.
		p = mustParse(t, "p", string(p.Pin(nil, work, 1).YAML()))
	}
}
