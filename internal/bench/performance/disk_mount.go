package performance

import (
	"context"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

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
		Params:  fileParams("6", fsyncParam(syncEnd, false)),
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
				values, err := storage{m, bench.Warm}.measure(ctx, t, stage{Program: f.Run(programs.SeqWrite, metric)})
				if err != nil {
					return err
				}
				t.Record(metric, values[metric])
			}
			return nil
		},
	}
}
