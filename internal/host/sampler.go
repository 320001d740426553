package host

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// From where on a trial counts as disturbed.
//
// A mark must not be the trial's own doing. The hypervisor's steal, throttling and a
// falling frequency never are. Waiting for memory is not either, unless the trial
// presses against a limit, nor is waiting for I/O, unless the trial does I/O: End takes
// what the trial loads by itself. CPU pressure has no threshold here at all, because a
// trial that runs ten processes on two cores makes its own; it is recorded, and
// only the report, which sees the other trials of the same benchmark, can say
// whether it was unusual.
const (
	stealMark  = 0.02 // share of all CPU time
	memoryMark = 0.01 // share of the trial
	ioMark     = 0.05 // share of the trial
	speedMark  = 0.9  // of the nominal frequency
	// stealTicks is the least steal that is marked. The kernel counts in ticks of 10 ms,
	// and the first may have been gathered mostly before the trial.
	stealTicks = 2
)

// ticksPerSecond is the unit of /proc/stat, USER_HZ, which is 100 on all
// architectures that Go runs on.
const ticksPerSecond = 100

// maxPolicies bounds how many frequency policies are read. On kernels before 5.18 one
// reading can take 10 ms, and a mean over sixteen says enough.
const maxPolicies = 16

// Resource is what a program can wait for.
type Resource int

// The resources. They number the files of a Sampler.
const (
	CPU Resource = iota
	Memory
	IO
)

// Sampler brackets trials. It keeps the kernel's files open, so that a pair of
// Begin and End costs well under 100 µs on a small machine and does not disturb
// what it observes. Its methods may be called from several goroutines; pairs may overlap.
type Sampler struct {
	now        func() time.Duration // monotonic
	cpus       int
	stat, load *source
	pressure   [3]*source
	throttle   []*source
	speed      []*source // current frequency of each policy, kHz
	ceiling    []*source // highest frequency each policy may take now, kHz
	cpuinfo    *source   // where there are no policies
	undervolt  *source
	nominal    float64 // MHz that a CPU must keep up, 0 if nothing can be demanded
}

// Snapshot is the state of the machine when a trial began.
type Snapshot struct {
	at       time.Duration
	steal    uint64
	hasSteal bool
	waits    [3]uint64 // microseconds in which some task waited for it, since boot
	hasWaits [3]bool
	throttle int64
	ceiling  float64 // MHz, mean over the policies
}

// NewSampler opens the files of the machine whose file system begins at root. Those that
// are missing, or that the kernel refuses to read, are left out for good.
func NewSampler(root string) *Sampler {
	t := tree{os.DirFS(root)}
	open := func(name string) *source { return openSource(filepath.Join(root, name)) }
	began := time.Now()
	s := &Sampler{
		now:      func() time.Duration { return time.Since(began) },
		cpus:     len(t.onlineCPUs()),
		stat:     open("proc/stat"),
		load:     open("proc/loadavg"),
		pressure: [3]*source{CPU: open("proc/pressure/cpu"), Memory: open("proc/pressure/memory"), IO: open("proc/pressure/io")},
	}
	for _, file := range t.throttleFiles() {
		s.throttle = appendOpen(s.throttle, open(file))
	}
	policies := spread(t.policies(), maxPolicies)
	for _, dir := range policies {
		s.speed = appendOpen(s.speed, open(path.Join(dir, "scaling_cur_freq")))
		s.ceiling = appendOpen(s.ceiling, open(path.Join(dir, "scaling_max_freq")))
	}
	if len(s.speed) == 0 {
		s.cpuinfo = open("proc/cpuinfo")
	}
	if t.governor() == "performance" {
		// Under any other governor an idle CPU is slow because it is idle.
		s.nominal = t.meanNominalMHz(policies)
	}
	if file := t.voltageAlarm(); file != "" {
		s.undervolt = open(file)
	}
	return s
}

// spread chooses so many of all at most, from all over them.
func spread(all []string, most int) []string {
	n := min(len(all), most)
	chosen := make([]string, n)
	for i := range chosen {
		chosen[i] = all[i*len(all)/n]
	}
	return chosen
}

func appendOpen(list []*source, s *source) []*source {
	if s == nil {
		return list
	}
	return append(list, s)
}

