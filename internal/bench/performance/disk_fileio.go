package performance

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/workload"
	"github.com/touchstone-bench/touchstone/internal/workload/programs"
)

// fileBenchmark completes a benchmark that runs modes of sysbench's fileio.
func fileBenchmark(b bench.Benchmark, stages func(p bench.Params, f programs.FileIO) []stage) bench.Benchmark {
	b.Image = bench.WorkloadImage
	return onStorage(b, fileBytes, func(ctx context.Context, t bench.Trial, files storage) (workload.Values, error) {
		values, err := files.measure(ctx, t, stages(t.Params, fileIO(t))...)
		if err == nil && t.Has("cache") {
			files.recordCache(t)
		}
		return values, err
	})
}

// fileParams are the parameters for the files of sysbench's fileio; mib is the quick size of each file.
func fileParams(mib string, params ...bench.Param) []bench.Param {
	return append([]bench.Param{
		{Name: "files", Help: "number of files", Quick: "16", Paper: "128", Check: bench.IntRange(1, 10_000)},
		{Name: "mib", Help: "size of each file in MiB", Quick: mib, Paper: "16", Check: bench.IntRange(1, 1<<20)},
	}, params...)
}

// requestsParam is the parameter for the number of requests of a random mode.
func requestsParam() bench.Param {
	return bench.Param{
		Name: "requests", Help: "number of requests at random positions; sequential modes pass through all files once",
		Quick: "10000", Paper: "10000", Check: bench.IntRange(100, 100_000_000),
	}
}

// The values of the parameter fsync. Two of them have a number of writes after the sign.
const (
	syncEnd    = "end"
	syncNever  = "never"
	syncEvery  = "every="
	syncRandom = "random="
)

// fsyncParam is the parameter for the syncs, with the value random=N for a benchmark that also writes at random positions.
func fsyncParam(paper string, random bool) bench.Param {
	help, forms := "syncs of all files: end once, at the end; every=N also after every N writes; never at no time", "end, every=N or never"
	if random {
		help += "; random=N as every=N at random positions and as end in sequence, as sysbench 0.4 did"
		forms = "end, every=N, random=N or never"
	}
	return bench.Param{
		Name: "fsync", Help: help, Quick: syncEnd, Paper: paper,
		Check: func(v string) error {
			if _, ok := syncsOf(v); !ok || !random && strings.HasPrefix(v, syncRandom) {
				return fmt.Errorf("must be %s, with a whole number N from 1 to %d", forms, maxSyncEvery)
			}
			return nil
		},
	}
}

const maxSyncEvery = 1_000_000

// syncsOf reads a value of the parameter fsync.
func syncsOf(v string) (s programs.Syncs, ok bool) {
	switch v {
	case syncEnd:
		return programs.Syncs{End: true}, true
	case syncNever:
		return programs.Syncs{}, true
	}
	number, hasPeriod := strings.CutPrefix(v, syncEvery)
	if !hasPeriod {
		if number, s.Random = strings.CutPrefix(v, syncRandom); !s.Random {
			return programs.Syncs{}, false
		}
	}
	if bench.IntRange(1, maxSyncEvery)(number) != nil {
		return programs.Syncs{}, false
	}
	n, err := strconv.Atoi(number)
	s.Every, s.End = n, true
	return s, err == nil
}

// recordSyncs records the syncs of all modes.
func recordSyncs(t bench.Trial, s programs.Syncs) {
	text := "none"
	switch {
	case s.Random:
		text = fmt.Sprintf("all files at the end, and at random positions also after every %d writes", s.Every)
	case s.Every > 0:
		text = fmt.Sprintf("all files after every %d writes, and at the end", s.Every)
	case s.End:
		text = "all files once, at the end"
	}
	t.Condition("syncs", text)
}

// The values of the parameter existing.
const (
	writtenFiles = "written"
	emptyFiles   = "empty"
)

// existingParam is the parameter for the content of the files that exist before SeqRewrite and RndWrite.
//
// The commands of TouchStone have no prepare, and each ran in a container of its own. But its image must have held the files:
// sysbench 0.4 fails to read an empty file, and espe's times fit 131072 and 10000 reads of 16 KiB. Nishimura section 4.5 says so,
// too.
func existingParam() bench.Param {
	return bench.Param{
		Name: "existing", Help: "files that SeqRewrite and RndWrite write to: written by the mode before, or empty: of the same size without data, like the new files of sysbench 0.4 without its prepare",
		Quick: writtenFiles, Paper: writtenFiles, Check: bench.OneOf(writtenFiles, emptyFiles),
	}
}

// fileIO reads the parameters of the functions above, as far as the benchmark has them, and records the syncs.
func fileIO(t bench.Trial) programs.FileIO {
	f := programs.FileIO{Files: t.Int("files"), MiB: t.Int("mib")}
	if t.Has("requests") {
		f.Requests = t.Int("requests")
	}
	if t.Has("fsync") {
		f.Syncs, _ = syncsOf(t.Param("fsync")) // the check has read it
		recordSyncs(t, f.Syncs)
	}
	return f
}

// fileBytes is the size of all files together.
func fileBytes(p bench.Params) int64 { return int64(p.Int("files")) * int64(p.Int("mib")) << 20 }
