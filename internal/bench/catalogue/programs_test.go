package catalogue_test

import (
	"fmt"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
)

// install puts imitations of the image's programs into the root file system of fake containers.
func install(d *fake.Driver) {
	d.Install("/usr/bin/sysbench", byFirst(map[string]fake.Program{"fileio": fileio, "cpu": sysbenchCPU, "memory": sysbenchMemory}))
	d.Install("/usr/bin/7z", sevenZip)
	d.Install("/usr/bin/dav1d", dav1d)
	d.Install("/usr/bin/linpack", linpack)
	d.Install("/usr/bin/fio", fio)
	d.Install("/usr/bin/sqlite3", sqlite())
}

// byFirst is a program that does what its first argument says.
func byFirst(commands map[string]fake.Program) fake.Program {
	return func(args []string, spec engine.Spec) fake.Behaviour {
		if len(args) > 0 {
			if command, ok := commands[args[0]]; ok {
				return command(args[1:], spec)
			}
		}
		return fake.Behaviour{Stderr: fmt.Sprintf("there is no such command: %q\n", args), Exit: engine.Exit{Code: 1}}
	}
}
