package runs_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/answer/runs"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/render/html"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// mostBytes is the largest page of a run of 10⁶ samples.
const mostBytes = 5_000_000

func pageOf(t testing.TB, run result.Run) string {
	t.Helper()
	return pageOfReport(t, single(run))
}

func pageOfRuns(t testing.TB, list []result.Run, opts analysis.Options) string {
	t.Helper()
	return pageOfReport(t, report.New(list, opts))
}

func pageOfReport(t testing.TB, r report.Report) string {
	t.Helper()
	var b strings.Builder
	must.Do(t, html.Write(&b, runs.Document(&r)))
	return b.String()
}

// Invariant same-report: A report of the same run is always the same.
func TestGoldenPages(t *testing.T) {
	machine, board := reporttest.Small(), reporttest.Small()
	board.ID = "board"
	board.Host.Hostname, board.Host.Arch = "board", "arm64"
	golden(t, "small.html", pageOf(t, machine))
	golden(t, "machines.html", pageOfRuns(t, []result.Run{machine, board}, analysis.Options{AcrossMachines: true}))
}

// The pages have what the goldens of small runs lack.
func TestPages(t *testing.T) {
	machines := reporttest.Machines()
	emulated := reporttest.Sample()
	emulated.Host.Arch, emulated.Host.CPU, emulated.Host.Virtual = "amd64", "QEMU TCG CPU version 2.5+", "qemu (QEMU Standard PC)"
	pages := map[string]string{}
	for name, c := range map[string]struct {
		report   report.Report
		patterns []string
		not      []string
	}{
		"sample": {reportOf("sample"), []string{
			`Not available: youki is not on PATH`,
			`1 of 10 failed`,
			`2 of 5 timed out`,
			`Values in two groups`,
			`\x{a0}×, more °</span>`,
			`skipped: pause: a bare process has no container to freeze`,
			`number of the container, in order of start`,
		}, []string{">p99<", "Worst case"}},
		"engines": {reportOf("engines"), []string{
			`<figcaption>medians of the differences`,
			`not shown to differ from 0`,
			`class="c[1-9] unclear"`,
			`<td>−[0-9.]+ ± [0-9.]+ ms<small class="faint">−[0-9.]+ to [−0-9.]+ ms</small>`,
			`class="zero"`,
			`<title>runtime, shim and engine [0-9]`,
			`no value of oci/youki to separate the layers`,
			`aria-label="oci/crun: [0-9.]+ ms; process [0-9.]+ ± [0-9.]+ ms; runtime [0-9.]+ ± [0-9.]+ ms"`,
			`<title>RunPodSandbox [0-9.]+ ms</title>`,
			`CPU time by component`,
			`Memory by component`,
			`no ratio where native has no value: RunPodSandbox, CreateContainer`,
			`on 9 of 21 targets`,
			`not recorded on native, oci/runc, oci/crun`,
			`<th scope="col">crio/crun</th>`,
			`<dt>21 targets</dt><dd>10 ok each`,
			`crio/runsc@platform=ptrace, crio/runsc@platform=systrap \(runsc blocks`,
			`containerd/runc, containerd/crun, containerd/youki`,
		}, nil},
		"machines": {reportOf("machines with verdicts"), []string{
			`<p>Absolute values are the measurements of each machine. They are not compared across machines: no ratio, no verdict, no common axis`,
			`</h1>\s*<p class="alarm" role="note"><span class="hidden">Warning: </span>The CPU of some of these machines is emulated \(lab-v2: emulated by qemu \(QEMU Standard PC\)\)\. .* because of --emulated-verdicts\.`,
			`<dt>lab-v2</dt><dd>run [^<]*; emulated`,
			`<dt>Cgroup</dt><dd>hybrid \(server #1\); v2 \(`,
			`Opposite differences:</p>\s*<ul class="items">\s*<li>oci/crun: Triad costs 0[.0-9]+\x{a0}×\x{a0}native on server #1`,
			`<li class="alarm"><span class="hidden">Warning: </span>operations.container.lifecycle: oci/runsc@platform=systrap does not hold its time limit on server #1 \(`,
			`<tr class="group"><th scope="rowgroup" colspan="5"><a href="#benchmark/operations.container.lifecycle">operations.container.lifecycle</a></th></tr>`,
			`<path class="side c1" d="M`,
			`<path class="side c1" d="M`,
			`<path class="side full c3`,
			`aria-label="CreateAndRun; cost against native of the same run, lower is better; oci/runc: on server #1: [0-9.]+.×, slower, `,
			`compared with oci/runc, because the runs of this report have no other baseline in common here`,
			`The conditions differ: cpus 0-1 \(oci/crun\) \(server #1, lab-v2\)`,
			`performance.disk.blog time=5s</th><td>not in this run</td><td>not in this run</td>`,
			`<h3>Warnings of lab-v2</h3>\s*<ul class="items">\s*<li>The CPU is emulated`,
			`not available</small><small class="faint">runsc does not know this CPU; build it for arm64`,
		}, []string{"absolute, on lab-v2", "absolute, on raspberrypi", "Across runs:"}},
		"across": {report.New(machines[:2], analysis.Options{AcrossMachines: true}), []string{
			`Across runs: the typical cost by CreateAndRun against server`,
		}, nil},
		"suite": {reportOf("suite"), []string{
			`(?s)<h2>Findings</h2>\s*<ul class="items">\s*<li class="alarm"><span class="hidden">Warning: </span>limits.cpu.time quota=0.1: containerd/runsc does not hold its CPU limit: CPULimitUse is 9[0-9]+\x{a0}%, above the bound of 110\x{a0}% \(median of 10 trials\).</li>`,
			`<td class="[a-z0-9 ]*breach"[^>]*>.*<small class="alarm"><span class="hidden">Warning: </span>does not hold its CPU limit</small></td>`,
			`<p class="alarm" role="note"><span class="hidden">Warning: </span>containerd/runsc does not hold its memory limit: Kill is`,
			`does not hold its CPU limit: above 110\x{a0}%</small>`,
			`<a href="#benchmark/limits[^"]*">cpu.time</a> <b class="alarm"`,
			`<input type="checkbox" name="all">all metrics`,
			`<section id="component/performance.cpu">\s*<details>\s*<summary><h3>performance.cpu</h3> <span>time, sevenzip, dav1d, linpack</span></summary>`,
			`<li><a href="#component/performance.cpu">cpu</a><ol>\s*<li><a href="#benchmark/performance.cpu.time-events-1000">time</a></li>`,
			`<li><a href="#component/performance.cpu">cpu</a><ol>\s*<li><a href="#benchmark/performance.cpu.time-events-1000">time</a></li>`,
			`<li><a href="#benchmark/[^"]+">throughput cache=cold volume=tmpfs</a></li>`,
			`Conditions: [^<]*cpus 0-1`,
			`path veth between two network namespaces \(native\), bridge, veth \(`,
			`(?s)id="unmeasured".*performance.network.netperf with=host, performance.network.netperf with=container[^<]* – bridged network: this host&#39;s kernel has no veth; load the module veth`,
			`<dt>Image</dt><dd>workload: sha256:5e2c[0-9a-f]+, 62.0 MiB</dd>`,
			`<dt>Image</dt><dd>mine.tar: not available: [a-z ]* no such file &lt;here&gt;</dd>`,
			`>[0-9]+ %</text>`,
			`>[0-9.]+ Gbit/s</text>`,
			`the page cache of the whole machine was dropped 70 times`,
			`(?s)<h2>limits</h2>\s*<section id="benchmark/limits`,
		}, nil},
		"stated": {reportOf("stated"), []string{
			`<h4>In words</h4>\s*<dl class="rows">\s*<div><dt>native</dt><dd>runs</dd></div>`,
			`<dt>oci/runc</dt><dd>runs, or in other trials: exec format error<small>words: exec /init: exec format error</small>`,
		}, []string{"<dt>outcome</dt>"}},
		"worded": {reportOf("worded"), []string{
			`<dt>[^<]*</dt><dd>runs</dd>`,
		}, nil},
		"load": {reportOf("load"), []string{
			`; no knee shown</dd>`,
			`; knee at 35 \(`,
			`A drift of the host`,
			`Trend of StartLatency per running container`,
		}, nil},
		"latencies": {reportOf("latencies"), []string{
			`Worst case of Exec</h4>`,
			`the largest of 30000 samples; one in 10⁵ above `,
			`no bound, by the test of drift: `,
			`peaks over threshold`,
		}, nil},
		"rarer": {reporttest.PartlyBounded(), []string{
			`one in 10⁵ above [^/]*; rarer values: no bound, by the test of tail weight: ` + regexp.QuoteMeta(reporttest.RarerRefused),
		}, nil},
		"emulated": {single(emulated), []string{
			`</h1>\s*<p class="alarm" role="note"><span class="hidden">Warning: </span>The CPU of this machine is emulated \(bench1: emulated by qemu`,
			`&#34;emulated&#34; stands in the place of a verdict`,
			`<td>[^/]*[0-9.]+\x{a0}×</small>\s*<small class="faint">emulated`,
			`of speed: see the note on the emulated CPU at the top\.`,
			`>[0-9.]+\x{a0}×, more`,
			`>emulated</small>`,
		}, []string{"missed</small", "No difference between targets is shown", "The run has no comparisons"}},
	} {
		page := pageOfReport(t, c.report)
		pages[name] = page
		for _, want := range c.patterns {
			if !regexp.MustCompile(want).MatchString(page) {
				t.Errorf("%s: nothing in the page matches %q", name, want)
			}
		}
		for _, text := range c.not {
			if strings.Contains(page, text) {
				t.Errorf("%s: the page has %q", name, text)
			}
		}
	}
	if n := len(pages["sample"]); n > 1<<20 {
		t.Errorf("the page of the sample has %d bytes, want 1 MiB at most", n)
	}
	if n := barsStayInside(t, pages["engines"]); n < 300 {
		t.Errorf("the bars have %d pieces, want some for each target", n)
	}
	// Metrics without a ratio, and benchmarks of one run alone, are not in the overview.
	for name, texts := range map[string][]string{"engines": {"RunPodSandbox", "PSSDaemon", "HostCPUShim"}, "machines": {"blog"}} {
		for _, text := range texts {
			if strings.Contains(sectionOf(pages[name], "overview"), text) {
				t.Errorf("the overview of %s has %s", name, text)
			}
		}
	}
	// Benchmarks of a long suite are below the names of components. An unmeasured one is in one place.
	if n := strings.Count(pages["suite"], `<section id="component/`); n != 6 {
		t.Errorf("there are %d components, want 6", n)
	}
	if strings.Contains(sectionOf(pages["suite"], "missing"), "netperf") {
		t.Error("an unmeasured benchmark is among the trials without a number too")
	}
	if fits, knees := strings.Count(pages["load"], `class="fit"`), strings.Count(pages["load"], `class="knee"`); fits != len(reporttest.UnderLoad().Targets) || knees != 1 {
		t.Errorf("there are %d fitted lines and %d knees, want a line for each target and a knee", fits, knees)
	}
	// No word of speed stands beside a ratio of an emulated CPU.
	numbers, _, _ := strings.Cut(pages["emulated"], `<section id="legend">`) // which explains factors
	for _, text := range []string{"× slower", "× faster", "×\u00a0slower", "×\u00a0faster", "×, slower", "×, faster"} {
		if strings.Contains(numbers, text) {
			t.Errorf("the page of an emulated CPU has %q", text)
		}
	}
}

