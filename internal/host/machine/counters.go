package machine

import (
	"bytes"
	"path"
	"strconv"
)

// CPUTimes are from the line for all CPUs in /proc/stat, in ticks since boot.
type CPUTimes struct{ Steal, Total, Idle uint64 }

// ParseCPUTimes reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. It ignores the
// following two times of guests, because user and nice include them.
func ParseCPUTimes(text []byte) (times CPUTimes, ok bool) {
	const idle, iowait, steal, count = 3, 4, 7, 8
	line, _, _ := bytes.Cut(text, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) < 1+count || string(fields[0]) != "cpu" {
		return CPUTimes{}, false
	}
	for i, field := range fields[1 : 1+count] {
		n, err := strconv.ParseUint(string(field), 10, 64)
		if err != nil {
			return CPUTimes{}, false
		}
		times.Total += n
		switch i {
		case steal:
			times.Steal = n
		case idle, iowait:
			times.Idle += n
		}
	}
	return times, true
}

// ThrottleFiles returns the counters of thermal throttling. To count each event once, it takes a core's counter from the first thread
// and a package's counter from the first CPU.
func (t Tree) ThrottleFiles() []string {
	var files []string
	packages := map[string]bool{}
	for _, cpu := range t.OnlineCPUs() {
		dir := "sys/devices/system/cpu/cpu" + strconv.Itoa(cpu)
		siblings := t.cpuList(path.Join(dir, "topology/thread_siblings_list"))
		if len(siblings) == 0 || siblings[0] == cpu {
			files = append(files, path.Join(dir, "thermal_throttle/core_throttle_count"))
		}
		if id := t.Text(path.Join(dir, "topology/physical_package_id")); !packages[id] {
			packages[id] = true
			files = append(files, path.Join(dir, "thermal_throttle/package_throttle_count"))
		}
	}
	return files
}

// CPUTimes returns the times of all CPUs since boot.
func (t Tree) CPUTimes() (CPUTimes, bool) { return ParseCPUTimes([]byte(t.Lines("proc/stat")[0])) }

// VoltageAlarm returns the alarm file of the Raspberry Pi's voltage sensor (Linux driver raspberrypi-hwmon).
func (t Tree) VoltageAlarm() string {
	for _, dir := range t.Glob("sys/class/hwmon/hwmon*") {
		if t.Text(path.Join(dir, "name")) == "rpi_volt" {
			return path.Join(dir, "in0_lcrit_alarm")
		}
	}
	return ""
}

// StealMark is the share of stolen CPU time, of all CPU time, that disturbs measurements.
const StealMark = 0.02
