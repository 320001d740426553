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
	workload.Step
	// reads tells that the state of the page cache matters to it.
	reads bool
}

// storage is what the files of a trial lie on, and how.
type storage struct {
	bench.Mounted
	cache bench.Cache
}

// storageOf makes the volume that the parameter on names, and puts it on record.
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
// container's first process. To drop the page cache between two of them the container has to wait: each is
// then a further process of it. (A container for each would do for files that lie on the host, and for no others.)
func (s storage) measure(ctx context.Context, t bench.Trial, stages ...stage) (workload.Values, error) {
	if s.cache == bench.Warm {
		var steps []workload.Step
		for _, st := range stages {
			steps = append(steps, st.Step)
		}
		p := workload.Sequence(bench.DataDir, steps...)
		spec := bench.SpecOf(t, p)
		s.Into(&spec)
		return bench.Measure(ctx, t, spec, p)
	}
	if err := t.Supports(engine.CanExec); err != nil {
		return nil, err
	}
	spec := t.Spec(workload.Ready()...)
	s.Into(&spec)
	c, err := bench.StartReady(ctx, t, spec)
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
		values, err := bench.MeasureIn(ctx, t, c, workload.Sequence(bench.DataDir, st.Step))
		if err != nil {
			return nil, err
		}
		maps.Copy(all, values)
	}
	return all, nil
}

// prepareCache brings the page cache into its state. What should be cold and is not is an *engine.UnsupportedError.
func (s storage) prepareCache(ctx context.Context, t bench.Trial) error {
	if err := s.cache.Prepare(ctx, t); err != nil || s.cache == bench.Warm || s.Dir == "" {
		return err
	}
	cached, size, err := cachedBytes(s.Dir)
	if err != nil {
		return err
	}
	const cold, advice = "a cold page cache", "measure with cache=warm"
	switch {
	case size == 0:
		return &engine.UnsupportedError{What: cold, Reason: "nothing of the files has come to the host: they are cached elsewhere", Advice: advice}
	case inCache(cached, size):
		return &engine.UnsupportedError{
			What: cold, Reason: fmt.Sprintf("%d of %d bytes of the files are still in it after it was dropped", cached, size), Advice: advice,
		}
	}
	return nil
}

// recordCache puts the state of the page cache on record, once it is sure. What cannot be seen is not called cold.
func (s storage) recordCache(t bench.Trial) {
	text := "warm: what is read was written right before"
	if s.cache == bench.Cold {
		text = "cold: right before reading the files were out of the host's page cache"
		if s.Dir == "" {
			text = "dropped on the host right before reading; whether the files were out of it cannot be seen on " + string(s.Volume)
		}
		if i := t.Info().Isolation; i != engine.NoIsolation && i != engine.SharedKernel {
			text += "; what the sandbox keeps is not known"
		}
	}
	t.Condition("page cache", text)
}

// spaceOf gives the space that a benchmark takes if its files have so many bytes.
func spaceOf(p bench.Params, bytes int64) bench.Space { return bench.Volume(p["on"]).Space(bytes) }