// sectionOf is the part of a page from a section to the next one of the same level.
func sectionOf(page, id string) string {
	_, rest, _ := strings.Cut(page, `<section id="`+id+`"`)
	head, rest, _ := strings.Cut(rest, "</h2>")
	part, _, _ := strings.Cut(rest, "<h2>")
	return head + part
}

// No page has a value that is no number, or draws a bar outside of its place.
func TestPagesAreWhole(t *testing.T) {
	if testing.Short() {
		t.Skip("it has many reports")
	}
	partner := reporttest.Small()
	pages := map[string]string{}
	for _, name := range []string{"machines with verdicts", "sample", "engines", "suite", "worded"} {
		pages[name] = pageOfReport(t, reportOf(name))
	}
	for name, run := range reporttest.Odd() {
		pages[name] = pageOf(t, run)
		if !strings.Contains(name, "layers") { // a joint report has none
			run.ID = "odd"
			pages[name+" beside another"] = pageOfRuns(t, []result.Run{run, partner}, analysis.Options{AcrossMachines: true})
		}
	}
	for name, page := range pages {
		if found := notNumbers.FindString(page); found != "" {
			index := strings.Index(page, found)
			t.Errorf("%s: the page has %q: %s", name, found, page[max(0, index-100):min(len(page), index+100)])
		}
		barsStayInside(t, page)
		for _, section := range []string{`id="findings"`, `id="method"`, "</html>"} {
			if !strings.Contains(page, section) {
				t.Errorf("%s: the page lacks %s", name, section)
			}
		}
		if starts, ends := strings.Count(page, "<details"), strings.Count(page, "</details>"); starts != ends {
			t.Errorf("%s: %d folds begin and %d end", name, starts, ends)
		}
	}
}

