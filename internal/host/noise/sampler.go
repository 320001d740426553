// Package noise measures before and after each trial how other load on the machine disturbed it.
//
// It keeps the kernel's files open, because a look at them must cost far less than a trial.
package noise

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/host/machine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// Thresholds for the disturbance of a trial.
//
// A trial must not mark itself. It never causes steal, throttling or a falling frequency. It waits for memory only if it reaches a
// limit, and for I/O only if it does I/O: the caller of End lists the resources that the trial itself loads. CPU pressure has
// no threshold, because a trial with ten processes on two cores causes pressure itself. The sampler records it, and the
// report can compare it with other trials of the same benchmark.
const (
	memoryMark = 0.01 // share of the trial
	ioMark     = 0.05 // share of the trial
	speedMark  = 0.9  // of the nominal frequency
	// stealTicks is the least steal that marks a trial. The kernel counts in ticks of 10 ms, and most of the first tick may belong to
	// the time before the trial.
	stealTicks = 2
)

// ticksPerSecond is the unit of /proc/stat, USER_HZ. It is 100 on all architectures that Go supports.
const ticksPerSecond = 100

// maxPolicies bounds the number of frequency policies to read. On kernels before 5.18 one read can take 10 ms, and a mean over
// sixteen is precise enough.
const maxPolicies = 16

// Resource is a resource that programs can wait for.
type Resource int

// The resources. They number the files of a Sampler.
const (
	CPU Resource = iota
	Memory
	IO
)

// Sampler measures the machine before and after a trial. It keeps the kernel's files open, so that a pair of Begin and End costs well
// under 100 µs on a small machine and does not disturb the trial. Its methods may be called from several goroutines; pairs
// may overlap.
type Sampler struct {
	now        func() time.Duration // monotonic
	cpus       int
	stat, load *source
	pressure   [3]*source
	throttle   []*source
	speed      []*source // current frequency of each policy, kHz
	ceiling    []*source // current highest allowed frequency of each policy, kHz
	cpuinfo    *source   // set only without policies
	undervolt  *source
	nominal    float64 // nominal frequency in MHz; 0 disables its check
}

// Snapshot is the state of the machine at the start or at the end of a trial.
type Snapshot struct {
	at       time.Duration
	steal    uint64
	hasSteal bool
	waits    [3]uint64 // microseconds since boot while at least one task waited for the resource
	hasWaits [3]bool
	throttle int64
	ceiling  float64 // MHz, mean over the policies
}

// NewSampler opens the files of a machine. root is the root of its file system. The sampler ignores a file from then on if it
// cannot be opened and read now.
func NewSampler(root string) *Sampler {
	t := machine.At(root)
	open := func(name string) *source { return openSource(filepath.Join(root, name)) }
	start := time.Now()
	s := &Sampler{
		now:      func() time.Duration { return time.Since(start) },
		cpus:     len(t.OnlineCPUs()),
		stat:     open("proc/stat"),
		load:     open("proc/loadavg"),
		pressure: [3]*source{CPU: open("proc/pressure/cpu"), Memory: open("proc/pressure/memory"), IO: open("proc/pressure/io")},
	}
	for _, file := range t.ThrottleFiles() {
		s.throttle = appendOpen(s.throttle, open(file))
	}
	policies := spread(t.Policies(), maxPolicies)
	for _, dir := range policies {
		s.speed = appendOpen(s.speed, open(path.Join(dir, "scaling_cur_freq")))
		s.ceiling = appendOpen(s.ceiling, open(path.Join(dir, "scaling_max_freq")))
	}
	if len(s.speed) == 0 {
		s.cpuinfo = open("proc/cpuinfo")
	}
	if t.Governor() == machine.Performance {
		// With any other governor an idle CPU runs at a low frequency.
		s.nominal = t.MeanNominalMHz(policies)
	}
	if file := t.VoltageAlarm(); file != "" {
		s.undervolt = open(file)
	}
	return s
}

// spread returns at most limit elements, evenly spread over a list.
func spread(list []string, limit int) []string {
	n := min(len(list), limit)
	choice := make([]string, n)
	for i := range choice {
		choice[i] = list[i*len(list)/n]
	}
	return choice
}

func appendOpen(list []*source, s *source) []*source {
	if s == nil {
		return list
	}
	return append(list, s)
}

