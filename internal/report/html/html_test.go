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

	"github.com/touchstone-bench/touchstone/internal/report"
	"github.com/touchstone-bench/touchstone/internal/report/html"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/internal/result"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// single is the report of one run, with the same bootstraps whatever the seed of the run.
func single(run result.Run) report.Report {
	run.Seed = 1
	return report.New([]result.Run{run}, report.Options{})
}

func written(t *testing.T, run result.Run) string {
	t.Helper()
	var b bytes.Buffer
	if err := html.Write(&b, single(run)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	golden(t, "testdata/small.golden.html", written(t, reporttest.Small()))
}

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

func writtenJoint(t *testing.T, runs []result.Run, opts report.Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := html.Write(&b, report.New(runs, opts)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestJointGolden(t *testing.T) {
	small, board := reporttest.Small(), reporttest.Small()
	board.ID = "board"
	board.Host.Hostname, board.Host.Arch = "board", "arm64"
	golden(t, "testdata/machines.golden.html", writtenJoint(t, []result.Run{small, board}, report.Options{AcrossMachines: true}))
}

func TestSamplePageHasEverySection(t *testing.T) {
	got := written(t, reporttest.Sample())
	if n := len(got); n > 1<<20 {
		t.Errorf("the report has %d bytes, want 1 MiB at most", n)
	}
	for what, want := range map[string]string{
		"an unavailable target":       "Not available: youki is not on PATH",
		"a skip":                      "skipped: pause: a bare process has no container to freeze",
		"a failure":                   "1 of 10 failed",
		"a time-out":                  "2 of 5 timed out",
		"another baseline":            "Compared with <b>oci/runc</b>",
		"the words for bytes":         "× more °</b>",
		"the words for scores":        "worse",
		"two groups":                  "Values in two groups",
		"a disturbed trial":           `class="ring"`,
		"phases":                      "Phases: the median of each timed region",
		"a curve":                     "number of the container, in order of start",
		"the seed of the run":         "8213640917",
		"the plan":                    "warmup: 1",
		"the source of the overhead":  "Wang et al., equation 1",
		"a percentile is not made up": `<th scope="col">Max</th>`,
		"a warning about the host":    "the CPU frequency governor is schedutil",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s: the report lacks %q", what, want)
		}
	}
	if strings.Contains(got, ">p99<") {
		t.Error("the report has a column for a percentile that ten blocks do not carry")
	}
}

func TestEnginesShowLayersAndComponents(t *testing.T) {
	got := written(t, reporttest.Engines())
	for what, want := range map[string]string{
		"layers":                          "Layers of CreateAndRun: medians of the differences",
		"a layer that is not shown":       `<small>not shown to differ from 0</small>`,
		"its pale piece":                  `class="c3 unclear"`,
		"a negative layer":                `<td>−[0-9.]+ ms<small>−[0-9.]+ to −[0-9.]+ ms</small></td>`,
		"its zero line":                   `class="zero"`,
		"layers that are not separable":   `<td colspan="2">[0-9.]+ ms<small>`,
		"their name":                      `<small>runtime, shim and engine</small>`,
		"the reason":                      "no value of oci/youki to separate the layers",
		"the text of a bar":               `aria-label="oci/crun: [0-9.]+ ± [0-9.]+ ms; process [0-9.]+ ± [0-9.]+ ms; runtime [0-9.]+ ± [0-9.]+ ms"`,
		"a step within its phase":         `<small>RunPodSandbox [0-9.]+ ms</small>`,
		"CPU time by component":           "CPU time by component",
		"memory by component":             "Memory by component",
		"the note on missing ratios":      "Without a value on the baseline, so without a ratio: RunPodSandbox, CreateContainer",
		"the targets of a plot":           "on 9 of 21 targets",
		"the targets without a metric":    "not recorded on native, oci/runc, oci/crun",
		"targets as rows of the overview": `<th scope="row">crio/crun</th><td class="worse`,
		"equal outcomes together":         "<b>21 targets</b> 10 ok each",
		"equal reasons together":          "crio/runsc@platform=ptrace, crio/runsc@platform=systrap \\(runsc blocks",
		"equal gaps together":             "containerd/runc, containerd/crun, containerd/youki",
	} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s: nothing in the report matches %q", what, want)
		}
	}
	if n := barsStayInside(t, got); n < 300 {
		t.Errorf("the bars have %d pieces, want some for each target", n)
	}
	if found := notNumbers.FindString(got); found != "" {
		t.Errorf("the report has %q", found)
	}
	overview, _, _ := strings.Cut(got, `<section class="suite"`)
	for _, not := range []string{"RunPodSandbox</th>", "PSSDaemon", "HostCPUShim"} {
		if strings.Contains(overview, not) {
			t.Errorf("the overview of ratios has %s", not)
		}
	}
	if n := strings.Count(got, "no baseline"); n > 0 {
		t.Errorf("the report mentions no baseline %d times", n)
	}
}

