package surface

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/syscalls"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// facts are the facts of a process, with a filter or the error of its read.
func facts(filters ...string) []probe.Fact {
	mode := "0"
	if filters != nil {
		mode = "2"
	}
	list := []probe.Fact{
		{Name: "process", Text: "11 a name"},
		{Name: "capabilities", Text: "0000000000080001"},
		{Name: "no_new_privs", Text: "1"},
		{Name: "seccomp", Text: mode},
		{Name: "users", Text: "0 1000 1"},
	}
	for _, f := range filters {
		list = append(list, probe.Fact{Name: "filter", Text: f})
	}
	return list
}

func TestCallsOfProcesses(t *testing.T) {
	const (
		allow  = "000600007fff0000"
		refuse = "0006000000050001"
	)
	numbers := syscalls.Numbers()
	if len(numbers) < 300 {
		t.Fatalf("the table has %d system calls of this architecture, want hundreds", len(numbers))
	}
	first := fmt.Sprintf("%08x", numbers[0])
	for name, tt := range map[string]struct {
		filters []string
		calls   int
		text    string
	}{
		"none":            {nil, len(numbers), fmt.Sprintf("all %d system calls, without a filter", len(numbers))},
		"one call":        {[]string{"0020000000000000" + "00150001" + first + allow + refuse}, 1, fmt.Sprintf("1 of %d system calls, 0 of them by their arguments", len(numbers))},
		"by its argument": {[]string{"0020000000000010" + "0015000100000001" + allow + refuse}, len(numbers), fmt.Sprintf("%d of %[1]d system calls, %[1]d of them by their arguments", len(numbers))},
		"two filters":     {[]string{allow, refuse}, 0, fmt.Sprintf("0 of %d system calls, 0 of them by their arguments", len(numbers))},
		"not readable":    {[]string{}, 0, "filters that the kernel does not show: it lacks CONFIG_CHECKPOINT_RESTORE"},
		"hidden":          {[]string{"EPERM (1)"}, 0, "filters that the kernel does not show: EPERM (1)"},
	} {
		c, err := parseConfined(facts(tt.filters...))
		must.Do(t, err)
		calls, text, err := c.calls()
		must.Do(t, err)
		if calls != tt.calls || text != tt.text || c.pid != 11 || c.name != "a name" || c.capabilities != 1<<19|1 {
			t.Errorf("%s: %d, %q of %+v; want %d, %q", name, calls, text, c, tt.calls, tt.text)
		}
	}
	if m := mapping("0 1000 1"); m != ", 1 users from 0 are 1000 outside" {
		t.Errorf("mapping: %q", m)
	}
}

func TestProcessesThatCannotBeRead(t *testing.T) {
	for name, list := range map[string][]probe.Fact{
		"exited before":    facts()[:1],
		"exited meanwhile": facts("ESRCH (3)"),
	} {
		if _, err := parseConfined(list); !errors.Is(err, errExited) {
			t.Errorf("%s: %v, want %v", name, err, errExited)
		}
	}
	for name, change := range map[string]probe.Fact{
		"no mask": {Name: "capabilities", Text: "x"}, "no ID": {Name: "process", Text: "x y"}, "no filter": {Name: "filter", Text: "xyz"},
	} {
		if _, err := parseConfined(append(facts(), change)); err == nil || !strings.Contains(err.Error(), "read the rights of process") {
			t.Errorf("%s: %v, want an error with the process", name, err)
		}
	}
	if groups := byProcess(append(facts(), facts()...)); len(groups) != 2 || len(groups[1]) != len(facts()) {
		t.Errorf("byProcess: %v", groups)
	}
}
