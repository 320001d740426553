package performance

import (
	"context"
	"fmt"
	"maps"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// disk lists the benchmarks of access to files.
func disk() []bench.Benchmark {
	return []bench.Benchmark{diskRead(), diskWrite(), diskThroughput(), diskMount(), diskSQLite(), diskBlog()}
}

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

// storageNeeds returns the needs of a benchmark whose parameters on and cache select the storage of so many bytes.
func storageNeeds(p bench.Params, bytes int64) bench.Needs {
	needs := bench.Volume(p.Param("on")).Needs(bytes)
	if p.Has("cache") && p.Param("cache") == string(bench.Cold) {
		needs.Capabilities = append(needs.Capabilities, engine.CanExec) // see storage.measure
	}
	return needs
}

// storageOf makes the volume that the parameter on selects, and records it as a condition.
func storageOf(t bench.Trial, cache bench.Cache) (storage, error) {
	volume := bench.Volume(t.Param("on"))
	if err := cache.Check(volume); err != nil {
		return storage{}, err
	}
	m, err := volume.Mount(t)
	if err != nil {
		return storage{}, err
	}
	t.Condition("files on", m.On)
	return storage{m, cache}, nil
}

// measure runs programs one after the other on the storage, in its directory. With a warm cache they are all of one
// container's first process. To drop the page cache between two programs the container must wait: each program is then a
// further process of it. A container for each program would work only for files that are on the host.
func (s storage) measure(ctx context.Context, t bench.Trial, stages ...stage) (workload.Values, error) {
	if s.cache == bench.Warm {
		var programs []workload.Program
		for _, st := range stages {
			programs = append(programs, st.Program)
		}
		return bench.Measure(ctx, t, bench.InContainer, workload.Sequence(bench.DataDir, programs...), s.Into)
	}
	c, err := bench.Start(ctx, t, s.Into)
	if err != nil {
		return nil, err
	}
	all := workload.Values{}
	for _, st := range stages {
		if st.reads {
			if err := s.prepareCache(ctx, t); err != nil {
				return nil, err
			}
		}
		values, err := bench.Measure(ctx, t, bench.Within(c.Container), workload.Sequence(bench.DataDir, st.Program))
		if err != nil {
			return nil, err
		}
		maps.Copy(all, values)
	}
	return all, nil
}

// prepareCache brings the page cache into its state. A cache that stays warm is an *engine.UnsupportedError.
func (s storage) prepareCache(ctx context.Context, t bench.Trial) error {
	if err := s.cache.Prepare(ctx, t); err != nil || s.cache == bench.Warm || s.Dir == "" {
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
	return &engine.UnsupportedError{What: "a cold page cache", Reason: reason, Advice: "measure with cache=warm"}
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
