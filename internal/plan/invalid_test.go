package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// invalid are plans that Parse refuses, with their errors. Structural problems are visible to a JSON Schema, which must refuse
// these plans too.
var invalid = []struct {
	name, text string
	structural bool
	want       []string
}{
	{"empty", "", true, []string{`p: the plan is empty; write at least "version: 1"`}},
	{"only a comment", "# x\n", true, []string{`p: the plan is empty; write at least "version: 1"`}},
	{"not a mapping", "- a\n", true, []string{`p:1:1: a plan is a mapping of keys to values, not a list; begin with "version: 1"`}},
	{"no version", "# x\nname: a\n", true, []string{`p:2:1: version is missing; write "version: 1"`}},
	{"another version", "version: 2\n", true, []string{`p:1:10: version "2" of the plan format is unknown; write "version: 1", or use a newer Touchstone`}},
	{"version as text", "version: '1'\n", true, []string{`p:1:10: version "1" of the plan format is unknown; write "version: 1", or use a newer Touchstone`}},
	{"unknown key", "version: 1\ntragets: [native]\n", true, []string{`p:2:1: unknown key "tragets" in a plan; did you mean targets?`}},
	{"unknown key without a similar name", "version: 1\nzzzzzzz: 1\n", true, []string{`p:2:1: unknown key "zzzzzzz" in a plan; the keys are version, name, targets, baseline, benchmarks, parameters, limits, blocks, warmup, until, precision, max-blocks, budget, timeout, seed, runtimes, engines, seccomp, pods, pinning, drop-caches, monitor, trace, trace-paths, workloads, nodes, parallel, export, touchstone-output`}},
	{"a key that is a number", "version: 1\n5: 1\n", true, []string{"p:2:1: a key must be a string; put quotes around it if it looks like a number"}},
	{"a key with an escape", "version: 1\n\"\\e[2J\": 1\n", true, []string{`p:2:1: unknown key "\x1b[2J" in a plan; the keys are version, name, targets, baseline, benchmarks, parameters, limits, blocks, warmup, until, precision, max-blocks, budget, timeout, seed, runtimes, engines, seccomp, pods, pinning, drop-caches, monitor, trace, trace-paths, workloads, nodes, parallel, export, touchstone-output`}},
	{"name is a number", "version: 1\nname: 5\n", true, []string{`p:2:7: name: want a string, not "5"; put quotes around it if it looks like a number`}},
	{"name with an escape", "version: 1\nname: \"a\\e[1m\"\n", false, []string{`p:2:7: name: "a\x1b[1m" is not a name; write up to 128 printable characters on one line`}},
	{"targets is not a list", "version: 1\ntargets: native\n", true, []string{`p:2:10: targets: want a list, not "native"; write it in brackets or with dashes`}},
	{"no target", "version: 1\ntargets: []\n", true, []string{`p:2:10: targets is empty; leave the key out to select all`}},
	{"bad targets", "version: 1\ntargets:\n  - native\n  - runc\n  - oci/runc\n  - [oci]\n", true, []string{
		`p:4:5: targets: "runc" is not a target: the runtime is missing; write engine/runtime[@option=value,…], such as oci/runc, or native; put quotes around several options`,
		`p:6:5: targets: want a string such as oci/runc, not a list`,
	}},
	{"a target twice", "version: 1\ntargets: [oci/runc, 'oci/runsc@b=1,a=2', 'oci/runsc@a=2,b=1']\n", false, []string{`p:2:42: targets: "oci/runsc@a=2,b=1" is given twice; leave one out`}},
	{"baseline elsewhere", "version: 1\nbaseline: oci/cruun\ntargets: [native, oci/crun]\n", false, []string{`p:2:11: baseline "oci/cruun" is not among the targets; did you mean oci/crun?`}},
	{"bad baseline", "version: 1\nbaseline: /\n", true, []string{`p:2:11: baseline: "/" is not a target: the engine's name "" is not a name; write engine/runtime[@option=value,…], such as oci/runc, or native; put quotes around several options`}},
	{"benchmarks of other kinds", "version: 1\nbenchmarks: [5, '', operations., [a], ~]\n", true, []string{
		`p:2:14: benchmarks: want a string, not "5"; put quotes around it if it looks like a number`,
		`p:2:17: benchmarks: "" is not the name of a benchmark; write whole components, such as operations or scalability.runtime.5`,
		`p:2:21: benchmarks: "operations." is not the name of a benchmark; write whole components, such as operations or scalability.runtime.5`,
		`p:2:34: benchmarks: want a string, not a list; put quotes around it if it looks like a number`,
		`p:2:39: benchmarks: want a string, not nothing; put quotes around it if it looks like a number`,
	}},
	{"a benchmark without a name", "version: 1\nbenchmarks:\n  - params: {a: b}\n", true, []string{`p:3:5: the benchmark has no name; write "name: …" beside params`}},
	{"a benchmark with another key", "version: 1\nbenchmarks:\n  - name: a\n    param: {a: b}\n", true, []string{`p:4:5: unknown key "param" in a benchmark; did you mean params?`}},
	{"invalid params", "version: 1\nbenchmarks:\n  - name: a\n    params: parallel\n", true, []string{`p:4:13: params: want a mapping of names to values, not "parallel"; write it like {mode: parallel}`}},
	{"bad params", "version: 1\nbenchmarks:\n  - name: a\n    params:\n      a: [1]\n      b: x y\n      c d: e\n      f:\n", true, []string{
		`p:5:10: params: want a single value for "a", not a list`,
		`p:6:10: params: "x y" is not a value for b; write it without blanks`,
		`p:7:7: params: "c d" is not the name of a parameter; use letters, digits, _ and -`,
		`p:8:10: params: want a single value for "f", not nothing`,
	}},
	{"a block of text", "version: 1\nbaseline: |\n  oci/runc\n", true, []string{`p:2:11: baseline: want a string such as oci/runc, not a block of text`}},
	{"a long target", "version: 1\ntargets: [oci/" + strings.Repeat("a", 128) + "]\n", true, []string{
		`p:2:11: targets: "oci/` + strings.Repeat("a", 56) + `…" is too long or not printable`,
	}},
	{"too many targets", "version: 1\ntargets:\n" + numbered("  - oci/", 101, ""), true, []string{"p:103:5: targets has more than 100 entries; split the plan"}},
	{"other parameters", "version: 1\nparameters: papr\n", true, []string{`p:2:13: parameters: "papr" is neither quick nor paper; did you mean paper?`}},
	{"no blocks", "version: 1\nblocks: 0\n", true, []string{`p:2:9: blocks: "0" is not a whole number from 1 to 100000`}},
	{"too many blocks", "version: 1\nblocks: 100001\n", true, []string{`p:2:9: blocks: "100001" is not a whole number from 1 to 100000`}},
	{"very many blocks", "version: 1\nblocks: 99999999999999999999999\n", true, []string{`p:2:9: blocks: "99999999999999999999999" is not a whole number from 1 to 100000`}},
	{"ambiguous blocks", "version: 1\nblocks: 010\n", false, []string{`p:2:9: blocks: "010" is not a whole number from 1 to 100000`}},
	{"blocks as text", "version: 1\nblocks: '20'\n", true, []string{`p:2:9: blocks: "20" is not a whole number from 1 to 100000`}},
	{"negative warm-up", "version: 1\nwarmup: -1\n", true, []string{`p:2:9: warmup: "-1" is not a whole number from 0 to 100000`}},
	{"precision without a sign", "version: 1\nprecision: 0.02\n", true, []string{`p:2:12: precision: "0.02" is not a percentage above 0 % and up to 100 %; write it like 2%`}},
	{"precision 0", "version: 1\nprecision: 0%\n", false, []string{`p:2:12: precision: "0%" is not a percentage above 0 % and up to 100 %; write it like 2%`}},
	{"precision above all", "version: 1\nprecision: 100.1%\n", false, []string{`p:2:12: precision: "100.1%" is not a percentage above 0 % and up to 100 %; write it like 2%`}},
	{"max-blocks without precision", "version: 1\nmax-blocks: 60\n", true, []string{`p:2:13: max-blocks has no effect without precision or until; give a precision such as 2% or until: decided, or leave max-blocks out`}},
	{"until an unknown rule", "version: 1\nuntil: decidde\n", true, []string{`p:2:8: until: "decidde" is not a rule; did you mean decided?`}},
	{"until decided with one target", "version: 1\ntargets: [oci/runc]\nuntil: decided\n", false, []string{`p:3:8: until: decided compares targets with the baseline, and the plan has only the target "oci/runc"; add a target, or leave until out`}},
	{"until decided with too few blocks", "version: 1\nuntil: decided\nblocks: 2\nmax-blocks: 5\n", false, []string{`p:2:8: until: decided needs at least 6 blocks for a comparison, and the plan has at most 5; raise blocks or max-blocks`}},
	{"max-blocks below blocks", "version: 1\nmax-blocks: 10\nprecision: 2%\n", false, []string{`p:2:13: max-blocks (10) is less than blocks (20); raise max-blocks or lower blocks`}},
	{"budget without a unit", "version: 1\nbudget: 10\n", true, []string{`p:2:9: budget: "10" is not a duration; write a number above 0 with a unit, such as 30s or 10m`}},
	{"budget of years", "version: 1\nbudget: 100000h\n", false, []string{`p:2:9: budget: 100000h is longer than 8760h; give less`}},
	{"one timeout", "version: 1\ntimeout: 30s\n", true, []string{`p:2:10: timeout: want trial, call or both, not "30s"; write it like {trial: 2m, call: 30s}`}},
	{"other timeouts", "version: 1\ntimeout: {trials: 1m, call: 0}\n", true, []string{
		`p:2:11: unknown key "trials" in timeout; did you mean trial?`,
		`p:2:29: timeout.call: "0" is not a duration; write a number above 0 with a unit, such as 30s or 10m`,
	}},
	{"seed too high", "version: 1\nseed: 18446744073709551616\n", true, []string{`p:2:7: seed: "18446744073709551616" is not a whole number from 0 to 18446744073709551615; leave it out to have one drawn`}},
	{"runtimes as a list", "version: 1\nruntimes: [/usr/bin/crun]\n", true, []string{`p:2:11: runtimes: want a mapping of names to binaries, not a list; write it like {mycrun: /opt/crun/bin/crun}`}},
	{"bad runtimes", "version: 1\nruntimes:\n  a b: /x\n  c: bin/c\n  d: 5\n", true, []string{
		`p:3:3: runtimes: "a b" is not a name for a runtime; use letters, digits and . _ -`,
		`p:4:6: runtimes: the binary "bin/c" of c is not an absolute path; write it from the root, such as /usr/bin/crun`,
		`p:5:6: runtimes: want the path of d, not "5"; write it like /usr/bin/crun, or {type: io.containerd.kata.v2}`,
	}},
	{"runtimes with other keys", "version: 1\nruntimes:\n  crun:\n    binary: /usr/bin/crun\n", true, []string{`p:4:5: unknown key "binary" in a runtime; the keys are path, type, options`}},
	{"runtimes of bad types", "version: 1\nruntimes:\n  a: {type: kata}\n", true, []string{
		`p:3:13: runtimes.a.type: "kata" is not the runtime type of a containerd shim; write it like io.containerd.kata.v2; give a binary with path instead`,
	}},
	{"a runtime with path and type", "version: 1\nruntimes:\n  a: {path: /usr/bin/crun, type: io.containerd.kata.v2}\n", true, []string{
		`p:3:6: runtimes: a has a path and a type; a runtime is a binary or a containerd shim; leave one of the keys out`,
	}},
	{"empty runtimes", "version: 1\nruntimes:\n  a:\n  b: {}\n", true, []string{
		`p:3:5: runtimes: want the path of a, not nothing; write it like /usr/bin/crun, or {type: io.containerd.kata.v2}`,
		`p:4:6: runtimes: b is empty; give its path, its type or options`,
	}},
	{"a runtime of empty options", "version: 1\nruntimes:\n  a: {options: {}}\n", false, []string{`p:3:6: runtimes: a is empty; give its path, its type or options`}},
	{"invalid options", "version: 1\nruntimes:\n  a: {options: fast}\n  b: {options: {x: [1], y: 'a,b', z: , '@': 1}}\n  c: {options: {u: a b}, path: bin/c}\n", true, []string{
		`p:3:16: runtimes.a.options: want a mapping of names to values, not "fast"; write it like {platform: systrap}`,
		`p:4:20: runtimes.b.options: want a single value for "x", not a list`,
		`p:4:28: runtimes.b.options: "y"="a,b" is not an option; write name and value without blanks and commas`,
		`p:4:37: runtimes.b.options: want a single value for "z", not nothing`,
		`p:4:45: runtimes.b.options: "@"="1" is not an option; write name and value without blanks and commas`,
		`p:5:20: runtimes.c.options: "u"="a b" is not an option; write name and value without blanks and commas`,
		`p:5:32: runtimes.c.path: the binary "bin/c" of c is not an absolute path; write it from the root, such as /usr/bin/crun`,
	}},
	{"too many runtimes", "version: 1\nruntimes:\n" + numbered("  a", 101, ": /x"), true, []string{"p:103:3: runtimes has more than 100 entries; leave out unused entries"}},
	{"engines with other keys", "version: 1\nengines: {socket: {}, managed: 1}\n", true, []string{
		`p:2:11: unknown key "socket" in engines; did you mean sockets?`,
		`p:2:32: engines.managed: want true or false, not "1"`,
	}},
	{"bad sockets", "version: 1\nengines:\n  sockets:\n    containerd: run/c.sock\n    a/b: /x\n  binaries: [/usr/bin/crio]\n", true, []string{
		`p:4:17: engines.sockets: "run/c.sock" is not an address of containerd; write the absolute path of a socket, or a URL that begins with unix:// or tcp://`,
		`p:5:5: engines.sockets: "a/b" is not a name for an engine; use letters, digits and . _ -`,
		`p:6:13: engines.binaries: want a mapping of names to paths, not a list; write it like {containerd: /usr/local/bin/containerd}`,
	}},
	{"invalid patterns", "version: 1\ntargets: ['oci/run*', 'native/*', all/runc@]\n", true, []string{
		`p:2:11: targets: "oci/run*" is not a target: the runtime's name "run*" is not a name; write engine/runtime[@option=value,…], such as oci/runc, or native; put quotes around several options`,
		`p:2:23: targets: "native/*" is not a target: native has no runtime; write engine/runtime[@option=value,…], such as oci/runc, or native; put quotes around several options`,
		`p:2:35: targets: "all/runc@" is not a target: "" is not option=value; write engine/runtime[@option=value,…], such as oci/runc, or native; put quotes around several options`,
	}},
	{"a pattern twice", "version: 1\ntargets: [all, '*/runc', oci/runc, '*/runc']\n", true, []string{`p:2:36: targets: "*/runc" is given twice; leave one out`}},
	{"a baseline beside the patterns", "version: 1\nbaseline: oci/runc\ntargets: ['containerd/*', '*/crun']\n", false, []string{`p:2:11: baseline "oci/runc" is not among the targets; add it to targets`}},
	{"another filter", "version: 1\nseccomp: defualt\n", true, []string{`p:2:10: seccomp: "defualt" is neither default nor unconfined; did you mean default?`}},
	{"a filter of another kind", "version: 1\nseccomp: [default]\n", true, []string{`p:2:10: seccomp: a list is neither default nor unconfined; write one of the two`}},
	{"bad pods", "version: 1\npods: {pid: node, grace: 0s, graces: 1s}\n", true, []string{
		`p:2:13: pods.pid: "node" is neither pod nor container; write one of the two`,
		`p:2:26: pods.grace: "0s" is not a duration; write a number above 0 with a unit, such as 30s or 10m`,
		`p:2:30: unknown key "graces" in pods; did you mean grace?`,
	}},
	{"a grace that CRI cannot express", "version: 1\npods: {grace: 1500ms}\n", false, []string{`p:2:15: pods.grace: "1500ms" is not a number of whole seconds, the unit of CRI; write it like 10s`}},
	{"a grace beyond the limit of a call", "version: 1\npods: {grace: 30s}\n", false, []string{
		`p:2:15: pods.grace (30s) is not shorter than timeout.call (30s), so a kill that needs the grace would time out; give a shorter grace, or raise timeout.call`,
	}},
	{"one file for two forms", "version: 1\nexport: a.json\ntouchstone-output: a.json\n", false, []string{`p:3:20: touchstone-output and export name the same file; give them different names`}},
	{"bad pinning", "version: 1\npinning: {workload: all, engine: 0, touchstone: [0], engines: 3-1}\n", true, []string{
		`p:2:21: pinning.workload: "all" is not a list of CPUs; write it like 0-3,8`,
		`p:2:26: unknown key "engine" in pinning; did you mean engines?`,
		`p:2:49: pinning.touchstone: want a list of CPUs, not a list; write it in quotes, like "0-3,8"`,
		`p:2:63: pinning.engines: "3-1" is not a list of CPUs; write it like 0-3,8`,
	}},
	{"an unknown monitor", "version: 1\nmonitor: memroy\n", true, []string{`p:2:10: monitor: "memroy" is unknown; did you mean memory?`}},
	{"an unknown key of monitor", "version: 1\nmonitor: {disk: 1s}\n", true, []string{`p:2:11: unknown key "disk" in monitor; the keys are memory`}},
	{"bad intervals of monitor", "version: 1\nmonitor: {memory: 1ms}\nbenchmarks: [{name: a, monitor: {memory: 2h}}, {name: b, monitor: {memory: often}}]\n", true, []string{
		`p:2:19: monitor.memory: 1ms is not an interval from 10ms to 1m; write it like 100ms`,
		`p:3:42: monitor.memory: 2h is not an interval from 10ms to 1m; write it like 100ms`,
		`p:3:76: monitor.memory: "often" is not a duration; write a number above 0 with a unit, such as 30s or 10m`,
	}},
	{"drop-caches is not a boolean", "version: 1\ndrop-caches: yes\n", true, []string{`p:2:14: drop-caches: want true or false, not "yes"; leave it out for the default: true for root with paper parameters`}},
	{"an unknown image", "version: 1\nbenchmarks: [{name: b, image: ./x.tar}]\n", true, []string{`p:2:31: image: "./x.tar" is not an image of Touchstone's; the images are probe and workload`}},
	{"workloads of another kind", "version: 1\nworkloads: {name: a}\n", true, []string{`p:2:12: workloads: want a list, not a mapping; write it in brackets or with dashes`}},
	{"a workload that is a word", "version: 1\nworkloads: [app]\n", true, []string{`p:2:13: workloads: want a mapping, not "app"; write it like {name: app.start.cold, image: ./app.tar, argv: [/app], parse: […]}`}},
	{"an empty workload", "version: 1\nworkloads:\n  - {}\n  - name: a.b.c\n    argv: [/a]\n", true, []string{
		`p:3:5: the workload has no name, no image, no argv, no parse; it needs name, image, argv, parse`,
		`p:4:5: the workload has no image, no parse; it needs name, image, argv, parse`,
	}},
	{"bad workloads", workload("name: app.start", "image: ''", "argv: []", "parse: []", "summary: ''", "writable: 1", "network: none", "env: [A]", "user: root"), true, []string{
		`p:3:11: workloads.name: "app.start" is not the name of a benchmark; write context.component.facet, such as app.start.cold`,
		`p:4:12: workloads.image: "" is not an image; write workload, probe, or the path of an OCI layout or an archive, such as ./my-image.tar`,
		`p:5:11: workloads.argv is empty; begin with the path of the program in the image`,
		`p:6:12: parse is empty; write an entry for each metric; a workload needs at least one`,
		`p:7:14: workloads.summary: "" is not a name; write up to 128 printable characters on one line`,
		`p:8:15: workloads.writable: want true or false, not "1"`,
		`p:9:14: workloads.network: "none" is neither host nor bridge; leave it out to have only the loopback interface`,
		`p:10:10: workloads.env: want a mapping of names to values, not a list; write it like {LC_ALL: C}`,
		`p:11:5: unknown key "user" in a workload; the keys are name, summary, image, argv, env, from-env, writable, network, parse`,
	}},
	{"bad arguments", workload("name: a.b.c", "image: probe", "argv: [bin/prog, [x], \"a\\nb\"]", parseRate), true, []string{
		`p:5:12: workloads.argv: the program "bin/prog" is not an absolute path; write it from the root of the image, such as /usr/bin/prog`,
		`p:5:22: workloads.argv: want a single value, not a list`,
		`p:5:27: workloads.argv: "a\nb" is too long or not printable; write it on one line`,
	}},
	{"a shell string", workload("name: a.b.c", "image: probe", "argv: /bin/prog --bench", parseRate), true, []string{
		`p:5:11: workloads.argv: want a list, not "/bin/prog --bench"; write the program and each argument as an entry, like [/usr/bin/sysbench, cpu, run]; there is no shell`,
	}},
	{"too many arguments", workload("name: a.b.c", "image: probe", "argv: [/a"+strings.Repeat(", b", 1000)+"]", parseRate), true, []string{
		`p:5:3013: workloads.argv has more than 1000 entries; put the arguments into a file of the image`,
	}},
	{"bad variables", workload("name: a.b.c", "image: probe", "argv: [/a]", "env: {A-B: 1, PATH: /x, C: [1], D: \"\\e[2J\"}", parseRate), true, []string{
		`p:6:11: workloads.env: "A-B" is not the name of a variable; use letters, digits and _`,
		`p:6:19: workloads.env: PATH is already set to the usual folders on every target; call programs by their paths`,
		`p:6:32: workloads.env: want a single value for "C", not a list`,
		`p:6:40: workloads.env: the value "\x1b[2J" of D is too long or not printable; write it on one line`,
	}},
	{"bad variables of the environment", workload("name: a.b.c", "image: probe", "argv: [/a]", "from-env: [A-B, PATH, [x], C, C]", parseRate), true, []string{
		`p:6:16: workloads.from-env: "A-B" is not the name of a variable; use letters, digits and _`,
		`p:6:21: workloads.from-env: PATH is already set to the usual folders on every target; call programs by their paths`,
		`p:6:27: workloads.from-env: want the name of a variable, not a list; write it like [TOKEN]`,
		`p:6:35: workloads.from-env: "C" occurs twice; leave one of them out`,
	}},
	{"a variable with two values", workload("name: a.b.c", "image: probe", "argv: [/a]", "env: {C: 1}", "from-env: [C]", parseRate), false, []string{
		`p:7:15: workloads.from-env: "C" is in env too; leave it out of one of them`,
	}},
	{"one name for two workloads", workload("name: a.b.c", "image: probe", "argv: [/a]", parseRate) + "  - name: a.b.c\n    image: probe\n    argv: [/b]\n    " + parseRate + "\n", false, []string{
		`p:7:11: workloads: the name "a.b.c" occurs twice; rename one of the workloads`,
	}},
	{"entries of parse of other kinds", workload("name: a.b.c", "image: probe", "argv: [/a]", "parse: [rate, {}]"), true, []string{
		`p:6:13: parse: want a mapping, not "rate"; write it like {metric: Rate, regex: 'rate: ([0-9.]+) op/s', unit: 1/s, better: higher}`,
		`p:6:19: the entry of parse has no metric, no unit, no better; it needs metric, unit, better`,
		`p:6:19: the entry of parse needs either regex or json; write one with one group for the number, such as 'rate: ([0-9.]+) op/s', or write a JSON path such as latency.p99 or jobs[0].read.iops`,
	}},
	{"bad entries of parse", withParse("metric: my-rate, unit: furlong, better: high, regex: '(1)', scale: 0, group: 1"), true, []string{
		`p:7:18: parse.metric: "my-rate" is not the name of a metric; use letters and digits, such as Rate or LatencyP99`,
		`p:7:33: parse.unit: "furlong" is not a unit; the units are s, B, B/s, bit/s, 1/s, FLOP/s, ratio, score, J, count, B·s; use scale for multiples of them`,
		`p:7:50: parse.better: "high" is neither lower nor higher; write lower or higher`,
		`p:7:77: parse.scale: "0" is not a number above 0; write the factor from the number to the unit, such as 0.001 for a program that prints milliseconds, or auto for a program that changes its unit`,
		`p:7:80: unknown key "group" in an entry of parse; the keys are metric, regex, json, unit, better, scale`,
	}},
	{"a metric of every workload", withParse("metric: HostCPU, unit: s, better: lower, json: a"), true, []string{
		`p:7:18: parse.metric: "HostCPU" is the name of a metric that every workload has; choose another name`,
	}},
	{"units of programs", withParse("metric: A, unit: ms, better: lower, json: a", "metric: B, unit: Score, better: lower, json: a"), true, []string{
		`p:7:27: parse.unit: "ms" is not a unit; write unit: s and scale: 1e-3; if the program changes its unit, scale: auto`,
		`p:8:27: parse.unit: "Score" is not a unit; did you mean score?`,
	}},
	{"invalid expressions", withParse("metric: A, unit: s, better: lower, regex: '(a'", "metric: B, unit: s, better: lower, regex: \"(\\e)\""), false, []string{
		"p:7:52: parse.regex: \"(a\": error parsing regexp: missing closing ): `(a`; write one with one group for the number, such as 'rate: ([0-9.]+) op/s'",
		`p:8:52: parse.regex: "(\x1b)" is empty, too long or not printable`,
	}},
	{"invalid JSON paths", withParse("metric: A, unit: s, better: lower, json: 'a['", "metric: B, unit: s, better: lower, json: ''"), true, []string{
		`p:7:51: parse.json: "a[": not terminated at 3 in a[; write a JSON path such as latency.p99 or jobs[0].read.iops`,
		`p:8:51: parse.json: "" is empty, too long or not printable`,
	}},
	{"no-break spaces", "version: 1\nname: a\nblocks:\u00a06\n", true, []string{
		`p:3:8: an invisible character or a blank that is not a space is here (U+00A0, no-break space); replace it with a space or remove it, for example with sed -i 's/\xc2\xa0/ /g' FILE; put quotes around the value if it belongs to it`,
	}},
	{"an export", "{\"schema_version\": 1, \"runs\": []}", true, []string{"p: it is an export; touchstone import FILE adds its runs to the results"}},
	{"units that a program switches", withParse("metric: A, unit: auto, better: lower, json: a", "metric: B, unit: score, better: lower, json: a, scale: auto", "metric: C, unit: s, better: lower, regex: '(a) (b)', scale: auto",
		"scale: auto, metric: D, unit: s, better: lower, regex: '(?P<unit>b)'", "metric: E, unit: s, better: lower, regex: '(a) (?P<unit>b)'", "metric: F, unit: s, better: lower, json: a, scale: Auto"), true, []string{
		`p:7:27: parse.unit: "auto" is not a unit; write the unit of the results, and scale: auto`,
		`p:8:65: parse.scale: auto has no effect with the unit score, which has no multiples; write a factor, or one of the units s, B, B/s, bit/s, 1/s, FLOP/s, ratio, J, count`,
		`p:9:52: parse.regex: "(a) (b)": it has 2 groups instead of one for the number; name the group for the unit (?P<unit>…); write one with one group for the number, such as 'rate: ([0-9.]+) op/s'`,
		`p:10:65: parse.regex: "(?P<unit>b)": it has no group for the number; write one with one group for the number, such as 'rate: ([0-9.]+) op/s'`,
		`p:11:52: parse.regex: "(a) (?P<unit>b)": it has a group for the unit, which only scale: auto reads; write one with one group for the number, such as 'rate: ([0-9.]+) op/s'`,
		`p:12:61: parse.scale: "Auto" is not a number above 0; write the factor from the number to the unit, such as 0.001 for a program that prints milliseconds, or auto for a program that changes its unit`,
	}},
	{"an expression and a path", withParse("metric: A, unit: s, better: lower, json: a, regex: (a)"), true, []string{
		`p:7:9: the entry of parse needs either regex or json; write one with one group for the number, such as 'rate: ([0-9.]+) op/s', or write a JSON path such as latency.p99 or jobs[0].read.iops`,
	}},
	{"a metric twice", withParse("metric: A, unit: s, better: lower, json: a", "metric: A, unit: s, better: lower, json: b"), false, []string{
		`p:8:9: parse: the metric "A" occurs twice; rename one of the metrics`,
	}},
	{"invalid scales", withParse("metric: A, unit: s, better: lower, json: a, scale: -1", "metric: B, unit: s, better: lower, json: a, scale: 0x10", "metric: C, unit: s, better: lower, json: a, scale: 1e999"), true, []string{
		`p:7:61: parse.scale: "-1" is not a number above 0; write the factor from the number to the unit, such as 0.001 for a program that prints milliseconds, or auto for a program that changes its unit`,
		`p:8:61: parse.scale: "0x10" is not a number above 0; write the factor from the number to the unit, such as 0.001 for a program that prints milliseconds, or auto for a program that changes its unit`,
		`p:9:61: parse.scale: "1e999" is not a number above 0; write the factor from the number to the unit, such as 0.001 for a program that prints milliseconds, or auto for a program that changes its unit`,
	}},
	{"an export elsewhere", "version: 1\nexport: ../x.json\n", true, []string{`p:2:9: export: "../x.json" is not a plain file name that ends in .json; write a name such as results.json; Touchstone writes it to the output folder`}},
	{"an export over the database", "version: 1\nexport: touchstone.db\n", true, []string{`p:2:9: export: "touchstone.db" is not a plain file name that ends in .json; write a name such as results.json; Touchstone writes it to the output folder`}},
	{"a mix of formats", "version: 1\nname: a\nruns: 10\noci: [runc]\n", true, []string{`p:3:1: runs is a key of TouchStone's format and version is a key of Touchstone's; use the keys of one format; write blocks instead`}},
	{"a runtime that is a number", "version: 1\nruntimes: {5: /x}\n", false, []string{"p:2:12: a key must be a string; put quotes around it if it looks like a number"}},
	{"a mix with the scale", "version: 1\nscale: 1\n", true, []string{`p:2:1: scale is a key of TouchStone's format and version is a key of Touchstone's; use the keys of one format; leave it out`}},
	{"a mix the other way", "oci: [runc]\nbaseline: oci/runc\n", true, []string{`p:1:1: oci is a key of TouchStone's format and baseline is a key of Touchstone's; use the keys of one format; write targets instead`}},
}

