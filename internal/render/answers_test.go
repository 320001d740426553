package render_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/answer/ab"
	"github.com/touchstone-bench/touchstone/internal/answer/advise"
	"github.com/touchstone-bench/touchstone/internal/answer/compare"
	answercounts "github.com/touchstone-bench/touchstone/internal/answer/counts"
	answerexplain "github.com/touchstone-bench/touchstone/internal/answer/explain"
	answerfleet "github.com/touchstone-bench/touchstone/internal/answer/fleet"
	answerhistory "github.com/touchstone-bench/touchstone/internal/answer/history"
	"github.com/touchstone-bench/touchstone/internal/answer/paper"
	"github.com/touchstone-bench/touchstone/internal/answer/runs"
	"github.com/touchstone-bench/touchstone/internal/answer/selfcheck"
	"github.com/touchstone-bench/touchstone/internal/answer/study"
	"github.com/touchstone-bench/touchstone/internal/document"
	"github.com/touchstone-bench/touchstone/internal/must"
	publications "github.com/touchstone-bench/touchstone/internal/paper"
	"github.com/touchstone-bench/touchstone/internal/render"
	"github.com/touchstone-bench/touchstone/internal/render/chart"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/advice"
	"github.com/touchstone-bench/touchstone/internal/report/counts"
	"github.com/touchstone-bench/touchstone/internal/report/explain"
	"github.com/touchstone-bench/touchstone/internal/report/fleet"
	"github.com/touchstone-bench/touchstone/internal/report/history"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	records "github.com/touchstone-bench/touchstone/internal/report/selfcheck"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/stats"
)

// answers are an answer of each kind, with hostile text.
func answers(t *testing.T) []*document.Document {
	t.Helper()
	run := reporttest.Small()
	run.Name += reporttest.Hostile
	run.Host.CPU += reporttest.Hostile
	run.Caveats = []string{reporttest.Hostile}
	second := reporttest.Small()
	second.ID = "other"
	single, joint := report.New([]result.Run{run}, analysis.Options{}), report.New([]result.Run{run, second}, analysis.Options{})
	builds := reporttest.Builds()
	builds.Unfinished, builds.B.Version, builds.Values[0].Reason = reporttest.Hostile, reporttest.Hostile, reporttest.Hostile
	builds.Values[0].Answer, builds.Values[0].After = stats.Inconclusive, 0
	b := history.NewBuilder("Create", func(result.Cell) bool { return true })
	for _, day := range reporttest.Days(func(_ int, r *result.Run) { r.Targets[0].Version = reporttest.Hostile }) {
		b.Add(day)
	}
	series := b.History(reporttest.Hostile)
	record := records.Record{
		Kind: records.DocumentKind, Version: records.SchemaVersion, Host: run.Host, Target: "oci/crun", Runtime: reporttest.Hostile, Runs: []string{"one"},
		Check: records.Check{
			Delays: []records.Found{{Verb: "create", Kind: records.Sleep, Delay: 0.001, Runs: 1}}, Smallest: []records.Smallest{{Verb: "create", Kind: records.Sleep}},
			Limits: []records.Limit{{Metric: "Create", Minutes: 1}}, Operations: []records.Overhead{{Verb: "create", Median: 0.02, Region: 1e-8}},
		},
	}
	nodes := fleet.NewBuilder(analysis.Options{})
	for _, run := range reporttest.Cluster() {
		run.Name += reporttest.Hostile
		run.Host.Node.Name += reporttest.Hostile
		run.Host.Node.Kind += reporttest.Hostile
		run.Host.Kernel += reporttest.Hostile
		must.Do(t, nodes.Add(&run))
	}
	cluster, err := nodes.Report()
	must.Do(t, err)
	use, err := advice.Parse([]string{"start-up=1"})
	must.Do(t, err)
	run.Targets[1].Binary = reporttest.Hostile
	ranking := advice.New([]result.Run{run}, analysis.New([]result.Run{run}, analysis.Options{}), advice.Options{Profile: use, Folder: reporttest.Hostile})
	publication, err := publications.Load("wang")
	must.Do(t, err)
	papers, err := publications.All()
	must.Do(t, err)
	traced := reporttest.Traced()
	expected := counts.Expect(counts.OriginOf(&traced, "oci/runc"), counts.Collect([]result.Run{traced}))
	expected.Runtime, expected.Kernel = reporttest.Hostile, reporttest.Hostile
	for i := range traced.Traces {
		for n := range traced.Traces[i].Counts {
			traced.Traces[i].Counts[n].Calls = map[string]int64{"mount": 99, "fsync": 1}
		}
	}
	deviation := expected.Compare(reporttest.Hostile, counts.OriginOf(&traced, "oci/runc"), counts.Collect([]result.Run{traced}))
	deviation.Missing = []counts.Missing{{Key: analysis.Key{Name: "operations.container.exec"}, Reason: reporttest.Hostile}}
	explained := reporttest.Explained()
	explained.Traces[1].Counts[0].Component, explained.Traces[1].Counts[0].Programs[reporttest.Hostile] = reporttest.Hostile, 1
	causes, err := explain.New(&explained, "native", "oci/runc", explain.Options{Matches: func(string) bool { return true }})
	must.Do(t, err)
	return []*document.Document{
		answercounts.Document(deviation),
		answerhistory.Document(&series), selfcheck.Document(&record), selfcheck.Stored([]records.Record{record}), paper.Document(publication), runs.Document(&single), runs.Document(&joint), study.Document(reporttest.Study(), []string{"report-study.html"}), compare.Document(reporttest.Sides()), compare.Document(reporttest.SingleSides()),
		answerfleet.Document(cluster, answerfleet.NoPages), ab.Document(builds), advise.Document(ranking), answerexplain.Document(causes), paper.Listing(paper.Rows(papers)),
	}
}

// TestEveryAnswerHasEveryFormat holds that a format shows an answer, or names its kind in an error if the answer has nothing for it.
//
// Invariant answer-formats: Every answer has every format, or an error that names its kind; a format knows no answer.
func TestEveryAnswerHasEveryFormat(t *testing.T) {
	var kinds []string
	for _, d := range answers(t) {
		if d.Whole == "" {
			t.Errorf("a %s does not name the whole answer", d.Kind)
		}
		kinds = append(kinds, d.Kind)
		for _, format := range render.Formats() {
			var b strings.Builder
			err := format.Write(&b, d, render.Options{})
			hasFigures := len(chart.Charts(d)) > 0
			has, special := map[string]bool{
				"json": d.Data != nil, "junit": d.Checks != nil, "csv": d.Records != nil, "tsv": d.Records != nil, "pgfplots": hasFigures, "svg": hasFigures, "vega-lite": hasFigures,
			}[format.Name]
			switch {
			case special && !has:
				if err == nil || !strings.Contains(err.Error(), d.Kind) {
					t.Errorf("%s as %s: the error is %v", d.Kind, format.Name, err)
				}
			case err != nil || b.Len() == 0:
				t.Errorf("%s as %s: %d bytes, %v", d.Kind, format.Name, b.Len(), err)
			case format.Name != "json" && strings.Contains(b.String(), "\x1b"):
				t.Errorf("%s as %s: an escape of a terminal passes:\n%s", d.Kind, format.Name, b.String())
			}
		}
	}
	slices.Sort(kinds)
	if kinds = slices.Compact(kinds); !slices.Equal(kinds, []string{"ab", "advice", "comparison", "counts", "explanation", "fleet", "history", "paper", "report", "reproduction", "selfcheck"}) {
		t.Errorf("the kinds are %v", kinds)
	}
}
