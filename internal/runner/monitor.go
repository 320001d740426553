package runner

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/cgroup"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// The samples of a trial take at most monitorShare of a CPU, after a first allowance of monitorBurst. Parts that would take more are
// left out, so their interval grows. The memory of the components is the costly part, and is left out first.
const (
	monitorShare = 0.008
	monitorBurst = 2 * time.Millisecond
	// memoryEvery is the longest time between two samples of the memory of the components, if their cost allows it.
	memoryEvery = time.Second
	// fewestReadings is the smallest number of readings of the memory of the components, unless every sample has one. Fewer say little about
	// the time between them.
	fewestReadings = 4
	// fewestSamples is the smallest number of samples for a peak or a mean. The first and the last one are before and after the trial's
	// processes.
	fewestSamples = 4
)

// overTime names the timelines of a monitored trial together.
const overTime = "memory over time"

// The groups of the timelines of a monitored trial.
const (
	hostMemory      = "Memory of the host"
	cgroupMemory    = "Memory of the cgroups"
	componentMemory = "Memory of the components"
	cgroupCPU       = "CPU use of the cgroups and of the monitor"
	componentCPU    = "CPU use of the components"
)

// monitored is the state of a trial with samples of memory and CPU. The samples are taken by one goroutine at a time: the clock's
// calls begin after the first sample, and have ended before the last one.
type monitored struct {
	*trial
	sampler *monitor.Sampler
	stop    func()
	groups  []*meteredGroup
	lines   []*result.Timeline
	// total is the memory charged to all groups, with the times of the samples; nil if a group's is unknown.
	total    *result.Timeline
	began    time.Duration // the time of the first sample
	interval time.Duration
	samples  int
	stride   int // every stride-th tick takes a sample
	ticks    int
	skipped  bool // a sample, or the processes in one, was left out because of its cost
	// rated is the time of the latest rates of the groups, and cost the CPU time of the samples since then. listed is the time of the latest
	// rates of the components, and used their CPU time since then.
	rated, listed, cost time.Duration
	used                map[monitor.Component]time.Duration
	// spent is the CPU time of all samples so far, and spentCheap without the processes. cheap, list and memory are the latest CPU times of
	// the parts of a sample: the host and the groups, the list of the processes, and their memory.
	spent, spentCheap, cheap, list, memory time.Duration
	lastMemory                             time.Duration // the time of the latest sample of their memory
	taken, readings                        int           // the numbers of samples, and of samples with that memory
	resident                               bool          // the memory of some process is its resident set
	// broken are the parts that cannot be sampled.
	broken map[string]bool
}

// meteredGroup is a cgroup with its CPU time at the latest sample.
type meteredGroup struct {
	*cgroup.Group
	name  string
	cpu   time.Duration
	known bool
}

// interval is the interval of the samples; 0 takes none.
func (t *trial) interval() time.Duration {
	if t.work.Monitor == 0 && t.work.Benchmark.Monitor {
		return bench.MonitorInterval
	}
	return t.work.Monitor
}

// beginMonitor takes the first sample, which is the level before the trial, and schedules the others.
func (t *trial) beginMonitor() {
	interval := t.interval()
	if interval == 0 {
		return
	}
	if t.r.Proc == "" {
		t.lacks(overTime, notHere)
		return
	}
	if err := t.engine.Supports(engine.OnHost); err != nil {
		t.lacks(overTime, err.Error())
		return
	}
	m := &monitored{trial: t, interval: interval, stride: 1, used: map[monitor.Component]time.Duration{}, broken: map[string]bool{}}
	// A user's daemon may have its containers in cgroups elsewhere.
	search := t.group == nil || t.cost.daemonBacked && t.cost.daemon.Cgroup == nil
	if !search {
		m.total = &result.Timeline{}
		m.groups = append(m.groups, &meteredGroup{Group: t.group, name: "trial"})
		if daemon := t.cost.daemon.Cgroup; daemon != nil {
			m.groups = append(m.groups, &meteredGroup{Group: daemon, name: "daemon"})
		}
	}
	if t.r.Programs == nil {
		m.broken[componentCPU], m.broken[componentMemory] = true, true
	}
	var err error
	target := t.observed()
	target.Procs, target.Search = m.procs, search
	m.sampler, err = monitor.NewSampler(target, t.r.Proc)
	if err != nil {
		t.lacks(overTime, err.Error())
		return
	}
	t.monitor = m
	m.began = t.now()
	m.rated, m.listed = m.began, m.began
	m.sample(true)
	m.stop = t.r.Clock.Every(interval, m.tick)
}

