package chaos

import (
	"bufio"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
	"github.com/touchstone-bench/touchstone/test/cells"
	"github.com/touchstone-bench/touchstone/test/chaos/script"
)

const (
	// nobody is the ID of the neighbour.
	nobody = 65534
	secret = "chaos-secret-value"
)

// TestNeighbour: an unprivileged user makes paths before a run, holds connections, and reads what it can. The run is not
// disturbed, and its secrets stay secret.
func TestNeighbour(t *testing.T) {
	cells.Need(t, "chaos/neighbour")
	onHost(t, 12, "an unprivileged neighbour: paths, connections, readable secrets", func(h *host) {
		h.need("runc", "podman", "dockerd", "docker")
		for _, path := range []string{"/tmp/touchstone-0", "/tmp/touchstone", "/tmp/ts", "/dev/shm/touchstone", "/dev/shm/touchstone-0", "/var/tmp/touchstone"} {
			h.must(os.Symlink("/etc", path))
			h.must(os.Lchown(path, nobody, nobody))
		}
		h.userDaemon()
		h.watch()
		h.connections()
		h.secrets()
	})
}

// neighbours is the number of connections that the neighbour holds to each port.
const neighbours = 5000

// connections holds thousands of connections to the registry of a run, which listens on the host for the user's Docker, and reads it.
func (h *host) connections() {
	h.Helper()
	w := h.wrap(script.Rule{Verb: "start", From: 2, Until: 2, Fault: script.Hold})
	p := h.plan(fmt.Sprintf("targets: [oci/held, docker/runc]\nruntimes: {held: %s}\nbenchmarks: [%s]\nblocks: 3\nwarmup: 0\ntimeout: {trial: 100s, call: 90s}\n", w.path, lifecycle))
	w.reached(p)
	ports := h.ports()
	if len(ports) == 0 {
		h.wrong("no program listens on the loopback address, so the case shows nothing")
	}
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for _, port := range ports {
		h.readRegistry(port, h.run(p.dir).ID)
		for range neighbours {
			c, err := net.DialTimeout("tcp", port, 10*time.Second)
			if err != nil {
				break // the server refuses more, as it may
			}
			conns = append(conns, c)
		}
	}
	h.Logf("%d connections to %v", len(conns), ports)
	if len(conns) < neighbours/10 {
		h.wrong("%d connections are too few to disturb a run", len(conns))
	}
	h.tried(len(conns))
	w.release()
	p.ends(0)
	run := h.run(p.dir)
	for _, target := range []string{"oci/held", "docker/runc"} {
		if n := count(run, target); n[result.OK] != 3 {
			h.wrong("beside the connections, %s got %v, want 3 ok", target, n)
		}
	}
}

// readRegistry tries to read the images of a run without the secret part of their path.
func (h *host) readRegistry(address, run string) {
	h.Helper()
	client := http.Client{Timeout: patience}
	for _, path := range []string{"/v2/_catalog", "/v2/touchstone/" + run + "/probe/manifests/latest", "/v2/touchstone/" + run + "/probe/tags/list"} {
		answer, err := client.Get("http://" + address + path)
		if err != nil {
			h.wrong("ask %s for %s: %v", address, path, err)
			continue
		}
		_ = answer.Body.Close()
		h.tried(1)
		if answer.StatusCode == http.StatusOK {
			h.wrong("%s answers %s without the secret path", address, path)
		}
	}
}

// ports lists the addresses on which programs of this host listen.
func (h *host) ports() (addresses []string) {
	h.Helper()
	f, err := os.Open("/proc/net/tcp")
	h.must(err)
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		var address uint32
		var port uint16
		if len(fields) < 4 || fields[3] != "0A" { // the state of a listening socket
			continue
		}
		if _, err := fmt.Sscanf(fields[1], "%08X:%04X", &address, &port); err != nil {
			h.Fatal(err)
		}
		if address != 0x0100007f {
			h.wrong("a program listens on an address that is not loopback: %s", fields[1])
		}
		addresses = append(addresses, fmt.Sprintf("127.0.0.1:%d", port))
	}
	return addresses
}

// secrets runs a workload with a secret variable, reads the arguments of all processes meanwhile, and then the results.
func (h *host) secrets() {
	h.Helper()
	p := h.plan(fmt.Sprintf("targets: [oci/runc, podman/runc]\nengines: {managed: true}\nbenchmarks: [app.secret.test]\nblocks: 1\nwarmup: 0\ntimeout: {trial: 40s, call: 30s}\n"+
		"workloads:\n  - {name: app.secret.test, image: probe, argv: [%s], env: {TOKEN: %s}, parse: [{metric: Rate, regex: 'rate: ([0-9]+) op', unit: 1/s, better: higher}]}\n", strings.Join(probe.Exit(0), ", "), secret))
	// The arguments are read until the end, because a command may be short.
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			for _, file := range files {
				if text, _ := os.ReadFile(file); strings.Contains(string(text), secret) {
					h.wrong("a secret is in the arguments of a process: %.200q", text)
					return
				}
			}
			select {
			case <-p.done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	p.ends(0, 3) // the program is not the one that the workload expects
	reader.Wait()
	h.tried(1)
	err := filepath.WalkDir(filepath.Join(p.dir, "out"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			h.wrong("%s has the mode %v, want 0600", d.Name(), info.Mode().Perm())
		}
		if text, _ := os.ReadFile(path); strings.HasSuffix(path, ".html") && strings.Contains(string(text), secret) {
			h.wrong("%s has the value of a variable", d.Name())
		}
		return err
	})
	h.must(err)
	export := h.touchstone(p.dir, 0, "export")
	if strings.Contains(export.stdout.String(), secret) {
		h.wrong("the export has the value of a variable")
	}
	for _, path := range []string{filepath.Join(p.dir, "out", "report.html"), filepath.Join(p.dir, "out", "touchstone.db")} {
		cat := exec.Command("cat", path)
		cat.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		if cat.Run() == nil {
			h.wrong("another user can read %s", filepath.Base(path))
		}
	}
}
