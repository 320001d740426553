package process

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// inherited are the only variables of this program's environment that the programs started by it get. The rest could change a
// measurement without a trace: GOMAXPROCS and GODEBUG of a runtime written in Go, LD_PRELOAD, GLIBC_TUNABLES, LISTEN_FDS,
// NOTIFY_SOCKET, the variables of a terminal or of a CI job.
var inherited = []string{"PATH", "HOME"}

// userVariable is also inherited by the programs of an ordinary user. root may have the directory of another user, after sudo -E.
const userVariable = "XDG_RUNTIME_DIR"

// proxies are the variables of a program that downloads, beside the inherited ones. curl and APT know only the first spelling of
// http_proxy.
var proxies = []string{
	"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY",
}

// usualPath is the value of PATH without one.
const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Environment returns the environment of each program that this program starts on the host: the runtimes and their probes, daemons,
// clients of engines and helpers. additions are further variables, which replace inherited ones. A command without an environment gets
// Environment(), so no program can inherit the caller's.
func Environment(additions ...string) []string { return environment(inherited, additions) }

// DownloadEnvironment is Environment for a program that downloads. It has the caller's proxies.
func DownloadEnvironment(additions ...string) []string {
	return environment(slices.Concat(inherited, proxies), additions)
}

func environment(names, additions []string) []string {
	variables := []string{"PATH=" + usualPath}
	if os.Geteuid() != 0 {
		names = append(slices.Clone(names), userVariable)
	}
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok && (value != "" || name != "PATH") {
			variables = append(variables, name+"="+value)
		}
	}
	return lastOnes(append(variables, additions...))
}

// lastOnes keeps the last one of several variables with the same name. The kernel would pass all of them on, and programs differ in the one
// that they read.
func lastOnes(variables []string) []string {
	index := map[string]int{} // in result, by name
	var result []string
	for _, v := range variables {
		name, _, _ := strings.Cut(v, "=")
		if i, ok := index[name]; ok {
			result[i] = v
			continue
		}
		index[name] = len(result)
		result = append(result, v)
	}
	return result
}

// goVariables are variables that change the Go runtime of this program itself. They do not reach other programs, but they change the time that
// this program takes.
var goVariables = []string{"GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG"}

// Tuning returns the variables that change this program itself, such as GOMAXPROCS=1, for the record of a run.
func Tuning() []string {
	var set []string
	for _, name := range goVariables {
		if value := os.Getenv(name); value != "" {
			set = append(set, name+"="+value)
		}
	}
	return set
}

// sealFiles closes the files that this program has inherited, such as the sockets of LISTEN_FDS, in each program that it starts. Its own
// files are sealed from their beginning.
func sealFiles() {
	const firstInherited = 3 // after the standard streams
	files, _ := filepath.Glob("/proc/self/fd/*")
	for _, file := range files {
		if fd, err := strconv.Atoi(filepath.Base(file)); err == nil && fd >= firstInherited {
			unix.CloseOnExec(fd)
		}
	}
}
