package monitor

import (
	"bytes"
	"fmt"
	"strconv"
)

// HostPart is a part of the host's memory, as free(1) of procps-ng 4 defines it.
type HostPart string

// The parts of the host's memory.
const (
	// Used is MemTotal − MemAvailable. Without MemAvailable (before Linux 3.14) it is MemTotal − MemFree − Buffers − Cached −
	// SReclaimable, the definition of free before version 4.
	Used HostPart = "used"
	// Free is MemFree.
	Free HostPart = "free"
	// Shared is Shmem: memory of tmpfs, and anonymous memory that processes share.
	Shared HostPart = "shared"
	// BuffCache is Buffers + Cached + SReclaimable.
	BuffCache HostPart = "buff/cache"
	// Available is MemAvailable. free(1) estimates it on old kernels; here it is absent.
	Available HostPart = "available"
	// SwapUsed is SwapTotal − SwapFree. It is absent on a host without swap.
	SwapUsed HostPart = "swap used"
)

// HostParts lists the parts in display order.
func HostParts() []HostPart {
	return []HostPart{Used, Available, Free, BuffCache, Shared, SwapUsed}
}

// parseMeminfo reads the parts from /proc/meminfo, in bytes. A part that the kernel does not report is absent, never zero.
func parseMeminfo(text []byte) (map[HostPart]int64, error) {
	kib := map[string]int64{}
	for line := range bytes.Lines(text) {
		name, rest, ok := bytes.Cut(line, []byte{':'})
		if !ok {
			continue
		}
		switch string(name) {
		case "MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached", "SReclaimable", "Shmem", "SwapTotal", "SwapFree":
		default:
			continue
		}
		value, ok := bytes.CutSuffix(bytes.TrimSpace(rest), []byte(" kB"))
		n, err := strconv.ParseInt(string(value), 10, 52)
		if !ok || err != nil || n < 0 {
			return nil, fmt.Errorf("parse /proc/meminfo: %q is not a size in kB", line)
		}
		kib[string(name)] = n
	}
	for _, name := range []string{"MemTotal", "MemFree"} {
		if _, ok := kib[name]; !ok {
			return nil, fmt.Errorf("parse /proc/meminfo: no line %s", name)
		}
	}
	total, cache := kib["MemTotal"], kib["Buffers"]+kib["Cached"]+kib["SReclaimable"]
	parts := map[HostPart]int64{Free: kib["MemFree"], BuffCache: cache}
	if available, ok := kib["MemAvailable"]; ok && available <= total {
		parts[Available], parts[Used] = available, total-available
	} else {
		parts[Used] = max(0, total-kib["MemFree"]-cache)
	}
	if shmem, ok := kib["Shmem"]; ok {
		parts[Shared] = shmem
	}
	if swap := kib["SwapTotal"]; swap > 0 {
		parts[SwapUsed] = max(0, swap-kib["SwapFree"])
	}
	for name := range parts {
		parts[name] <<= 10
	}
	return parts, nil
}
