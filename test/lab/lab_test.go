package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/test/lab/job"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/result"
)

// labVariable names the directory with what scripts/test-lab.sh has built: for each architecture the programs
// guest-ARCH, touchstone-ARCH and runsc-ARCH, the tests native-ARCH.test and oci-ARCH.test, and the workload
// image workload-ARCH.tar, with its list of packages as packages-ARCH.lock unless that is the usual one.
const labVariable = "TOUCHSTONE_LAB"

// built gives the directory, or skips the test.
func built(t *testing.T) string {
	t.Helper()
	dir := os.Getenv(labVariable)
	if dir == "" {
		t.Skipf("boots virtual machines, for which %s is not set: run make test-lab", labVariable)
	}
	return dir
}

// open gives a lab, whose launcher is the test's.
func open(t *testing.T) *Lab {
	t.Helper()
	launcher, err := process.New(process.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := launcher.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Lab{Launcher: launcher, Guest: os.Getenv(labVariable), Progress: func(step string) { t.Log(step) }}
}

const (
	// quickTargets are those of the quick plan, which has one block: an emulated machine takes a minute for it.
	quickTargets = "native,oci/runc,oci/crun,oci/runsc"

	// limitPlan is limits.cpu.time with a higher limit than usual: a tenth of a CPU that is emulated is little. The work must take
	// more CPU time than the creation of the container, or it is not known what was used under the limit.
	limitPlan = `version: 1
name: limits
targets: [oci/runc, oci/crun, oci/runsc]
benchmarks:
  - {name: limits.cpu.time, params: {prime: 5000, events: 1500, percent: 50}}
blocks: 1
warmup: 0
`
)

// conformance is a step with the conformance suite of an engine's package on targets, which must run; tests is the pattern
// for their subtests.
func conformance(name, engine, tests, user, targets string) job.Step {
	return job.Step{
		Name: name, User: user, Limit: 5 * time.Minute,
		Args: []string{engine + ".test", "-test.v", "-test.timeout=5m", "-test.parallel=2", "-test.run=" + tests},
		Env:  []string{enginetest.MustRun + "=" + targets},
	}
}

// brief makes a step with the conformance suite a brief one.
func brief(step job.Step) job.Step {
	step.Env = append(step.Env, enginetest.AllBrief+"=1")
	return step
}

// touchstone is a step with one of Touchstone's verbs.
func touchstone(name string, limit time.Duration, args ...string) job.Step {
	return job.Step{Name: name, Args: append([]string{"touchstone"}, args...), Limit: limit}
}

// exported are two steps: a benchmark, and its run as JSON.
func exported(name string, limit time.Duration, args ...string) []job.Step {
	dir := "/root/" + name
	export := touchstone("export-"+name, time.Minute, "export", "-d", dir)
	export.Stdout = name + ".json"
	return []job.Step{touchstone(name, limit, append([]string{"benchmark", "-d", dir}, args...)...), export}
}

// ownList is the list of packages that the workload image was made of, if it is not the one that comes with touchstone: see
// docs/image.md. Without it the image that is loaded would be another one than is looked for.
func ownList(built string, m Machine) (file string, ok bool) {
	file = filepath.Join(built, "packages-"+m.Arch+".lock")
	_, err := os.Stat(file)
	return file, err == nil
}

// steps are those of all machines.
func steps(built string, m Machine) []job.Step {
	steps := []job.Step{
		conformance("native", "native", "^TestConformance$/^native$", "", "native"),
		conformance("crun", "oci", "^TestConformance$/^oci_crun$", "", "oci/crun"),
		conformance("runc", "oci", "^TestConformance$/^oci_runc$", "", "oci/runc"),
		conformance("runsc", "oci", "^TestConformance$/^oci_runsc@platform=systrap$", "", "oci/runsc@platform=systrap"),
		touchstone("image", 3*time.Minute, "image", "load", job.Dir+"/workload.tar"),
	}
	if _, ok := ownList(built, m); ok {
		to := "/var/cache/touchstone/packages-" + m.Arch + ".lock"
		steps = append(steps, job.Step{Name: "packages", Args: []string{"cp", job.Dir + "/packages.lock", to}, Limit: time.Minute})
	}
	// It has scalability.runtime.5.
	steps = append(steps, exported("quick", 5*time.Minute, "--targets", quickTargets, "--warmup", "0", "--runs", "1")...)
	steps = append(steps, exported("limits", 4*time.Minute, "-f", job.Dir+"/limits.yaml")...)
	return steps
}

// clean are the steps after which nothing may be left: what was killed leaves something, and that is removed.
func clean() []job.Step {
	return []job.Step{
		touchstone("cleanup", time.Minute, "cleanup"),
		touchstone("killed", 5*time.Second, "benchmark", "-d", "/root/killed", "--targets", "oci/runc", "--filter", "scalability.runtime.50", "--timeout", "10m"),
		touchstone("sweep", time.Minute, "cleanup"),
	}
}

// more are those of the machine with daemons. A conformance suite behind containerd would take longer there than all the rest.
func more() []job.Step {
	return append(
		exported("containerd", 3*time.Minute, "--managed", "--targets", "containerd/runc,containerd/crun",
			"--filter", "operations.container.lifecycle", "--runs", "1", "--warmup", "0"),
		brief(conformance("rootless", "oci", "^TestConformance$/^oci_crun$", "user", "oci/crun")),
	)
}

// inputs are the files that steps need in a machine.
func inputs(t *testing.T, built string, m Machine, work []job.Step) map[string]string {
	t.Helper()
	plan := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(plan, []byte(limitPlan), 0o644); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"limits.yaml": plan}
	for _, program := range []string{"touchstone", "runsc"} {
		files[program] = filepath.Join(built, program+"-"+m.Arch)
	}
	if file, ok := ownList(built, m); ok {
		files["packages.lock"] = file
	}
	for _, step := range work {
		if program, ok := strings.CutSuffix(step.Args[0], ".test"); ok {
			files[step.Args[0]] = filepath.Join(built, program+"-"+m.Arch+".test")
		}
		if step.Name == "image" {
			files["workload.tar"] = filepath.Join(built, "workload-"+m.Arch+".tar")
		}
	}
	return files
}

