package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// limited is a catalogue with a benchmark of a paper's limits, and one that sets a limit itself.
func limited() listed {
	return listed{
		{Name: "scalability.runtime.50", PaperLimits: engine.Resources{CPU: 2, Memory: 500 << 20}},
		{Name: "limits.cpu.time", OwnLimits: []bench.Limit{bench.CPULimit}},
		{Name: "performance.cpu.time"},
	}
}

func TestLimitsOfWork(t *testing.T) {
	for _, c := range []struct {
		name, keys string
		flags      []string
		want       []string
	}{
		{"none", "", nil, []string{"scalability.runtime.50", "limits.cpu.time", "performance.cpu.time"}},
		{
			"for all, without the benchmark that sets the limit itself", "limits: {cpus: 1.50, pids: 100}", nil,
			[]string{"scalability.runtime.50 limits.cpus=1.5 limits.pids=100", "limits.cpu.time limits.pids=100", "performance.cpu.time limits.cpus=1.5 limits.pids=100"},
		},
		{
			"the item first", "limits: {cpus: 1, cpuset: 1-2}\nbenchmarks: [performance, {name: scalability, limits: {cpus: 2, memory: 1024MiB}}]", nil,
			[]string{"performance.cpu.time limits.cpus=1 limits.cpuset=1-2", "scalability.runtime.50 limits.cpus=2 limits.cpuset=1-2 limits.memory=1GiB"},
		},
		{
			"none removes", "limits: {cpus: 1}\nbenchmarks: [{name: performance, limits: {cpus: none}}]", nil, []string{"performance.cpu.time"},
		},
		{
			"the paper's", "parameters: paper\nlimits: {cpus: 3}\nbenchmarks: [scalability, performance]", nil,
			[]string{"scalability.runtime.50 limits.cpus=3 limits.memory=500MiB", "performance.cpu.time limits.cpus=3"},
		},
		{"without the paper's", "parameters: paper\nlimits: {cpus: none, memory: none}\nbenchmarks: [scalability]", nil, []string{"scalability.runtime.50"}},
		{
			"the same work with two limits", "benchmarks: [performance, {name: performance, limits: {memory: 1GiB}}, {name: performance, limits: {memory: 1048576KiB}}]", nil,
			[]string{"performance.cpu.time", "performance.cpu.time limits.memory=1GiB"},
		},
		{
			"a flag over the plan and the item", "limits: {cpus: 1, pids: 64}\nbenchmarks: [{name: performance, limits: {cpus: 2, memory: 1GiB}}]",
			[]string{"cpus=4,cpuset=0,2", "pids=none"},
			[]string{"performance.cpu.time limits.cpus=4 limits.cpuset=0,2 limits.memory=1GiB"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "version: 1\n" + c.keys + "\n"
			original := mustParse(t, "p", text)
			p, err := original.Apply(Overrides{Limits: c.flags})
			must.Do(t, err)
			expect.Equal(t, "Apply has changed the plan", mustParse(t, "p", text), original, same)
			work, err := p.Resolve(limited())
			must.Do(t, err)
			expect.Equal(t, "work", c.want, spell(work))
			pin := mustParse(t, "pinned", string(p.Pin(nil, work, 1).YAML()))
			echo, err := pin.Resolve(limited())
			must.Do(t, err)
			expect.Equal(t, "the pinned plan has other work", spell(work), spell(echo))
		})
	}
}

