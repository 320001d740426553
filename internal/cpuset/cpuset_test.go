package cpuset_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/cpuset"
)

func TestParse(t *testing.T) {
	for list, want := range map[string]struct {
		cpus []int
		text string
	}{
		"0":           {[]int{0}, "0"},
		"0-3,8":       {[]int{0, 1, 2, 3, 8}, "0-3,8"},
		"8,0-3,2,1-2": {[]int{0, 1, 2, 3, 8}, "0-3,8"},
		"5-5":         {[]int{5}, "5"},
		"8190-8191":   {[]int{8190, 8191}, "8190-8191"},
		"1,2,3":       {[]int{1, 2, 3}, "1-3"},
	} {
		got, err := cpuset.Parse(list)
		if err != nil || !slices.Equal(got, want.cpus) || got.String() != want.text {
			t.Errorf("Parse(%q) = %v (%s), %v; want %v (%s)", list, []int(got), got, err, want.cpus, want.text)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for list, want := range map[string]string{
		"":           `"" is not a CPU or a range of CPUs`,
		"0,":         `"" is not a CPU or a range of CPUs`,
		"a":          `"a" is not a CPU`,
		"-1":         `"-1" is not a CPU`,
		"0x1":        `"0x1" is not a CPU`,
		"01":         `"01" is not a CPU`,
		"0 1":        `"0 1" is not a CPU`,
		"0, 1":       `" 1" is not a CPU`,
		"0-":         `"0-" is not a CPU`,
		"1-2-3":      `"1-2-3" is not a CPU`,
		"0-31:2/16":  `"0-31:2/16" is not a CPU`,
		"3-1":        "the range 3-1 ends before it begins",
		"8192":       "no kernel has a CPU 8192",
		"0-99999":    `"0-99999" is not a CPU`,
		"\x1b[2J":    `"\x1b[2J" is not a CPU`,
		"0\n":        `"0\n" is not a CPU`,
		"1-\u0661":   `is not a CPU`,
		"all":        `"all" is not a CPU`,
		"9999999999": `"9999999999" is not a CPU`,
	} {
		set, err := cpuset.Parse(list)
		if err == nil || !strings.Contains(err.Error(), want) || set != nil {
			t.Errorf("Parse(%q) = %v, %v; want %s", list, set, err, want)
		}
	}
}

func TestOperations(t *testing.T) {
	a, b := cpuset.Set{0, 1, 2, 5}, cpuset.Set{2, 3, 5}
	if got := a.And(b).String(); got != "2,5" {
		t.Errorf("And gives %s, want 2,5", got)
	}
	if got := a.Without(b).String(); got != "0-1" {
		t.Errorf("Without gives %s, want 0-1", got)
	}
	if got := a.Without(a).String(); got != "" {
		t.Errorf("nothing is spelled %q", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, list := range []string{"0", "0-3,8", "3-1", "0-8191,0-8191", "", ",", "1-", "٣"} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		set, err := cpuset.Parse(list)
		if err != nil {
			return
		}
		again, err := cpuset.Parse(set.String())
		if err != nil || !slices.Equal(set, again) || !slices.IsSorted(set) || len(set) == 0 {
			t.Fatalf("%q is %v, spelled %q, read %v, %v", list, []int(set), set, []int(again), err)
		}
	})
}
