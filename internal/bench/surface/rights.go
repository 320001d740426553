package surface

import (
	"context"
	"fmt"
	"math/bits"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/capability"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// The statements of rights.
const (
	user         = "user"
	capabilities = "capabilities"
	bounding     = "bounding set"
	gains        = "can gain rights"
	filter       = "seccomp"
	label        = "security label"
	devices      = "devices"
	writable     = "writable files"
	sees         = "sees"
)

// rights reports what a program in a container may do and see, as the kernel tells the program.
func rights() bench.Benchmark {
	return bench.Benchmark{
		Name:    "surface.rights",
		Summary: "the rights of a program in a container, and its view of the machine, as the kernel tells the program",
		Source:  "peers (amicontained); method: probe/rights.c",
		Metrics: []result.Metric{
			count("Capabilities", "effective capabilities of the program"),
			count("Devices", "device files below /dev"),
			count("WritableFiles", "files below /proc and /sys that the program may open for writing, without the directories of processes"),
			count("VisibleFiles", "all such files"),
			count("VisibleProcesses", "processes that /proc shows"),
		},
		Statements: []string{user, capabilities, bounding, gains, filter, label, devices, writable, sees},
		Run: func(ctx context.Context, t bench.Trial) error {
			spec := t.Spec(probe.Rights()...)
			out, err := ask(ctx, t, spec)
			if err != nil {
				return err
			}
			for _, name := range []string{"Files", "WritableFiles", "Processes", "CPUs", "Memory"} {
				if _, ok := out.Metrics[name]; !ok {
					return fmt.Errorf("the program's output has no %s", name)
				}
			}
			if err := describe(t, out); err != nil {
				return err
			}
			t.Condition(sees, sight(out, spec.Resources))
			for metric, name := range map[string]string{"WritableFiles": "WritableFiles", "VisibleFiles": "Files", "VisibleProcesses": "Processes"} {
				t.Record(metric, out.Metrics[name].Value)
			}
			return nil
		},
	}
}

// describe records the facts.
func describe(t bench.Trial, out probe.Output) error {
	facts := map[string]string{}
	for _, name := range []string{"user", "users", "capabilities", "bounding", "no_new_privs", "seccomp", "label"} {
		text, err := single(out, name)
		if err != nil {
			return err
		}
		facts[name] = text
	}
	effective, err := strconv.ParseUint(facts["capabilities"], 16, 64)
	if err != nil {
		return fmt.Errorf("read the capabilities: %w", err)
	}
	bound, err := strconv.ParseUint(facts["bounding"], 16, 64)
	if err != nil {
		return fmt.Errorf("read the bounding set: %w", err)
	}
	t.Record("Capabilities", float64(bits.OnesCount64(effective)))
	t.Condition(capabilities, names(effective))
	t.Condition(bounding, names(bound))
	t.Condition(user, "user "+facts["user"]+mapping(facts["users"]))
	t.Condition(gains, word(facts["no_new_privs"], map[string]string{"0": "yes, by a program with the set-user-ID bit (no_new_privs is 0)", "1": "no (no_new_privs is 1)"}))
	t.Condition(filter, word(facts["seccomp"], map[string]string{"0": "no filter", "1": "strict mode", "2": "a filter"}))
	t.Condition(label, facts["label"])
	files := out.Texts("device")
	slices.Sort(files)
	t.Record("Devices", float64(len(files)))
	t.Condition(devices, listed(len(files), files))
	t.Condition(writable, listed(int(out.Metrics["WritableFiles"].Value), folders(out.Texts("writable"))))
	return nil
}

// word is the word for a value, or the value itself.
func word(value string, words map[string]string) string {
	if text, ok := words[value]; ok {
		return text
	}
	return value
}

// names lists the capabilities of a mask.
func names(mask uint64) string {
	table := capability.ListKnown()
	var list []string
	for c := range 64 {
		switch {
		case mask&(1<<c) == 0:
		case slices.Contains(table, capability.Cap(c)):
			list = append(list, capability.Cap(c).String())
		default:
			list = append(list, fmt.Sprintf("number %d", c))
		}
	}
	slices.Sort(list)
	return listed(len(list), list)
}

// mapping describes the map of a user namespace, as /proc/self/uid_map shows it. It is empty if each user is itself.
func mapping(users string) string {
	fields := strings.Fields(users)
	if slices.Equal(fields, []string{"0", "0", "4294967295"}) {
		return ""
	}
	var parts []string
	for part := range slices.Chunk(fields, 3) {
		if len(part) == 3 {
			parts = append(parts, fmt.Sprintf("%s users from %s are %s outside", part[2], part[0], part[1]))
		}
	}
	return strings.Join(slices.Insert(parts, 0, ""), ", ")
}

// folders lists the third level of the directories of files, each once: /proc/sys/kernel.
func folders(files []string) []string {
	const levels = 3
	var list []string
	for _, f := range files {
		parts := strings.Split(strings.TrimPrefix(f, "/"), "/")
		list = append(list, path.Join("/", path.Join(parts[:min(levels, len(parts))]...)))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// mostNames is the largest number of names in a statement.
const mostNames = 16

// listed is the number of things, and the names of the first ones.
func listed(n int, list []string) string {
	if n == 0 {
		return "none"
	}
	end := ""
	if len(list) > mostNames {
		list, end = list[:mostNames], " …"
	}
	return fmt.Sprintf("%d: %s%s", n, strings.Join(list, " "), end)
}

// sight describes the CPUs and the memory that the program sees, beside the limits of its container.
func sight(out probe.Output, limits engine.Resources) string {
	const mib = 1 << 20
	cpu, memory := "none", "none"
	if limits.CPU > 0 {
		cpu = strconv.FormatFloat(limits.CPU, 'g', -1, 64)
	}
	if limits.Memory > 0 {
		memory = fmt.Sprintf("%d MiB", limits.Memory/mib)
	}
	return fmt.Sprintf("%.0f CPUs (limit: %s), %.0f MiB of memory (limit: %s)", out.Metrics["CPUs"].Value, cpu, out.Metrics["Memory"].Value/mib, memory)
}