func TestJointPageHasEverySection(t *testing.T) {
	runs := reporttest.Machines()
	got := writtenJoint(t, runs, report.Options{EmulatedVerdicts: true})
	for what, want := range map[string]string{
		"the note on absolute values":    `<p class="rule">Absolute values are the measurements of each machine. They are not compared across machines: no ratio, no verdict, no common axis`,
		"the note on the emulated CPU":   `</h1>\s*<p class="banner" role="note">The CPU of some of these machines is emulated \(lab-v2: emulated by qemu \(QEMU Standard PC\)\)\. .* because of --emulated-verdicts\.`,
		"an emulated machine":            `<b>lab-v2</b> QEMU TCG CPU version 2.5&#43;, amd64, 2 CPUs, cgroup v2 <em>emulated</em>`,
		"a difference":                   `<tr><th scope="row">Cgroup</th><td>hybrid</td><td class="odd">v2</td><td class="odd">v2</td><td class="odd">v2</td></tr>`,
		"an equal fact":                  `<dt>Run as root</dt><dd>yes</dd>`,
		"an opposite difference":         `Opposite differences</h3>\s*<ul class="findings">\s*<li>oci/crun: Triad is 1[.0-9]+\x{a0}×\x{a0}faster than native on server #1`,
		"a breach":                       `<ul class="alarms">\s*<li>operations.container.lifecycle: oci/runsc@platform=systrap does not hold its time limit on server #1 \(`,
		"the overview":                   `<tr class="group"><th scope="rowgroup" colspan="5"><a href="#b1">operations.container.lifecycle</a></th></tr>`,
		"an absolute value":              `<small class="absolute">[0-9.]+ ± [0-9.]+ ms, n = 10</small>`,
		"the ratios in a plot":           `<b>CreateAndRun</b> ratio to native of the same run, lower is better, log axis`,
		"absolute values of one machine": `<b>CreateAndRun</b> absolute, on server, lower is better`,
		"a hollow mark":                  `<path class="side c1" d="M`,
		"a filled mark":                  `<path class="side full c3" d="M`,
		"the text of a plot":             `aria-label="CreateAndRun, ratio to native of the same run, lower is better; oci/runc on server #1: [0-9.]+ × slower, `,
		"another baseline":               `Compared with <b>oci/runc</b>, because the runs of this report have no other baseline in common here`,
		"different conditions":           `<dt>cpus</dt><dd>0-1 \(oci/crun\) on server #1, lab-v2; not recorded on server #2, raspberrypi</dd>`,
		"a gap of a run":                 `<tr><th scope="row">performance.disk.blog time=5s</th><td>not in this run</td><td>not in this run</td>`,
		"the warnings of a run":          `<b>lab-v2</b> <span>The CPU is emulated \(1\), The host \(2\)`,
		"the reason for a missing value": `title="runsc does not know this CPU; build it for arm64"><b>–</b> not available`,
	} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s: nothing in the report matches %q", what, want)
		}
	}
	if found := notNumbers.FindString(got); found != "" {
		t.Errorf("the report has %q", found)
	}
	if found := loads.FindAllString(got, -1); found != nil {
		t.Errorf("the report has %q", found)
	}
	// Absolute values of two machines are on no axis together, and in no ratio.
	for _, not := range []string{"absolute, on lab-v2", "absolute, on raspberrypi", "Across runs:"} {
		if strings.Contains(got, not) {
			t.Errorf("the report has %q", not)
		}
	}
	overview, _, _ := strings.Cut(got, `<section class="suite"`)
	if _, matrix, _ := strings.Cut(overview, `id="matrix"`); strings.Contains(matrix, "blog") {
		t.Error("the overview has a benchmark of one run alone")
	}
	if got := writtenJoint(t, runs[:2], report.Options{AcrossMachines: true}); !strings.Contains(got, "the typical ratio to server, with the 95 % interval and without a verdict") {
		t.Error("nothing is compared across machines with --across-machines")
	}
}

