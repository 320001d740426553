package debian

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// A proxy that only the host's apt knows reaches mmdebstrap, as its environment.
func TestHostProxy(t *testing.T) {
	launcher := launching(t)
	helper := aptHelper
	t.Cleanup(func() { aptHelper = helper })
	const mirror = "http://deb.debian.org/debian"
	for _, tt := range []struct {
		name, detected, configured, mirror, environment, want string
	}{
		{"none", "Using proxy '' for URL '" + mirror + "'", "Acquire::http::Timeout=20", mirror, "", ""},
		{"for all hosts", "Using proxy '' for URL", "Acquire::http::Proxy=http://user:secret@10.0.0.1:3128", mirror, "", "http_proxy=http://user:secret@10.0.0.1:3128"},
		{"in other letters", "", "Acquire::HTTP::proxy=http://10.0.0.1:3128/", mirror, "", "http_proxy=http://10.0.0.1:3128/"},
		{"detected", "Using proxy 'http://detected:3142' for URL '" + mirror + "'", "Acquire::http::Proxy-Auto-Detect=/usr/bin/auto-apt-proxy", mirror, "", "http_proxy=http://detected:3142"},
		{"not for this host", "Using proxy 'DIRECT' for URL '" + mirror + "'", "Acquire::http::Proxy=http://10.0.0.1:3128", mirror, "", ""},
		{"of https", "", "Acquire::http::Proxy=http://10.0.0.1:3128\nAcquire::https::Proxy=http://10.0.0.2:3128", "https://deb.debian.org/debian", "", "https_proxy=http://10.0.0.2:3128"},
		{"of http for https", "", "Acquire::http::Proxy=http://10.0.0.1:3128", "https://deb.debian.org/debian", "", "https_proxy=http://10.0.0.1:3128"},
		{"https without one", "", "Acquire::http::Proxy=http://10.0.0.1:3128\nAcquire::https::Proxy=DIRECT", "https://deb.debian.org/debian", "", ""},
		{"another host's", "", "Acquire::http::Proxy::other.example=http://10.0.0.1:3128", mirror, "", ""},
		{"the caller's own", "", "Acquire::http::Proxy=http://10.0.0.1:3128", mirror, "http://mine:1", ""},
		{"a directory", "", "Acquire::http::Proxy=http://10.0.0.1:3128", "file:///mirror", "", ""},
	} {
		dir := t.TempDir()
		t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
		t.Setenv("http_proxy", tt.environment)
		t.Setenv("https_proxy", "")
		aptHelper = filepath.Join(dir, "apt-helper")
		for name, output := range map[string]string{"apt-helper": tt.detected, "apt-config": tt.configured} {
			must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\ncat <<'END'\n"+output+"\nEND\n"), 0o700))
		}
		if got := strings.Join(hostProxy(t.Context(), launcher, tt.mirror), " "); got != tt.want {
			t.Errorf("%s: the variable is %q, want %q", tt.name, got, tt.want)
		}
	}
	// A host without apt has no proxy.
	aptHelper = "/nowhere/apt-helper"
	t.Setenv("PATH", t.TempDir())
	if got := hostProxy(t.Context(), launcher, mirror); got != nil {
		t.Errorf("without apt the variables are %q", got)
	}
}

// apt's own programs have the expected form of output.
func TestProxyOfRealApt(t *testing.T) {
	if _, err := os.Stat(aptHelper); err != nil {
		t.Skip("needs apt")
	}
	dir := t.TempDir()
	detect := filepath.Join(dir, "detect")
	must.Do(t, os.WriteFile(detect, []byte("#!/bin/sh\necho http://detected:3142\n"), 0o700))
	for _, path := range []string{detect, dir, filepath.Dir(dir)} { // apt executes it as the user _apt
		must.Do(t, os.Chmod(path, 0o755))
	}
	config := filepath.Join(dir, "apt.conf")
	output := func(name string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "APT_CONFIG=" + config}
		text, err := cmd.Output()
		must.Do(t, err)
		return string(text)
	}
	for text, want := range map[string][2]string{
		`Acquire::http::Proxy "http://10.0.0.1:3128";`:                                                {"", "http://10.0.0.1:3128"},
		`Acquire::http::Proxy "http://10.0.0.1:3128"; Acquire::http::Proxy::deb.debian.org "DIRECT";`: {"DIRECT", "http://10.0.0.1:3128"},
		`Acquire::http { Proxy-Auto-Detect "` + detect + `"; };`:                                      {"http://detected:3142", ""},
	} {
		must.Do(t, os.WriteFile(config, []byte(text+"\n"), 0o600))
		const mirror = "http://deb.debian.org/debian"
		got := [2]string{detectedProxy(output(aptHelper, detectArgs(mirror)...)), configuredProxy(output("apt-config", dumpArgs()...), "http")}
		if got != want {
			t.Errorf("%s gives %q, want %q", text, got, want)
		}
	}
}
