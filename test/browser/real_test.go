package browser

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/touchstone-bench/touchstone/internal/cli"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
	"github.com/touchstone-bench/touchstone/internal/store"
)

const lifecycle = "operations.container.lifecycle"

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"touchstone": func() { os.Exit(cli.Main(os.Args[1:])) }})
}

// TestRealRun: the page of a real run and its results file have the same factors, medians and samples.
func TestRealRun(t *testing.T) {
	ctx := tab(t)
	folder := t.TempDir()
	targets := []string{"native"}
	for _, runtime := range []string{"runc", "crun"} {
		if _, err := exec.LookPath(runtime); err == nil && os.Geteuid() == 0 {
			targets = append(targets, "oci/"+runtime)
		}
	}
	argv := []string{
		"benchmark", "--allow-concurrent", "--targets", strings.Join(targets, ","), "--filter", lifecycle, "--runs", strconv.Itoa(stats.MinSamples), "--dir", folder,
	}
	if out, err := exec.CommandContext(t.Context(), "touchstone", argv...).CombinedOutput(); err != nil {
		t.Fatalf("touchstone %q: %v\n%s", argv, err, out)
	}
	db, err := store.Open(t.Context(), filepath.Join(folder, "touchstone.db"))
	must.Do(t, err)
	run, err := db.Run(t.Context(), "latest")
	must.Do(t, err, db.Close())
	if messages := errorsOf(t, ctx, "file://"+filepath.Join(folder, "report.html")); len(messages) > 0 {
		t.Errorf("the browser reports %q", messages)
	}
	if count := compareFactors(t, ctx, run); count < 5*len(targets)*(len(targets)-1) {
		t.Errorf("the test has compared %d factors of %d targets", count, len(targets))
	}
	if count := compareMedians(t, ctx, &run); count < 5*len(targets) {
		t.Errorf("the test has compared %d medians of %d targets", count, len(targets))
	}
	if count := compareFigures(t, ctx, &run); count < 5*len(targets)*stats.MinSamples {
		t.Errorf("the test has compared %d samples of %d targets", count, len(targets))
	}
}

// samplesOf returns the samples of a metric on a target as the results file has them, with their blocks.
func samplesOf(run *result.Run, metric, target string) (values []float64, blocks []int) {
	for i := range run.Trials {
		trial := &run.Trials[i]
		if trial.Status != result.OK || trial.Warmup || trial.Target != target {
			continue
		}
		for _, s := range trial.Samples {
			if s.Metric == metric {
				values, blocks = append(values, s.Value), append(blocks, trial.Block)
			}
		}
	}
	return values, blocks
}

// compareMedians compares the values that the matrix shows with medians of samples. It returns the number of values.
func compareMedians(t *testing.T, ctx context.Context, run *result.Run) int {
	t.Helper()
	choose(t, ctx, "show", "value")
	texts := evaluate[[][]string](t, ctx, cells)
	targets := evaluate[[]string](t, ctx, `Array.from(document.querySelectorAll(".matrix thead th")).map((head) => head.textContent)`)
	metrics := evaluate[[]string](t, ctx, `Array.from(document.querySelectorAll(".matrix tr[data-row]:not([hidden]) th")).map((head) => head.lastChild.textContent)`)
	count := 0
	for i, name := range metrics {
		metric := slices.IndexFunc(run.Bench[0].Metrics, func(m result.Metric) bool { return m.Name == name })
		if metric < 0 {
			t.Errorf("the matrix has the metric %q, which the results file lacks", name)
			continue
		}
		for c, target := range targets {
			values, _ := samplesOf(run, name, target)
			if values == nil {
				continue
			}
			count++
			median := stats.Median(values)
			scale := quantity.ScaleFor(median, run.Bench[0].Metrics[metric].Unit)
			number, rest, _ := strings.Cut(texts[i][c], " ")
			_, decimals, _ := strings.Cut(number, ".")
			if want := strconv.FormatFloat(median/scale.Unit, 'f', len(decimals), 64); number != want || !strings.HasSuffix(rest, scale.Name) {
				t.Errorf("%s on %s is %q, and the median of the results file is %s %s", name, target, texts[i][c], want, scale.Name)
			}
		}
	}
	return count
}

// compareFigures compares the samples of the figures with the results file. It returns the number of samples.
func compareFigures(t *testing.T, ctx context.Context, run *result.Run) int {
	t.Helper()
	names := evaluate[[]string](t, ctx, `Array.from(document.querySelectorAll("figure")).map((figure) =>
		figure.querySelector("[aria-label^='View of']") ? figure.querySelector("figcaption b").textContent : "")`)
	count := 0
	for i, name := range names {
		if name == "" {
			continue
		}
		rows, err := csv.NewReader(strings.NewReader(download(t, ctx, i, "CSV"))).ReadAll()
		must.Do(t, err)
		samples := map[string][]string{}
		for _, row := range rows[1:] {
			value, err := strconv.ParseFloat(row[slices.Index(rows[0], "value")], 64)
			must.Do(t, err)
			target := row[slices.Index(rows[0], "target")]
			samples[target] = append(samples[target], fmt.Sprintf("%s: %v", row[slices.Index(rows[0], "order")], value))
		}
		for target, list := range samples {
			var want []string
			values, blocks := samplesOf(run, name, target)
			for n, value := range values {
				want = append(want, fmt.Sprintf("%d: %v", blocks[n], value))
			}
			if !slices.Equal(list, want) {
				t.Errorf("the figure of %s on %s has the samples %q, want %q", name, target, list, want)
			}
			count += len(want)
		}
	}
	return count
}
