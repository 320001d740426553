package locality

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/must"
)

// place is an imitation of a daemon with the parts of this machine that it shares.
type place struct {
	engine.Missing
	// mount returns the directory that the daemon binds in place of the source.
	mount func(source string) (string, error)
	// write makes the file of a container, and returns the exit code.
	write func(file string) int
	// host runs a container on the host's network.
	host func(address string) (code int, err error)
	// refuse is the error of each container.
	refuse error
	left   int // containers
}

// sharing is a daemon that shares all.
func sharing() *place {
	return &place{
		mount: func(source string) (string, error) { return source, nil },
		write: func(file string) int {
			if os.WriteFile(file, nil, 0o600) != nil {
				return 1
			}
			return 0
		},
		host: func(address string) (int, error) {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				return 1, nil //nolint:nilerr // the program reports it by its code
			}
			return 0, conn.Close()
		},
	}
}

func (*place) Info() engine.Info { return engine.Info{} }
func (*place) Close() error      { return nil }

func (p *place) Create(_ context.Context, spec engine.Spec) (engine.Container, error) {
	if p.refuse != nil {
		return nil, p.refuse
	}
	b := &box{p: p, spec: spec}
	if len(spec.Mounts) > 0 {
		var err error
		if b.dir, err = p.mount(spec.Mounts[0].Source); err != nil {
			return nil, err
		}
	}
	p.left++
	return b, nil
}

// box is a container of a place.
type box struct {
	p    *place
	spec engine.Spec
	dir  string
	exit engine.Exit
}

func (b *box) ID() string { return b.spec.ID }

func (b *box) Start(context.Context) (err error) {
	args := b.spec.Process.Args
	switch args[1] {
	case "write":
		if b.exit.Code = b.p.write(filepath.Join(b.dir, filepath.Base(args[2]))); b.exit.Code != 0 {
			_, err = io.WriteString(b.spec.Process.Stderr, "write: make the file: EACCES (13)\n")
		}
	case "reach":
		b.exit.Code, err = b.p.host(net.JoinHostPort(args[3], args[5]))
	}
	return err
}

func (*box) Kill(context.Context, syscall.Signal) error  { return nil }
func (b *box) Wait(context.Context) (engine.Exit, error) { return b.exit, nil }
func (*box) State(context.Context) (engine.State, error) { return engine.Running, nil }
func (b *box) Delete(context.Context) error              { b.p.left--; return nil }
func unlimited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

const run = "20261128-100000-aaaa"

// processes are the files in /proc of the process 7 of a container.
func processes(uid string) map[string]string {
	return map[string]string{"7/cmdline": "/probe\x00sequence\x00/" + run + "-place\x00", "7/cgroup": "0::/docker/x\n", "7/uid_map": uid}
}

// newCheck returns a check of a daemon, with the files of its processes.
func newCheck(t *testing.T, p *place, proc map[string]string) *check {
	t.Helper()
	c := &check{
		Subject: Subject{
			Daemon: "the daemon", Engine: p, WithLimit: unlimited,
			Process: func(context.Context, engine.Container) (Process, error) {
				return Process{PID: 7, IDs: []string{"0123abcd", ""}}, nil
			},
		},
		Findings: Findings{Missing: engine.Missing{}}, proc: t.TempDir(), selinux: t.TempDir(), signal: func(int) error { return unix.ESRCH },
		session: engine.Session{RunID: run, Data: t.TempDir(), Memory: t.TempDir()},
	}
	enginetest.Files(t, c.proc, proc)
	return c
}

const whole = "         0          0 4294967295\n"

