package workload

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MemoryLoad is sysbench's load in memory: threads write or read blocks until they have processed TotalMiB together. Each
// thread uses its block again and again, so a block that fits into the CPU's caches stays there.
type MemoryLoad struct {
	BlockKiB, TotalMiB, Threads int
	Operation                   string // "write" or "read"
	Access                      string // "seq" or "rnd", within the block
}

// PaperMemoryLoad is the load of TouchStone and nishimura section 4.4: blocks of 1 MiB, written one after the other by one
// thread; the papers write 100 GiB of them.
func PaperMemoryLoad(totalMiB int) MemoryLoad {
	return MemoryLoad{BlockKiB: 1024, TotalMiB: totalMiB, Threads: 1, Operation: "write", Access: "seq"}
}

// SysbenchMemory works on blocks of memory. Values: TotalTime; MinLatency, AvgLatency and MaxLatency of single blocks.
//
// sysbench prints latencies in steps of 10 µs, a third of the time for a block of 1 MiB. The average is therefore computed from
// the sum of all events, which has the same steps. The minimum is the lowest bucket of the histogram, with an error of up to
// 1 % and 0.5 µs.
func SysbenchMemory(load MemoryLoad) Program {
	each := int64(load.TotalMiB) * 1024 / int64(load.BlockKiB) / int64(load.Threads) // sysbench drops the rest
	events := int(each) * load.Threads
	return Program{
		Args: sysbenchRun(
			"memory", load.Threads, events, "--memory-block-size="+strconv.Itoa(load.BlockKiB)+"K",
			"--memory-total-size="+strconv.Itoa(load.TotalMiB)+"M", "--memory-oper="+load.Operation,
			"--memory-access-mode="+load.Access, "--histogram=on",
		),
		Parse: reading("sysbench's report", func(stdout []byte) (Values, error) {
			r, err := readSysbench(stdout)
			if err != nil {
				return nil, err
			}
			return r.memory(load, events)
		}),
	}
}

// memory reads the result of the test memory.
func (r *sysbenchReport) memory(load MemoryLoad, events int) (Values, error) {
	settings := r.sections["Running memory speed test with the following options"]
	for name, want := range map[string]string{
		"block size": strconv.Itoa(load.BlockKiB) + "KiB", "total size": strconv.Itoa(load.TotalMiB) + "MiB", "operation": load.Operation,
	} {
		if got := settings[name]; got != want {
			return nil, fmt.Errorf("the %s is %q instead of %q", name, cut(got), want)
		}
	}
	if err := errors.Join(r.did(events), r.with(load.Threads)); err != nil {
		return nil, err
	}
	operations, err := r.setting("Total operations: ")
	if err != nil {
		return nil, err
	}
	if operations != r.events {
		return nil, fmt.Errorf("there are %d operations and %d events", operations, r.events)
	}
	lowest, err := r.lowest()
	if err != nil {
		return nil, err
	}
	if lowest == 0 {
		return nil, fmt.Errorf("the time of %d blocks of %d KiB was too short for sysbench", events, load.BlockKiB)
	}
	return Values{"TotalTime": r.seconds, "MinLatency": lowest, "AvgLatency": r.latency.mean, "MaxLatency": r.latency.max}, nil
}

// lowest returns the lowest latency of the histogram, in seconds. The buckets must count all events.
func (r *sysbenchReport) lowest() (float64, error) {
	lowest, last, events := -1.0, 0.0, uint64(0)
	for _, line := range r.lines {
		bucket, rest, isBucket := strings.Cut(line, " |")
		if !isBucket {
			continue
		}
		value, err := readDecimal(bucket)
		if err != nil {
			return 0, fmt.Errorf("the histogram: %w", err)
		}
		count, err := readWhole(strings.TrimLeft(rest, "* "))
		if err != nil {
			return 0, fmt.Errorf("the histogram: %w", err)
		}
		if lowest < 0 {
			lowest = value
		}
		if value < last {
			return 0, fmt.Errorf("the histogram: %v follows %v", value, last)
		}
		last = value
		events += count
	}
	if events != r.events {
		return 0, fmt.Errorf("the histogram counts %d of %d events", events, r.events)
	}
	// Buckets are 1.8 % wide and have three decimals in the report.
	if math.Abs(lowest/1000-r.latency.min) > 0.51e-5+0.01*r.latency.min {
		return 0, fmt.Errorf("the histogram begins at %v ms, and the shortest event took %v s", lowest, r.latency.min)
	}
	return lowest / 1000, nil
}