// Each of twelve runs has its own shape and colour.
func TestKeysOfRunsDiffer(t *testing.T) {
	var runs []result.Run
	for i := range report.MostRuns {
		runs = append(runs, result.Run{ID: strconv.Itoa(i), State: result.Complete})
	}
	keys := map[string]bool{}
	for _, key := range regexp.MustCompile(`<li><svg class="shape"[^>]*>(<path[^>]*>)</svg>`).FindAllStringSubmatch(writtenJoint(t, runs, report.Options{}), -1) {
		keys[key[1]] = true
	}
	if len(keys) != report.MostRuns {
		t.Errorf("%d runs have %d keys", report.MostRuns, len(keys))
	}
}

// A report of many benchmarks has the breaches first, one metric of each benchmark in the overview, and the rest below the names
// of components.
func TestSuite(t *testing.T) {
	got := written(t, reporttest.Suite())
	for what, want := range map[string]string{
		"a breach, first":              `(?s)<h2>Findings</h2>\s*<ul class="alarms">\s*<li>limits.cpu.time quota=0.1: containerd/runsc does not hold its CPU limit: CPULimitUse is 9[0-9]+\x{a0}%, above the bound of 110\x{a0}% \(median of 10 trials\).</li>`,
		"and in the overview":          `<td class="[a-z0-9 ]+ alarm"[^>]*>.*<em>does not hold its CPU limit</em></td>`,
		"and with the benchmark":       `<li>containerd/runsc does not hold its memory limit: Kill is`,
		"and in the table":             `<em>does not hold its CPU limit: above 110\s%</em>`,
		"and in the contents":          `<a href="#b[0-9]+">cpu.time</a> <b class="mark"`,
		"a brief overview":             "The overview has one metric of each benchmark",
		"the link to the rest":         `<th scope="row"><a href="#b2">sevenzip</a><small>Compression</small></th>`,
		"a closed component":           `<details id="c-b1">\s*<summary><b>performance.cpu</b> <span>time, sevenzip, dav1d, linpack</span></summary>`,
		"its contents":                 `<li><a href="#c-b1">cpu</a><ul><li><a href="#b1">time</a></li>`,
		"distinguishing parameters":    `<li><a href="#b[0-9]+">throughput cache=cold volume=tmpfs</a></li>`,
		"conditions of all targets":    `<div><dt>cpus</dt><dd>0-1</dd></div>`,
		"different conditions":         `<dt>path</dt><dd>veth between two network namespaces \(native\), bridge, veth \(`,
		"an unmeasured benchmark":      `(?s)id="unmeasured".*<p>bridged network: this host&#39;s kernel has no veth; load the module veth</p>\s*<p class="aside">performance.network.netperf with=host, performance.network.netperf with=container`,
		"the image":                    `<dt>Image</dt><dd>workload: sha256:5e2c[0-9a-f]+, 62.0 MiB</dd>`,
		"an unavailable image":         `<dt>Image</dt><dd>mine.tar: not available: there is no such file &lt;here&gt;</dd>`,
		"ticks of ratios":              `>[0-9]+ %</text>`,
		"ticks of bits":                `>[0-9.]+ Gbit/s</text>`,
		"the note on dropped caches":   "the page cache of the whole machine was dropped 70 times",
		"a short suite, which is open": `(?s)<h2>limits</h2>\s*<article id="b[0-9]+">`,
	} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s: nothing in the report matches %q", what, want)
		}
	}
	missing, _, _ := strings.Cut(got, `id="targets"`)
	if _, table, found := strings.Cut(missing, `id="missing"`); found && strings.Contains(table, "netperf") {
		t.Error("an unmeasured benchmark is among the trials without a number too")
	}
	if found := notNumbers.FindString(got); found != "" {
		t.Errorf("the report has %q", found)
	}
	if opened, closed := strings.Count(got, "<details"), strings.Count(got, "</details>"); opened != closed || opened != 6 {
		t.Errorf("%d components begin and %d end, want 6", opened, closed)
	}
}