// rects matches the pieces of bars.
var rects = regexp.MustCompile(`<rect class="(?:c\d|step)[^"]*" x="([^"]*)" y="([^"]*)" width="([^"]*)" height="([^"]*)"`)

// barsStayInside gives the number of pieces of bars.
func barsStayInside(t *testing.T, page string) int {
	t.Helper()
	pieces := rects.FindAllStringSubmatch(page, -1)
	for _, p := range pieces {
		var v [4]float64
		for i := range v {
			var err error
			if v[i], err = strconv.ParseFloat(p[i+1], 64); err != nil {
				t.Fatal(err)
			}
		}
		// Coordinates are rounded to a thousandth.
		if v[0] < -0.002 || v[0]+v[2] > 100.02 || v[2] < 0 || v[1] < 0 || v[1]+v[3] > 10.002 {
			t.Errorf("a piece lies outside of its bar: %s", p[0])
		}
	}
	return len(pieces)
}

// loads matches everything that makes a browser load something, or run anything but the script of the page.
var loads = regexp.MustCompile(`(?i)https?://|<link|<img|<iframe|<object|<embed|@import|url\(|\bsrc=|\bon[a-z]+=|javascript:`)

func TestPageLoadsNothing(t *testing.T) {
	got := pageOfReport(t, reportOf("sample"))
	for _, page := range []string{got, pageOfReport(t, reportOf("machines with verdicts"))} {
		if found := loads.FindAllString(page, -1); found != nil {
			t.Errorf("the report has %q", found)
		}
		if scripts := regexp.MustCompile(`<script[^>]*>`).FindAllString(page, -1); scripts[len(scripts)-1] != "<script>" || strings.Count(page, "<script>") != 1 {
			t.Errorf("the report has %q, want the script of the page and data", scripts)
		}
	}
	// The text of the hostile sample is there, but escaped.
	if !strings.Contains(got, "&lt;script&gt;alert(1)&lt;/script&gt;") {
		t.Error("the output of the failed trial is not shown escaped")
	}
	if !strings.Contains(got, `content="default-src &#39;none&#39;; style-src &#39;sha256-`) {
		t.Error("the content security policy is missing")
	}
}

