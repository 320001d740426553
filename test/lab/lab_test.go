package lab

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/bench/catalogue"
	"github.com/touchstone-bench/touchstone/internal/engine/enginetest"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/plan"
	"github.com/touchstone-bench/touchstone/internal/process"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/test/cells"
	"github.com/touchstone-bench/touchstone/test/lab/job"
	"github.com/touchstone-bench/touchstone/test/record"
)

// labVariable names the directory with the files that scripts/test-lab.sh has built. For each architecture there are the
// programs guest-ARCH, touchstone-ARCH and runsc-ARCH, the tests native-ARCH.test and oci-ARCH.test, and the workload
// image workload-ARCH.tar. If the image has another list of packages than the built-in one, packages-ARCH.lock is its list. For
// the targets of containerd that need KVM there are cri-amd64.test and containerdFiles.
const labVariable = "TOUCHSTONE_LAB"

// built returns the directory, or skips the test.
func built(t *testing.T) string {
	t.Helper()
	dir := os.Getenv(labVariable)
	if dir == "" {
		t.Skipf("boots virtual machines, but %s is not set: run make test-lab", labVariable)
	}
	return dir
}

// open returns a lab for the duration of the test.
func open(t *testing.T) *Lab {
	t.Helper()
	launcher, err := process.New(process.Options{})
	must.Do(t, err)
	t.Cleanup(func() {
		if err := launcher.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Lab{Launcher: launcher, Guest: os.Getenv(labVariable), Progress: func(step string) { t.Log(step) }}
}

// quickTargets are the targets for the quick plan. An emulated machine takes a minute for one block.
const quickTargets = "native,oci/runc,oci/crun,oci/runsc"

// conformance returns a step that runs the conformance suite of an engine's package. The tests of the targets must not be skipped;
// tests is the pattern of their names.
func conformance(name, engine, tests, user, targets string) job.Step {
	step := job.Step{
		Name: name, User: user, Limit: suiteTime,
		Args: []string{engine + ".test", "-test.v", "-test.timeout=" + suiteTime.String(), "-test.parallel=2", "-test.run=" + tests},
		Env:  []string{enginetest.MustRun + "=" + targets},
	}
	if user == "" { // others may not write to the directory
		step.Env = append(step.Env, record.Variable+"="+job.Out+"/"+recordFile)
	}
	return step
}

// suiteTime is the time after which a conformance suite counts as hanging.
const suiteTime = 25 * time.Minute

// recordFile is the name of the machine's record of tests.
const recordFile = "record.tsv"

// longPlanFile is the name of the quick plan with longer durations.
const longPlanFile = "quick-long.yaml"

// longPlan returns the quick plan with eight times the duration of each program.
func longPlan(t *testing.T) string {
	t.Helper()
	quick := plan.Quick()
	work, err := quick.Resolve(catalogue.Catalogue{})
	must.Do(t, err)
	var text strings.Builder
	text.WriteString("version: 1\nname: quick-long\nbenchmarks:\n")
	for _, w := range work {
		params := ""
		if length, err := time.ParseDuration(w.Params["duration"]); err == nil {
			params = "duration: " + (8 * length).String()
		}
		fmt.Fprintf(&text, "  - {name: %s, params: {%s}}\n", w.Benchmark.Name, params)
	}
	return text.String()
}

// include moves the lines of the machine's record to the record of this test.
func include(t *testing.T, out string) {
	t.Helper()
	file := filepath.Join(out, recordFile)
	record.Include(t, file)
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// brief selects the brief version of the conformance suite.
func brief(step job.Step) job.Step {
	step.Env = append(step.Env, enginetest.AllBrief+"=1")
	return step
}

// nestedSuite selects the time limit of a conformance suite on virtual machines, and one test at a time: of two guests at once one sometimes fails
// in an emulated machine.
func nestedSuite(step job.Step, limit time.Duration) job.Step {
	step.Limit = limit
	step.Args = append(step.Args, "-test.parallel=1", "-test.timeout="+limit.String())
	return step
}

// stepLimit is the time after which a run in a machine counts as hanging.
const stepLimit = 30 * time.Minute

// addBudget adds the budget of a run in a machine to its arguments. The four minutes of the quick plan are for a usual machine.
func addBudget(args ...string) []string { return append(args, "--budget", "25m") }

// touchstone returns a step that runs one of Touchstone's commands.
func touchstone(name string, limit time.Duration, args ...string) job.Step {
	return job.Step{Name: name, Args: append([]string{"touchstone"}, args...), Limit: limit}
}

// exported returns two steps: a benchmark, and the export of its run as JSON.
func exported(name string, limit time.Duration, args ...string) []job.Step {
	dir := "/root/" + name
	export := touchstone("export-"+name, time.Minute, "export", "-d", dir)
	export.Stdout = name + ".json"
	return []job.Step{touchstone(name, limit, append([]string{"benchmark", "-d", dir}, args...)...), export}
}

// packageList returns the list of packages of the workload image, if it differs from the built-in one: see docs/image.md. Without
// it Touchstone in the machine would look for another image than the loaded one.
func packageList(programs string, m Machine) (file string, ok bool) {
	file = filepath.Join(programs, "packages-"+m.Arch+".lock")
	_, err := os.Stat(file)
	return file, err == nil
}

func loadImage(programs string, m Machine) []job.Step {
	steps := []job.Step{touchstone("image", 3*time.Minute, "image", "load", job.Dir+"/workload.tar")}
	if _, ok := packageList(programs, m); ok {
		destination := "/var/cache/touchstone/packages-" + m.Arch + ".lock"
		steps = append(steps, job.Step{Name: "packages", Args: []string{"cp", job.Dir + "/packages.lock", destination}, Limit: time.Minute})
	}
	return steps
}

// steps returns the steps for all machines. Without isWhole they are brief: the quick plan, and the conformance suites in brief.
func steps(programs string, m Machine, isWhole bool) []job.Step {
	crun := conformance("crun", "oci", "^TestConformance$/^oci_crun$", "", "oci/crun")
	if !isWhole {
		crun = brief(crun)
	}
	steps := []job.Step{
		conformance("native", "native", "^TestConformance$/^native$", "", "native"),
		crun,
		brief(conformance("runc", "oci", "^TestConformance$/^oci_runc$", "", "oci/runc")),
		brief(conformance("runsc", "oci", "^TestConformance$/^oci_runsc@platform=systrap$", "", "oci/runsc@platform=systrap")),
	}
	steps = append(steps, loadImage(programs, m)...)
	// The quick plan includes scalability.runtime.5. With --runs each of its benchmarks has one block. The plan's budget is for a usual machine.
	quick := exported("quick", stepLimit, addBudget("--targets", quickTargets, "--warmup", "0", "--runs", "1")...)
	quick[0].Repeat = true // a program in gVisor may get too little CPU time to complete anything within its duration
	quick[0].RepeatArgs = append(slices.Clone(quick[0].Args), "-f", job.Dir+"/"+longPlanFile)
	steps = append(steps, quick...)
	steps = append(steps, exported("traces", stepLimit, addBudget("--targets", tracedTarget, "--filter", "operations.container.lifecycle",
		"--warmup", "0", "--runs", "1", "--trace", "1")...)...)
	if !isWhole {
		return steps
	}
	steps = append(steps, exported("limits", stepLimit, "-f", job.Dir+"/limits.yaml")...)
	neighbours := exported("neighbours", stepLimit, "-f", job.Dir+"/neighbours.yaml")
	neighbours[0].Repeat = true // on a busy host the victim may stand still
	return append(steps, neighbours...)
}

// clean returns steps that kill a run and clean up after it. Nothing may be left after them.
func clean() []job.Step {
	return []job.Step{
		touchstone("cleanup", time.Minute, "cleanup"),
		touchstone("killed", 20*time.Second, "benchmark", "-d", "/root/killed", "--targets", "oci/runc", "--filter", "scalability.runtime.50", "--timeout", "10m"),
		touchstone("sweep", time.Minute, "cleanup"),
	}
}

// more returns the steps for the machine with daemons. The conformance suite on containerd would take longer than all other steps.
func more() []job.Step {
	steps := exported("containerd", stepLimit, addBudget("--managed", "--targets", "containerd/runc,containerd/crun",
		"--filter", "operations.container.lifecycle", "--runs", "1", "--warmup", "0")...)
	steps = append(steps, brief(conformance("rootless", "oci", "^TestConformance$/^oci_crun$", "user", "oci/crun")))
	return slices.Concat(steps, []job.Step{tuned()}, jumps(), functions())
}

// tuned returns a step that changes the mount of cgroup2 and puts it back. Only some kernels permit that; this machine's does.
func tuned() job.Step {
	script := `favored() { while read -r _ _ type options _; do case $type,$options, in cgroup2*,favordynmods,*) return 0;; esac; done </proc/mounts; return 1; }
touchstone host tune --only favordynmods && favored && touchstone host restore && ! favored`
	return job.Step{Name: "tuned", Args: []string{"sh", "-c", script}, Limit: time.Minute}
}

// functions returns steps that count the functions of the kernel, and a step that kills such a run. The machine has no mounted tracefs, and none of its functions
// may stay attached. A trial takes minutes in an emulated machine.
func functions() []job.Step {
	work := exported("functions", stepLimit, addBudget("--targets", "native,oci/crun,oci/runsc", "--filter", "surface.functions", "--runs", "1", "--warmup", "0", "--timeout", "15m")...)
	script := `mount -n -t tracefs tracefs /sys/kernel/tracing && "$@" && test -z "$(cat /sys/kernel/tracing/enabled_functions)"`
	work[0].Args = append([]string{"sh", "-c", script, "sh"}, work[0].Args...)
	script = `attached() { test -n "$(cat /sys/kernel/tracing/enabled_functions)"; }
touchstone benchmark -d /root/functions --targets native --filter surface.functions --timeout 15m & run=$!
until attached; do kill -0 $run || exit; sleep 1; done
kill -9 $run
while attached; do sleep 1; done
touchstone cleanup && umount -n /sys/kernel/tracing`
	return append(work, job.Step{Name: "functions-killed", Args: []string{"sh", "-c", script}, Limit: stepLimit})
}

// checkFunctions checks that most functions of the kernel are observed, that a container without a sandbox reaches as many as a process, and that gVisor, which has a
// network of its own, reaches few of the network.
func checkFunctions(t *testing.T, run result.Run) {
	t.Helper()
	const leastObserved, leastReached = 20_000, 500
	sizes, networks := map[string]float64{}, map[string]float64{}
	for _, trial := range run.Trials {
		if trial.Status != result.OK {
			t.Fatalf("%s on %s is %s: %s", trial.Benchmark, trial.Target, trial.Status, trial.Reason)
		}
		sizes[trial.Target], networks[trial.Target] = trial.Values("HostFunctionsReached")[0], trial.Values("FunctionsNetwork")[0]
		total, err := strconv.Atoi(trial.Conditions["functions that the tracer observes"])
		if err != nil || total < leastObserved || sizes[trial.Target] < leastReached {
			t.Errorf("%s reaches %v of %d functions, %v", trial.Target, sizes[trial.Target], total, err)
		}
	}
	t.Logf("the functions of the kernel that programs reach: %v; functions of the network: %v", sizes, networks)
	if 2*networks["oci/runsc"] >= networks["native"] {
		t.Errorf("gVisor reaches %v functions of the network and native %v", networks["oci/runsc"], networks["native"])
	}
	const tolerance = 0.1
	if difference := sizes["oci/crun"]/sizes["native"] - 1; math.Abs(difference) > tolerance {
		t.Errorf("crun reaches %v functions and native %v", sizes["oci/crun"], sizes["native"])
	}
}

// clockTrials is the number of trials of each target in the step "jumps".
const clockTrials = 8

// jumps returns steps that run a benchmark while the machine's clock jumps a day forward and back, every second.
func jumps() []job.Step {
	work := exported("jumps", stepLimit, addBudget("--targets", "native,oci/runc", "--filter", "operations.container.lifecycle",
		"--runs", strconv.Itoa(clockTrials), "--warmup", "0")...)
	script := `"$@" & run=$!
while kill -0 $run 2>/dev/null; do date -s "+1 day"; sleep 1; date -s "-1 day"; sleep 1; done >/dev/null
wait $run`
	work[0].Args = append([]string{"sh", "-c", script, "sh"}, work[0].Args...)
	return work
}

// checkJumps checks the run under a clock that jumps: trials began on both days, no trial is lost, and no value has a day in it.
func checkJumps(t *testing.T, run result.Run) {
	t.Helper()
	times := map[string]bool{}
	for _, b := range run.Bench {
		for _, m := range b.Metrics {
			times[m.Name] = m.Unit == result.Seconds
		}
	}
	ok, days := map[string]int{}, map[int]bool{}
	for _, trial := range run.Trials {
		days[trial.Started.YearDay()] = true
		if trial.Status == result.OK {
			ok[trial.Target]++
		}
		if trial.Elapsed < 0 || trial.Elapsed > time.Hour {
			t.Errorf("a trial on %s took %v", trial.Target, trial.Elapsed)
		}
		for _, sample := range trial.Samples {
			if times[sample.Metric] && (sample.Value < 0 || sample.Value > time.Hour.Seconds()) {
				t.Errorf("%s of a trial on %s is %g s", sample.Metric, trial.Target, sample.Value)
			}
		}
	}
	if took := run.Ended.Sub(run.Started); took < 0 || took > time.Hour {
		t.Errorf("the run took %v by its own times", took)
	}
	if len(days) < 2 {
		t.Error("all trials began on the same day, so the clock did not jump during the run")
	}
	if want := map[string]int{"native": clockTrials, "oci/runc": clockTrials}; !maps.Equal(ok, want) {
		t.Errorf("trials without an error: %v, want %v", ok, want)
	}
}

// nestedWork is a job for targets that need KVM.
type nestedWork struct {
	name  string
	steps []job.Step
	add   func(map[string]string) // adds files for the steps; may be nil
	limit time.Duration           // of the machine
	again bool                    // a failed step repeats the job in a new boot
	runs  []nestedRun
}

// nestedRun is a run of a nestedWork on one target.
type nestedRun struct {
	step, target string
	skips        bool              // some benchmarks of the run do not apply to the target
	fails        map[string]string // benchmarks that must fail, with a part of the reason
}

// allowFailures makes the step of a run successful if only trials of it failed.
func allowFailures(report job.Report, name string) {
	const someFailed = 3
	if run := report.Step(name); run != nil && run.Code == someFailed && run.Error == "" {
		run.Code = 0
	}
}

// nestedBoots is the largest number of boots of a machine that uses KVM all the time. Faults of the emulator are avoided, as far as they are
// known: see docs/adr/0030.
const nestedBoots = 2

// nestedLimit leaves time for steps that are repeated.
const nestedLimit = 35 * time.Minute

// bootNested runs the steps in machine V2, in a new boot if the emulator fails. The log has the outcome of each boot.
func bootNested(t *testing.T, l *Lab, programs string, work nestedWork) (out string, report job.Report) {
	t.Helper()
	m := nestedMachine()
	image, err := l.Build(t.Context(), m)
	must.Do(t, err)
	files := inputs(t, programs, m, work.steps)
	if work.add != nil {
		work.add(files)
	}
	out = outOf(t, work.name)
	for boot := 1; ; boot++ {
		report, err = l.Boot(t.Context(), m, image, nestedJob(work.name, work.steps), files, Options{Out: out, Emulated: true, Limit: work.limit})
		for _, run := range work.runs {
			if len(run.fails) > 0 {
				allowFailures(report, run.step)
			}
		}
		logSteps(t, report)
		include(t, out)
		failed := failedSteps(report)
		switch {
		case err == nil && (len(failed) == 0 || !work.again):
			return out, report
		case err == nil && boot == nestedBoots: // the caller reports the failed steps
			return out, report
		case err == nil:
			record.Repeat(t, fmt.Sprintf("boot %d of at most %d has the failed steps %s", boot, nestedBoots, strings.Join(failed, ", ")))
		case boot < nestedBoots && errors.As(err, new(*BootError)):
			record.Repeat(t, fmt.Sprintf("boot %d of at most %d: %v", boot, nestedBoots, err))
		default:
			t.Fatal(err)
		}
	}
}

// nested runs steps for targets that need KVM, and checks the exported runs.
func nested(t *testing.T, l *Lab, programs string, work nestedWork) {
	t.Helper()
	out, report := bootNested(t, l, programs, work)
	checkReport(t, report)
	if report.Step("killed") != nil {
		checkKilled(t, report)
	}
	for _, run := range work.runs {
		run.check(t, decode(t, filepath.Join(out, run.step+".json")).Trials)
	}
}

func (r nestedRun) check(t *testing.T, trials []result.Trial) {
	t.Helper()
	if len(trials) == 0 {
		t.Errorf("the run on %s has no trials", r.target)
	}
	for _, trial := range trials {
		ok := trial.Status == result.OK || r.skips && trial.Status == result.Skipped
		if cause, isKnown := r.fails[trial.Benchmark]; isKnown {
			ok = trial.Status == result.Failed && strings.Contains(trial.Reason, cause)
		}
		if trial.Target != r.target || !ok {
			t.Errorf("%s on %s is %s: %s", trial.Benchmark, trial.Target, trial.Status, trial.Reason)
		}
	}
}

// nestedCPUs are the CPUs of the programs in a machine that uses KVM. CPU 0 must run no virtual machine: other emulated CPUs write old flags of CPU
// 0 back, which say whether it runs one. See docs/adr/0030.
const nestedCPUs = "1-2"

// nestedMachine is machine V2 with the CPU that nestedCPUs leave free.
func nestedMachine() Machine {
	m := V2()
	m.CPUs++
	return m
}

// nestedJob is a job that uses KVM, and may leave Kata's programs behind.
func nestedJob(name string, work []job.Step) job.Job {
	return job.Job{Hostname: name, Steps: work, CPUs: nestedCPUs, Keep: []string{"/root", "/var/cache/touchstone", "/opt/kata", "/usr/local"}}
}

// failedSteps lists the steps that failed. Step "killed" must fail.
func failedSteps(report job.Report) (names []string) {
	for _, step := range report.Steps {
		if step.Name != "killed" && !step.OK() {
			names = append(names, step.Name)
		}
	}
	return names
}

func logSteps(t *testing.T, report job.Report) {
	t.Helper()
	for _, step := range report.Steps {
		t.Logf("%s: %v, %d MiB, %.1f MB written", step.Name, step.Elapsed.Round(time.Millisecond), step.Memory>>20, float64(step.Written)/1e6)
		if firstTry := step.Earlier; firstTry != nil {
			record.Repeat(t, fmt.Sprintf("step %s failed with exit code %d, %s: %s", step.Name, firstTry.Code, firstTry.Error, firstTry.Output))
		}
		if !step.OK() {
			t.Logf("step %s: exit code %d, %s\n%s", step.Name, step.Code, step.Error, step.Output)
		}
	}
}

// checkReport fails the test if a step failed or left something behind.
func checkReport(t *testing.T, report job.Report) {
	t.Helper()
	if failed := failedSteps(report); len(failed) > 0 {
		t.Errorf("failed steps: %s", strings.Join(failed, ", "))
	}
	for _, left := range report.Left {
		t.Errorf("%s is left in the machine", left)
	}
}

// checkSteps logs the outcomes of the steps, and checks them.
func checkSteps(t *testing.T, report job.Report) {
	t.Helper()
	logSteps(t, report)
	checkReport(t, report)
}

// kvmSteps test gVisor's KVM platform, in a machine in which KVM works.
func kvmSteps() []job.Step {
	return append(
		[]job.Step{brief(conformance("kvm", "oci", "^(TestConformance|TestOtherPlatformIsAFailure)$/^oci_runsc@platform=kvm$", "", kvmTarget))},
		exported("kvm-runs", 8*time.Minute, addBudget("--targets", kvmTarget, "--filter", "operations.container.lifecycle,operations.container.exec",
			"--warmup", "0", "--runs", "1")...)...,
	)
}

const kvmTarget = "oci/runsc@platform=kvm"

// inputs returns the host files for the steps, by their names in the machine.
func inputs(t *testing.T, programs string, m Machine, work []job.Step) map[string]string {
	t.Helper()
	files := map[string]string{}
	dir := t.TempDir()
	for name, text := range map[string]string{longPlanFile: longPlan(t), "limits.yaml": limitPlan, "neighbours.yaml": neighboursPlan, "kata.yaml": kataPlan} {
		files[name] = filepath.Join(dir, name)
		must.Do(t, os.WriteFile(files[name], []byte(text), 0o644))
	}
	for _, program := range []string{"touchstone", "runsc"} {
		files[program] = filepath.Join(programs, program+"-"+m.Arch)
	}
	if file, ok := packageList(programs, m); ok {
		files["packages.lock"] = file
	}
	for _, step := range work {
		if program, ok := strings.CutSuffix(step.Args[0], ".test"); ok {
			files[step.Args[0]] = filepath.Join(programs, program+"-"+m.Arch+".test")
		}
		if step.Name == "image" {
			files["workload.tar"] = filepath.Join(programs, "workload-"+m.Arch+".tar")
		}
	}
	return files
}

func TestLab(t *testing.T) {
	dir := built(t)
	l := open(t)
	for _, m := range []Machine{V2(), ARM()} {
		t.Run(m.Name, func(t *testing.T) {
			// V2 boots in every change, and runs all its steps only in some.
			v2 := m.Name == V2().Name
			isWhole := !v2 || cells.Runs(t, "lab/v2")
			if !v2 {
				cells.Need(t, "lab/arm")
			}
			work := steps(dir, m, isWhole)
			if v2 && isWhole {
				work = append(work, more()...)
			}
			if !v2 {
				work = append(work, touchstone("wear", stepLimit, addBudget("benchmark", "-d", "/root/wear", "--targets", "native",
					"--filter", "operations.container.lifecycle", "--runs", strconv.Itoa(wearTrials), "--warmup", "0")...))
			}
			out, report := boot(t, l, dir, m, work, isWhole)
			if v2 && isWhole {
				checkJumps(t, decode(t, filepath.Join(out, "jumps.json")))
				checkFunctions(t, decode(t, filepath.Join(out, "functions.json")))
			}
			if !v2 {
				checkFootprint(t, &report, decode(t, filepath.Join(out, "quick.json")))
			}
		})
	}
	t.Run("kvm", func(t *testing.T) {
		cells.Need(t, "lab/kvm")
		work := nestedWork{name: "kvm", steps: kvmSteps(), limit: nestedLimit, again: true, runs: []nestedRun{{step: "kvm-runs", target: kvmTarget}}}
		kata, missing := findKata(dir)
		if missing == nil {
			work.steps = append(work.steps, kata.steps()...)
			work.runs = append(work.runs, nestedRun{step: "kata-runs", target: kataTarget})
			work.add = func(files map[string]string) { kata.add(t, files) }
		}
		nested(t, l, dir, work)
		t.Run("kata", func(t *testing.T) { enginetest.Require(t, kataTarget, missing) })
	})
}

// wearTrials is the number of trials in the step "wear", which measures the bytes written per trial.
const wearTrials = 100

// checkFootprint checks Touchstone's own memory use and disk writes for the quick plan on a small board. It extrapolates the
// writes from the writes per trial. All blocks of the plan would take too long here, and one of its benchmarks writes to the disk itself.
func checkFootprint(t *testing.T, report *job.Report, block result.Run) {
	t.Helper()
	const mostMemory, mostWritten = 64 << 20, 20e6
	for _, step := range []*job.Outcome{report.Step("quick"), report.Step("wear")} {
		if step.Memory == 0 || step.Memory >= mostMemory {
			t.Errorf("Touchstone used %d bytes of memory for %s, want less than %d", step.Memory, step.Name, mostMemory)
		}
	}
	quick := plan.Quick()
	work, err := quick.Resolve(catalogue.Catalogue{})
	must.Do(t, err)
	trials := 0
	for _, trial := range block.Trials {
		index := slices.IndexFunc(work, func(w plan.Work) bool { return w.Benchmark.Name == trial.Benchmark })
		if index < 0 {
			t.Fatalf("the quick plan does not have %s", trial.Benchmark)
		}
		if trial.Status == result.OK {
			trials += quick.Warmup + cmp.Or(work[index].Blocks, quick.Blocks)
		}
	}
	wear := report.Step("wear").Written
	volume := float64(wear) / wearTrials * float64(trials)
	t.Logf("the whole quick plan has %d trials, which write %.1f MB", trials, volume/1e6)
	if wear == 0 || volume >= mostWritten {
		t.Errorf("the quick plan would write %.0f bytes to the disk, want less than %.0f", volume, mostWritten)
	}
}

// keepVariable names a directory for the output files of the machines. Without it the test deletes them.
const keepVariable = "LAB_OUT"

// outOf returns the directory for the output files of a boot.
func outOf(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv(keepVariable)
	if dir == "" {
		return t.TempDir()
	}
	dir = filepath.Join(dir, name)
	must.Do(t, os.MkdirAll(dir, 0o755))
	return dir
}

// repeatBreakpoint boots a machine again, once, if an emulated CPU met a breakpoint of the kernel's own patches after its end: see docs/adr/0030.
func repeatBreakpoint(t testing.TB, boot func() (job.Report, error)) (job.Report, error) {
	t.Helper()
	report, err := boot()
	if b := (*BootError)(nil); !errors.As(err, &b) || !strings.Contains(b.Console, "Oops: int3") {
		return report, err
	}
	record.Repeat(t, fmt.Sprintf("the emulator has met an old breakpoint: %v", err))
	return boot()
}

func TestRepeatBreakpoint(t *testing.T) {
	t.Setenv(record.Variable, "")
	breakpoint, panicErr := &BootError{Console: "[    3.7] Oops: int3: 0000 [#1] PREEMPT SMP NOPTI\n"}, &BootError{Console: "Kernel panic"}
	for _, tt := range []struct {
		results []error
		boots   int
		want    error
	}{
		{[]error{nil}, 1, nil}, {[]error{breakpoint, nil}, 2, nil}, {[]error{breakpoint, breakpoint, nil}, 2, breakpoint}, {[]error{panicErr, nil}, 1, panicErr},
	} {
		boots := 0
		_, err := repeatBreakpoint(t, func() (job.Report, error) {
			boots++
			return job.Report{}, tt.results[boots-1]
		})
		if !errors.Is(err, tt.want) || boots != tt.boots {
			t.Errorf("%d boots, %v; want %d, %v", boots, err, tt.boots, tt.want)
		}
	}
}

// boot boots a machine, runs the steps and the clean-up steps in it, and checks the results that all machines have in common.
func boot(t *testing.T, l *Lab, programs string, m Machine, work []job.Step, isWhole bool) (out string, report job.Report) {
	t.Helper()
	image, err := l.Build(t.Context(), m)
	must.Do(t, err)
	work = append(work, clean()...)
	out = outOf(t, m.Name)
	bootJob := job.Job{
		Hostname: m.Name, Steps: work,
		// Results and the cache of images may stay.
		// The lock of host tune stays until the next boot: a lock on a file that is removed would be no lock.
		Keep: []string{"/root", "/home/user", "/var/cache/touchstone", "/run/touchstone-host-tuning.lock"},
	}
	files := inputs(t, programs, m, work)
	report, err = repeatBreakpoint(t, func() (job.Report, error) { return l.Boot(t.Context(), m, image, bootJob, files, Options{Out: out}) })
	must.Do(t, err)
	checkSteps(t, report)
	include(t, out)
	if output := report.Step("cleanup").Output; !strings.Contains(output, "nothing to remove") {
		t.Errorf("cleanup after completed runs: %s", output)
	}
	checkKilled(t, report)
	if isWhole {
		checkLimits(t, decode(t, filepath.Join(out, "limits.json")))
		checkNeighbours(t, decode(t, filepath.Join(out, "neighbours.json")))
	}
	checkTraces(t, decode(t, filepath.Join(out, "traces.json")))
	checkHost(t, m, decode(t, filepath.Join(out, "quick.json")))
	return out, report
}

// tracedTarget is the target of the step "traces".
const tracedTarget = "oci/crun"

// checkTraces checks that the tracer works on the kernel of the machine: the runtime has mounts while it creates a container, the number of
// which depends on no kernel by more than a few, and executes its own program.
func checkTraces(t *testing.T, run result.Run) {
	t.Helper()
	if len(run.Traces) != 1 || run.Traces[0].Reason != "" {
		t.Fatalf("the run has the traces %+v, want one with counts; its caveats are %q", run.Traces, run.Caveats)
	}
	const leastMounts = 20
	mounts, execs := int64(0), int64(0)
	for _, c := range run.Traces[0].Counts {
		if c.Step == "create" && c.Component == "runtime" {
			mounts, execs = mounts+c.Calls["mount"]+c.Calls["move_mount"], execs+c.Programs["crun"]
		}
	}
	if mounts < leastMounts || execs == 0 {
		t.Errorf("create has %d mounts and %d executions of crun, want at least %d and 1: %+v", mounts, execs, leastMounts, run.Traces[0].Counts)
	}
}

// checkKilled checks that step "killed" was killed, and that step "sweep" removed the remains.
func checkKilled(t *testing.T, report job.Report) {
	t.Helper()
	if step := report.Step("killed"); !strings.Contains(step.Error, "limit") {
		t.Errorf("the run exited before it was killed: exit code %d, %s\n%s", step.Code, step.Error, step.Output)
	}
	if output := report.Step("sweep").Output; !strings.Contains(output, "removed") {
		t.Errorf("cleanup after a killed run: %s", output)
	}
}

// checkHost checks that the run has the machine's own properties, that five containers at once work on each target, and that the kernel
// provides everything that Touchstone measures. Touchstone omits a value from the results if the kernel does not provide it.
func checkHost(t *testing.T, m Machine, run result.Run) {
	t.Helper()
	if host := run.Host; host.Cgroup != "v2" || host.Arch != m.Arch || host.CPUs != m.CPUs {
		t.Errorf("the machine has %d CPUs, architecture %s and cgroup %s", host.CPUs, host.Arch, host.Cgroup)
	}
	for _, warning := range run.Host.Warnings {
		if strings.Contains(warning, "the kernel offers no") {
			t.Errorf("the kernel lacks a feature: %s", warning)
		}
	}
	costs := []string{"HostCPU", "HostMemory", "HostCPURuntime"}
	for _, trial := range run.Trials {
		if trial.Status != result.OK {
			if trial.Benchmark == "scalability.runtime.5" {
				t.Errorf("%s on %s is %s: %s", trial.Benchmark, trial.Target, trial.Status, trial.Reason)
			}
			continue
		}
		if host := trial.Host; host.Steal == nil || host.CPUPressure == nil || host.MemoryPressure == nil || host.IOPressure == nil {
			t.Errorf("values of the host are missing for %s on %s: %+v", trial.Benchmark, trial.Target, host)
		}
		if trial.Benchmark != "operations.container.lifecycle" || trial.Target == "native" {
			continue
		}
		metrics := []string{"HostCPUContainer", "PSSContainer"}
		if trial.Target == "oci/runsc" {
			metrics = []string{"HostCPUSentry", "PSSSentry", "PSSGofer"}
		}
		for _, metric := range append(metrics, costs...) {
			if values := trial.Values(metric); len(values) != 1 || values[0] <= 0 {
				t.Errorf("%s of %s on %s is %v", metric, trial.Benchmark, trial.Target, values)
			}
		}
	}
}

// Some boards boot without the memory controller. Benchmarks that need it must be skipped with the reason, and all others measured.
func TestWithoutMemoryController(t *testing.T) {
	cells.Need(t, "lab/controllers")
	dir, out := built(t), t.TempDir()
	l, m := open(t), ARM()
	image, err := l.Build(t.Context(), m)
	must.Do(t, err)
	work := exported("board", stepLimit, addBudget("--targets", "native,oci/crun", "--runs", "1", "--warmup", "0",
		"--filter", "operations.container.lifecycle,limits.memory.oom")...)
	files := inputs(t, dir, m, work)
	report, err := repeatBreakpoint(t, func() (job.Report, error) {
		return l.Boot(t.Context(), m, image, job.Job{Hostname: m.Name, Steps: work, Keep: []string{"/root"}}, files,
			Options{Out: out, kernel: []string{"cgroup_disable=memory"}})
	})
	must.Do(t, err)
	for _, step := range report.Steps {
		if !step.OK() {
			t.Errorf("step %s: exit code %d, %s\n%s", step.Name, step.Code, step.Error, step.Output)
		}
	}
	run := decode(t, filepath.Join(out, "board.json"))
	if warnings := strings.Join(run.Host.Warnings, "\n"); !strings.Contains(warnings, "memory cgroup controller") {
		t.Errorf("no warning about the missing memory controller, only %q", warnings)
	}
	for _, trial := range run.Trials {
		switch trial.Benchmark {
		case "limits.memory.oom":
			if trial.Status != result.Skipped || !strings.Contains(trial.Reason, "memory") {
				t.Errorf("%s on %s is %s: %q", trial.Benchmark, trial.Target, trial.Status, trial.Reason)
			}
		default:
			// Process memory comes from /proc and needs no controller.
			if len(trial.Values("HostCPU")) != 1 || len(trial.Values("PSSContainer")) != 1 || len(trial.Values("HostMemory")) != 0 {
				t.Errorf("%s on %s is %s (%s), with %v", trial.Benchmark, trial.Target, trial.Status, trial.Reason, trial.Samples)
			}
		}
	}
	if len(run.Trials) != 4 {
		t.Errorf("%d trials of two benchmarks on two targets, want 4", len(run.Trials))
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	must.Do(t, err)
	return text
}

// decode reads an export of one run.
func decode(t *testing.T, file string) result.Run {
	t.Helper()
	document, err := result.Decode(bytes.NewReader(read(t, file)))
	must.Do(t, err)
	if len(document.Runs) != 1 {
		t.Fatalf("%s has %d runs", file, len(document.Runs))
	}
	return document.Runs[0]
}