// Close closes the files; what is sampled later has only gaps. It is idempotent.
func (s *Sampler) Close() {
	all := []*source{s.stat, s.load, s.cpuinfo, s.undervolt}
	for _, more := range [][]*source{s.pressure[:], s.throttle, s.speed, s.ceiling} {
		all = append(all, more...)
	}
	for _, src := range all {
		src.close()
	}
}

// Begin notes the state of the machine before a trial.
func (s *Sampler) Begin() Snapshot {
	b := Snapshot{throttle: sum(s.throttle), ceiling: meanMHz(s.ceiling)}
	b.steal, b.hasSteal = s.stealTicks()
	for i, src := range s.pressure {
		b.waits[i], b.hasWaits[i] = parsePressure(src.read(256))
	}
	b.at = s.now()
	return b
}

// End says what the machine did since Begin, and marks the trial if it was disturbed.
// loads are the resources that the trial itself is made to wait for, whose
// pressure therefore does not mark it.
func (s *Sampler) End(b Snapshot, loads ...Resource) result.Disturbance {
	elapsed := (s.now() - b.at).Seconds()
	var waits [3]*float64
	for i, src := range s.pressure {
		if us, ok := parsePressure(src.read(256)); ok && b.hasWaits[i] && us >= b.waits[i] {
			waits[i] = share(float64(us-b.waits[i])/1e6, elapsed)
		}
	}
	d := result.Disturbance{CPUPressure: waits[CPU], MemoryPressure: waits[Memory], IOPressure: waits[IO]}
	var stolen uint64
	// The counter can go back a little after a guest was moved to another machine.
	if now, ok := s.stealTicks(); ok && b.hasSteal && now >= b.steal {
		stolen = now - b.steal
		d.Steal = share(float64(stolen)/ticksPerSecond, elapsed*float64(s.cpus))
	}
	load, _, _ := strings.Cut(string(s.load.read(64)), " ")
	if v, err := strconv.ParseFloat(load, 64); err == nil {
		d.Load = &v
	}
	if v := s.meanSpeed(); v > 0 {
		d.MHz = &v
	}
	if len(s.throttle) > 0 {
		n := max(0, sum(s.throttle)-b.throttle)
		d.Throttled = &n
	}
	d.Marks = s.marks(b, d, stolen, loads)
	return d
}

// share gives part/whole as a share between 0 and 1, nil if there was no time. Counters
// are read one after the other, so that it can come out a little above 1.
func share(part, whole float64) *float64 {
	if whole <= 0 {
		return nil
	}
	v := min(part/whole, 1)
	return &v
}

// marks says why a trial counts as disturbed.
func (s *Sampler) marks(b Snapshot, d result.Disturbance, stolen uint64, loads []Resource) []string {
	var all []string
	mark := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	own := func(r Resource) bool { return slices.Contains(loads, r) }
	if d.Steal != nil && *d.Steal > stealMark && stolen >= stealTicks {
		mark("the hypervisor withheld %.1f %% of the CPU time", 100**d.Steal)
	}
	if d.MemoryPressure != nil && *d.MemoryPressure > memoryMark && !own(Memory) {
		mark("programs waited for memory %.1f %% of the time", 100**d.MemoryPressure)
	}
	if d.IOPressure != nil && *d.IOPressure > ioMark && !own(IO) {
		mark("programs waited for I/O %.1f %% of the time", 100**d.IOPressure)
	}
	if d.Throttled != nil && *d.Throttled > 0 {
		mark("CPUs were throttled %d times because they were too hot", *d.Throttled)
	}
	if ceiling := meanMHz(s.ceiling); ceiling > 0 && ceiling < b.ceiling {
		mark("the highest frequency the CPUs may take fell from %.0f to %.0f MHz", b.ceiling, ceiling)
	}
	if d.MHz != nil && *d.MHz < speedMark*s.nominal {
		mark("the CPUs ran at %.0f MHz, below their nominal %.0f MHz", *d.MHz, s.nominal)
	}
	if alarm := s.undervolt.read(8); len(alarm) > 0 && alarm[0] == '1' {
		mark("the power supply's voltage was too low")
	}
	return all
}

func (s *Sampler) stealTicks() (uint64, bool) {
	times, ok := parseCPUTimes(s.stat.read(256))
	return times.steal, ok
}

// meanSpeed gives the mean frequency of the CPUs in MHz, 0 if it is not known.
func (s *Sampler) meanSpeed() float64 {
	if s.cpuinfo != nil {
		return parseMHz(s.cpuinfo.readLong(64 << 10))
	}
	return meanMHz(s.speed)
}
