package performance

import (
	"context"
	"fmt"
	"maps"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/probe"
)

// stage is a program that works on the files of a benchmark.
type stage struct {
	workload.Program
	// reads reports that the result depends on the state of the page cache.
	reads bool
}

// storage is the storage of a trial's files, and the state of the page cache.
type storage struct {
	bench.Mounted
	cache bench.Cache
}

// onStorage completes a benchmark that works on so many bytes of files. Its parameter on selects the storage, and its parameter
// cache, if it has one, the state of the page cache.
func onStorage(
	b bench.Benchmark, bytes func(p bench.Params) int64, run func(ctx context.Context, t bench.Trial, files storage) (workload.Values, error),
) bench.Benchmark {
	b.Waits = []bench.Medium{bench.Disk}
	cacheOf := func(p bench.Params) bench.Cache {
		if p.Has("cache") {
			return bench.Cache(p.Param("cache"))
		}
		return bench.Warm
	}
	b.Needs = func(p bench.Params) bench.Needs {
		needs := bench.Volume(p.Param("on")).Needs(bytes(p))
		if cacheOf(p) == bench.Cold {
			needs.Capabilities = append(needs.Capabilities, engine.CanExec) // see storage.measure
		}
		return needs
	}
	b.Run = func(ctx context.Context, t bench.Trial) error {
		volume, cache := bench.Volume(t.Param("on")), cacheOf(t.Params)
		if cache == bench.Cold && !volume.OnDisk() {
			return &engine.UnsupportedError{
				What: coldCache, Reason: "files on " + string(volume) + " are always in memory", Advice: "measure with cache=warm, or on=bind",
			}
		}
		m, err := volume.Mount(t)
		if err != nil {
			return err
		}
		t.Condition("files on", m.On)
		values, err := run(ctx, t, storage{m, cache})
		if err != nil {
			return err
		}
		return bench.RecordAll(t, values, b.Metrics)
	}
	return b
}

// coldCache is the name of the requirement in errors.
const coldCache = "a cold page cache"

// measure runs programs one after the other on the storage, in its directory. With a warm cache they are all of one
// container's first process. To drop the page cache between two programs the container must wait: each program is then a
// further process of it. A container for each program would work only for files that are on the host.
func (s storage) measure(ctx context.Context, t bench.Trial, stages ...stage) (workload.Values, error) {
	if s.cache == bench.Warm {
		var programs []workload.Program
		for _, st := range stages {
			programs = append(programs, st.Program)
		}
		return bench.Measure(ctx, t, bench.InContainer, probe.Sequence(bench.DataDir, programs...), s.Into)
	}
	c, err := bench.Start(ctx, t, s.Into)
	if err != nil {
		return nil, err
	}
	results := workload.Values{}
	for _, st := range stages {
		if st.reads {
			if err := s.dropCache(ctx, t); err != nil {
				return nil, err
			}
		}
		values, err := bench.Measure(ctx, t, bench.Within(c.Container), probe.Sequence(bench.DataDir, st.Program))
		if err != nil {
			return nil, err
		}
		maps.Copy(results, values)
	}
	return results, nil
}

// dropCache drops the page cache. A cache that stays warm is an *engine.UnsupportedError.
func (s storage) dropCache(ctx context.Context, t bench.Trial) error {
	if err := t.Storage.DropCaches(ctx); err != nil || s.Dir == "" {
		return err
	}
	cached, size, err := cachedBytes(s.Dir)
	if err != nil {
		return err
	}
	var reason string
	switch {
	case size == 0:
		reason = "no data of the files has reached the host: they are cached elsewhere"
	case inCache(cached, size):
		reason = fmt.Sprintf("%d of %d bytes of the files are still in it after it was dropped", cached, size)
	default:
		return nil
	}
	return &engine.UnsupportedError{What: coldCache, Reason: reason, Advice: "measure with cache=warm"}
}

// recordCache records the state of the page cache after the measurement has confirmed it. A state that cannot be observed
// is not called cold.
func (s storage) recordCache(t bench.Trial) {
	text := "warm: the files were written right before reading"
	if s.cache == bench.Cold {
		text = "cold: right before reading the files were out of the host's page cache"
		if s.Dir == "" {
			text = "dropped on the host right before reading; whether it held the files cannot be seen on " + string(s.Volume)
		}
		if i := t.Info.Isolation; i != engine.NoIsolation && i != engine.SharedKernel {
			text += "; the sandbox's own cache is unknown"
		}
	}
	t.Condition("page cache", text)
}