func TestLab(t *testing.T) {
	dir := built(t)
	l := open(t)
	results := t.TempDir() // runs as JSON, of each machine in a directory of its name
	machines := []Machine{V2(), ARM()}
	for _, m := range machines {
		t.Run(m.Name, func(t *testing.T) {
			work := steps(dir, m)
			if m.Name == V2().Name {
				work = append(work, more()...)
			}
			if m.Name == ARM().Name {
				work = append(work, touchstone("wear", 2*time.Minute, "benchmark", "-d", "/root/wear", "--targets", "native",
					"--filter", "operations.container.lifecycle", "--runs", strconv.Itoa(wearTrials), "--warmup", "0"))
			}
			out, report := live(t, l, dir, m, work)
			if m.Name == ARM().Name {
				smallFootprint(t, &report, decode(t, filepath.Join(out, "quick.json")))
			}
			if err := os.CopyFS(filepath.Join(results, m.Name), os.DirFS(out)); err != nil {
				t.Fatal(err)
			}
		})
	}
	t.Run("report", func(t *testing.T) {
		for _, m := range machines {
			if _, err := os.Stat(filepath.Join(results, m.Name)); err != nil {
				t.Skipf("there is no run of machine %s: %v", m.Name, err)
			}
		}
		merged(t, l, dir, results, machines)
	})
}

// wearTrials is the number of trials of the step that tells what a trial writes.
const wearTrials = 100

// smallFootprint checks what Touchstone itself takes for the quick plan on a small board. What it writes is known by trial, since all
// blocks of the plan would take too long here, and since one of its benchmarks writes to the disk to measure it.
func smallFootprint(t *testing.T, report *job.Report, block result.Run) {
	t.Helper()
	const mostMemory, mostWritten = 48 << 20, 20e6
	for _, step := range []*job.Outcome{report.Step("quick"), report.Step("wear")} {
		if step.Memory == 0 || step.Memory >= mostMemory {
			t.Errorf("Touchstone took %d bytes of memory for %s; it should be less than %d", step.Memory, step.Name, mostMemory)
		}
	}
	measured := 0
	for _, trial := range block.Trials {
		if trial.Status == result.OK {
			measured++
		}
	}
	quick := plan.Quick()
	trials := measured * (quick.Blocks + quick.Warmup)
	wear := report.Step("wear").Written
	written := float64(wear) / wearTrials * float64(trials)
	t.Logf("the whole quick plan has %d trials, for which %.1f MB are written", trials, written/1e6)
	if wear == 0 || written >= mostWritten {
		t.Errorf("%.0f bytes would be written to the disk for the quick plan; it should be less than %.0f", written, mostWritten)
	}
}