// Invariant terminal.
func TestTextOfRunsIsEscaped(t *testing.T) {
	run := reporttest.Small()
	bad := `"'><svg/onload=alert(1)>{{.}}` + "`</style></title></pre>"
	for _, s := range []*string{
		&run.ID, &run.Name, &run.Plan, &run.Baseline, &run.Tool.Version, &run.Host.CPU, &run.Host.Kernel, &run.Host.Warnings[0],
		&run.Caveats[0], &run.Targets[1].Name, &run.Targets[1].Version, &run.Targets[1].Binary, &run.Bench[0].Summary, &run.Bench[0].Source,
		&run.Bench[0].Name, &run.Bench[0].Metrics[0].Help, &run.Bench[0].Metrics[0].Bound.Broken, &run.Bench[0].Metrics[2].Phrase, &run.Bench[0].Place, &run.Targets[1].Runtime,
	} {
		*s += bad
	}
	run.Targets[1].Notes = []string{bad}
	run.Images = []result.Image{{Name: bad, Digest: bad}, {Name: "2" + bad, Unavailable: bad}}
	run.Bench[0].Statements = []string{"stated", bad}
	for i := range run.Bench[0].Metrics {
		run.Bench[0].Metrics[i].Name += bad
	}
	for i := range run.Trials {
		tr := &run.Trials[i]
		tr.Benchmark += bad
		tr.Params = bad
		tr.Conditions = map[string]string{bad: bad, "stated": bad}
		if tr.Target != "native" {
			tr.Target += bad
		}
		for j := range tr.Samples {
			tr.Samples[j].Metric += bad
		}
		for j := range tr.Phases {
			tr.Phases[j].Name += bad
		}
	}
	run.Trials[7].Status, run.Trials[7].Reason, run.Trials[7].Output, run.Trials[7].Samples = result.Failed, bad, bad, nil
	run.Host.Hostname = bad
	one := reporttest.Small()
	one.ID = "one"
	for _, got := range []string{pageOf(t, run), pageOfRuns(t, []result.Run{one, run}, analysis.Options{AcrossMachines: true})} {
		if !strings.Contains(got, "&lt;svg/onload=alert(1)&gt;") {
			t.Fatal("the text of the run is not in the report")
		}
		for _, want := range []string{"<svg/onload", `"'>`, "{{.}}`</"} {
			if strings.Contains(got, want) {
				t.Errorf("the report has %q unescaped", want)
			}
		}
		for _, end := range []string{"</style>", "</title></pre>"} {
			if n := strings.Count(got, end); n > 1 {
				t.Errorf("the report has %q %d times", end, n)
			}
		}
	}
}

