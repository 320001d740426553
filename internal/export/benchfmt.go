package export

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/perf/benchfmt"

	"github.com/touchstone-bench/touchstone/internal/render/rows"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// benchfmtUnits are the last parts of unit names. benchstat knows sec and B, and scales all of them.
var benchfmtUnits = map[result.Unit]string{
	result.Seconds: "sec", result.Bytes: "B", result.BytesPerSecond: "B/s", result.BitsPerSecond: "bit/s", result.PerSecond: "op/s",
	result.FlopPerSecond: "FLOP/s", result.Ratio: "ratio", result.Score: "score", result.Joules: "J", result.Count: "items", result.ByteSeconds: "B*sec",
}

// goBenchTool is the tool of a run that was imported from this format. The name of its metric is the whole unit, such as "sec/op".
const goBenchTool = "gobench"

// writeBenchfmt writes the Go benchmark format (golang.org/design/14313-benchmark-format), which benchstat reads: a line for each trial that is ok, with its value of
// each metric, and comments for the other trials. The metric is a part of the unit, as in "CreateAndRun-sec". The target is a key of the configuration: benchstat has a table
// for each target, and compares targets with -col target.
func writeBenchfmt(w io.Writer, s *Source) error {
	out := benchfmt.NewWriter(w)
	values := map[*result.Trial][]benchfmt.Value{}
	directions := map[string]result.Direction{}
	runs := map[*result.Trial]*result.Run{}
	for _, c := range s.cells() {
		name, suffix := word(c.metric.Name), "-"+benchfmtUnits[c.metric.Unit]
		if c.run.Tool.String() == goBenchTool {
			suffix = ""
		}
		unit := name + suffix
		if first := directions[unit]; first != "" && first != c.metric.Better {
			unit = name + "-" + string(c.metric.Better) + suffix
		}
		if directions[unit] == "" {
			directions[unit] = c.metric.Better
			if err := out.Write(&benchfmt.UnitMetadata{OrigUnit: unit, UnitMetadataKey: benchfmt.UnitMetadataKey{Unit: unit, Key: "better"}, Value: string(c.metric.Better)}); err != nil {
				return err
			}
		}
		for _, p := range c.values.Points {
			values[p.Trial] = append(values[p.Trial], benchfmt.Value{Value: p.Value, Unit: unit})
			runs[p.Trial] = c.run
		}
	}
	order := map[string]int{}
	for i := range s.runs {
		order[s.runs[i].ID] = i
	}
	trials := slices.SortedFunc(maps.Keys(values), func(a, b *result.Trial) int {
		return cmp.Or(cmp.Compare(order[runs[a].ID], order[runs[b].ID]), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Seq, b.Seq))
	})
	for _, t := range trials {
		if err := out.Write(&benchfmt.Result{Config: s.config(runs[t], t.Target), Name: benchfmtName(t.Cell), Iters: 1, Values: values[t]}); err != nil {
			return err
		}
	}
	return s.comments(w)
}

// config is the configuration of a trial. The name of the run is a part of it only if there are several: benchstat compares nothing with different configurations.
func (s *Source) config(run *result.Run, target string) []benchfmt.Config {
	system := "" // of a run that another program measured
	if run.Host.IsKnown() {
		system = "linux"
	}
	pairs := [][2]string{{"goos", system}, {"goarch", run.Host.Arch}, {"cpu", run.Host.CPU}, {"target", target}}
	if len(s.runs) > 1 {
		pairs = append(pairs, [2]string{"run", run.ID})
	}
	var list []benchfmt.Config
	for _, p := range pairs {
		if text := strings.TrimSpace(rows.OneLine(p[1])); text != "" {
			list = append(list, benchfmt.Config{Key: p[0], Value: []byte(text), File: true})
		}
	}
	return list
}

// benchfmtName is the name of a benchmark with its parameters, "Operations.container.pause/repeats=5". The format requires a capital letter and no blank.
func benchfmtName(c result.Cell) benchfmt.Name {
	name := word(c.Benchmark)
	for i, r := range name {
		if i == 0 {
			name = string(unicode.ToUpper(r)) + name[len(string(r)):]
		}
	}
	for _, p := range strings.Fields(c.Params) {
		name += "/" + word(strings.ReplaceAll(p, "/", ":"))
	}
	return benchfmt.Name(name)
}

// word replaces the characters that would end a name.
func word(text string) string {
	return strings.ReplaceAll(rows.OneLine(text), " ", "_")
}

// comments are the trials without a value. Readers ignore a line that begins so.
func (s *Source) comments(w io.Writer) error {
	for i := range s.runs {
		for n := range s.runs[i].Trials {
			if t := &s.runs[i].Trials[n]; t.Status != result.OK && !t.Warmup {
				line := fmt.Sprintf("# no value: trial %d, %s: %s: %s", t.Seq, title(t.Cell), t.Status, t.Reason)
				if _, err := fmt.Fprintln(w, rows.OneLine(line)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
