package result

import (
	"slices"
	"strings"
)

// limitPrefix begins each limit in Cell.Params. Limits follow the parameters.
const limitPrefix = "limits."

// newParam is a parameter that a benchmark of Touchstone received later, or whose values are spelled otherwise since.
type newParam struct {
	benchmark, name string
	// before is the value that describes results without the parameter; empty if all results have it.
	before string
	// present returns the present spelling of a value. It is nil if no spelling changed.
	present func(value string) string
}

// newParams lists these parameters. Custom workloads cannot have these benchmark names.
func newParams() []newParam {
	return []newParam{
		{"performance.disk.mount", "fsync", "", PresentSync},
		{"performance.disk.write", "fsync", "", PresentSync},
		{"performance.disk.write", "existing", "written", nil},
		{"performance.memory.total", "scope", "global", nil},
		{"performance.memory.minavglatency", "scope", "global", nil},
		{"performance.memory.maxlatency", "scope", "global", nil},
		{"performance.memory.stream", "copies", "1", nil},
		{"performance.cpu.sevenzip", "passes", "1", nil},
		{"performance.disk.throughput", "sweep", "none", nil},
		{"performance.disk.blog", "mixture", "bounded", nil},
		{"performance.disk.blog", "space", "512", nil},
		{"performance.database.redis", "persistence", "none", nil},
		{"performance.syscall.unixbench", "fd", "pipe", nil},
	}
}

// PresentSync returns the present spelling of a value of the parameter fsync. It was the number of writes between two syncs, or 0
// for a sync at the end only.
func PresentSync(value string) string {
	switch {
	case value == "0":
		return "end"
	case value != "" && strings.Trim(value, "0123456789") == "":
		return "every=" + value
	default:
		return value
	}
}

// Present returns the cell with the parameters that its results would have today, if an older version of Touchstone recorded them.
// So one measurement has one cell, for comparison and for resumption. Read calls it for documents, and the store for its rows. A
// second call changes nothing. A cell without any parameter keeps none: they are unknown, as for TouchStone's results.
func (c Cell) Present() Cell {
	if c.Params == "" {
		return c
	}
	for _, p := range newParams() {
		if p.benchmark == c.Benchmark {
			c.Params = p.complete(c.Params)
		}
	}
	return c
}

// complete adds or respells the parameter in the canonical text of parameters and limits.
func (p newParam) complete(text string) string {
	items := strings.Fields(text)
	limits := slices.IndexFunc(items, func(item string) bool { return strings.HasPrefix(item, limitPrefix) })
	if limits < 0 {
		limits = len(items)
	}
	params, found := slices.Clone(items[:limits]), false
	for i, item := range params {
		name, value, _ := strings.Cut(item, "=")
		if name != p.name {
			continue
		}
		found = true
		if p.present != nil {
			params[i] = name + "=" + p.present(value)
		}
	}
	if !found && p.before != "" {
		params = append(params, p.name+"="+p.before)
	}
	slices.Sort(params)
	return strings.Join(append(params, items[limits:]...), " ")
}