// Results in words have a table of their own.
func TestStatements(t *testing.T) {
	got := written(t, reporttest.Stated())
	for what, want := range map[string]string{
		"the heads":            `<th scope="col">Target</th><th scope="col">outcome</th><th scope="col">words</th></tr>`,
		"a target with both":   `<th scope="row">oci/runc</th><td><b>runs, or in other trials: exec format error</b></td><td class="reason">exec /init: exec format error</td>`,
		"a target without one": `<th scope="row">native</th><td><b>runs</b></td><td class="reason">–</td>`,
	} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s: nothing in the report matches %q", what, want)
		}
	}
	if strings.Contains(got, "<dt>outcome</dt>") {
		t.Error("the outcome is among the conditions too")
	}
	if worded := written(t, reporttest.Worded()); !strings.Contains(worded, "<td><b>runs</b></td>") || notNumbers.MatchString(worded) {
		t.Error("a benchmark without values does not show its results in words")
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
	// The text of the hostile sample is there, but escaped.
	if !strings.Contains(got, "&lt;script&gt;alert(1)&lt;/script&gt;") {
		t.Error("the output of the failed trial is not shown escaped")
	}
	if found := loads.FindAllString(got, -1); found != nil {
		t.Errorf("the report has %q", found)
	}
	if !strings.Contains(got, `content="default-src &#39;none&#39;; style-src &#39;sha256-`) {
		t.Error("the content security policy is missing")
	}
}

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
	for _, got := range []string{written(t, run), writtenJoint(t, []result.Run{one, run}, report.Options{AcrossMachines: true})} {
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

func TestOddRuns(t *testing.T) {
	odd := reporttest.Odd()
	odd["the sample"] = reporttest.Sample()
	for name, run := range odd {
		t.Run(name, func(t *testing.T) {
			got := written(t, run)
			if found := notNumbers.FindString(got); found != "" {
				at := strings.Index(got, found)
				t.Errorf("the report has %q: %s", found, got[max(0, at-100):min(len(got), at+100)])
			}
			barsStayInside(t, got)
			for _, section := range []string{`id="findings"`, `id="targets"`, `id="host"`, `id="method"`, "</html>"} {
				if !strings.Contains(got, section) {
					t.Errorf("the report lacks %s", section)
				}
			}
		})
	}
}

func TestOddRunsBesideAnother(t *testing.T) {
	small := reporttest.Small()
	for name, run := range reporttest.Odd() {
		if strings.Contains(name, "layers") {
			continue // a joint report has no layers
		}
		run.ID = "odd"
		got := writtenJoint(t, []result.Run{run, small}, report.Options{AcrossMachines: true})
		if found := notNumbers.FindString(got); found != "" {
			at := strings.Index(got, found)
			t.Errorf("%s: the report has %q: %s", name, found, got[max(0, at-100):min(len(got), at+100)])
		}
	}
}

func TestControlCharactersAreReplaced(t *testing.T) {
	run := reporttest.Small()
	run.Trials[7].Status, run.Trials[7].Samples = result.Failed, nil
	run.Trials[7].Output = "red \x1b[31m bell \a C1 \u009b null \x00\r\nnext line"
	got := written(t, run)
	if !strings.Contains(got, "red \uFFFD[31m bell \uFFFD C1 \uFFFD null \uFFFD\uFFFD\nnext line") {
		t.Error("the output of the failed trial is not shown with its control characters replaced")
	}
}

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
	if err := html.Write(broken{}, report.Report{}); !errors.Is(err, errBroken) {
		t.Errorf("Write = %v, want %v", err, errBroken)
	}
	if err := html.Write(broken{}, report.New([]result.Run{{ID: "a"}, {ID: "b"}}, report.Options{})); !errors.Is(err, errBroken) {
		t.Errorf("WriteJoint = %v, want %v", err, errBroken)
	}
}

