package sides

import (
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
)

// settings are the keys of a plan that affect each trial, and that no other class covers. A benchmark of the list has one such key, monitor: its params and
// limits are parameters of the trials, image selects benchmarks, and blocks is a number of trials.
var settings = []string{"timeout", "engines", "seccomp", "pods", "pinning", "drop-caches", "monitor"}

// sectionsOf gives the lines of a plan in its canonical form, by key. The plan may come from an import, so it is read by lines: a key begins at the first
// column. The first line of a section is the value on the line of the key, which may be empty.
func sectionsOf(plan string) map[string][]string {
	found := map[string][]string{}
	key := ""
	for line := range strings.Lines(plan) {
		line = strings.TrimRight(line, "\r\n ")
		if name, value, ok := strings.Cut(line, ":"); ok && line[0] != ' ' && line[0] != '-' {
			key = name
			found[key] = []string{value}
		} else if key != "" {
			found[key] = append(found[key], line)
		}
	}
	return found
}

// joined is the text of lines without their indentation.
func joined(lines []string) string {
	return strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
}

// runtimesOf gives the definitions of runtimes by name, without paths: two builds of a runtime differ in their path, and the version of the target names that.
func runtimesOf(section []string) map[string]string {
	found := map[string]string{}
	name := ""
	for _, line := range section {
		text, isName := strings.CutPrefix(line, "  ")
		if isName && text != "" && text[0] != ' ' {
			name, _, _ = strings.Cut(text, ":")
		} else if text = strings.TrimSpace(text); name != "" && !strings.HasPrefix(text, "path:") {
			found[name] = joined([]string{found[name], text})
		}
	}
	return found
}

// workloadsOf gives the definitions of workloads by name. Each begins with its name, as an item of a list.
func workloadsOf(section []string) map[string]string {
	found := map[string]string{}
	name := ""
	for _, line := range section {
		if item, begins := strings.CutPrefix(line, "- name: "); begins {
			name = item
			found[name] = ""
		} else if name != "" {
			found[name] = joined([]string{found[name], line})
		}
	}
	return found
}

// item is an item of a plan's list of benchmarks. A recorded plan has an item for each benchmark with its parameters. The title is its name with its
// parameters, as in analysis.Key.Title, and monitor is its own monitor, empty without one.
type item struct{ name, title, monitor string }

func itemsOf(section []string) []item {
	var texts []string
	for _, line := range section {
		text, begins := strings.CutPrefix(line, "- ")
		if begins {
			texts = append(texts, "")
		}
		if len(texts) > 0 {
			texts[len(texts)-1] += strings.TrimPrefix(text, "  ") + "\n"
		}
	}
	var list []item
	for _, text := range texts {
		keys := sectionsOf(text)
		i := item{name: joined(keys["name"]), monitor: joined(keys["monitor"])}
		i.title = i.name
		for _, group := range []struct{ key, prefix string }{{"params", ""}, {"limits", "limits."}} {
			for _, line := range keys[group.key] {
				if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
					i.title += " " + group.prefix + name + "=" + strings.Trim(value, `"`)
				}
			}
		}
		list = append(list, i)
	}
	return list
}

// ownMonitors finds the benchmarks that have a monitor of their own in the plan of some run. For the others the monitor of the plan is one fact. The value
// is true if some plan has several items of the benchmark: the items are then compared by their parameters.
func ownMonitors(runs []result.Run) map[string]bool {
	monitors, duplicates := map[string]bool{}, map[string]bool{}
	for i := range runs {
		names := map[string]bool{}
		for _, item := range itemsOf(sectionsOf(runs[i].Plan)["benchmarks"]) {
			duplicates[item.name] = duplicates[item.name] || names[item.name]
			names[item.name] = true
			if item.monitor != "" {
				monitors[item.name] = true
			}
		}
	}
	for name := range monitors {
		monitors[name] = duplicates[name]
	}
	return monitors
}
