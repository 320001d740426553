package workload

import (
	"fmt"
	"strconv"
	"strings"
)

// Grow calls a program that touches an amount of memory, a MiB at a time, and exits with code 0 when it has touched all. It writes a
// line for ParseHeld before the first MiB and after each.
func Grow(mib int) []string { return []string{Probe, "grow", "--mib", strconv.Itoa(mib)} }

// ParseHeld reads a line of the program that Grow calls, without its end, and returns the number of touched bytes.
func ParseHeld(line string) (int64, error) {
	text, ok := strings.CutPrefix(line, "held ")
	n, err := readWhole(text)
	if !ok || err != nil || n%(1<<20) != 0 {
		return 0, fmt.Errorf("read the amount of touched memory: %q is not \"held BYTES\" with whole MiB", cut(line))
	}
	return int64(n), nil
}
