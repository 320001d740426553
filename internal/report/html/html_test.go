package html_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/analysis"
	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/html"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// single is the report of one run, with the same bootstraps whatever the seed of the run.
func single(run result.Run) report.Report {
	run.Seed = 1
	return report.New([]result.Run{run}, analysis.Options{})
}

func written(t *testing.T, run result.Run) string { return writtenReport(t, single(run)) }

// golden compares a report with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the report differs from %s (-want +got); if it should, run go test -update:\n%s", name, diff)
	}
}

func writtenJoint(t *testing.T, runs []result.Run, opts analysis.Options) string {
	t.Helper()
	return writtenReport(t, report.New(runs, opts))
}

func writtenReport(t *testing.T, r report.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := html.Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Invariant same-report: A report of the same run is always the same.
func TestGolden(t *testing.T) {
	machine, board := reporttest.Small(), reporttest.Small()
	board.ID = "board"
	board.Host.Hostname, board.Host.Arch = "board", "arm64"
	golden(t, "testdata/small.golden.html", written(t, machine))
	golden(t, "testdata/machines.golden.html", writtenJoint(t, []result.Run{machine, board}, analysis.Options{AcrossMachines: true}))
}

// shows checks a page: each pattern matches, and no text of exclusions is there.
func shows(t *testing.T, name, page string, patterns []string, exclusions ...string) {
	t.Helper()
	for _, want := range patterns {
		if !regexp.MustCompile(want).MatchString(page) {
			t.Errorf("%s: nothing in the page matches %q", name, want)
		}
	}
	for _, text := range exclusions {
		if strings.Contains(page, text) {
			t.Errorf("%s: the page has %q", name, text)
		}
	}
}

// overview is the part of a page before its suites.
func overview(page string) string {
	head, _, _ := strings.Cut(page, `<section class="suite"`)
	return head
}

// The pages have what the goldens of small runs lack.
func TestPages(t *testing.T) {
	sample := written(t, reporttest.Sample())
	if n := len(sample); n > 1<<20 {
		t.Errorf("the report has %d bytes, want 1 MiB at most", n)
	}
	shows(t, "sample", sample, []string{
		"Not available: youki is not on PATH", "1 of 10 failed", "2 of 5 timed out", "Values in two groups", "× more °</b>",
		"skipped: pause: a bare process has no container to freeze", "Compared with <b>oci/runc</b>", "number of the container, in order of start",
	}, ">p99<", "Worst case") // ten blocks carry no such percentile and no bound

	engines := written(t, reporttest.Engines())
	shows(t, "engines", engines, []string{
		"Layers of CreateAndRun: medians of the differences",
		`<small>not shown to differ from 0</small>`,
		`class="c3 unclear"`,
		`<td>−[0-9.]+ ms<small>−[0-9.]+ to −[0-9.]+ ms</small></td>`,
		`class="zero"`,
		`<td colspan="2">[0-9.]+ ms<small>`,
		`<small>runtime, shim and engine</small>`,
		"no value of oci/youki to separate the layers",
		`aria-label="oci/crun: [0-9.]+ ± [0-9.]+ ms; process [0-9.]+ ± [0-9.]+ ms; runtime [0-9.]+ ± [0-9.]+ ms"`,
		`<small>RunPodSandbox [0-9.]+ ms</small>`,
		"CPU time by component",
		"Memory by component",
		"Without a value on the baseline, so without a ratio: RunPodSandbox, CreateContainer",
		"on 9 of 21 targets",
		"not recorded on native, oci/runc, oci/crun",
		`<th scope="row">crio/crun</th><td class="worse`,
		"<b>21 targets</b> 10 ok each",
		"crio/runsc@platform=ptrace, crio/runsc@platform=systrap \\(runsc blocks",
		"containerd/runc, containerd/crun, containerd/youki",
	}, "no baseline")
	if n := barsStayInside(t, engines); n < 300 {
		t.Errorf("the bars have %d pieces, want some for each target", n)
	}
	shows(t, "overview of engines", overview(engines), nil, "RunPodSandbox</th>", "PSSDaemon", "HostCPUShim")

	runs := reporttest.Machines()
	machines := writtenJoint(t, runs, analysis.Options{EmulatedVerdicts: true})
	shows(t, "machines", machines, []string{
		`<p class="rule">Absolute values are the measurements of each machine. They are not compared across machines: no ratio, no verdict, no common axis`,
		`</h1>\s*<p class="banner" role="note">The CPU of some of these machines is emulated \(lab-v2: emulated by qemu \(QEMU Standard PC\)\)\. .* because of --emulated-verdicts\.`,
		`<b>lab-v2</b> QEMU TCG CPU version 2.5&#43;, amd64, 2 CPUs, cgroup v2 <em>emulated</em>`,
		`<tr><th scope="row">Cgroup</th><td>hybrid</td><td class="odd">v2</td><td class="odd">v2</td><td class="odd">v2</td></tr>`,
		`Opposite differences</h3>\s*<ul class="findings">\s*<li>oci/crun: Triad is 1[.0-9]+\x{a0}×\x{a0}faster than native on server #1`,
		`<ul class="alarms">\s*<li>operations.container.lifecycle: oci/runsc@platform=systrap does not hold its time limit on server #1 \(`,
		`<tr class="group"><th scope="rowgroup" colspan="5"><a href="#b1">operations.container.lifecycle</a></th></tr>`,
		`<b>CreateAndRun</b> absolute, on server, lower is better`,
		`<path class="side c1" d="M`,
		`<path class="side full c3" d="M`,
		`aria-label="CreateAndRun, ratio to native of the same run, lower is better; oci/runc on server #1: [0-9.]+ × slower, `,
		`Compared with <b>oci/runc</b>, because the runs of this report have no other baseline in common here`,
		`<dt>cpus</dt><dd>0-1 \(oci/crun\) on server #1, lab-v2; not recorded on server #2, raspberrypi</dd>`,
		`<tr><th scope="row">performance.disk.blog time=5s</th><td>not in this run</td><td>not in this run</td>`,
		`<b>lab-v2</b> <span>The CPU is emulated \(1\), The host \(2\)`,
		`title="runsc does not know this CPU; build it for arm64"><b>–</b> not available`,
	}, "absolute, on lab-v2", "absolute, on raspberrypi", "Across runs:") // of two machines: on no axis together, and in no ratio
	if _, matrix, _ := strings.Cut(overview(machines), `id="matrix"`); strings.Contains(matrix, "blog") {
		t.Error("the overview has a benchmark of one run alone")
	}
	shows(t, "across machines", writtenJoint(t, runs[:2], analysis.Options{AcrossMachines: true}), []string{
		"the typical ratio to server, with the 95 % interval and without a verdict",
	})

	// The breaches come first, the overview has one metric of each benchmark, and the rest is below the names of components.
	suite := written(t, reporttest.Suite())
	shows(t, "suite", suite, []string{
		`(?s)<h2>Findings</h2>\s*<ul class="alarms">\s*<li>limits.cpu.time quota=0.1: containerd/runsc does not hold its CPU limit: CPULimitUse is 9[0-9]+\x{a0}%, above the bound of 110\x{a0}% \(median of 10 trials\).</li>`,
		`<td class="[a-z0-9 ]+ alarm"[^>]*>.*<em>does not hold its CPU limit</em></td>`,
		`<li>containerd/runsc does not hold its memory limit: Kill is`,
		`<em>does not hold its CPU limit: above 110\s%</em>`,
		`<a href="#b[0-9]+">cpu.time</a> <b class="mark"`,
		"The overview has one metric of each benchmark",
		`<th scope="row"><a href="#b2">sevenzip</a><small>Compression</small></th>`,
		`<details id="c-b1">\s*<summary><b>performance.cpu</b> <span>time, sevenzip, dav1d, linpack</span></summary>`,
		`<li><a href="#c-b1">cpu</a><ul><li><a href="#b1">time</a></li>`,
		`<li><a href="#b[0-9]+">throughput cache=cold volume=tmpfs</a></li>`,
		`<div><dt>cpus</dt><dd>0-1</dd></div>`,
		`<dt>path</dt><dd>veth between two network namespaces \(native\), bridge, veth \(`,
		`(?s)id="unmeasured".*<p>bridged network: this host&#39;s kernel has no veth; load the module veth</p>\s*<p class="aside">performance.network.netperf with=host, performance.network.netperf with=container`,
		`<dt>Image</dt><dd>workload: sha256:5e2c[0-9a-f]+, 62.0 MiB</dd>`,
		`<dt>Image</dt><dd>mine.tar: not available: there is no such file &lt;here&gt;</dd>`,
		`>[0-9]+ %</text>`,
		`>[0-9.]+ Gbit/s</text>`,
		"the page cache of the whole machine was dropped 70 times",
		`(?s)<h2>limits</h2>\s*<article id="b[0-9]+">`,
	})
	missing, _, _ := strings.Cut(suite, `id="targets"`)
	if _, table, found := strings.Cut(missing, `id="missing"`); found && strings.Contains(table, "netperf") {
		t.Error("an unmeasured benchmark is among the trials without a number too")
	}
	if n := strings.Count(suite, "<details"); n != 6 {
		t.Errorf("there are %d components, want 6", n)
	}

	shows(t, "stated", written(t, reporttest.Stated()), []string{
		`<th scope="col">Target</th><th scope="col">outcome</th><th scope="col">words</th></tr>`,
		`<th scope="row">oci/runc</th><td><b>runs, or in other trials: exec format error</b></td><td class="reason">exec /init: exec format error</td>`,
		`<th scope="row">native</th><td><b>runs</b></td><td class="reason">–</td>`,
	}, "<dt>outcome</dt>")
	shows(t, "worded", written(t, reporttest.Worded()), []string{"<td><b>runs</b></td>"})

	load := written(t, reporttest.UnderLoad())
	shows(t, "trend", load, []string{"per running container; no knee shown", `per running container; knee at 35 \(`, "A drift of the host"})
	if fits, knees := strings.Count(load, `class="fit"`), strings.Count(load, `class="knee"`); fits != len(reporttest.UnderLoad().Targets) || knees != 1 {
		t.Errorf("there are %d fitted lines and %d knees, want a line for each target and a knee", fits, knees)
	}

	shows(t, "worst case", written(t, reporttest.Latencies()), []string{
		"<caption>Worst case of Exec</caption>", "the largest of 30000 samples</td><td>one in 10⁵ above ",
		`<td class="reason">no bound, by the test of drift: `, "peaks over threshold",
	})
	// Bounds stay if rarer values have none. The reason follows them, in a style of its own.
	shows(t, "rarer values", writtenReport(t, reporttest.PartlyBounded()), []string{
		`<td>one in 10⁵ above [^/]*<div class="reason">rarer values: no bound, by the test of tail weight: ` + regexp.QuoteMeta(reporttest.RarerRefused),
	})

	// The note precedes all numbers, and "emulated" stands in the place of the verdicts.
	run := reporttest.Sample()
	run.Host.Arch, run.Host.CPU, run.Host.Virtual = "amd64", "QEMU TCG CPU version 2.5+", "qemu (QEMU Standard PC)"
	numbers, _, _ := strings.Cut(written(t, run), `<section id="method">`) // which explains factors
	shows(t, "emulated", numbers, []string{
		`</h1>\s*<p class="banner" role="note">The CPU of this machine is emulated \(bench1: emulated by qemu`,
		`<p class="aside">&#34;emulated&#34; stands in the place of a verdict`,
		`<td class="neutral" title="median [^"]*; adjusted p –"><b>ratio [0-9.]+</b> emulated<small>`,
		`<td><b>ratio [0-9.]+</b> <i>emulated</i>`,
		`of speed: see the note on the emulated CPU at the top\.`,
		"× more",
	}, `class="missed"`, "No difference between targets is shown", "The run has no comparisons", "× slower", "× faster", "×\u00a0slower", "×\u00a0faster")
}

// No page has a value that is no number, or draws a bar outside of its place.
func TestPagesAreWhole(t *testing.T) {
	partner := reporttest.Small()
	pages := map[string]string{"machines": writtenJoint(t, reporttest.Machines(), analysis.Options{EmulatedVerdicts: true})}
	for name, run := range map[string]result.Run{
		"sample": reporttest.Sample(), "engines": reporttest.Engines(), "suite": reporttest.Suite(), "worded": reporttest.Worded(),
	} {
		pages[name] = written(t, run)
	}
	for name, run := range reporttest.Odd() {
		pages[name] = written(t, run)
		if !strings.Contains(name, "layers") { // a joint report has none
			run.ID = "odd"
			pages[name+" beside another"] = writtenJoint(t, []result.Run{run, partner}, analysis.Options{AcrossMachines: true})
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

// Each of twelve runs has its own shape and colour.
func TestKeysOfRunsDiffer(t *testing.T) {
	var runs []result.Run
	for i := range report.MostRuns {
		runs = append(runs, result.Run{ID: strconv.Itoa(i), State: result.Complete})
	}
	keys := map[string]bool{}
	for _, key := range regexp.MustCompile(`<li><svg class="shape"[^>]*>(<path[^>]*>)</svg>`).FindAllStringSubmatch(writtenJoint(t, runs, analysis.Options{}), -1) {
		keys[key[1]] = true
	}
	if len(keys) != report.MostRuns {
		t.Errorf("%d runs have %d keys", report.MostRuns, len(keys))
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

// loads matches everything that makes a browser load or run something.
var loads = regexp.MustCompile(`(?i)https?://|<script|<link|<img|<iframe|<object|<embed|@import|url\(|\bsrc=|\bon[a-z]+=|javascript:`)

func TestPageLoadsAndRunsNothing(t *testing.T) {
	got := written(t, reporttest.Sample())
	for _, page := range []string{got, writtenJoint(t, reporttest.Machines(), analysis.Options{EmulatedVerdicts: true})} {
		if found := loads.FindAllString(page, -1); found != nil {
			t.Errorf("the report has %q", found)
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
	for _, got := range []string{written(t, run), writtenJoint(t, []result.Run{one, run}, analysis.Options{AcrossMachines: true})} {
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
	got := written(t, run)
	if !strings.Contains(got, "red \uFFFD[31m bell \uFFFD C1 \uFFFD null \uFFFD\uFFFD\nnext line") {
		t.Error("the output of the failed trial is not shown with its control characters replaced")
	}
}

// Invariant same-report.
func TestSameRunGivesSameBytes(t *testing.T) {
	first, second := written(t, reporttest.Sample()), written(t, reporttest.Sample())
	if first != second {
		t.Error("two reports of one run differ")
	}
}

type broken struct{}

var errBroken = errors.New("no space left")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteReturnsTheErrorOfTheWriter(t *testing.T) {
	if err := html.Write(broken{}, report.Report{Analysis: new(analysis.Analysis)}); !errors.Is(err, errBroken) {
		t.Errorf("Write = %v, want %v", err, errBroken)
	}
	if err := html.Write(broken{}, report.New([]result.Run{{ID: "a"}, {ID: "b"}}, analysis.Options{})); !errors.Is(err, errBroken) {
		t.Errorf("WriteJoint = %v, want %v", err, errBroken)
	}
}

// A report that drops the samples of its runs is the same report.
func TestReleasedSamplesChangeNothing(t *testing.T) {
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
		want := writtenJoint(t, runs(), opts)
		opts.Release = true
		if diff := cmp.Diff(want, writtenJoint(t, list, opts)); diff != "" {
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
