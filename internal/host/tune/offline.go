package tune

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// onlineFiles are 1 for a CPU that is online, and 0 for others. A CPU that cannot be taken offline, such as CPU 0 of most machines, has no such file.
const onlineFiles = "sys/devices/system/cpu/cpu[0-9]*/online"

func onlineFile(cpu int) string { return strings.Replace(onlineFiles, "[0-9]*", strconv.Itoa(cpu), 1) }

// offlineCPUs returns the CPUs that are offline.
func (t *Tuner) offlineCPUs() ([]int, error) {
	var cpus []int
	for _, file := range t.Glob(onlineFiles) {
		cpu, err := strconv.Atoi(strings.TrimPrefix(path.Base(path.Dir(file)), "cpu"))
		if err != nil {
			continue // not the directory of a CPU
		}
		state, err := t.readFile(file)
		if err != nil {
			return nil, fmt.Errorf("read whether CPU %d is offline: %w", cpu, err)
		}
		if state == "0" {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

// restoreOffline takes the recorded CPUs offline. A CPU that the kernel does not take offline stays recorded. As long as the change of SMT is
// recorded, nothing is done: its restore would start the CPUs again.
func (t *Tuner) restoreOffline(ctx context.Context, record *Record) (outcomes []Outcome, err error) {
	if slices.ContainsFunc(record.Changes, Change.isSMT) {
		return nil, nil
	}
	record.Offline = slices.DeleteFunc(record.Offline, func(cpu int) bool {
		if err = context.Cause(ctx); err != nil {
			return false
		}
		o := Outcome{Change{"CPUs", onlineFile(cpu), "offline", "online"}, Gone, restarted}
		if !record.Restarted {
			o.Status, o.Reason = t.takeOffline(onlineFile(cpu))
		}
		outcomes = append(outcomes, o)
		return o.Status != Refused
	})
	return outcomes, err
}

func (t *Tuner) takeOffline(file string) (status Status, reason string) {
	if !t.Exists(file) {
		return Gone, "they were removed from the machine since"
	}
	if state, err := t.readFile(file); err == nil && state == "0" {
		return Back, ""
	}
	k, _ := knobOf(smt)
	if err := t.change(k, file, "0"); err != nil {
		return Refused, fmt.Sprintf("%v; repeat touchstone host restore, or write 0 to /%s", err, file)
	}
	return Restored, ""
}
