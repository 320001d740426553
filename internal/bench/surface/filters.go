package surface

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/monitor"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/seccomp"
	"github.com/touchstone-bench/touchstone/internal/syscalls"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// filters reports the rights that the processes of a container and of its sandbox have on the host. Processes of the engine, such as shims, are not
// part of the boundary that an image meets first, and are left out.
func filters() bench.Benchmark {
	return bench.Benchmark{
		Name:    "surface.filters",
		Summary: "the rights of the processes of a container and its sandbox on the host, and the system calls that their filters allow",
		Source:  "peers (amicontained, the filters of gVisor and Firecracker); method: probe/confinement.c",
		Metrics: []result.Metric{
			sized(result.SurfaceAllowed, optional(count("HostCalls", "system calls of the host that the least restricted of the processes may make; unknown if the kernel hides the filters of one"))),
			count("HostCapabilities", "effective capabilities of the process with the most, in its user namespace"),
		},
		Statements: statements(),
		Components: true,
		Needs:      bench.Always(engine.OnHost),
		Run: func(ctx context.Context, t bench.Trial) error {
			if syscalls.Audit() == 0 {
				return &engine.UnsupportedError{What: "system calls by name", Reason: "this version knows none of this architecture"}
			}
			if _, err := bench.Start(ctx, t); err != nil {
				return err
			}
			processes, err := t.Cost.Processes()
			if err != nil {
				return err
			}
			maps.DeleteFunc(processes, func(_ int, c monitor.Component) bool { return !slices.Contains(monitor.Sandboxed(), c) })
			if len(processes) == 0 {
				return &engine.UnsupportedError{What: "the processes of a container", Reason: "none of them is visible on this host"}
			}
			text, err := t.Host.Control(ctx, probe.Confinement(slices.Sorted(maps.Keys(processes))))
			if err != nil {
				return err
			}
			out, err := probe.Parse(text)
			if err != nil {
				return fmt.Errorf("read the rights of processes: %w", err)
			}
			return report(t, out, processes)
		},
	}
}

// statements are the names of the components.
func statements() []string {
	var list []string
	for _, c := range monitor.Sandboxed() {
		list = append(list, string(c))
	}
	return list
}

// report records the rights of processes.
func report(t bench.Trial, out probe.Output, processes map[int]monitor.Component) error {
	words := map[monitor.Component][]string{}
	mostCalls, mostCapabilities, isWhole := 0, 0, true
	for _, p := range byProcess(out.Facts) {
		rights, err := parseConfined(p)
		if errors.Is(err, errExited) {
			continue
		}
		if err != nil {
			return err
		}
		component := processes[rights.pid]
		mostCapabilities = max(mostCapabilities, bits.OnesCount64(rights.capabilities))
		calls, text, err := rights.calls()
		if err != nil {
			return err
		}
		mostCalls = max(mostCalls, calls)
		isWhole = isWhole && rights.refusal == ""
		words[component] = append(words[component], fmt.Sprintf("%s: %s, %d capabilities%s", rights.name, text, bits.OnesCount64(rights.capabilities), mapping(rights.users)))
	}
	if len(words) == 0 {
		return errors.New("all processes of the container exited")
	}
	for component, texts := range words {
		slices.Sort(texts)
		t.Condition(string(component), strings.Join(slices.Compact(texts), "; "))
	}
	if isWhole {
		t.Record("HostCalls", float64(mostCalls))
	}
	t.Record("HostCapabilities", float64(mostCapabilities))
	return nil
}

// byProcess splits the facts by process.
func byProcess(facts []probe.Fact) (groups [][]probe.Fact) {
	for i, f := range facts {
		if f.Name == "process" {
			groups = append(groups, nil)
		}
		if len(groups) > 0 {
			groups[len(groups)-1] = append(groups[len(groups)-1], facts[i])
		}
	}
	return groups
}

// errExited is the error for a process that has exited meanwhile.
var errExited = errors.New("the process has exited")

// confined is the confinement of a process.
type confined struct {
	pid          int
	name         string
	capabilities uint64
	users        string
	filters      []seccomp.Filter
	refusal      string // of the filters, by the kernel
}

func parseConfined(facts []probe.Fact) (c confined, err error) {
	found, hasFilter := map[string]bool{}, false
	for _, f := range facts {
		found[f.Name] = true
		switch f.Name {
		case "process":
			id, name, _ := strings.Cut(f.Text, " ")
			c.name = name
			c.pid, err = strconv.Atoi(id)
		case "capabilities":
			c.capabilities, err = strconv.ParseUint(f.Text, 16, 64)
		case "users":
			c.users = f.Text
		case "seccomp":
			hasFilter = f.Text == "2"
		case "filter":
			if strings.HasSuffix(f.Text, ")") { // an error of the kernel
				c.refusal = f.Text
				continue
			}
			var filter seccomp.Filter
			if filter, err = seccomp.Parse(f.Text); err == nil {
				c.filters = append(c.filters, filter)
			}
		}
		if err != nil {
			return confined{}, fmt.Errorf("read the rights of process %s: %w", c.name, err)
		}
	}
	if !found["capabilities"] || strings.HasPrefix(c.refusal, "ESRCH") {
		return confined{}, errExited
	}
	if hasFilter && len(c.filters) == 0 && c.refusal == "" {
		c.refusal = "it lacks CONFIG_CHECKPOINT_RESTORE" // its answer is the same as for a process without a filter
	}
	return c, nil
}

// calls counts the system calls that the filters allow, and describes them.
func (c confined) calls() (n int, text string, err error) {
	if c.refusal != "" {
		return 0, "filters that the kernel does not show: " + c.refusal, nil
	}
	numbers := syscalls.Numbers()
	if len(c.filters) == 0 {
		return len(numbers), fmt.Sprintf("all %d system calls, without a filter", len(numbers)), nil
	}
	var depending int
	for _, number := range numbers {
		verdict, err := seccomp.Decide(c.filters, syscalls.Audit(), number)
		if err != nil {
			return 0, "", fmt.Errorf("follow the filters of %s: %w", c.name, err)
		}
		switch verdict {
		case seccomp.Allowed:
			n++
		case seccomp.ByArgument:
			depending++
		case seccomp.Refused:
		}
	}
	n += depending
	return n, fmt.Sprintf("%d of %d system calls, %d of them by their arguments", n, len(numbers), depending), nil
}
