package performance

import (
	"context"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload"
)

// fileParams are the parameters for the files of sysbench's fileio; mib is the quick size of each file.
func fileParams(mib string, more ...bench.Param) []bench.Param {
	return append([]bench.Param{
		{Name: "files", Help: "number of files", Quick: "16", Paper: "128", Check: bench.IntRange(1, 10_000)},
		{Name: "mib", Help: "size of each file in MiB", Quick: mib, Paper: "16", Check: bench.IntRange(1, 1<<20)},
	}, more...)
}

// requestsParam is the parameter for the number of requests of a random mode.
func requestsParam() bench.Param {
	return bench.Param{
		Name: "requests", Help: "number of requests at random positions; sequential modes pass through all files once",
		Quick: "10000", Paper: "10000", Check: bench.IntRange(100, 100_000_000),
	}
}

// fsyncParam is the parameter for the interval of syncs.
func fsyncParam() bench.Param {
	return bench.Param{
		Name: "fsync", Help: "number of writes between two syncs of all files; 0 syncs only once, at the end",
		Quick: "0", Paper: "100", Check: bench.IntRange(0, 1_000_000),
	}
}

// fileIO reads the parameters of the functions above, as far as the benchmark has them.
func fileIO(t bench.Trial) workload.FileIO {
	f := workload.FileIO{Files: t.Int("files"), MiB: t.Int("mib")}
	if t.Has("requests") {
		f.Requests = t.Int("requests")
	}
	if t.Has("fsync") {
		f.SyncEvery = t.Int("fsync")
	}
	return f
}

// fileBytes is the size of all files together.
func fileBytes(p bench.Params) int64 { return int64(p.Int("files")) * int64(p.Int("mib")) << 20 }

// fileBenchmark completes a benchmark that runs modes of sysbench's fileio.
func fileBenchmark(b bench.Benchmark, stages func(f workload.FileIO) []stage) bench.Benchmark {
	b.Image = bench.WorkloadImage
	return onStorage(b, fileBytes, func(ctx context.Context, t bench.Trial, on storage) (workload.Values, error) {
		values, err := on.measure(ctx, t, stages(fileIO(t))...)
		if err == nil && t.Has("cache") {
			on.recordCache(t)
		}
		return values, err
	})
}

func diskRead() bench.Benchmark {
	return fileBenchmark(bench.Benchmark{
		Name:    "performance.disk.read",
		Summary: "reading files with sysbench fileio, a fixed amount of work",
		Source:  "espe figure 4a and table 1; nishimura tables 3 and 4",
		Metrics: []result.Metric{
			bench.Seconds("SeqRead", "time to read all files from beginning to end, in blocks of 16 KiB (espe: FileSeqRead)"),
			bench.Seconds("RndRead", "time of the random reads of 16 KiB (espe: FileRndRead)"),
		},
		Params: fileParams("8", requestsParam(), bench.OnParam(bench.Bind, bench.Rootfs), bench.CacheParam(bench.Warm, bench.Warm)),
	}, func(f workload.FileIO) []stage {
		return []stage{
			{Program: f.Prepare()},
			{Program: f.Run(workload.SeqRead, "SeqRead"), reads: true},
			{Program: f.Run(workload.RndRead, "RndRead"), reads: true},
		}
	})
}

func diskWrite() bench.Benchmark {
	return fileBenchmark(bench.Benchmark{
		Name:    "performance.disk.write",
		Summary: "writing files with sysbench fileio, a fixed amount of work",
		Source:  "espe figure 4b and table 1; nishimura tables 3 and 4",
		Metrics: []result.Metric{
			bench.Seconds("SeqWrite", "time to write all new files from beginning to end, in blocks of 16 KiB, with the sync at the end (espe: FileSeqWrite)"),
			bench.Seconds("SeqRewrite", "time to write all existing files in the same way (espe: FileSeqRewrite)"),
			bench.Seconds("RndWrite", "time of the random writes of 16 KiB, with the sync at the end (espe: FileRndWrite)"),
		},
		Params: fileParams("8", requestsParam(), fsyncParam(), bench.OnParam(bench.Bind, bench.Rootfs)),
	}, func(f workload.FileIO) []stage {
		return []stage{
			{Program: f.Run(workload.SeqWrite, "SeqWrite")},
			{Program: f.Run(workload.SeqRewrite, "SeqRewrite")},
			{Program: f.Run(workload.RndWrite, "RndWrite")},
		}
	})
}

// diskMount has a metric for each volume. Volumes other than Bind may be unsupported by the target or too large for the host:
// they have no value, and a condition of the trial gives the reason.
func diskMount() bench.Benchmark {
	metrics := []result.Metric{
		bench.Seconds("Bind", "SeqWrite on a bind mount of the host's disk"),
		bench.Seconds("Rootfs", "SeqWrite on the container's own root file system"),
		bench.Seconds("BindTmpfs", "SeqWrite on a bind mount of a tmpfs of the host"),
		bench.Seconds("Tmpfs", "SeqWrite on a tmpfs that the runtime makes"),
	}
	volumes := []bench.Volume{bench.Bind, bench.Rootfs, bench.BindTmpfs, bench.Tmpfs} // of the metrics
	for i := range metrics[1:] {
		metrics[1+i].Optional = true
	}
	return bench.Benchmark{
		Name:    "performance.disk.mount",
		Summary: "sequential writing with sysbench fileio, for each way to mount the files",
		Source:  "nishimura section 4.5.2 and table 6",
		Metrics: metrics,
		Waits:   []bench.Medium{bench.Disk},
		Image:   bench.WorkloadImage,
		Params:  fileParams("6", fsyncParam()),
		// The trial checks the needs of each other volume when its turn comes.
		Needs: func(p bench.Params) bench.Needs { return bench.Bind.Needs(fileBytes(p)) },
		Run: func(ctx context.Context, t bench.Trial) error {
			f := fileIO(t)
			for i, volume := range volumes {
				metric := metrics[i].Name
				// The files on the volumes before this one exist until the trial ends.
				err := t.Require(volume.Needs(f.Bytes()))
				var m bench.Mounted
				if err == nil {
					m, err = volume.Mount(t)
				}
				if err != nil && (volume == bench.Bind || !engine.Unsupported(err)) {
					return err
				}
				if err != nil {
					t.Condition(metric+" on", bench.NotMeasured+err.Error())
					continue
				}
				t.Condition(metric+" on", m.On)
				values, err := storage{m, bench.Warm}.measure(ctx, t, stage{Program: f.Run(workload.SeqWrite, metric)})
				if err != nil {
					return err
				}
				t.Record(metric, values[metric])
			}
			return nil
		},
	}
}
