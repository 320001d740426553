package plan

import (
	"testing"

	"github.com/touchstone-bench/touchstone/internal/expect"
)

func TestParseTouchStone(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
	}{
		{
			"all keys",
			"cri: [containerd, crio]\noci: [runc, runsc]\nfilter: [performance]\nruns: 10\nscale: 1\noutput: performance.json\n",
			"targets:\n- containerd/runc\n- containerd/runsc\n- crio/runc\n- crio/runsc\nbenchmarks:\n- name: performance.cpu.time\n- name: performance.memory.total\n- name: performance.memory.minavglatency\n- name: performance.memory.maxlatency\n- name: performance.disk.read\n- name: performance.disk.write\nparameters: paper\nblocks: 10\nwarmup: 0\ntimeout:\n  trial: 30m\n  call: 30s\npods:\n  pid: pod\n  grace: 10s\nexport: performance.touchstone.json\ntouchstone-output: performance.json\n",
		},
		{
			"an original",
			`{cri: ["containerd"], oci: ["runc"], filter: [scalability], runs: 1, output: scalability.json}`,
			"targets:\n- containerd/runc\nbenchmarks:\n- name: scalability.runtime.5\n- name: scalability.runtime.10\n- name: scalability.runtime.50\nparameters: paper\nblocks: 1\nwarmup: 0\ntimeout:\n  trial: 30m\n  call: 30s\npods:\n  pid: pod\n  grace: 10s\nexport: scalability.touchstone.json\ntouchstone-output: scalability.json\n",
		},
		{
			"no daemon, no filter",
			"oci:\n- runc\ncri:\nfilter: []\n",
			"targets:\n- oci/runc\nbenchmarks:\n- name: performance.cpu.time\n- name: performance.memory.total\n- name: performance.memory.minavglatency\n- name: performance.memory.maxlatency\n- name: performance.disk.read\n- name: performance.disk.write\n- name: operations.container.lifecycle\n- name: limits.cpu.time\n- name: limits.cpu.scaling\n- name: scalability.runtime.5\n- name: scalability.runtime.10\n- name: scalability.runtime.50\nparameters: paper\nblocks: 20\nwarmup: 0\ntimeout:\n  trial: 30m\n  call: 30s\npods:\n  pid: pod\n  grace: 10s\n",
		},
		{
			"the filter that is a prefix of all names",
			"oci: [runc]\nfilter: [operations, '']\n",
			"targets:\n- oci/runc\nbenchmarks:\n- name: operations.container.lifecycle\n- name: performance.cpu.time\n- name: performance.memory.total\n- name: performance.memory.minavglatency\n- name: performance.memory.maxlatency\n- name: performance.disk.read\n- name: performance.disk.write\n- name: limits.cpu.time\n- name: limits.cpu.scaling\n- name: scalability.runtime.5\n- name: scalability.runtime.10\n- name: scalability.runtime.50\nparameters: paper\nblocks: 20\nwarmup: 0\ntimeout:\n  trial: 30m\n  call: 30s\npods:\n  pid: pod\n  grace: 10s\n",
		},
		{
			"names, and a benchmark that TouchStone does not have",
			"oci: [runc]\nfilter: [operations.container.exec, limits.cpu.time, limits.cpu]\n",
			"targets:\n- oci/runc\nbenchmarks:\n- name: operations.container.exec\n- name: limits.cpu.time\n- name: limits.cpu.scaling\nparameters: paper\nblocks: 20\nwarmup: 0\ntimeout:\n  trial: 30m\n  call: 30s\npods:\n  pid: pod\n  grace: 10s\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := mustParse(t, "ts.yaml", c.text)
			expect.Equal(t, "the result", "version: 1\nname: ts\n"+c.want, string(p.YAML()))
		})
	}
}

func TestTouchStoneNotes(t *testing.T) {
	const note = "filter selects only benchmarks that TouchStone has; --filter, or benchmarks in a plan of Touchstone's format, selects the others too"
	const scale = "scale has no effect: neither TouchStone nor Touchstone uses it"
	for _, c := range []struct {
		text string
		want []string
	}{
		{"oci: [runc]\nfilter: [limits.cpu.time]\nscale: 0\n", []string{scale}},
		{"oci: [runc]\nfilter: [limits.cpu.time]\n", nil},
		{"oci: [runc]\nfilter: [performance]\n", []string{note}},
		{"oci: [runc]\n", []string{note}},
	} {
		expect.Equal(t, c.text, c.want, mustParse(t, "p", c.text).Notes)
	}
}

func TestParseTouchStoneRefuses(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"no runtime", "cri: [containerd]\n", []string{"p:1:1: oci is empty, so the plan has no targets; write it like [runc]"}},
		{"an empty list of runtimes", "cri: [containerd]\noci: []\n", []string{"p:2:6: oci is empty, so the plan has no targets; write it like [runc]"}},
		{"another key", "oci: [runc]\nfilters: [a]\n", []string{`p:2:1: unknown key "filters" in TouchStone's format; did you mean filter?`}},
		{"no list", "oci: runc\n", []string{`p:1:6: oci: want a list, not "runc"; write it in brackets or with dashes`}},
		{"numbers", "oci: [runc, 5]\nruns: 0\nscale: -1\n", []string{
			`p:1:13: oci: want a string, not "5"`,
			`p:2:7: runs: "0" is not a whole number from 1 to 100000`,
			`p:3:8: scale: "-1" is not a whole number from 0 to 100000`,
		}},
		{"names that would make another target", "cri: [containerd/runc@a=b, native, '']\noci: [runc]\n", []string{
			`p:1:7: cri: "containerd/runc@a=b" is not the name of an engine; write containerd or crio`,
			`p:1:28: cri: "native" is not the name of an engine; write containerd or crio`,
			`p:1:36: cri: "" is not the name of an engine; write containerd or crio`,
		}},
		{"bad runtimes", "oci: [a/b, runc, runc]\n", []string{
			`p:1:7: oci: "oci/a/b" is not a target: the runtime's name "a/b" is not a name; write engine/runtime[@option=value,…], such as oci/runc, or native; put quotes around several options`,
			`p:1:18: oci: "oci/runc" is given twice; leave one out`,
		}},
		{"a bad filter", "oci: [runc]\nfilter: [a b]\n", []string{`p:2:10: filter: "a b" is not the name of a benchmark; write whole components, such as operations or scalability.runtime.5`}},
		{"too many targets", "cri: [containerd, crio]\noci:\n" + numbered("  - a", 51, ""), []string{"p:52:5: oci: there are more than 100 targets; split the plan", "p:53:5: oci: there are more than 100 targets; split the plan"}},
		{"too many entries", "oci:\n" + numbered("  - a", 101, ""), []string{"p:102:5: oci has more than 100 entries; split the plan"}},
		{"output over a hidden file", "oci: [runc]\noutput: .json\n", []string{`p:2:9: output: ".json" is not a plain file name that ends in .json; write a name such as results.json; Touchstone writes it to the output folder`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("p", []byte(c.text))
			checkLines(t, err, c.want)
		})
	}
}