func TestLimitsAreResources(t *testing.T) {
	p := mustParse(t, "p", "version: 1\nlimits: {cpus: 0.25, cpuset: '3,1,2', memory: 500MB, pids: 64}\n")
	want := engine.Resources{CPU: 0.25, CPUSet: "1-3", Memory: 500e6, PIDs: 64}
	if got := p.Limits.resources(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := limitsOf(want); got != p.Limits {
		t.Errorf("limitsOf returns %+v, want %+v", got, p.Limits)
	}
}

func TestInvalidLimits(t *testing.T) {
	_, err := Parse("p", []byte(strings.TrimSpace(`
version: 1
limits:
  cpus: 0
  cpuset: a-b
  memory: 15MiB
  pids: 8
  swap: 1
benchmarks:
  - name: performance
    limits: {cpus: 1e3, memory: 4, pids: 1.5, cpuset: [0]}
  - {name: limits, limits: 2}
  - {name: limits, limits: {memory: 2000000GiB}}
`)))
	checkLines(t, err, []string{
		`p:3:9: limits.cpus: "0" is not a number of CPUs; write a number from 0.01 to 8192, such as 2 or 0.5, or none`,
		`p:4:11: limits.cpuset: "a-b" is not a list of CPUs; write it like 0-3,8`,
		`p:5:11: limits.memory: "15MiB" is less than 16MiB, which a runtime needs to set a container up; give more`,
		`p:6:9: limits.pids: "8" is not a whole number from 32 to 4194304; a runtime needs some processes and threads to set a container up; write it like 512, or none`,
		`p:7:3: unknown key "swap" in limits; the keys are cpus, cpuset, memory, pids`,
		`p:10:20: limits.cpus: "1e3" is not a number of CPUs; write a number from 0.01 to 8192, such as 2 or 0.5, or none`,
		`p:10:33: limits.memory: "4" is not an amount of memory; write a whole number and a unit (KiB, MiB, GiB, kB, MB, GB), such as 512MiB, or none`,
		`p:10:42: limits.pids: "1.5" is not a whole number from 32 to 4194304; a runtime needs some processes and threads to set a container up; write it like 512, or none`,
		`p:10:55: limits.cpuset: want a single value, not a list; write it like {cpus: 2, cpuset: "0-1", memory: 4GiB, pids: 512}`,
		`p:11:28: limits: want limits by name, not "2"; write it like {cpus: 2, cpuset: "0-1", memory: 4GiB, pids: 512}`,
		`p:12:37: limits.memory: "2000000GiB" is more than 1048576GiB; give less`,
	})
}

func TestLimitFlag(t *testing.T) {
	_, err := Quick().Apply(Overrides{Limits: []string{"2", "cpu=1", "memory=4", ""}})
	checkLines(t, err, []string{
		`--limit: "2" is not limit=value; write it like cpus=2,memory=4GiB`,
		`--limit: "cpu" is not a limit; did you mean cpus?`,
		`--limit: "4" is not an amount of memory; write a whole number and a unit (KiB, MiB, GiB, kB, MB, GB), such as 512MiB, or none`,
		`--limit: "" is not limit=value; write it like cpus=2,memory=4GiB`,
	})
}

func TestLimitsThatAnItemIgnores(t *testing.T) {
	p := mustParse(t, "p", "version: 1\nbenchmarks: [{name: limits, limits: {memory: 1GiB, cpus: 2}}]\n")
	_, err := p.Resolve(limited())
	checkLines(t, err, []string{
		`p:2:58: limits.cpus has no effect: limits.cpu.time sets this limit itself; leave it out, or change the benchmark's parameters`,
	})
}

func TestCheckLimits(t *testing.T) {
	for _, c := range []struct {
		name, text  string
		flags       []string
		notes, errs []string
	}{
		{name: "within the machine", text: "limits: {cpus: 4, cpuset: 0-3}"},
		{name: "more CPUs than the machine has", text: "limits: {cpus: 5}", notes: []string{"limits.cpus: 5 CPUs are no limit on this machine, which has 4"}},
		{name: "missing CPUs", text: "benchmarks: [{name: a, limits: {cpuset: 3-4}}]", errs: []string{
			"p:2:41: limits.cpuset has CPU 4, which this machine does not have; the CPUs are 0-3",
		}},
		{name: "within the pinned CPUs", text: "limits: {cpuset: 1}\npinning: {workload: 0-1}"},
		{name: "apart from the pinned CPUs", text: "limits: {cpuset: 1}\npinning: {workload: 2-3}", errs: []string{
			"p:2:18: limits.cpuset 1 and pinning.workload 2-3 have no CPU in common; limits.cpuset replaces pinning.workload: leave one of them out",
		}},
		{name: "a flag", text: "", flags: []string{"cpuset=7"}, errs: []string{
			"--limit: limits.cpuset has CPU 7, which this machine does not have; the CPUs are 0-3",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := mustParse(t, "p", "version: 1\n"+c.text+"\n").Apply(Overrides{Limits: c.flags})
			must.Do(t, err)
			notes, err := p.Check(four)
			checkLines(t, err, c.errs)
			if diff := cmp.Diff(c.notes, notes); diff != "" && c.errs == nil {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}