// The note on an emulated CPU precedes all numbers, and "emulated" stands in the place of the verdicts.
func TestEmulated(t *testing.T) {
	run := reporttest.Sample()
	run.Host.Arch, run.Host.CPU, run.Host.Virtual = "amd64", "QEMU TCG CPU version 2.5+", "qemu (QEMU Standard PC)"
	got := written(t, run)
	for what, want := range map[string]string{
		"the note":        `</h1>\s*<p class="banner" role="note">The CPU of this machine is emulated \(bench1: emulated by qemu`,
		"the explanation": `<p class="aside">&#34;emulated&#34; stands in the place of a verdict`,
		"a cell":          `<td class="neutral" title="median [^"]*; adjusted p –"><b>ratio [0-9.]+</b> emulated<small>`,
		"a score":         `<td><b>ratio [0-9.]+</b> <i>emulated</i>`,
		"the findings":    `of speed: see the note on the emulated CPU at the top\.`,
	} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s: nothing in the report matches %q", what, want)
		}
	}
	numbers, _, _ := strings.Cut(got, `<section id="method">`) // which explains factors
	if found := regexp.MustCompile(`×.(slower|faster)`).FindString(numbers); found != "" || !strings.Contains(numbers, "× more") {
		t.Errorf("the report has %q, or no verdict on memory", found)
	}
	for _, not := range []string{`class="missed"`, "No difference between targets is shown", "The run has no comparisons"} {
		if strings.Contains(numbers, not) {
			t.Errorf("the report has %q", not)
		}
	}
}

// A report that drops the samples of its runs is the same report.
func TestReleasedSamplesChangeNothing(t *testing.T) {
	made := map[string]func() []result.Run{
		"sample":     func() []result.Run { return []result.Run{reporttest.Sample()} },
		"suite":      func() []result.Run { return []result.Run{reporttest.Suite()} },
		"engines":    func() []result.Run { return []result.Run{reporttest.Engines()} },
		"under load": func() []result.Run { return []result.Run{reporttest.UnderLoad()} },
		"several": func() []result.Run {
			return []result.Run{reporttest.Sample(), reporttest.Small(), reporttest.UnderLoad()}
		},
	}
	for name, runs := range made {
		released := runs()
		opts := report.Options{AcrossMachines: len(released) > 1}
		want := writtenJoint(t, runs(), opts)
		opts.Release = true
		if diff := cmp.Diff(want, writtenJoint(t, released, opts)); diff != "" {
			t.Errorf("%s: without samples the page differs (-want +got):\n%s", name, diff)
		}
		for _, run := range released {
			for _, trial := range run.Trials {
				if len(trial.Samples) > 0 {
					t.Fatalf("%s: trial %d keeps its samples", name, trial.Seq)
				}
			}
		}
	}
}
