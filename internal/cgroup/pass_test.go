package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// domain is the content of cgroup.type of every group except the root of the whole tree.
const domain = "domain\n"

// unifiedTree makes files of a unified tree in a machine, and returns its hierarchy. It is the root of a cgroup namespace if files has cgroup.type.
func unifiedTree(t *testing.T, files map[string]string) (*Hierarchy, string) {
	t.Helper()
	root := t.TempDir()
	writeFixtures(t, root, map[string]string{
		"proc/self/mountinfo": "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "proc/self/cgroup": "0::/\n",
	})
	dir := filepath.Join(root, "sys/fs/cgroup")
	writeFixtures(t, dir, map[string]string{"cgroup.subtree_control": "", "cgroup.procs": ""})
	writeFixtures(t, dir, files)
	h, err := Detect(root)
	must.Do(t, err)
	return h, dir
}

// Each reason for a missing controller has its own cause and remedy, and touchstone host reports the same one as a trial.
//
// Invariant missing-controller: A controller that a group lacks has its own cause, in trials and in `touchstone host`, and no write to a control
// file of a cgroup fails in silence.
func TestRefusal(t *testing.T) {
	const controllerList = "cpuset cpu io memory pids\n"
	for name, tt := range map[string]struct {
		files       map[string]string
		err         error    // nil if the controllers are passed on
		cause       []string // parts
		remedy      string   // a part
		controllers []string
	}{
		"root of the tree": {
			files: map[string]string{"cgroup.controllers": controllerList, "cgroup.procs": "1\n2\n"}, controllers: enabled,
		},
		"group without processes": {
			files: map[string]string{"cgroup.controllers": controllerList, "cgroup.type": domain}, controllers: enabled,
		},
		"passed on already, with processes": {
			files:       map[string]string{"cgroup.controllers": controllerList, "cgroup.type": domain, "cgroup.subtree_control": "cpu memory pids\n", "cgroup.procs": "1\n"},
			controllers: enabled,
		},
		"namespace with processes": {
			files: map[string]string{"cgroup.controllers": controllerList, "cgroup.type": domain, "cgroup.procs": "1\n4194305\n"},
			err:   unix.EBUSY, cause: []string{"holds processes: 1 (", "4194305", "no internal processes"}, remedy: "xargs -rn1", controllers: enabled,
		},
		"namespace with a process from outside": {
			files: map[string]string{"cgroup.controllers": controllerList, "cgroup.type": domain, "cgroup.procs": "0\n"},
			err:   unix.EBUSY, cause: []string{"a process of another PID namespace"}, remedy: "xargs -rn1", controllers: enabled,
		},
		"not delegated to the namespace": {
			files: map[string]string{"cgroup.controllers": "cpuset io\n", "cgroup.type": domain},
			err:   unix.ENOENT, cause: []string{"does not pass"}, remedy: "--cgroupns=host", controllers: enabled,
		},
		"kernel without memory": {
			files: map[string]string{"cgroup.controllers": "cpu pids\n"},
			err:   unix.ENOENT, cause: []string{"the kernel offers no memory cgroup controller"}, remedy: "cgroup_enable=memory", controllers: []string{"memory"},
		},
		"kernel without cpu and pids": {
			files: map[string]string{"cgroup.controllers": "memory\n"},
			err:   unix.ENOENT, cause: []string{"the kernel offers no "}, remedy: "cgroup_disable=", controllers: []string{"cpu", "pids"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, dir := unifiedTree(t, tt.files)
			g, err := h.Create("/touchstone-run/trial")
			must.Do(t, err)
			for _, controller := range tt.controllers {
				if tt.err == nil {
					if r := h.Refusal(controller); r != nil {
						t.Errorf("%s of the host: %v", controller, r)
					}
					if r := g.refused[controller]; r != nil && strings.HasSuffix(r.What, dir) {
						t.Errorf("%s of the group: %v", controller, r)
					}
					continue
				}
				for _, r := range []error{h.Refusal(controller), g.Refusal(controller)} {
					if !errors.Is(r, tt.err) || !strings.Contains(r.Error(), tt.remedy) {
						t.Errorf("%s: %v; want %v and %q", controller, r, tt.err, tt.remedy)
						continue
					}
					for _, part := range tt.cause {
						if !strings.Contains(r.Error(), part) {
							t.Errorf("%s: %q lacks %q", controller, r, part)
						}
					}
				}
			}
			writes, err := words(dir, "cgroup.subtree_control")
			must.Do(t, err)
			if got := slices.ContainsFunc(writes, func(word string) bool { return strings.HasPrefix(word, "+") }); got && tt.err != nil && len(tt.controllers) == 3 {
				t.Errorf("it wrote %q", writes)
			}
		})
	}
}

// An error of a control file is never lost: each has its cause and its remedy.
//
// Invariant missing-controller.
func TestPassRefusal(t *testing.T) {
	for _, tt := range []struct {
		controller string
		err        error
		want       string
	}{
		{"memory", unix.EBUSY, "holds processes"},
		{"cpu", unix.EINVAL, "CONFIG_RT_GROUP_SCHED"},
		{"pids", unix.EOPNOTSUPP, "threaded"},
		{"memory", unix.EROFS, "read-only"},
		{"cpuset", unix.EACCES, "may not change"},
		{"memory", unix.EPERM, "may not change"},
		{"memory", unix.ENOMEM, "dmesg"},
		{"memory", unix.EINVAL, "dmesg"},
	} {
		r := passRefusal("/sys/fs/cgroup/x", tt.controller, &os.PathError{Op: "write", Path: "cgroup.subtree_control", Err: tt.err})
		if !errors.Is(r, tt.err) || !strings.Contains(r.Error(), tt.want) || r.Cause == "" || r.Remedy == "" {
			t.Errorf("%s, %v: %v; want %q", tt.controller, tt.err, r, tt.want)
		}
	}
}

// CPUs that a parent does not pass on are an error with the reason.
//
// Invariant missing-controller.
func TestPassCPUsRefused(t *testing.T) {
	h, _ := unifiedTree(t, map[string]string{"cgroup.controllers": "cpuset cpu memory pids\n", "cgroup.type": domain, "cgroup.procs": "1\n"})
	g, err := h.Create("/touchstone-run")
	must.Do(t, err)
	if err := g.PassCPUs(); !errors.Is(err, unix.EBUSY) || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("PassCPUs() = %v", err)
	}
	if _, err := g.SetCPUs("0"); !errors.Is(err, unix.EBUSY) || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("SetCPUs() = %v", err)
	}
}

// A limit of processes that cannot be restored after a kill is an error.
//
// Invariant missing-controller.
func TestForksAreAllowedAgain(t *testing.T) {
	h, dir := unifiedTree(t, map[string]string{"cgroup.controllers": "pids\n", "touchstone-run/pids.max": "max\n"})
	g, err := h.Open("/touchstone-run")
	must.Do(t, err)
	file := filepath.Join(dir, "touchstone-run/pids.max")
	allow := g.forbidForks()
	must.Do(t, allow())
	allow = g.forbidForks()
	must.Do(t, errors.Join(os.Remove(file), os.Mkdir(file, 0o700)))
	if err := allow(); err == nil || !strings.Contains(err.Error(), "touchstone-run") {
		t.Errorf("a limit that stays is %v", err)
	}
	must.Do(t, os.Remove(file))
	if err := allow(); err != nil {
		t.Errorf("a group that is removed meanwhile: %v", err)
	}
}