// procs lists the processes of the target.
func (m *monitored) procs() ([]int, error) {
	var pids []int
	for _, g := range m.groups {
		found, err := g.AccountedProcs()
		if err != nil {
			return nil, err
		}
		pids = append(pids, found...)
	}
	return pids, nil
}

// tick takes a sample if its cost is allowed.
func (m *monitored) tick() {
	if m.ticks++; m.ticks%m.stride != 0 {
		return
	}
	if m.spentCheap+m.cheap > m.allowed() {
		m.skipped = true
		return
	}
	m.sample(false)
}

// allowed is the CPU time that all samples may have taken by now.
func (m *monitored) allowed() time.Duration {
	return monitorBurst + time.Duration(monitorShare*float64(m.now()-m.began))
}

// sample takes one sample. It leaves the processes out if it may and their cost is not allowed: first their memory, and then their list. The
// goroutine keeps its thread, whose CPU time is the cost.
func (m *monitored) sample(force bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := m.r.threadCPU()
	stamp := m.now()
	elapsed := m.sinceRate(stamp, m.rated)
	m.host(stamp)
	m.cgroups(stamp, elapsed)
	end := m.r.threadCPU()
	m.cheap = end - start
	m.spentCheap += m.cheap
	left := m.allowed() - m.spent - m.cheap
	due := stamp-m.lastMemory >= memoryEvery
	need := m.list
	if due {
		need += m.memory
	}
	switch {
	case m.broken[componentCPU]:
	case force || need <= left:
		m.components(stamp)
		middle := m.r.threadCPU()
		m.list, end = middle-end, middle
		if force || due || m.memory+2*m.list+m.cheap <= left { // the next sample remains affordable
			m.componentMemory(stamp)
			end = m.r.threadCPU()
			m.memory, m.lastMemory = end-middle, stamp
			m.readings++
		}
	default:
		m.skipped = true
	}
	m.taken++
	cost := end - start
	m.spent += cost
	m.cost += cost
	if elapsed > 0 {
		m.add(cgroupCPU, "memory monitor", result.Ratio, stamp, m.cost.Seconds()/elapsed.Seconds())
		m.rated, m.cost = stamp, 0
	}
	if m.samples++; m.samples == result.MaxTimelinePoints-1 {
		m.thin()
	}
}

// sinceRate is the time since the latest rate, or 0 if it is too short: a rate over a short time is noise, and the next sample has it.
func (m *monitored) sinceRate(stamp, latest time.Duration) time.Duration {
	if elapsed := stamp - latest; elapsed >= m.interval/2 {
		return elapsed
	}
	return 0
}

func (m *monitored) host(stamp time.Duration) {
	parts, err := m.sampler.Host()
	if m.failed(hostMemory, err) {
		return
	}
	for _, p := range monitor.HostParts() {
		if bytes, ok := parts[p]; ok {
			m.add(hostMemory, string(p), result.Bytes, stamp, float64(bytes))
		}
	}
}

