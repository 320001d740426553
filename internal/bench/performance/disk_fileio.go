package performance

import (
	"context"
	"maps"
	"slices"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// total is a metric of sysbench's total time.
func total(name, help string) result.Metric {
	return result.Metric{Name: name, Unit: result.Seconds, Better: result.Lower, Help: help}
}

// fileParams are the parameters of the files of sysbench's fileio, with the quick size of each.
func fileParams(mib string) []bench.Param {
	return []bench.Param{
		{Name: "files", Help: "how many files there are", Quick: "16", Paper: "128", Check: bench.IntRange(1, 10_000)},
		{Name: "mib", Help: "size of each file in MiB", Quick: mib, Paper: "16", Check: bench.IntRange(1, 1<<20)},
	}
}

// requestsParam is the parameter for how many requests a random mode does.
func requestsParam() bench.Param {
	return bench.Param{
		Name: "requests", Help: "how many requests at random positions; sequential ones go once through all files",
		Quick: "10000", Paper: "10000", Check: bench.IntRange(100, 100_000_000),
	}
}

// fsyncParam is the parameter for how often what is written is synced.
func fsyncParam() bench.Param {
	return bench.Param{
		Name: "fsync", Help: "after how many writes all files are synced; 0 is only once, at the end",
		Quick: "0", Paper: "100", Check: bench.IntRange(0, 1_000_000),
	}
}

// fileIO reads the parameters that a benchmark of sysbench's fileio has, by the functions above.
func fileIO(t bench.Trial, has ...string) (workload.FileIO, error) {
	var f workload.FileIO
	numbers := map[string]*int{"files": &f.Files, "mib": &f.MiB, "requests": &f.Requests, "fsync": &f.SyncEvery}
	maps.DeleteFunc(numbers, func(name string, _ *int) bool { return !slices.Contains(has, name) })
	err := bench.Numbers(t, numbers)
	return f, err
}

// fileSpace is how many bytes the files have.
func fileSpace(p bench.Params) int64 {
	var f workload.FileIO
	if bench.Numbers(p, map[string]*int{"files": &f.Files, "mib": &f.MiB}) != nil {
		return 0 // Resolve refuses them
	}
	return f.Bytes()
}

func diskRead() bench.Benchmark {
	metrics := []result.Metric{
		total("SeqRead", "time to read all files from beginning to end, in blocks of 16 KiB (espe: FileSeqRead)"),
		total("RndRead", "time of the random reads of 16 KiB (espe: FileRndRead)"),
	}
	return bench.Benchmark{
		Name:    "performance.disk.read",
		Summary: "reading files with sysbench fileio, a fixed amount of work",
		Source:  "espe figure 4a and table 1; nishimura tables 3 and 4",
		Metrics: metrics,
		Waits:   []bench.Medium{bench.Disk},
		Image:   bench.WorkloadImage,
		Params: append(fileParams("8"), requestsParam(), bench.OnParam(bench.Bind, bench.Rootfs),
			bench.CacheParam(bench.Warm, bench.Warm)),
		Space: func(p bench.Params) bench.Space { return spaceOf(p, fileSpace(p)) },
		Run: func(ctx context.Context, t bench.Trial) error {
			f, err := fileIO(t, "files", "mib", "requests")
			if err != nil {
				return err
			}
			on, err := storageOf(t, bench.Cache(t.Param("cache")))
			if err != nil {
				return err
			}
			values, err := on.measure(ctx, t,
				stage{Step: f.Prepare()},
				stage{Step: f.Run(workload.SeqRead, "SeqRead"), reads: true},
				stage{Step: f.Run(workload.RndRead, "RndRead"), reads: true},
			)
			if err != nil {
				return err
			}
			on.recordCache(t)
			return bench.RecordAll(t, values, metrics)
		},
	}
}

func diskWrite() bench.Benchmark {
	metrics := []result.Metric{
		total("SeqWrite", "time to write all files anew from beginning to end, in blocks of 16 KiB, with the sync at the end (espe: FileSeqWrite)"),
		total("SeqRewrite", "time of the same over what is there (espe: FileSeqRewrite)"),
		total("RndWrite", "time of the random writes of 16 KiB, with the sync at the end (espe: FileRndWrite)"),
	}
	return bench.Benchmark{
		Name:    "performance.disk.write",
		Summary: "writing files with sysbench fileio, a fixed amount of work",
		Source:  "espe figure 4b and table 1; nishimura tables 3 and 4",
		Metrics: metrics,
		Waits:   []bench.Medium{bench.Disk},
		Image:   bench.WorkloadImage,
		Params:  append(fileParams("8"), requestsParam(), fsyncParam(), bench.OnParam(bench.Bind, bench.Rootfs)),
		Space:   func(p bench.Params) bench.Space { return spaceOf(p, fileSpace(p)) },
		Run: func(ctx context.Context, t bench.Trial) error {
			f, err := fileIO(t, "files", "mib", "requests", "fsync")
			if err != nil {
				return err
			}
			on, err := storageOf(t, bench.Warm)
			if err != nil {
				return err
			}
			values, err := on.measure(ctx, t,
				stage{Step: f.Run(workload.SeqWrite, "SeqWrite")},
				stage{Step: f.Run(workload.SeqRewrite, "SeqRewrite")},
				stage{Step: f.Run(workload.RndWrite, "RndWrite")},
			)
			if err != nil {
				return err
			}
			return bench.RecordAll(t, values, metrics)
		},
	}
}

// diskMount has a metric for each volume. But for Bind, what a target does not have, or the host no room for, has no value, and
// the trial says why.
func diskMount() bench.Benchmark {
	ways := []struct {
		metric string
		volume bench.Volume
	}{
		{"Bind", bench.Bind},
		{"Rootfs", bench.Rootfs},
		{"BindTmpfs", bench.BindTmpfs},
		{"Tmpfs", bench.Tmpfs},
	}
	metrics := []result.Metric{
		total("Bind", "SeqWrite on a bind mount of the host's disk"),
		total("Rootfs", "SeqWrite on the container's own root file system"),
		total("BindTmpfs", "SeqWrite on a bind mount of a tmpfs of the host"),
		total("Tmpfs", "SeqWrite on a tmpfs that the runtime makes"),
	}
	for i := range metrics[1:] {
		metrics[1+i].Optional = true
	}
	return bench.Benchmark{
		Name:    "performance.disk.mount",
		Summary: "sequential writing with sysbench fileio by the way in which the files are mounted",
		Source:  "nishimura section 4.5.2 and table 6",
		Metrics: metrics,
		Waits:   []bench.Medium{bench.Disk},
		Image:   bench.WorkloadImage,
		Params:  append(fileParams("6"), fsyncParam()),
		// The other ways look for theirs when it is their turn.
		Space: func(p bench.Params) bench.Space { return bench.Bind.Space(fileSpace(p)) },
		Run: func(ctx context.Context, t bench.Trial) error {
			f, err := fileIO(t, "files", "mib", "fsync")
			if err != nil {
				return err
			}
			for _, way := range ways {
				m, err := way.volume.Mount(t)
				if err == nil && way.volume != bench.Bind {
					// What the ways before have written is there until the trial ends.
					err = t.Room(way.volume.Space(f.Bytes()))
				}
				if err != nil {
					if way.volume == bench.Bind || !engine.Unsupported(err) {
						return err
					}
					t.Condition(way.metric+" on", bench.NotMeasured+err.Error())
					continue
				}
				t.Condition(way.metric+" on", m.On)
				values, err := storage{m, bench.Warm}.measure(ctx, t, stage{Step: f.Run(workload.SeqWrite, way.metric)})
				if err != nil {
					return err
				}
				t.Record(way.metric, values[way.metric])
			}
			return nil
		},
	}
}
