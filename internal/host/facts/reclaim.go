package facts

import (
	"github.com/touchstone-bench/touchstone/internal/host/machine"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// reclaim reads the facts that explain figures of memory; nil if none is known.
func (t reader) reclaim(memory map[string]int64) *result.Reclaim {
	r := result.Reclaim{
		Swappiness:      t.Number(machine.Swappiness),
		Overcommit:      t.Number("proc/sys/vm/overcommit_memory"),
		OvercommitRatio: t.Number("proc/sys/vm/overcommit_ratio"),
		THP:             machine.Selected(t.Text(machine.THP)),
		THPDefrag:       machine.Selected(t.Text(machine.THPDir + "defrag")),
		KSM:             t.Number(machine.KSM + "run"),
		KSMSharing:      t.Number(machine.KSM + "pages_sharing"),
	}
	if available, ok := memory["MemAvailable"]; ok {
		r.Available = &available
	}
	total, hasTotal := memory["SwapTotal"]
	if free, hasFree := memory["SwapFree"]; hasTotal && hasFree {
		bytes := max(0, total-free)
		r.SwapUsed = &bytes
	}
	if zswap := t.Text("sys/module/zswap/parameters/enabled"); zswap != "" {
		enabled := zswap == "Y" || zswap == "1"
		r.Zswap = &enabled
	}
	if r == (result.Reclaim{}) {
		return nil
	}
	return &r
}