const parseRate = "parse: [{metric: Rate, regex: 'rate: ([0-9.]+)', unit: 1/s, better: higher}]"

// workload is a plan with a workload of these keys, the first in line 3.
func workload(keys ...string) string {
	return "version: 1\nworkloads:\n  - " + strings.Join(keys, "\n    ") + "\n"
}

// withParse is a plan with a workload and these entries of parse, the first in line 7.
func withParse(entries ...string) string {
	return workload("name: a.b.c", "image: probe", "argv: [/a]", "parse:\n      - {"+strings.Join(entries, "}\n      - {")+"}")
}

// numbered returns n lines with a number between prefix and suffix.
func numbered(prefix string, n int, suffix string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%d%s\n", prefix, i, suffix)
	}
	return b.String()
}

// lines returns the messages of the errors joined in err.
func lines(err error) []string {
	if err == nil {
		return nil
	}
	if tree, ok := err.(interface{ Unwrap() []error }); ok {
		var list []string
		for _, e := range tree.Unwrap() {
			list = append(list, e.Error())
		}
		return list
	}
	return []string{err.Error()}
}

func checkLines(t *testing.T, err error, want []string) {
	t.Helper()
	if got := lines(err); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got errors\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range invalid {
		t.Run(c.name, func(t *testing.T) {
			p, err := Parse("p", []byte(c.text))
			checkLines(t, err, c.want)
			if p.Name != "" {
				t.Errorf("a plan comes beside the error: %+v", p)
			}
		})
	}
}

