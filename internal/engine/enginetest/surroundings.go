package enginetest

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// The tests of what a Spec says of a container's surroundings: where it can write, on which CPUs and
// within which limits it runs, and whom it reaches.

// written is the file that containers write, in a directory that their image has.
const written = "/data/written"

// testWritable: what a container writes is its own.
func (s *suite) testWritable(t *testing.T) {
	s.needs(t, engine.CanWrite)
	writable := func(args []string) engine.Spec {
		spec := s.spec(args)
		spec.Writable = true
		return spec
	}
	for range 2 { // the second cannot find the file that the first has written
		s.wantExit(t, s.start(t, writable(workload.Write(written))), engine.Exit{})
	}
	load := s.start(t, writable(files(filepath.Dir(written))))
	s.wantExit(t, load, engine.Exit{})
	s.delete(t, load)
	wantReport(t, load.stdout)
	s.wantRootUnchanged(t)
}

// wantRootUnchanged checks that nobody has written to the root file system that containers share.
func (s *suite) wantRootUnchanged(t *testing.T) {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(s.Rootfs, written)); err == nil {
		t.Errorf("a container has written to the root file system of all of them: %s is there", written)
	}
}

// testTmpfs: a mount without a source can be written, and is each container's own.
func (s *suite) testTmpfs(t *testing.T) {
	s.needs(t, engine.CanTmpfs)
	dir := filepath.Dir(written)
	for range 2 {
		spec := s.spec(workload.Write(written))
		spec.Mounts = []engine.Mount{{Target: dir}}
		s.wantExit(t, s.start(t, spec), engine.Exit{})
	}
	s.wantRootUnchanged(t)
}

// lacks skips the test for want of what each target has on a host that lets it, or fails it if MustRun names the target.
func (s *suite) lacks(t *testing.T, what string, err error) {
	t.Helper()
	if name := s.engine.Info().Target; required(t, name) {
		t.Fatalf("%s names %s, which has no %s: %v", MustRun, name, what, err)
	}
	t.Skipf("the target has no %s here: %v", what, err)
}

// testCPUSet: the container runs on the CPU that it is given, and knows. In a sandbox with CPUs of its
// own making it sees how many there are.
func (s *suite) testCPUSet(t *testing.T) {
	var here unix.CPUSet
	if err := unix.SchedGetaffinity(0, &here); err != nil {
		t.Fatal(err)
	}
	last := -1
	for cpu := range len(here) * 64 {
		if here.IsSet(cpu) {
			last = cpu
		}
	}
	spec := s.spec(workload.CPUs())
	spec.Resources.CPUSet = fmt.Sprint(last)
	c, err := s.engine.Create(s.context(t), spec)
	if engine.Unsupported(err) {
		s.lacks(t, "CPUs to stay on", err)
	}
	if err != nil {
		t.Fatalf("Create: %v", err)
	}
	s.deleteAfter(t, c)
	if err := c.Start(s.context(t)); err != nil {
		t.Fatalf("Start: %v", err)
	}
	b := boxOf(c, spec)
	s.wantExit(t, b, engine.Exit{})
	s.delete(t, b)
	got := strings.TrimSpace(b.stdout.String())
	switch s.engine.Info().Isolation {
	case engine.UserKernel, engine.VM:
		if got == "" || strings.ContainsAny(got, ",-") {
			t.Errorf("with one CPU the container may run on the CPUs %q, want one", got)
		}
	default:
		if got != spec.Resources.CPUSet {
			t.Errorf("the container may run on the CPUs %q, want %q", got, spec.Resources.CPUSet)
		}
	}
}

// testLimits: limits at creation are there when the process runs.
func (s *suite) testLimits(t *testing.T) {
	if s.Limits == nil {
		s.lacks(t, "limits", errors.New("it is not known in which cgroups its containers are"))
	}
	spec := s.spec(workload.Ready())
	spec.Resources = engine.Resources{CPU: 0.5, Memory: 256 << 20}
	b := s.start(t, spec)
	s.wantReady(t, b)
	if got, want := s.Limits(t, b), fmt.Sprint("50000 100000 ", 256<<20); got != want {
		t.Errorf("the container's CPU quota, period and memory limit are %q, want %q", got, want)
	}
	s.kill(t, b, killed)
}