// Each lacking part of the machine takes away its capabilities and no others, with the reason and a remedy.
//
// Invariant shared-parts: A benchmark that needs a part of this machine that the user's daemon does not share is skipped once, with the reason;
// no cost comes from another machine, process or cgroup (ADR 43).
func TestCheck(t *testing.T) {
	uid := strconv.Itoa(os.Geteuid())
	table := strings.Replace(whole, "          0 4", "          "+uid+" 4", 1)
	binds := []engine.Capability{engine.CanBind, engine.CanBindMemory}
	remote := []engine.Capability{engine.OnMachine, engine.OnHost, engine.NetworkHost, engine.NetworkBridge}
	noSource := func(string) (string, error) { return "", errors.New("bind source path does not exist") }
	unwritable := func(string) int { return 1 }
	for _, tt := range []struct {
		name    string
		proc    map[string]string
		change  func(c *check, p *place)
		lacks   []engine.Capability
		reasons []string
	}{
		{"all is shared", processes(table), func(*check, *place) {}, nil, nil},
		// Other file systems.
		{"Snap and a mounted socket", processes(table), func(_ *check, p *place) { p.mount = noSource }, binds, []string{"bind source path does not exist", "--managed"}},
		{"in a container with the socket", processes(table), func(c *check, p *place) { p.mount, c.session.Container = noSource, "docker" }, binds, []string{"in a container (docker)", "-v "}},
		{"an engine that makes missing directories", processes(table), func(c *check, p *place) {
			p.mount = func(string) (string, error) { return t.TempDir(), nil }
		}, binds, []string{"does not appear here"}},
		{"rootless Docker with its own /run", processes(table), func(c *check, p *place) {
			p.mount = func(source string) (string, error) {
				if strings.HasPrefix(source, c.session.Memory) {
					return noSource(source)
				}
				return source, nil
			}
		}, []engine.Capability{engine.CanBindMemory}, []string{"bind source path"}},
		{"a service with PrivateTmp", processes(table), func(c *check, p *place) {
			p.mount = func(source string) (string, error) {
				if strings.HasPrefix(source, c.session.Data) {
					return noSource(source)
				}
				return source, nil
			}
		}, []engine.Capability{engine.CanBind}, []string{"PrivateTmp"}},
		{"no directory in memory", processes(table), func(c *check, _ *place) { c.session.Memory = "" }, nil, nil},
		// Other users.
		{"userns-remap", processes("0 100000 65536\n"), func(c *check, p *place) {
			c.Users, p.write = "the daemon maps users (userns-remap)", unwritable
			p.host = func(string) (int, error) { return 0, errors.New("cannot share the host's network namespace") }
		}, append(binds, engine.NetworkHost), []string{"userns-remap", "EACCES", "cannot share the host's network namespace"}},
		{"a daemon of another user", processes("0 1000 1\n1 100000 65536\n"), func(_ *check, p *place) { p.write = unwritable }, binds, []string{"it is user 1000 here"}},
		{"SELinux", processes(table), func(c *check, p *place) {
			p.write = unwritable
			enginetest.Files(t, c.selinux, map[string]string{"enforce": "1"})
		}, binds, []string{"SELinux", "ausearch"}},
		{"an unknown refusal", processes(table), func(_ *check, p *place) { p.write = unwritable }, binds, []string{"look at the daemon's log"}},
		// Other PID namespaces.
		{"no such process", nil, func(*check, *place) {}, []engine.Capability{engine.OnHost}, []string{"reports 7", "another PID namespace"}},
		{"another process", map[string]string{"7/cmdline": "bash\x00", "7/cgroup": "0::/user.slice\n"}, func(c *check, _ *place) { c.session.Container = "podman" }, []engine.Capability{engine.OnHost}, []string{"--pid=host"}},
		{"no process reported", processes(table), func(c *check, _ *place) {
			c.Process = func(context.Context, engine.Container) (Process, error) { return Process{}, nil }
		}, []engine.Capability{engine.OnHost}, []string{"does not report the process"}},
		{"a sandbox with the ID in its arguments", map[string]string{"7/cmdline": "runsc-sandbox\x00boot\x000123abcd\x00"}, func(*check, *place) {}, nil, nil},
		{"a group of systemd with the ID", map[string]string{"7/cmdline": "qemu\x00", "7/cgroup": "0::/system.slice/docker-0123abcd.scope\n"}, func(*check, *place) {}, nil, nil},
		// Other networks.
		{"another network namespace", processes(table), func(_ *check, p *place) { p.host = func(string) (int, error) { return 1, nil } }, []engine.Capability{engine.NetworkHost}, []string{"does not reach this program at 127.0.0.1:"}},
		{"no host network of the runtime", processes(table), func(_ *check, p *place) {
			p.Missing = engine.Missing{engine.NetworkHost: "a network of its own"}
			p.host = func(string) (int, error) { panic("the check uses a network that the target lacks") }
		}, nil, nil},
		{"hidepid", nil, func(c *check, _ *place) { c.signal = func(int) error { return unix.EPERM } }, []engine.Capability{engine.OnHost}, []string{"hidepid=0"}},
		{"mapped users of a runtime that looks at the source itself", processes(table), func(c *check, p *place) {
			c.Users, p.mount = "it maps users", func(string) (string, error) { return "", errors.New("stat: permission denied") }
		}, binds, []string{"it maps users; use --managed"}},
		// Other machines.
		{"a virtual machine that shares directories", nil, func(_ *check, p *place) {
			p.write = func(file string) int { // a rename makes the file without the event of its creation
				replacement := file + ".elsewhere"
				if os.Mkdir(filepath.Dir(file)+".other", 0o700) == nil {
					replacement = filepath.Join(filepath.Dir(file)+".other", "f")
				}
				if os.WriteFile(replacement, nil, 0o600) != nil || os.Rename(replacement, file) != nil {
					return 1
				}
				return 0
			}
		}, remote, []string{"another kernel has written it", "start Touchstone there"}},
		{"a tunnel to another machine", nil, func(c *check, p *place) { p.mount, c.Machine = noSource, Machine{Kernel: "5.4.0-other"} }, append(binds, remote...), []string{"kernel 5.4.0-other"}},
		{"a machine with an equal kernel", nil, func(c *check, p *place) {
			p.mount, c.Machine = noSource, Machine{Kernel: thisMachine().Kernel, Memory: thisMachine().Memory + 1<<20}
		}, append(binds, remote...), []string{"MiB of memory"}},
		{"a container on this machine", nil, func(c *check, p *place) { p.mount, c.Machine = noSource, thisMachine() }, append(binds, engine.OnHost), []string{"another PID namespace"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := sharing()
			c := newCheck(t, p, tt.proc)
			tt.change(c, p)
			must.Do(t, c.all(t.Context()))
			var lacks []engine.Capability
			text := ""
			for capability, reason := range c.Missing {
				lacks = append(lacks, capability)
				text += reason + "\n"
			}
			want := slices.Clone(tt.lacks)
			slices.Sort(lacks)
			slices.Sort(want)
			if !slices.Equal(lacks, want) {
				t.Errorf("it lacks %q, want %q: %s", lacks, want, text)
			}
			for _, reason := range tt.reasons {
				if !strings.Contains(text, reason) {
					t.Errorf("the reasons lack %q: %s", reason, text)
				}
			}
			if p.left != 0 {
				t.Errorf("%d containers are left", p.left)
			}
			for _, dir := range []string{c.session.Data, c.session.Memory} {
				if left, _ := filepath.Glob(filepath.Join(dir, "place-*[0-9]")); dir != "" && len(left) > 0 {
					t.Errorf("%q is left", left)
				}
			}
		})
	}
}