// cgroups adds the memory of the groups, and their CPU use in the time since the latest rates, unless that is 0.
func (m *monitored) cgroups(stamp, elapsed time.Duration) {
	sum := int64(0)
	for _, g := range m.groups {
		bytes, err := g.Memory()
		if !m.failed(cgroupMemory, err) {
			sum += bytes
			m.add(cgroupMemory, g.name, result.Bytes, stamp, float64(bytes))
		}
		cpu, err := g.CPU()
		if errors.Is(err, fs.ErrNotExist) || m.failed(cgroupCPU, err) {
			continue // the trial's group has been removed
		}
		if g.known && elapsed > 0 {
			m.add(cgroupCPU, g.name, result.Ratio, stamp, (cpu-g.cpu).Seconds()/elapsed.Seconds())
		}
		if !g.known || elapsed > 0 {
			g.cpu, g.known = cpu, true
		}
	}
	switch {
	case m.broken[cgroupMemory]:
		m.total = nil
	case m.total != nil:
		m.total.At, m.total.Values = append(m.total.At, stamp), append(m.total.Values, float64(sum))
	}
}

// components lists the processes, and adds the CPU use of the components like cgroups.
func (m *monitored) components(stamp time.Duration) {
	if m.broken[componentCPU] {
		return
	}
	cpu, err := m.sampler.CPU()
	if m.failed(componentCPU, err) {
		return
	}
	for c, usage := range cpu {
		m.used[c] += usage
	}
	for _, l := range m.lines {
		// The memory is not read each time. Without a process it is known.
		if _, lives := cpu[monitor.Component(l.Name)]; l.Group == componentMemory && !lives && l.Values[len(l.Values)-1] > 0 {
			l.At, l.Values = append(l.At, stamp), append(l.Values, 0)
		}
	}
	elapsed := m.sinceRate(stamp, m.listed)
	if elapsed == 0 {
		return
	}
	m.listed = stamp
	values := map[monitor.Component]float64{}
	for c, usage := range m.used {
		values[c] = usage.Seconds() / elapsed.Seconds()
	}
	clear(m.used)
	m.addComponents(componentCPU, result.Ratio, stamp, values)
}

// componentMemory follows components, which lists the processes.
func (m *monitored) componentMemory(stamp time.Duration) {
	if m.broken[componentCPU] || m.broken[componentMemory] {
		return
	}
	memory, resident, err := m.sampler.Memory()
	if m.failed(componentMemory, err) {
		return
	}
	m.resident = m.resident || resident
	values := map[monitor.Component]float64{}
	for c, bytes := range memory {
		values[c] = float64(bytes)
	}
	m.addComponents(componentMemory, result.Bytes, stamp, values)
}

// addComponents adds a sample of each component that has had a process. A component without a process has none of the quantity.
// A line that has a value of this time already gets no second one.
func (m *monitored) addComponents(group string, unit result.Unit, stamp time.Duration, values map[monitor.Component]float64) {
	for _, c := range monitor.Components() {
		value, has := values[c]
		l := m.line(group, string(c))
		if has || l != nil && l.At[len(l.At)-1] != stamp {
			m.add(group, string(c), unit, stamp, value)
		}
	}
}

// failed reports whether a part cannot be sampled. The reason is noted once, and the part has no timelines.
func (m *monitored) failed(group string, err error) bool {
	if m.broken[group] {
		return true
	}
	if err == nil {
		return false
	}
	m.broken[group] = true
	m.lacks("the timeline “"+group+"”", err.Error())
	return true
}

// line returns a timeline, or nil if it has no values yet.
func (m *monitored) line(group, name string) *result.Timeline {
	i := slices.IndexFunc(m.lines, func(l *result.Timeline) bool { return l.Group == group && l.Name == name })
	if i < 0 {
		return nil
	}
	return m.lines[i]
}

func (m *monitored) add(group, name string, unit result.Unit, stamp time.Duration, value float64) {
	l := m.line(group, name)
	if l == nil {
		l = &result.Timeline{Group: group, Name: name, Unit: unit}
		m.lines = append(m.lines, l)
	}
	l.At, l.Values = append(l.At, stamp), append(l.Values, value)
}