// merged takes the same plan on this machine, imports the runs of all into one store, and makes one report of them.
func merged(t *testing.T, l *Lab, dir, results string, machines []Machine) {
	t.Helper()
	own := filepath.Join(results, "own")
	host(t, l, dir, "benchmark", "-d", own, "--targets", quickTargets, "--warmup", "0", "--runs", "1")
	quick := []string{filepath.Join(results, "own.json")}
	host(t, l, dir, "export", "-d", own, "-O", quick[0])
	files := quick[:1:1]
	for _, m := range machines {
		quick = append(quick, filepath.Join(results, m.Name, "quick.json"))
		exports, err := filepath.Glob(filepath.Join(results, m.Name, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, exports...)
	}
	all := filepath.Join(results, "all")
	host(t, l, dir, append([]string{"import", "-d", all}, files...)...)
	if kept := strings.Count(host(t, l, dir, "runs", "-d", all, "-o", "json"), `"id"`); kept != len(files) {
		t.Errorf("of %d exports %d runs are kept", len(files), kept)
	}
	var ids, names []string
	for _, file := range quick {
		run := decode(t, file)
		ids, names = append(ids, run.ID), append(names, run.Host.Hostname)
	}
	type joint struct {
		Across   bool `json:"across_machines"`
		Machines []struct {
			Name string `json:"name"`
		} `json:"machines"`
		Benchmarks []struct {
			Name    string `json:"name"`
			Metrics []struct {
				Name    string `json:"name"`
				Targets []struct {
					Target string `json:"target"`
					Runs   []struct {
						Reason string `json:"reason"`
					} `json:"runs"`
				} `json:"targets"`
			} `json:"metrics"`
		} `json:"benchmarks"`
	}
	report := func(args ...string) (j joint, text string) {
		args = append(append([]string{"report", "-d", all, "-o", "json"}, args...), ids...)
		text = host(t, l, dir, args...)
		if err := json.Unmarshal([]byte(text), &j); err != nil {
			t.Fatalf("read the report: %v", err)
		}
		return j, text
	}
	// That of the first run, by which another machine's absolute values would be compared.
	const compared = `"to_first_run"`
	plain, text := report()
	var got []string
	for _, m := range plain.Machines {
		got = append(got, m.Name)
	}
	if !slices.Equal(got, names) {
		t.Errorf("the report is of the machines %q, want %q", got, names)
	}
	beside := 0 // rows of what all of them have measured
	for _, b := range plain.Benchmarks {
		for _, metric := range b.Metrics {
			for _, row := range metric.Targets {
				if b.Name != "scalability.runtime.5" || metric.Name != "TotalTime" || len(row.Runs) != len(quick) {
					continue
				}
				beside++
				for i, run := range row.Runs {
					if run.Reason != "" {
						t.Errorf("%s of %s on %s has no value of %s: %s", metric.Name, b.Name, row.Target, names[i], run.Reason)
					}
				}
			}
		}
	}
	if want := len(strings.Split(quickTargets, ",")); beside != want {
		t.Errorf("%d targets have the values of all machines beside each other, want %d", beside, want)
	}
	if plain.Across || strings.Contains(text, compared) {
		t.Error("the report compares absolute values of different machines without being told to")
	}
	if told, text := report("--across-machines"); !told.Across || !strings.Contains(text, compared) {
		t.Error("the report does not compare absolute values of different machines although told to")
	}
	for _, kind := range []string{"table", "html"} {
		file := filepath.Join(results, "report."+kind)
		host(t, l, dir, append([]string{"report", "-d", all, "-o", kind, "-O", file}, ids...)...)
		text := string(read(t, file))
		for _, name := range names {
			if !strings.Contains(text, name) {
				t.Errorf("the %s has no machine %s", kind, name)
			}
		}
		keep(t, file)
	}
}

// keepVariable names a directory for what comes out of the machines, which is else deleted.
const keepVariable = "LAB_OUT"

// keep copies a file there.
func keep(t *testing.T, file string) {
	t.Helper()
	dir := os.Getenv(keepVariable)
	if dir == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), read(t, file), 0o644); err != nil {
		t.Error(err)
	}
}