// notNumbers matches the text of NaN and infinities, format errors, and exponents in drawings.
var notNumbers = regexp.MustCompile(`NaN|[+-]Inf|\bInf\b|%!|\s(d|x|y|cx|cy|width|height|viewBox)="[^"]*\de`)

func TestControlCharactersAreReplaced(t *testing.T) {
	run := reporttest.Small()
	run.Trials[7].Status, run.Trials[7].Samples = result.Failed, nil
	run.Trials[7].Output = "red \x1b[31m bell \a C1 \u009b null \x00\r\nnext line"
	got := pageOf(t, run)
	if !strings.Contains(got, "red \uFFFD[31m bell \uFFFD C1 \uFFFD null \uFFFD\uFFFD\nnext line") {
		t.Error("the output of the failed trial is not shown with its control characters replaced")
	}
}

// Invariant same-report.
func TestSameRunGivesSameBytes(t *testing.T) {
	page, report := pageOf(t, reporttest.Sample()), reportOf("sample")
	for range 2 {
		if pageOfReport(t, report) != page {
			t.Error("two pages of one run differ")
		}
	}
}

// A report that drops the samples of its runs is the same report.
func TestReleasedSamplesChangeNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("it has many reports")
	}
	makers := map[string]func() []result.Run{
		"sample":     func() []result.Run { return []result.Run{reporttest.Sample()} },
		"suite":      func() []result.Run { return []result.Run{reporttest.Suite()} },
		"engines":    func() []result.Run { return []result.Run{reporttest.Engines()} },
		"under load": func() []result.Run { return []result.Run{reporttest.UnderLoad()} },
		"several": func() []result.Run {
			return []result.Run{reporttest.Sample(), reporttest.Small(), reporttest.UnderLoad()}
		},
	}
	for name, runs := range makers {
		list := runs()
		opts := analysis.Options{AcrossMachines: len(list) > 1}
		want := pageOfRuns(t, runs(), opts)
		opts.Release = true
		if diff := cmp.Diff(want, pageOfRuns(t, list, opts)); diff != "" {
			t.Errorf("%s: without samples the page differs (-want +got):\n%s", name, diff)
		}
		for _, run := range list {
			for _, trial := range run.Trials {
				if len(trial.Samples) > 0 {
					t.Fatalf("%s: trial %d keeps its samples", name, trial.Seq)
				}
			}
		}
	}
}