// reachLimit is how long a program tries to reach another one, which listens by then.
const reachLimit = 10 * time.Second

// link gives the network of bridged containers.
func (s *suite) link(t *testing.T) engine.Link {
	t.Helper()
	if err := s.engine.Supports(engine.NetworkBridge); err != nil {
		s.lacks(t, "bridged network", err)
	}
	networker, ok := s.engine.(engine.Networker)
	if !ok {
		t.Fatalf("the engine lacks an interface that Supports promises: %T", (*engine.Networker)(nil))
	}
	link, err := networker.Link(s.context(t))
	if engine.Unsupported(err) {
		s.lacks(t, "bridged network", err)
	}
	if err != nil {
		t.Fatalf("Link: %v", err)
	}
	return link
}

// served starts a server and gives its port.
func (s *suite) served(t *testing.T, server box) uint16 {
	t.Helper()
	line, err := server.stdout.firstLine(s.context(t))
	if err != nil {
		t.Fatalf("first line of output: %v; Stderr: %s", err, server.stderr)
	}
	port, err := workload.ParseServing(line)
	if err != nil {
		t.Fatal(err)
	}
	return uint16(port)
}

func (s *suite) bridged(args []string) engine.Spec {
	spec := s.spec(args)
	spec.Network = engine.Bridged
	return spec
}

func (s *suite) address(t *testing.T, b box) netip.Addr {
	t.Helper()
	address, err := optional[engine.Addressed](t, b).Address(s.context(t))
	if err != nil || !address.Is4() || address.IsLoopback() {
		t.Fatalf("Address = %v, %v; want an IPv4 address at which others reach it", address, err)
	}
	return address
}

// testBridge: containers reach each other, and none that has ended.
func (s *suite) testBridge(t *testing.T) {
	link := s.link(t)
	for _, name := range []string{"interface", "mtu"} {
		if link.About[name] == "" {
			t.Errorf("Link says of the network %v, and nothing of its %s", link.About, name)
		}
	}
	server := s.start(t, s.bridged(workload.ServeAny(0)))
	addr := netip.AddrPortFrom(s.address(t, server), s.served(t, server))
	for range 2 { // a later container's network is not that of an earlier one
		client := s.start(t, s.bridged(workload.Reach(addr, reachLimit)))
		s.wantExit(t, client, engine.Exit{})
		s.delete(t, client)
	}
	s.kill(t, server, killed)
	s.delete(t, server)
	late := s.start(t, s.bridged(workload.Reach(addr, 50*time.Millisecond)))
	if exit, err := late.Wait(s.context(t)); err != nil || exit.Code != 1 {
		t.Errorf("Wait = %v, %v; want code 1: the server at %v has ended", exit, err, addr)
	}
	if again, err := s.engine.(engine.Networker).Link(s.context(t)); err != nil || again.Host != link.Host || again.Namespace != link.Namespace {
		t.Errorf("Link changed from %+v to %+v, %v", link, again, err)
	}
}

// testHostEnd: a program at the host's end and a container reach each other.
func (s *suite) testHostEnd(t *testing.T) {
	link := s.link(t)
	if s.Host == nil {
		t.Fatal("the engine has bridged networks: the suite needs the native engine for the host's end")
	}
	host := func(args []string) box {
		spec := s.spec(args)
		spec.Network, spec.Join = engine.HostNet, link.Namespace
		c, err := s.Host.Create(s.context(t), spec)
		if err != nil {
			t.Fatalf("Create at the host's end: %v", err)
		}
		s.deleteAfter(t, c)
		if err := c.Start(s.context(t)); err != nil {
			t.Fatalf("Start at the host's end: %v", err)
		}
		return boxOf(c, spec)
	}
	server := s.start(t, s.bridged(workload.ServeAny(0)))
	inside := netip.AddrPortFrom(s.address(t, server), s.served(t, server))
	s.wantExit(t, host(workload.Reach(inside, reachLimit)), engine.Exit{})

	outside := host(workload.ServeAny(0))
	addr := netip.AddrPortFrom(link.Host, s.served(t, outside))
	s.wantExit(t, s.start(t, s.bridged(workload.Reach(addr, reachLimit))), engine.Exit{})
	s.kill(t, outside, killed)
}
