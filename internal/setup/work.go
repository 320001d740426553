package setup

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/touchstone-bench/touchstone/internal/process"
)

// work is the place where a part is made.
type work struct {
	launcher *process.Launcher
	dir      string // for files that are not kept
	bin      string // for the programs
	arch     string
	from     string // Setup.From
	client   *http.Client
}

// kept are the variables of the caller that programs for building and fetching get, besides the proxies. They name caches, mirrors, compilers
// and toolchains.
var kept = []string{
	"CARGO_HOME", "CARGO_HTTP_CAINFO", "CC", "GOCACHE", "GOFLAGS", "GOINSECURE", "GOMODCACHE", "GONOPROXY", "GONOSUMDB", "GOPATH", "GOPRIVATE", "GOPROXY", "GOROOT",
	"GOSUMDB", "GOTOOLCHAIN", "PKG_CONFIG_PATH", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "SSL_CERT_DIR", "SSL_CERT_FILE", "XDG_CACHE_HOME",
}

// environment returns the variables of a program that builds or fetches. Its messages are in English, because they are read.
func environment(additions ...string) []string {
	variables := []string{"LC_ALL=C"}
	for _, name := range kept {
		if value, ok := os.LookupEnv(name); ok {
			variables = append(variables, name+"="+value)
		}
	}
	return process.DownloadEnvironment(append(variables, additions...)...)
}

// command is a program that works for a part.
type command struct {
	dir  string // empty for the directory of the work
	env  []string
	args []string
}

// longestTail bounds the last output of a failed program in an error, in bytes.
const longestTail = 2000

// run runs a program in the directory of the work. An error has the end of its output. The program ends with this one, also if this one is
// killed.
func (w *work) run(ctx context.Context, c command) error {
	log, err := os.CreateTemp(w.dir, "log-")
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // it is only for an error
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.Dir = w.dir
	if c.dir != "" {
		cmd.Dir = c.dir
	}
	cmd.Env = environment(append([]string{"TMPDIR=" + filepath.Join(w.dir, "tmp")}, c.env...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err = w.launcher.Run(ctx, cmd); err == nil || ctx.Err() != nil {
		return err
	}
	tail := make([]byte, longestTail)
	size, _ := log.Seek(0, io.SeekEnd)
	n, _ := log.ReadAt(tail, max(0, size-longestTail))
	text := strings.TrimSpace(strings.ToValidUTF8(string(tail[:n]), ""))
	return errors.Join(fmt.Errorf("%s: %w", strings.Join(c.args, " "), err), errors.New(text), w.explainNetwork(ctx, text))
}

// unreachable are parts of the messages of Go, cargo, curl and APT about a host that cannot be reached.
var unreachable = []string{
	"no such host", "dial tcp", "i/o timeout", "connection refused", "network is unreachable", "Could not resolve", "Couldn't resolve", "Could not connect", "Failed to connect",
	"spurious network error",
}

// explainNetwork returns the remedy for a program that reached no server; nil for other failures.
func (w *work) explainNetwork(ctx context.Context, text string) error {
	isUnreachable := false
	for _, message := range unreachable {
		isUnreachable = isUnreachable || strings.Contains(text, message)
	}
	if !isUnreachable {
		return nil
	}
	advice := "without a network, copy the store of another machine and use --from DIR"
	proxy, _ := output(ctx, w.launcher, "apt-config", "dump", "--no-empty", "Acquire::http::Proxy") // empty without APT
	if strings.TrimSpace(proxy) != "" && os.Getenv("https_proxy") == "" && os.Getenv("HTTPS_PROXY") == "" {
		advice = "APT has a proxy that Go and cargo do not know: set HTTPS_PROXY to the value that apt-config dump Acquire::http::Proxy prints; " + advice
	}
	return errors.New("the server cannot be reached; if this machine needs a proxy, set HTTPS_PROXY; " + advice)
}

// machines are the architectures in the words of Go and of ELF.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "riscv64": elf.EM_RISCV}

// checkArch refuses a program for another architecture. A script has none.
func checkArch(path, arch string) error {
	file, err := elf.Open(path)
	if _, isOther := errors.AsType[*elf.FormatError](err); isOther || errors.Is(err, io.EOF) { // a short file has no header
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it is only read from
	if file.Machine != machines[arch] {
		return fmt.Errorf("it is for %v, not for %s", file.Machine, arch)
	}
	return nil
}
