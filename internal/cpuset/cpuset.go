// Package cpuset reads lists of CPUs in the kernel's syntax, such as 0-3,8 (cpuset(7), "List format").
//
// It is strict with lists written by people: a misread list would pin the workload to the CPU of the measuring process. It refuses
// the stride of the format (0-31:2/16), since no file that we write to accepts it.
package cpuset

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Max is the highest number of a CPU that is read; kernels are built for 8192 CPUs at most.
const Max = 8191

// Set is a list of CPUs in rising order without repetition. The zero value is empty.
type Set []int

var number = regexp.MustCompile(`^(0|[1-9][0-9]{0,3})$`)

// Parse reads a list of at least one CPU. CPUs may be in any order, and may occur several times.
func Parse(list string) (Set, error) {
	var set Set
	for _, item := range strings.Split(list, ",") {
		first, last, isRange := strings.Cut(item, "-")
		if !isRange {
			last = first
		}
		if !number.MatchString(first) || !number.MatchString(last) {
			return nil, fmt.Errorf("%q is not a CPU or a range of CPUs", item)
		}
		// The pattern matches only numbers.
		lo, _ := strconv.Atoi(first)
		hi, _ := strconv.Atoi(last)
		switch {
		case lo > hi:
			return nil, fmt.Errorf("the range %s ends before it begins", item)
		case hi > Max:
			return nil, fmt.Errorf("no kernel has a CPU %d", hi)
		}
		for cpu := lo; cpu <= hi; cpu++ {
			set = append(set, cpu)
		}
		if len(set) > 16*(Max+1) { // of a long list of wide ranges
			set = set.sorted()
		}
	}
	return set.sorted(), nil
}

func (s Set) sorted() Set {
	slices.Sort(s)
	return slices.Compact(s)
}

// String returns the shortest spelling for Parse.
func (s Set) String() string {
	var items []string
	for i := 0; i < len(s); {
		j := i
		for j+1 < len(s) && s[j+1] == s[j]+1 {
			j++
		}
		item := strconv.Itoa(s[i])
		if j > i {
			item += "-" + strconv.Itoa(s[j])
		}
		items = append(items, item)
		i = j + 1
	}
	return strings.Join(items, ",")
}

// And returns the CPUs in both sets.
func (s Set) And(set Set) Set {
	return slices.DeleteFunc(slices.Clone(s), func(cpu int) bool { return !slices.Contains(set, cpu) })
}

// Without returns the CPUs of s that are not in set.
func (s Set) Without(set Set) Set {
	return slices.DeleteFunc(slices.Clone(s), func(cpu int) bool { return slices.Contains(set, cpu) })
}

const sysCPU = "sys/devices/system/cpu"

// Online returns the online CPUs of a machine. root contains its /sys and /proc; it is "/" except in tests. Without /sys it returns the CPUs
// in /proc/stat, and without both files the CPUs of this process.
func Online(root string) (Set, error) {
	set, err := read(root, "online")
	if err == nil {
		return set, nil
	}
	if set := counted(root); len(set) > 0 {
		return set, nil
	}
	if root == "/" {
		if set, bad := ofThread(); bad == nil {
			return set, nil
		}
	}
	return nil, fmt.Errorf("find the CPUs of this machine: %w, and /proc/stat lists none; mount /sys or /proc", err)
}

// counted returns the CPUs that /proc/stat counts.
func counted(root string) Set {
	text, err := os.ReadFile(filepath.Join(root, "proc/stat"))
	if err != nil {
		return nil
	}
	var set Set
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(line, " ")
		digits, ok := strings.CutPrefix(name, "cpu")
		if cpu, err := strconv.Atoi(digits); ok && err == nil && number.MatchString(digits) && cpu <= Max {
			set = append(set, cpu)
		}
	}
	return set.sorted()
}

// read reads a list of CPUs below sysCPU.
func read(root, file string) (Set, error) {
	text, err := os.ReadFile(filepath.Join(root, sysCPU, file))
	if err != nil {
		return nil, err
	}
	return Parse(strings.TrimSpace(string(text)))
}

// Cores returns the CPUs of each core with several online threads. A machine without topology information has none.
func Cores(root string, online Set) []Set {
	var cores []Set
	for _, cpu := range online {
		threads, err := read(root, fmt.Sprintf("cpu%d/topology/thread_siblings_list", cpu))
		if threads = threads.And(online); err == nil && len(threads) > 1 && threads[0] == cpu {
			cores = append(cores, threads)
		}
	}
	return cores
}
