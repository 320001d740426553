package host

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/result"
)

const ksmDir = "sys/kernel/mm/ksm/"

// reclaim reads the facts that explain figures of memory; nil if none is known.
func (t tree) reclaim(memory map[string]int64) *result.Reclaim {
	const thp = "sys/kernel/mm/transparent_hugepage/"
	r := result.Reclaim{
		Swappiness:      t.number("proc/sys/vm/swappiness"),
		Overcommit:      t.number("proc/sys/vm/overcommit_memory"),
		OvercommitRatio: t.number("proc/sys/vm/overcommit_ratio"),
		THP:             selected(t.text(thp + "enabled")),
		THPDefrag:       selected(t.text(thp + "defrag")),
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

// mergedPages returns a warning if KSM merges pages.
func mergedPages(r *result.Reclaim) string {
	if r == nil || r.KSM == nil || *r.KSM != 1 {
		return ""
	}
	sharing := int64(0)
	if r.KSMSharing != nil {
		sharing = *r.KSMSharing
	}
	return fmt.Sprintf("KSM merges equal pages (%d now): the memory of a container depends on the others and on time; "+
		"switch it off for figures of memory (echo 2 > /%srun)", sharing, ksmDir)
}
