package cgroup

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/refusal"
)

// Refusal returns the reason why new groups lack a controller, as far as it shows without making one; nil without a reason.
func (h *Hierarchy) Refusal(controller string) *refusal.Error {
	m, ok := h.Controller(controller)
	switch {
	case !ok:
		return h.notOffered(controller)
	case !m.V2 || h.base == "":
		return nil
	}
	r, _ := inspect(filepath.Join(m.Dir, h.base), controller)
	return r
}

// Refusal returns the reason why the group lacks a controller; nil if it has it.
func (g *Group) Refusal(controller string) *refusal.Error {
	if !slices.Contains(g.Missing(), controller) {
		return nil
	}
	if r := g.refused[controller]; r != nil {
		return r
	}
	if r := g.h.Refusal(controller); r != nil {
		return r
	}
	return notPassed(g.path, controller)
}

// notOffered is the refusal of a controller that the mounted hierarchies do not have.
func (h *Hierarchy) notOffered(controller string) *refusal.Error {
	m, unified := h.unified()
	if unified && h.Mode == V2 && exists(m.Dir, "cgroup.type") { // the root of the whole tree has no such file
		return notPassed(m.Dir, controller)
	}
	r := &refusal.Error{
		What: "controller " + controller, Err: unix.ENOENT, Cause: "the kernel offers no " + controller + " cgroup controller",
		Remedy: "boot without cgroup_disable=" + controller + ", or use a kernel that was built with the controller",
	}
	if controller == "memory" {
		r.Remedy = "boot without cgroup_disable=memory, on a Raspberry Pi with cgroup_enable=memory"
	}
	return r
}

// notPassed is the refusal of a controller that a group does not get from the group above it.
func notPassed(group, controller string) *refusal.Error {
	return &refusal.Error{
		What: "controller " + controller, Err: unix.ENOENT,
		Cause: fmt.Sprintf("the group above cgroup %s does not pass %s on to it", group, controller),
		Remedy: "enable it there: +" + controller + " in cgroup.subtree_control, Delegate=yes of a systemd unit, or a container with the host's cgroups " +
			"(docker run --privileged --cgroupns=host)",
	}
}

// pass makes a group of the unified tree pass a controller on to the groups below it.
func pass(dir, controller string) *refusal.Error {
	r, passed := inspect(dir, controller)
	if r != nil || passed {
		return r
	}
	if err := write(dir, "cgroup.subtree_control", "+"+controller); err != nil {
		return passRefusal(dir, controller, err)
	}
	return nil
}

// inspect reports whether a group passes a controller on, and the reason why it cannot.
//
// A group with processes cannot, such as a delegated group at first, or the root of a cgroup namespace in a container. The kernel refuses
// memory there. It accepts cpu and pids, but they would make the group the root of a threaded subtree, and then no process can join
// a group below it.
func inspect(dir, controller string) (r *refusal.Error, passed bool) {
	var lists [3][]string
	for i, file := range []string{"cgroup.controllers", "cgroup.subtree_control", "cgroup.procs"} {
		var err error
		lists[i], err = words(dir, file)
		if err != nil && !gone(err) && !errors.Is(err, unix.EOPNOTSUPP) { // a threaded group lists no processes
			return passRefusal(dir, controller, err), false
		}
	}
	available, subtree, processes := lists[0], lists[1], lists[2]
	switch {
	case slices.Contains(subtree, controller):
		return nil, true
	case !slices.Contains(available, controller):
		return notPassed(dir, controller), false
	case len(processes) > 0 && exists(dir, "cgroup.type"): // only the root of the whole tree may have both
		return holdsProcesses(dir, controller, processes), false
	}
	return nil, false
}

// holdsProcesses is the refusal of a group with processes.
func holdsProcesses(dir, controller string, processes []string) *refusal.Error {
	var pids []int
	for _, word := range processes {
		if pid, err := strconv.Atoi(word); err == nil {
			pids = append(pids, pid)
		}
	}
	return &refusal.Error{
		What: "controller " + controller, Err: unix.EBUSY,
		Cause: fmt.Sprintf("cgroup %s holds processes: %s; a group of cgroup v2 with processes passes no %s on (no internal processes)",
			dir, describe(pids), controller),
		Remedy: fmt.Sprintf("move them to a group below: mkdir %[1]s/init && xargs -rn1 <%[1]s/cgroup.procs >%[1]s/init/cgroup.procs", dir),
	}
}

// passRefusal explains an error of a control file.
func passRefusal(dir, controller string, err error) *refusal.Error {
	r := &refusal.Error{What: fmt.Sprintf("pass controller %s on in cgroup %s", controller, dir), Err: err}
	switch {
	case errors.Is(err, unix.EBUSY):
		r.Cause, r.Remedy = "the group holds processes, and passes nothing on then", "move them to a group below it"
	case errors.Is(err, unix.EINVAL) && controller == "cpu":
		r.Cause = "a real-time process is outside of the root group, and this kernel (CONFIG_RT_GROUP_SCHED) enables cpu only without one"
		r.Remedy = "find it (ps -eo pid,cls,comm lists FF, RR and DLN), and stop it or take its policy away (chrt --other --pid 0 PID); " +
			"or boot with rt_group_sched=0 if the kernel knows it"
	case errors.Is(err, unix.EOPNOTSUPP):
		r.Cause, r.Remedy = "the group is threaded, and passes only threaded controllers on", "run Touchstone in a group whose cgroup.type is domain"
	case errors.Is(err, unix.EROFS):
		r.Cause, r.Remedy = "the cgroup file system is mounted read-only", "mount it writable, as a container with all rights has it (docker run --privileged)"
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		r.Cause = "this user may not change the group"
		r.Remedy = refusal.Rights("delegate the controller: systemd-run --user --scope --property=Delegate=yes …")
	default:
		r.Cause, r.Remedy = "the kernel refuses it", "look at cgroup.controllers and cgroup.type of the group, and at the kernel's log (dmesg)"
	}
	return r
}
