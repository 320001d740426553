package cli_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite"

	"github.com/touchstone-bench/touchstone/internal/cli"
	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/peer"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/workload/remote"
)

// TestMain makes the test binary touchstone if its name is touchstone.
func TestMain(m *testing.M) {
	testscript.Main(tester{m}, map[string]func(){
		"touchstone": func() {
			if root := os.Getenv("TOUCHSTONE_TEST_MACHINE"); root != "" {
				os.Exit(cli.MainOn(root, concurrent(os.Args[1:])))
			}
			os.Exit(cli.Main(concurrent(os.Args[1:])))
		},
	})
}

// concurrent lets the runs of parallel tests measure each other, also those that another program starts. A later argument
// can revoke it.
func concurrent(args []string) []string {
	if len(args) > 1 && args[0] == "counts" {
		return slices.Insert(slices.Clone(args), 2, "--allow-concurrent")
	}
	if len(args) > 0 && slices.Contains([]string{"ab", "benchmark", "reproduce", "selfcheck", "setup"}, args[0]) && !slices.Contains(args, "--wait") {
		return slices.Insert(slices.Clone(args), 1, "--allow-concurrent")
	}
	return args
}

// tester runs the tests in a process that ignores no signal. A parent such as nohup or a background shell may ignore
// some, and child processes would inherit that.
type tester struct{ *testing.M }

func (t tester) Run() int {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	return t.M.Run()
}

// TestScripts executes the scripts in testdata: one for each verb, each exit code, and each kind of error without a
// container.
func TestScripts(t *testing.T) {
	repository, err := filepath.Abs("../..")
	must.Do(t, err)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("REPOSITORY", repository)
			// The machine may have parts of its own.
			env.Setenv("TOUCHSTONE_RUNTIMES", filepath.Join(env.WorkDir, "runtimes"))
			// PATH has touchstone and no runtime.
			env.Setenv("BIN", filepath.SplitList(env.Getenv("PATH"))[0])
			env.Setenv("OWN", ownAddress())
			return nil
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Geteuid() == 0, nil
			case "address":
				return ownAddress() != "", nil
			}
			return false, errors.New("there is no condition " + cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "sql": execute, "trials": trials, "same": same, "elsewhere": elsewhere, "replace": replace,
			"layout": addImage, "saved": saveImage, "scaled": scaled, "counted": counted, "negative": negative, "fits": fits, "private": private, "fleet": exportFleet,
		},
	})
}

// ownAddress is an IPv4 address of this machine, or an empty string if only the loopback interface has one.
func ownAddress() string {
	addresses, err := peer.Own()
	if i := slices.IndexFunc(addresses, func(a netip.Addr) bool { return remote.Check(a) == nil }); err == nil && i >= 0 {
		return addresses[i].String()
	}
	return ""
}

// exits CODE ARGUMENT... executes touchstone, which must end with that exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec("touchstone", args[1:]...)
	got := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode() // -1 after a signal
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("touchstone ended with exit code %d, want %d", got, want)
	}
}

// sql FILE STATEMENT executes a statement on a SQLite file, without touchstone.
func execute(ts *testscript.TestScript, _ bool, args []string) {
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	_, err = db.Exec(args[1])
	ts.Check(err)
	ts.Check(db.Close())
}

// elsewhere FROM TO ID HOSTNAME changes an export of one run into an export of another machine, one day earlier.
func elsewhere(ts *testscript.TestScript, _ bool, args []string) {
	document, err := result.Decode(bytes.NewReader([]byte(ts.ReadFile(args[0]))))
	ts.Check(err)
	run := &document.Runs[0]
	run.ID, run.Host.Hostname, run.Host.Arch, run.Host.Cgroup = args[2], args[3], "arm64", "v2"
	run.Started = run.Started.AddDate(0, 0, -1)
	var b bytes.Buffer
	ts.Check(result.Encode(&b, document))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b.Bytes(), 0o600))
}

// replace FROM TO OLD NEW copies a file and replaces the first OLD in it.
func replace(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[2]) {
		ts.Fatalf("%s has no %s", args[0], args[2])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(strings.Replace(text, args[2], args[3], 1)), 0o600))
}

// trials FILE TARGET STATUS N checks that an export has N trials of a target with a status. Warm-up trials count only
// as status warm-up.
func trials(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[3])
	ts.Check(err)
	document, err := result.Decode(bytes.NewReader([]byte(ts.ReadFile(args[0]))))
	ts.Check(err)
	got := 0
	for _, r := range document.Runs {
		for _, t := range r.Trials {
			status := string(t.Status)
			if t.Warmup {
				status = "warm-up"
			}
			if t.Target == args[1] && status == args[2] {
				got++
			}
		}
	}
	if got != want {
		ts.Fatalf("%s has %d trials of %s that are %s, want %d", args[0], got, args[1], args[2], want)
	}
}

// same FILE FILE compares two JSON reports, apart from IDs and times.
func same(ts *testscript.TestScript, _ bool, args []string) {
	var reports [2]map[string]any
	for i := range reports {
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[i])), &reports[i]))
		run := reports[i]["run"].(map[string]any)
		for _, key := range []string{"id", "started", "ended", "host", "self_cpu_share"} {
			delete(run, key)
		}
		warnings := reports[i]["warnings"].([]any)
		reports[i]["warnings"] = slices.DeleteFunc(warnings, func(w any) bool { return w.(map[string]any)["title"] == "The host" })
	}
	if diff := cmp.Diff(reports[0], reports[1]); diff != "" {
		ts.Fatalf("%s and %s differ (-first +second):\n%s", args[0], args[1], diff)
	}
}
