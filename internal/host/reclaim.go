package host

import (
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
)

const (
	ksmDir  = "sys/kernel/mm/ksm/"
	thpDir  = "sys/kernel/mm/transparent_hugepage/"
	thpFile = thpDir + "enabled"
	// swappinessFile is the tendency of the kernel to swap instead of dropping the page cache.
	swappinessFile = "proc/sys/vm/swappiness"
)

// reclaim reads the facts that explain figures of memory; nil if none is known.
func (t tree) reclaim(memory map[string]int64) *result.Reclaim {
	r := result.Reclaim{
		Swappiness:      t.number(swappinessFile),
		Overcommit:      t.number("proc/sys/vm/overcommit_memory"),
		OvercommitRatio: t.number("proc/sys/vm/overcommit_ratio"),
		THP:             selected(t.text(thpFile)),
		THPDefrag:       selected(t.text(thpDir + "defrag")),
		KSM:             t.number(ksmDir + "run"),
		KSMSharing:      t.number(ksmDir + "pages_sharing"),
	}
	if available, known := memory["MemAvailable"]; known {
		r.Available = &available
	}
	total, known := memory["SwapTotal"]
	if free, also := memory["SwapFree"]; known && also {
		used := max(0, total-free)
		r.SwapUsed = &used
	}
	if zswap := t.text("sys/module/zswap/parameters/enabled"); zswap != "" {
		on := zswap == "Y" || zswap == "1"
		r.Zswap = &on
	}
	if r == (result.Reclaim{}) {
		return nil
	}
	return &r
}

// number returns the number in a file, or nil.
func (t tree) number(name string) *int64 {
	n, err := strconv.ParseInt(t.text(name), 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// selected returns the choice in brackets: "madvise" from "always [madvise] never".
func selected(text string) string {
	_, rest, _ := strings.Cut(text, "[")
	choice, _, ok := strings.Cut(rest, "]")
	if !ok {
		return ""
	}
	return choice
}

// choice is selected, or the whole text without brackets.
func choice(text string) string {
	if one := selected(text); one != "" {
		return one
	}
	return text
}
