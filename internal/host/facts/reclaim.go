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
	if available, known := memory["MemAvailable"]; known {
		r.Available = &available
	}
	total, known := memory["SwapTotal"]
	if free, also := memory["SwapFree"]; known && also {
		used := max(0, total-free)
		r.SwapUsed = &used
	}
	if zswap := t.Text("sys/module/zswap/parameters/enabled"); zswap != "" {
		on := zswap == "Y" || zswap == "1"
		r.Zswap = &on
	}
	if r == (result.Reclaim{}) {
		return nil
	}
	return &r
}