// Close closes the files. Later samples have no values. It is idempotent.
func (s *Sampler) Close() {
	sources := []*source{s.stat, s.load, s.cpuinfo, s.undervolt}
	for _, group := range [][]*source{s.pressure[:], s.throttle, s.speed, s.ceiling} {
		sources = append(sources, group...)
	}
	for _, src := range sources {
		src.close()
	}
}

// Begin records the state of the machine before a trial. End records it again.
func (s *Sampler) Begin() Snapshot {
	b := Snapshot{throttle: sum(s.throttle), ceiling: meanMHz(s.ceiling)}
	times, ok := machine.ParseCPUTimes(s.stat.read(256))
	b.steal, b.hasSteal = times.Steal, ok
	for i, src := range s.pressure {
		b.waits[i], b.hasWaits[i] = parsePressure(src.read(256))
	}
	b.at = s.now()
	return b
}

// End returns the disturbances since Begin, and marks the trial if they exceed a threshold. loads lists the resources that the trial
// itself waits for. Their pressure does not mark it.
func (s *Sampler) End(b Snapshot, loads ...Resource) result.Disturbance {
	elapsed := (s.now() - b.at).Seconds()
	e := s.Begin()
	var waits [3]*float64
	for i := range waits {
		if b.hasWaits[i] && e.hasWaits[i] && e.waits[i] >= b.waits[i] {
			waits[i] = share(float64(e.waits[i]-b.waits[i])/1e6, elapsed)
		}
	}
	d := result.Disturbance{CPUPressure: waits[CPU], MemoryPressure: waits[Memory], IOPressure: waits[IO]}
	// The counter can go back a little after a guest was moved to another machine.
	if b.hasSteal && e.hasSteal && e.steal >= b.steal {
		d.Steal = share(float64(e.steal-b.steal)/ticksPerSecond, elapsed*float64(s.cpus))
	}
	load, _, _ := strings.Cut(string(s.load.read(64)), " ")
	if v, err := strconv.ParseFloat(load, 64); err == nil {
		d.Load = &v
	}
	if v := s.meanSpeed(); v > 0 {
		d.MHz = &v
	}
	if len(s.throttle) > 0 {
		n := max(0, e.throttle-b.throttle)
		d.Throttled = &n
	}
	d.Marks = s.marks(b, e, d, loads)
	return d
}

// share returns part/total, or nil if total is 0. It is limited to 1, because the counters are read one after the other and the quotient
// can be slightly higher.
func share(part, total float64) *float64 {
	if total <= 0 {
		return nil
	}
	v := min(part/total, 1)
	return &v
}

// marks returns the reasons why a trial counts as disturbed.
func (s *Sampler) marks(b, e Snapshot, d result.Disturbance, loads []Resource) []string {
	var reasons []string
	mark := func(format string, args ...any) { reasons = append(reasons, fmt.Sprintf(format, args...)) }
	isLoad := func(r Resource) bool { return slices.Contains(loads, r) }
	if d.Steal != nil && *d.Steal > machine.StealMark && e.steal-b.steal >= stealTicks {
		mark("the hypervisor withheld %.1f %% of the CPU time", 100**d.Steal)
	}
	if d.MemoryPressure != nil && *d.MemoryPressure > memoryMark && !isLoad(Memory) {
		mark("programs waited for memory %.1f %% of the time", 100**d.MemoryPressure)
	}
	if d.IOPressure != nil && *d.IOPressure > ioMark && !isLoad(IO) {
		mark("programs waited for I/O %.1f %% of the time", 100**d.IOPressure)
	}
	if d.Throttled != nil && *d.Throttled > 0 {
		mark("CPUs were throttled %s because they were too hot", wording.Counted(int(*d.Throttled), "time"))
	}
	if e.ceiling > 0 && e.ceiling < b.ceiling {
		mark("the highest frequency the CPUs may take fell from %.0f to %.0f MHz", b.ceiling, e.ceiling)
	}
	if d.MHz != nil && *d.MHz < speedMark*s.nominal {
		mark("the CPUs ran at %.0f MHz, below their nominal %.0f MHz", *d.MHz, s.nominal)
	}
	if alarm := s.undervolt.read(8); len(alarm) > 0 && alarm[0] == '1' {
		mark("the power supply's voltage was too low")
	}
	return reasons
}

// meanSpeed returns the mean frequency of the CPUs in MHz, or 0 if it is unknown.
func (s *Sampler) meanSpeed() float64 {
	if s.cpuinfo != nil {
		return parseMHz(s.cpuinfo.readLong(64 << 10))
	}
	return meanMHz(s.speed)
}