func TestParseRefusesHostileYAML(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("a: &a [x, x, x, x, x, x, x, x, x]\n")
	for c := 'b'; c < 'z'; c++ {
		fmt.Fprintf(&bomb, "%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 9), ", "))
	}
	const mebi = MaxSize
	text := strings.Repeat("- a\n", MaxTokens/2+1)
	for _, c := range []struct{ name, text, want string }{
		{"aliases that multiply", bomb.String(), "p:1:4: an anchor (&) is not allowed"},
		{"an alias", "version: 1\nname: *a\n", "p:2:7: an alias (*) is not allowed"},
		{"a merge key", "<<: {version: 1}\n", "p:1:1: a merge key (<<) is not allowed"},
		{"a tag", "version: !!int 1\n", "p:1:10: a tag (!) is not allowed"},
		{"a directive", "%YAML 1.2\n---\nversion: 1\n", "p:1:1: a directive (%) is not allowed"},
		{"two documents", "version: 1\n---\nversion: 1\n", "p:3:1: a second document begins here; write one document per file"},
		{"a key twice", "version: 1\nversion: 1\n", `p:2:1: mapping key "version" already defined`},
		{"escapes of a terminal", "\"\\e[2J\": 1\n\"\\e[2J\": 1\n", `p:2:1: mapping key "\x1b[2J" already defined`},
		{"not UTF-8", "version: 1\nname: ä\xff\n", "p:2:8: the file is not UTF-8; save it as UTF-8, for example with iconv -f WINDOWS-1252 -t UTF-8 FILE"},
		{"too long", strings.Repeat(" ", MaxSize+1), "p: the file is longer than 1048576 bytes; give a smaller file"},
		{"too many entries", text, fmt.Sprintf("p:%d:1: the file has more than 10000 tokens; split it", MaxTokens/2+1)},
		{"deep brackets", strings.Repeat("[", mebi), "p:1:10001: the file has more than 10000 tokens"},
		{"deep braces", strings.Repeat("{a: ", mebi/4), "more than 10000 tokens"},
		{"brackets below the limit", strings.Repeat("[", MaxTokens), "p:1:"},
		{"dashes below the limit", strings.Repeat("- ", MaxTokens), "a plan is a mapping of keys to values, not a list"},
		{"a long word", strings.Repeat("a", mebi), "a plan is a mapping of keys to values, not \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…\""},
		{"zero bytes", strings.Repeat("\x00", mebi), "p: it is not text: it has a zero byte"},
		{"an open quote", "name: \"" + strings.Repeat("a", mebi-10), "p:1:7: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("p", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %.300v, want %s", err, c.want)
			}
			if e := (*Error)(nil); !errors.As(err, &e) {
				t.Errorf("%T is no *Error", err)
			}
		})
	}
}

func TestParseLimitsErrors(t *testing.T) {
	_, err := Parse("p", []byte("version: 1\ntargets:\n"+strings.Repeat("  - x\n", 90)))
	if got := lines(err); len(got) != maxProblems {
		t.Errorf("%d errors are told, want %d", len(got), maxProblems)
	}
}

func TestErrorHasLocation(t *testing.T) {
	_, err := Parse("dir/p.yaml", []byte("version: 1\nblocks: 0\n"))
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%T is no *Error", err)
	}
	want := Error{Location: Location{File: "dir/p.yaml", Line: 2, Column: 9}, Value: "0", Problem: `blocks: "0" is not a whole number from 1 to 100000`}
	if *e != want {
		t.Errorf("got %+v, want %+v", *e, want)
	}
}