// thin drops every second value of all timelines, and halves the rate of the samples, so that a long trial stays below the limit.
func (m *monitored) thin() {
	lines := m.lines
	if m.total != nil {
		lines = append(slices.Clip(lines), m.total)
	}
	for _, l := range lines {
		n := 0
		for i := 0; i < len(l.At); i += 2 {
			l.At[n], l.Values[n] = l.At[i], l.Values[i]
			n++
		}
		l.At, l.Values = l.At[:n], l.Values[:n]
	}
	m.samples, m.stride = (m.samples+1)/2, 2*m.stride
}

// endMonitor takes the last sample after the clean-up, keeps the timelines, and records their summaries.
func (t *trial) endMonitor() error {
	m := t.monitor
	if m == nil {
		return nil
	}
	m.stop()
	m.sample(true)
	condition := fmt.Sprintf("memory every %v", time.Duration(m.stride)*m.interval)
	if m.skipped {
		condition += ", less often where that took more than 1 % of a CPU"
	}
	t.Condition("monitor", condition)
	if !m.broken[componentCPU] && m.readings < m.taken && m.readings < fewestReadings {
		_ = m.failed(componentMemory, errShort)
	}
	if m.resident {
		t.Condition("memory of components", "resident set size, which counts shared memory in each process: the kernel does not show the proportional set size")
	}
	// The kernel's order of appearance differs from trial to trial; reports list components in one order.
	slices.SortStableFunc(m.lines, func(a, b *result.Timeline) int {
		if c := cmp.Compare(groupOrder(a.Group), groupOrder(b.Group)); c != 0 {
			return c
		}
		return cmp.Compare(componentOrder(a.Name), componentOrder(b.Name))
	})
	for _, l := range m.lines {
		if !m.broken[l.Group] {
			trialDetails{t}.Timeline(*l)
		}
	}
	if m.taken < fewestSamples {
		m.lacks("peak, mean and area of memory", "some trials are shorter than the time of two samples; sample more often, with monitor: {memory: 10ms}")
		return m.sampler.Close()
	}
	if line := m.line(hostMemory, string(monitor.Used)); line != nil {
		m.summarize(line, bench.HostMemoryPeak, bench.HostMemoryMean, bench.HostMemoryArea)
	}
	if m.total != nil {
		m.summarize(m.total, bench.CgroupMemoryPeak, bench.CgroupMemoryMean, bench.CgroupMemoryArea)
	}
	return m.sampler.Close()
}

// errShort is the reason for a missing memory of the components.
var errShort = fmt.Errorf("the trial is too short for %d readings with less than 1 %% of a CPU", fewestReadings)

func groupOrder(group string) int {
	return slices.Index([]string{hostMemory, cgroupMemory, componentMemory, cgroupCPU, componentCPU}, group)
}

func componentOrder(name string) int {
	return slices.Index(monitor.Components(), monitor.Component(name))
}

// summarize records the peak, the mean and the area above the first value, by trapezoids. Values below the first one count as
// the first one.
func (m *monitored) summarize(l *result.Timeline, peak, mean, area string) {
	last := len(l.At) - 1
	length := (l.At[last] - l.At[0]).Seconds()
	if length == 0 || !m.declares(peak) {
		return
	}
	growth := func(i int) float64 { return max(0, l.Values[i]-l.Values[0]) }
	highest, sum := 0.0, 0.0
	for i := 1; i <= last; i++ {
		highest = max(highest, growth(i))
		sum += (growth(i-1) + growth(i)) / 2 * (l.At[i] - l.At[i-1]).Seconds()
	}
	m.Record(peak, highest)
	m.Record(mean, sum/length)
	m.Record(area, sum)
}

// threadCPU is the CPU time of the calling thread.
func (r *run) threadCPU() time.Duration {
	if r.ThreadCPU != nil {
		return r.ThreadCPU()
	}
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
