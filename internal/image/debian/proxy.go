package debian

import (
	"bytes"
	"context"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/process"
)

// aptHelper is the path of a program of apt that is not on PATH. It is a variable for tests.
var aptHelper = "/usr/lib/apt/apt-helper"

// hostProxy returns the variable with the proxy of the host's apt for a mirror, or nil. mmdebstrap runs apt with a configuration of its own, so
// a proxy in the host's /etc/apt/apt.conf.d would be ignored. A proxy in the caller's environment takes precedence.
//
// Rejected: the option --aptopt, which writes the proxy, perhaps with a password, into the archive and onto the command line.
func hostProxy(ctx context.Context, l *process.Launcher, mirror string) []string {
	u, err := url.Parse(mirror)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return nil
	}
	variable := u.Scheme + "_proxy"
	if os.Getenv(variable) != "" {
		return nil
	}
	// apt prefers the proxy of a host, also one that a program of the configuration detects.
	proxy := detectedProxy(read(ctx, l, aptHelper, detectArgs(mirror)...))
	if proxy == "" {
		proxy = configuredProxy(read(ctx, l, "apt-config", dumpArgs()...), u.Scheme)
	}
	if proxy == "" || strings.EqualFold(proxy, "DIRECT") || proxy == "false" {
		return nil
	}
	return []string{variable + "=" + proxy}
}

func detectArgs(mirror string) []string { return []string{"auto-detect-proxy", mirror} }

func dumpArgs() []string { return []string{"dump", "--no-empty", "--format", "%f=%v%n", "Acquire"} }

// read returns the output of a program. It is empty if the program fails: a host without apt has no proxy for it.
func read(ctx context.Context, l *process.Launcher, name string, args ...string) string {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout = &out
	if l.Run(ctx, cmd) != nil {
		return ""
	}
	return out.String()
}

// helperLine is the output of apt-helper.
var helperLine = regexp.MustCompile(`Using proxy '([^'\n]*)' for URL`)

// detectedProxy reads the proxy of one host from the output of apt-helper.
func detectedProxy(text string) string {
	if found := helperLine.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

// configuredProxy reads the proxy of a scheme from the output of apt-config. apt uses the proxy for http also for https, unless https has its own.
// The names of apt's options have no case.
func configuredProxy(text, scheme string) string {
	found := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			found[strings.ToLower(key)] = value
		}
	}
	if value, ok := found["acquire::"+scheme+"::proxy"]; ok {
		return value
	}
	return found["acquire::http::proxy"]
}