// outOf is the directory for what comes out of a machine.
func outOf(t *testing.T, m Machine) string {
	t.Helper()
	dir := os.Getenv(keepVariable)
	if dir == "" {
		return t.TempDir()
	}
	dir = filepath.Join(dir, m.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// live boots a machine, has it take the steps and those that clean up, and checks all that is the same for all machines.
func live(t *testing.T, l *Lab, built string, m Machine, work []job.Step) (out string, report job.Report) {
	t.Helper()
	image, err := l.Build(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	work = append(work, clean()...)
	out = outOf(t, m)
	report, err = l.Boot(t.Context(), m, image, job.Job{
		Hostname: m.Name, Steps: work,
		// Results, and the cache of images, are to stay.
		Keep: []string{"/root", "/home/user", "/var/cache/touchstone"},
	}, inputs(t, built, m, work), Options{Out: out})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range report.Steps {
		t.Logf("%s: %v, %d MiB, %.1f MB written", step.Name, step.Elapsed.Round(time.Millisecond), step.Memory>>20, float64(step.Written)/1e6)
		if step.Name != "killed" && !step.OK() {
			t.Errorf("step %s: exit code %d, %s\n%s", step.Name, step.Code, step.Error, step.Output)
		}
	}
	if killed := report.Step("killed"); !strings.Contains(killed.Error, "limit") {
		t.Errorf("the run that was to be killed ended: exit code %d, %s\n%s", killed.Code, killed.Error, killed.Output)
	}
	if says := report.Step("cleanup").Output; !strings.Contains(says, "there is nothing to remove") {
		t.Errorf("cleanup after runs that ended by themselves: %s", says)
	}
	if says := report.Step("sweep").Output; !strings.Contains(says, "removed") {
		t.Errorf("cleanup after a run that was killed: %s", says)
	}
	for _, left := range report.Left {
		t.Errorf("%s is left in the machine", left)
	}
	limitsHold(t, decode(t, filepath.Join(out, "limits.json")))
	quick := decode(t, filepath.Join(out, "quick.json"))
	known(t, m, quick)
	scales(t, quick)
	return out, report
}

// known checks that a machine is what it is meant to be, and that there is everything of its kernel's that is measured: what is
// not known is left out of results.
func known(t *testing.T, m Machine, run result.Run) {
	t.Helper()
	if host := run.Host; host.Cgroup != "v2" || host.Arch != m.Arch || host.CPUs != m.CPUs {
		t.Errorf("the machine has %d CPUs of %s and cgroup %s", host.CPUs, host.Arch, host.Cgroup)
	}
	for _, warning := range run.Host.Warnings {
		if strings.Contains(warning, "the kernel offers no") {
			t.Errorf("the machine is not whole: %s", warning)
		}
	}
	costs := []string{"HostCPU", "HostMemory", "HostCPURuntime"}
	for _, trial := range run.Trials {
		if trial.Status != result.OK {
			continue
		}
		if host := trial.Host; host.Steal == nil || host.CPUPressure == nil || host.MemoryPressure == nil || host.IOPressure == nil {
			t.Errorf("what the machine did during %s on %s is not known: %+v", trial.Benchmark, trial.Target, host)
		}
		if trial.Benchmark != "operations.container.lifecycle" || trial.Target == "native" {
			continue
		}
		inside := []string{"HostCPUContainer", "PSSContainer"}
		if trial.Target == "oci/runsc" {
			inside = []string{"HostCPUSandbox", "PSSSandbox"}
		}
		for _, metric := range append(inside, costs...) {
			if values := trial.Values(metric); len(values) != 1 || values[0] <= 0 {
				t.Errorf("%s of %s on %s is %v", metric, trial.Benchmark, trial.Target, values)
			}
		}
	}
}

// limitsHold checks that each target kept to its limit of CPU time.
func limitsHold(t *testing.T, run result.Run) {
	t.Helper()
	var bound result.Bound
	for _, b := range run.Bench {
		for _, metric := range b.Metrics {
			if metric.Name == "Used" {
				bound = metric.Bound
			}
		}
	}
	if bound.Broken == "" {
		t.Fatalf("the run has no metric that tells whether a limit holds: %+v", run.Bench)
	}
	for _, trial := range run.Trials {
		values := trial.Values("Used")
		if trial.Status != result.OK || len(values) != 1 || values[0] <= 0 || values[0] > bound.Most {
			t.Errorf("%s on %s is %s (%s), and used %v of its limit; at most %v shows that it holds",
				trial.Benchmark, trial.Target, trial.Status, trial.Reason, values, bound.Most)
		}
	}
	if len(run.Trials) != 3 {
		t.Errorf("limits were tried on %d targets", len(run.Trials))
	}
}

// scales checks that the quick plan had five containers run beside each other on each target.
func scales(t *testing.T, run result.Run) {
	t.Helper()
	var worked []string
	for _, trial := range run.Trials {
		if trial.Benchmark == "scalability.runtime.5" && trial.Status == result.OK && len(trial.Values("TotalTime")) == 1 {
			worked = append(worked, trial.Target)
		}
	}
	slices.Sort(worked)
	want := strings.Split(quickTargets, ",")
	slices.Sort(want)
	if got := slices.Compact(worked); !slices.Equal(got, want) {
		t.Errorf("scalability.runtime.5 worked on %q, want %q", got, want)
	}
}

// Boards boot without the memory controller: what needs it is skipped with the reason, and all else is measured.
func TestWithoutMemoryController(t *testing.T) {
	dir, out := built(t), t.TempDir()
	l, m := open(t), ARM()
	image, err := l.Build(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	work := exported("board", 3*time.Minute, "--targets", "native,oci/crun", "--runs", "1", "--warmup", "0",
		"--filter", "operations.container.lifecycle,limits.memory.oom")
	report, err := l.Boot(t.Context(), m, image, job.Job{Hostname: m.Name, Steps: work, Keep: []string{"/root"}}, inputs(t, dir, m, work),
		Options{Out: out, kernel: []string{"cgroup_disable=memory"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range report.Steps {
		if !step.OK() {
			t.Errorf("step %s: exit code %d, %s\n%s", step.Name, step.Code, step.Error, step.Output)
		}
	}
	run := decode(t, filepath.Join(out, "board.json"))
	if warned := strings.Join(run.Host.Warnings, "\n"); !strings.Contains(warned, "memory cgroup controller") {
		t.Errorf("the host is warned of %q, not of the memory controller that it lacks", warned)
	}
	for _, trial := range run.Trials {
		switch trial.Benchmark {
		case "limits.memory.oom":
			if trial.Status != result.Skipped || !strings.Contains(trial.Reason, "memory") {
				t.Errorf("%s on %s is %s: %q", trial.Benchmark, trial.Target, trial.Status, trial.Reason)
			}
		default:
			// The memory of processes can be read all the same.
			if len(trial.Values("HostCPU")) != 1 || len(trial.Values("PSSContainer")) != 1 || len(trial.Values("HostMemory")) != 0 {
				t.Errorf("%s on %s is %s (%s), with %v", trial.Benchmark, trial.Target, trial.Status, trial.Reason, trial.Samples)
			}
		}
	}
	if len(run.Trials) != 4 {
		t.Errorf("there are %d trials of two benchmarks on two targets", len(run.Trials))
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// decode reads an export of one run.
func decode(t *testing.T, file string) result.Run {
	t.Helper()
	document, err := result.Decode(bytes.NewReader(read(t, file)))
	if err != nil {
		t.Fatal(err)
	}
	if len(document.Runs) != 1 {
		t.Fatalf("%s has %d runs", file, len(document.Runs))
	}
	return document.Runs[0]
}

// host runs a command of this machine, and gives what it wrote to standard output. Nothing else may start processes here.
func host(t *testing.T, l *Lab, dir string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "touchstone-"+runtime.GOARCH), args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := l.Launcher.Run(ctx, cmd); err != nil {
		t.Fatalf("%v: %v\n%s%s", args, err, stdout.String(), stderr.String())
	}
	return stdout.String()
}
