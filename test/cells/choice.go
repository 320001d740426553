package cells

import (
	"cmp"
	"slices"
	"strings"
)

// Changes is a number of changes. Among so many, every cell runs at least once.
const Changes = 6

// Choose returns the names of the cells that a change runs, in the order of the list: those whose code has changed since the commit of their last
// run, and the share of one in Changes that ran the longest ago. changes has the changed files since each commit in the record. Among cells of
// the same age the number of the commit decides. If each change keeps its record of runs, every cell runs at least once in that many changes.
func Choose(list []Cell, runs Record, changes map[string][]string, number int) []string {
	choice := make(map[string]bool)
	for _, c := range list {
		if slices.ContainsFunc(changes[runs[c.Name].Commit], c.covers) {
			choice[c.Name] = true
		}
	}
	share := (len(list) + Changes - 1) / Changes
	oldest := make([]int, len(list))
	for n := range oldest {
		oldest[n] = (n + number*share) % len(list)
	}
	slices.SortStableFunc(oldest, func(a, b int) int { return cmp.Compare(runs[list[a].Name].Number, runs[list[b].Name].Number) })
	for _, n := range oldest[:share] {
		choice[list[n].Name] = true
	}
	var names []string
	for _, c := range list {
		if choice[c.Name] {
			names = append(names, c.Name)
		}
	}
	return names
}

// covers reports whether a file belongs to the cell. Pages change no test.
func (c Cell) covers(file string) bool {
	return !strings.HasSuffix(file, ".md") && slices.ContainsFunc(c.Paths, func(dir string) bool { return strings.HasPrefix(file, dir+"/") })
}