// A target that runs no container has no findings, and an error.
func TestBrokenRuntime(t *testing.T) {
	p := sharing()
	p.refuse = errors.New("exec format error")
	c := newCheck(t, p, nil)
	if err := c.all(t.Context()); !errors.Is(err, p.refuse) || len(c.Missing) > 0 {
		t.Errorf("%v with %v", err, c.Missing)
	}
}

// An engine that waits for processes never waits for a foreign process.
//
// Invariant shared-parts.
func TestNeededProcess(t *testing.T) {
	for name, proc := range map[string]map[string]string{"none": nil, "another": {"7/cmdline": "bash\x00"}, "its own": processes(whole)} {
		p := sharing()
		c := newCheck(t, p, proc)
		c.NeedsProcess = true
		if err := c.all(t.Context()); engine.Unsupported(err) != (name != "its own") || p.left != 0 {
			t.Errorf("%s: %v with %d containers left", name, err, p.left)
		}
	}
}

// One failure of a runtime is not a property of the daemon.
func TestFlakyRuntime(t *testing.T) {
	p := sharing()
	calls := 0
	p.mount = func(source string) (string, error) {
		if calls++; calls%2 == 1 {
			return "", errors.New("no luck")
		}
		return source, nil
	}
	c := newCheck(t, p, processes(whole))
	if err := c.all(t.Context()); err != nil || len(c.Missing) > 0 {
		t.Errorf("%v with %v", err, slices.Collect(maps.Values(c.Missing)))
	}
}

// The end of the context is no finding.
func TestCancelledCheck(t *testing.T) {
	for _, failure := range []func(cancel func(), p *place){
		func(cancel func(), p *place) {
			p.mount = func(source string) (string, error) { cancel(); return source, nil }
		},
		func(cancel func(), p *place) { p.host = func(string) (int, error) { cancel(); return 1, nil } },
	} {
		p := sharing()
		c := newCheck(t, p, processes(whole))
		ctx, cancel := context.WithCancel(t.Context())
		failure(cancel, p)
		if err := c.all(ctx); !errors.Is(err, context.Canceled) || p.left != 0 {
			t.Errorf("%v with %d containers left; want the cause", err, p.left)
		}
	}
}

// The container's parent process has the daemon's cgroup namespace.
func TestParent(t *testing.T) {
	dir := t.TempDir()
	enginetest.Files(t, dir, map[string]string{"status": "Name:\tprobe\nPid:\t7\nPPid:\t5\n"})
	if parent := parentOf(dir); parent != "5" {
		t.Errorf("the parent is %q", parent)
	}
	if parent := parentOf(filepath.Join(dir, "missing")); parent != "0" {
		t.Errorf("the parent of a missing process is %q", parent)
	}
}

// The output of a hostile container is bounded, and one line.
func TestExcerpt(t *testing.T) {
	var e excerpt
	for range 1000 {
		if n, err := fmt.Fprint(&e, "a\nb \xff"); n != 5 || err != nil {
			t.Fatal(n, err)
		}
	}
	if text := e.String(); len(text) > longestOutput || strings.Contains(text, "\n") || !utf8.ValidString(text) || !strings.HasPrefix(text, "a b") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
}