// The page has Touchstone's own cost: also of a request to each daemon, in the order of their names.
func TestOwnCost(t *testing.T) {
	run := reporttest.Small()
	run.Overhead = result.Overhead{
		EmptyRegion: 90 * time.Nanosecond, Exec: 700 * time.Microsecond,
		Requests: map[string]time.Duration{"docker": 116 * time.Microsecond, "containerd": 122 * time.Microsecond},
	}
	want := "90.0 ns for an empty timed region, 700 µs to start and await a bare process, 122 µs for a request to containerd that does nothing, " +
		"116 µs for a request to docker that does nothing, "
	if page := pageOf(t, run); !strings.Contains(page, want) {
		_, text, _ := strings.Cut(page, "own cost: ")
		t.Errorf("the page has the own cost %.300q, want %q", text, want)
	}
}

// Invariant page-size: The page of 10⁶ samples is below 5 MB, and no plot loses an extreme value.
func TestPageOfMillionSamples(t *testing.T) {
	if testing.Short() {
		t.Skip("the reports of 10⁶ samples take seconds")
	}
	for _, l := range reporttest.Millions() {
		page := pageOf(t, l.Run())
		if len(page) > mostBytes {
			t.Errorf("the page of shape %s has %d bytes, want at most %d", l.Name, len(page), mostBytes)
		}
	}
}

// The page states what its plots leave out, and only then.
func TestReducedPlotsSaySo(t *testing.T) {
	if testing.Short() {
		t.Skip("it has large reports")
	}
	points := regexp.MustCompile(`; shown: \d+ of 120000 points, extremes kept[^<]*(?:<span class="scale">[^<]*</span>)?</figcaption>`)
	page := pageOf(t, reporttest.Large{Name: "lanes", Targets: 3, Benchmarks: 1, Blocks: 40_000, Metrics: 1, Values: 1}.Run())
	if !points.MatchString(page) {
		t.Error("the page of 120 000 trials does not state the number of its points")
	}
	places := regexp.MustCompile(`medians over blocks; least and largest values faint.*; shown: \d+ of 6000 points, extremes kept[^<]*(?:<span class="scale">[^<]*</span>)?</figcaption>`)
	series := pageOf(t, reporttest.Large{Name: "lines", Targets: 2, Benchmarks: 1, Blocks: 6, Metrics: 1, Values: 3000, Series: true}.Run())
	if !places.MatchString(series) {
		t.Error("the page of 3000 places does not state the number of its points")
	}
	for _, name := range []string{"sample", "load"} {
		if page := pageOfReport(t, reportOf(name)); strings.Contains(page, "extremes kept") {
			t.Errorf("the page of %s leaves points out", name)
		}
	}
}

func BenchmarkMillion(b *testing.B) {
	for _, l := range reporttest.Millions() {
		run := l.Run()
		b.Run(l.Name, func(b *testing.B) {
			for b.Loop() {
				page := pageOf(b, run)
				b.ReportMetric(float64(len(page)), "page-bytes")
			}
		})
	}
}
