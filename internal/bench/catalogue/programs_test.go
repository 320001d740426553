package catalogue_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/fake"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// captureDir is the directory with the captured output of programs.
const captureDir = "../../workload/testdata"

// install puts imitations of the image's programs into the root file system of fake containers. A program without an
// imitation here repeats its capture with quick parameters, PROGRAM-native.txt, if there is one.
func install(d *fake.Driver) {
	for name, program := range imitations() {
		d.Install(name, program)
	}
}

// imitations returns the imitated programs by their paths in the image.
func imitations() map[string]fake.Program {
	all := map[string]fake.Program{
		"/usr/bin/sysbench": byFirst(map[string]fake.Program{"fileio": fileio, "cpu": sysbenchCPU, "memory": sysbenchMemory}),
		"/usr/bin/busybox":  byFirst(map[string]fake.Program{"truncate": busybox}),
		"/usr/bin/7z":       sevenZip,
		"/usr/bin/dav1d":    dav1d,
		"/usr/bin/linpack":  linpack,
		"/usr/bin/fio":      fio,
		"/usr/bin/sqlite3":  sqlite(),
		workload.Nginx:      idleNginx,
		"/usr/bin/sh":       redisSweep,
	}
	for _, tool := range workload.Tools() {
		for _, file := range tool.Files {
			text, err := os.ReadFile(filepath.Join(captureDir, path.Base(file)+"-native.txt"))
			if _, scripted := all[file]; !scripted && err == nil {
				all[file] = repeated(string(text))
			}
		}
	}
	return all
}

// idleNginx listens until it is killed.
func idleNginx([]string, engine.Spec) fake.Behaviour {
	return fake.Behaviour{Log: `2026/11/22 20:00:00 [notice] 1#1: using the "epoll" event method` + "\n"}
}

// redisSweep imitates the victim of isolation.memory.reclaim: its first line is the number of values.
func redisSweep(args []string, _ engine.Spec) fake.Behaviour {
	_, rest, _ := strings.Cut(args[1], "VALUES=")
	values, _, _ := strings.Cut(rest, ";")
	return fake.Behaviour{Every: 5 * time.Millisecond, Lines: func(n int) string {
		if n == 1 {
			return values
		}
		return strconv.Itoa(workload.RedisSweeps * 4096)
	}}
}

// repeated is a program that takes a second and writes a text, with any arguments.
func repeated(text string) fake.Program {
	return func([]string, engine.Spec) fake.Behaviour { return fake.Behaviour{Took: time.Second, Stdout: text} }
}

// byFirst is a program with a subcommand as its first argument.
func byFirst(commands map[string]fake.Program) fake.Program {
	return func(args []string, spec engine.Spec) fake.Behaviour {
		if len(args) > 0 {
			if command, ok := commands[args[0]]; ok {
				return command(args[1:], spec)
			}
		}
		return fake.Behaviour{Stderr: fmt.Sprintf("unknown command: %q\n", args), Exit: engine.Exit{Code: 1}}
	}
}
