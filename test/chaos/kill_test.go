package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/test/cells"
)

const (
	// killsVariable is the number of kills of case 9, and seedVariable the seed of their moments.
	killsVariable = "CHAOS_KILLS"
	seedVariable  = "CHAOS_SEED"
)

func (h *host) number(variable string, fallback int) int {
	h.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		h.Fatalf("read %s: %v", variable, err)
	}
	return n
}

// victim is a kind of run that case 9 kills.
type victim struct {
	engine  string
	managed bool
}

func (v victim) String() string {
	if v.engine != "oci" && !v.managed {
		return v.engine + " of the user"
	}
	return v.engine
}

// attempt is one killed run.
type attempt struct {
	victim
	w     *wrapped
	p     *program
	after time.Duration // the moment of the kill
	kept  []result.Trial
}

// begin starts the run of an attempt.
func (v victim) begin(h *host) *attempt {
	h.Helper()
	a := &attempt{victim: v, w: h.wrap()}
	target := v.engine + "/held"
	args := []string{"--filter", "operations.container", "--runs", "2", "--warmup", "0"}
	switch {
	case v.managed:
		args = append(args, "--managed")
	case v.engine == "docker":
		target = "docker/runc"
	}
	a.p = h.benchmark(h.newDir(), append(append(args, "--targets", target), a.w.flag("held")...)...)
	return a
}

// TestRandomKills kills runs at random moments, beside a live run and bystanders. A clean-up must remove all leftovers and nothing else,
// and every trial that was committed must stay in the database.
//
// Invariant dead-runs.
func TestRandomKills(t *testing.T) {
	cells.Need(t, "chaos/kills")
	onHost(t, 9, "runs killed at random moments, beside another run and bystanders", func(h *host) {
		h.need("runc", "containerd", "dockerd", "podman")
		kills := 12
		if full() {
			kills = 1000
		}
		kills = h.number(killsVariable, kills)
		seed := h.number(seedVariable, int(time.Now().UnixNano()>>20))
		h.Logf("%s=%d %s=%d", killsVariable, kills, seedVariable, seed)
		random := rand.New(rand.NewPCG(uint64(seed), 0))

		h.bystanders()
		h.userDaemon()
		h.watch()
		live := h.liveRun("oci", "containerd", "podman")
		victims := []victim{{"oci", true}, {"containerd", true}, {"docker", true}, {"podman", true}, {"docker", false}}
		if _, err := exec.LookPath("crio"); err == nil {
			victims = append(victims, victim{"crio", true})
		}

		// A whole run of each shows how long it takes beside the others, and that it works here.
		durations := h.references(victims)
		for done := 0; done < kills; {
			var attempts []*attempt
			var wg sync.WaitGroup
			for i := range min(len(victims), kills-done) {
				a := victims[i].begin(h)
				a.after = time.Duration(random.Int64N(int64(durations[i])))
				attempts = append(attempts, a)
				wg.Go(func() {
					pause(a.after - time.Since(a.p.began))
					_ = a.p.cmd.Process.Signal(syscall.SIGKILL) // it may have ended
					a.p.exited()
				})
			}
			wg.Wait()
			done += len(attempts)
			h.tried(len(attempts))
			h.afterKills(attempts)
		}
		live.finish()
	})
}

// references runs each victim to its end, all at the same time, and returns the durations.
func (h *host) references(victims []victim) []time.Duration {
	h.Helper()
	took := make([]time.Duration, len(victims))
	var wg sync.WaitGroup
	for i, v := range victims {
		a := v.begin(h)
		wg.Go(func() { took[i] = a.p.ends(0) })
	}
	wg.Wait()
	h.Logf("whole runs of %v take %v", victims, took)
	return took
}

// afterKills removes the leftovers of killed runs, and checks the host and the databases.
func (h *host) afterKills(attempts []*attempt) {
	h.Helper()
	for _, a := range attempts {
		a.kept = a.trials(h)
		if evident := a.evident(); len(a.kept) < evident {
			h.row.Lost += evident - len(a.kept)
			h.wrong("%v: %d trials are recorded, but trial %d had begun", a, len(a.kept), evident+1)
		}
	}
	cleanup := h.cleanUp(nil)
	for _, a := range attempts {
		keys := map[string]bool{}
		for _, t := range a.trials(h) {
			keys[key(t)] = true
		}
		for _, t := range a.kept {
			if !keys[key(t)] {
				h.row.Lost++
				h.wrong("%v: trial %s is lost", a, key(t))
			}
		}
	}
	left, losses := h.differences()
	h.differs(left, losses, "after the kills of %v\ncleanup:\n%s", attempts, cleanup.output())
}

func (a *attempt) String() string {
	return fmt.Sprintf("%v after %v", a.victim, a.after.Round(time.Millisecond))
}

// key identifies a trial with its outcome.
func key(t result.Trial) string {
	return fmt.Sprintf("%d %s %s %d %s %d", t.Seq, t.Benchmark, t.Target, t.Block, t.Status, len(t.Samples))
}

// trials returns the recorded trials of a killed run.
func (a *attempt) trials(h *host) (trials []result.Trial) {
	h.Helper()
	for _, run := range h.runs(a.p.dir) {
		trials = append(trials, run.Trials...)
	}
	return trials
}

// trialNumber finds the number of a trial in the ID of its container.
var trialNumber = regexp.MustCompile(`^touchstone-[0-9]{8}-[0-9]{6}-[a-z2-7]{4}-t([0-9]+)-`)

// evident returns the number of trials that must be recorded: a trial begins after the record of the one before. Only the bare runtime
// is called with IDs that have the number.
func (a *attempt) evident() (n int) {
	for _, call := range a.w.calls("create") {
		if m := trialNumber.FindStringSubmatch(call.Args[len(call.Args)-1]); m != nil {
			last, err := strconv.Atoi(m[1])
			if err != nil {
				a.p.h.Fatal(err)
			}
			n = max(n, last-1)
		}
	}
	return n
}
