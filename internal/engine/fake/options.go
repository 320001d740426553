package fake

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/target"
)

// op is the name of a call in faults and latencies.
type op string

const (
	opCreate op = "create"
	opStart  op = "start"
	opKill   op = "kill"
	opWait   op = "wait"
	opState  op = "state"
	opDelete op = "delete"
	opExec   op = "exec"
	opPause  op = "pause"
	opResume op = "resume"
	opUpdate op = "update"
	opStats  op = "stats"
	opPull   op = "pull"
	opRemove op = "remove" // of an image
	opOpen   op = "open"   // of the target, with its first container
)

func ops() []op {
	return []op{opCreate, opStart, opKill, opWait, opState, opDelete, opExec, opPause, opResume, opUpdate, opStats, opPull, opRemove}
}

// script holds the options of a target.
type script struct {
	latency map[op]time.Duration
	exit    time.Duration
	// ready is negative for the default, half of the latency of start.
	ready   time.Duration
	jitter  float64
	drift   float64
	wander  float64
	bimodal struct{ share, factor float64 }
	seed    uint64

	fail, hang, leak, die, lie []fault
	garbage                    []int
	missing                    engine.Missing

	score  float64
	cpu    time.Duration
	memory int64
	slab   int64
}

// fault is a failing call: the nth of its kind on an engine, or all if n is 0.
type fault struct {
	op op
	n  int
}

func hits(faults []fault, o op, n int) bool {
	return slices.ContainsFunc(faults, func(f fault) bool { return f.op == o && (f.n == 0 || f.n == n) })
}

// option is one option of a fake target.
type option struct {
	name string
	set  func(s *script, value string) error
}

// options lists all options, in the order of messages.
func options() []option {
	var list []option
	for _, o := range []op{opCreate, opStart, opKill, opDelete, opExec, opPause, opResume, opUpdate, opStats, opPull, opRemove} {
		list = append(list, option{string(o), func(s *script, v string) (err error) {
			s.latency[o], err = parseLatency(v)
			return err
		}})
	}
	return append(list,
		option{"exit", func(s *script, v string) (err error) { s.exit, err = parseLatency(v); return err }},
		option{"ready", func(s *script, v string) (err error) { s.ready, err = parseLatency(v); return err }},
		option{"jitter", func(s *script, v string) (err error) { s.jitter, err = parseNumber(v, 0, 10); return err }},
		option{"drift", func(s *script, v string) (err error) { s.drift, err = parseNumber(v, 0, 10); return err }},
		option{"wander", func(s *script, v string) (err error) { s.wander, err = parseNumber(v, 0, 10); return err }},
		option{"bimodal", setBimodal},
		option{"seed", func(s *script, v string) (err error) { s.seed, err = strconv.ParseUint(v, 10, 64); return err }},
		option{"fail", func(s *script, v string) (err error) { s.fail, err = parseFaults(v, append(ops(), opOpen)); return err }},
		option{"hang", func(s *script, v string) (err error) { s.hang, err = parseFaults(v, ops()); return err }},
		option{"leak", func(s *script, v string) (err error) {
			s.leak, err = parseFaults(v, []op{opCreate, opDelete})
			return err
		}},
		option{"die", func(s *script, v string) (err error) { s.die, err = parseFaults(v, []op{opStart}); return err }},
		option{"lie", func(s *script, v string) (err error) {
			s.lie, err = parseFaults(v, []op{opStart, opDelete, opExec, opPause, opResume, opUpdate})
			return err
		}},
		option{"garbage", setGarbage},
		option{"no", setMissing},
		option{"score", func(s *script, v string) (err error) { s.score, err = parseNumber(v, 0.001, 1000); return err }},
		option{"cpu", func(s *script, v string) (err error) { s.cpu, err = parseLatency(v); return err }},
		option{"mem", func(s *script, v string) (err error) { s.memory, err = parseBytes(v); return err }},
		option{"slab", func(s *script, v string) (err error) { s.slab, err = parseBytes(v); return err }},
	)
}

// parseScript reads the options of t. The defaults are a fast runtime without noise and faults.
func parseScript(t target.Target) (*script, error) {
	const ms = time.Millisecond
	s := &script{
		latency: map[op]time.Duration{
			opCreate: 10 * ms, opStart: 5 * ms, opKill: 1 * ms, opDelete: 8 * ms,
			opExec: 4 * ms, opPause: 1 * ms, opResume: 1 * ms, opUpdate: 1 * ms, opStats: 2 * ms, opPull: 40 * ms, opRemove: 6 * ms,
		},
		exit:   1 * ms,
		ready:  -1,
		seed:   1,
		score:  1,
		cpu:    12 * ms,
		memory: 8 << 20,
		slab:   256 << 10,

		missing: engine.Missing{engine.NetworkBridge: "fake containers have no network of their own"},
	}
	list := options()
	for _, choice := range t.Options {
		i := slices.IndexFunc(list, func(o option) bool { return o.name == choice.Name })
		if i < 0 {
			var names []string
			for _, o := range list {
				names = append(names, o.name)
			}
			return nil, fmt.Errorf("open target %q: unknown option %s; a fake target has %s", t, choice.Name, strings.Join(names, ", "))
		}
		if err := list[i].set(s, choice.Value); err != nil {
			return nil, fmt.Errorf("open target %q: option %s=%s: %w", t, choice.Name, choice.Value, err)
		}
	}
	return s, nil
}

// Slower returns a fake target whose calls take longer by delays, such as create by 1ms.
func Slower(t target.Target, delays map[string]time.Duration) (target.Target, error) {
	s, err := parseScript(t)
	if err != nil {
		return t, err
	}
	for name, d := range delays {
		took, ok := s.latency[op(name)]
		if !ok {
			return t, fmt.Errorf("delay target %q: it has no call %s", t, name)
		}
		t = t.With(name, (took + d).String())
	}
	return t, nil
}

func parseLatency(v string) (time.Duration, error) {
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 || d > time.Hour {
		return 0, fmt.Errorf("want a duration from 0s to 1h, such as 10ms or 250us")
	}
	return d, nil
}

func parseNumber(v string, low, high float64) (float64, error) {
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || !(x >= low && x <= high) {
		return 0, fmt.Errorf("want a number from %v to %v", low, high)
	}
	return x, nil
}

func setBimodal(s *script, v string) error {
	share, factor, ok := strings.Cut(v, ":")
	p, err1 := parseNumber(share, 0, 1)
	f, err2 := parseNumber(factor, 0.001, 1000)
	if !ok || err1 != nil || err2 != nil {
		return fmt.Errorf("want SHARE:FACTOR, such as 0.3:2 for three calls in ten that take twice as long")
	}
	s.bimodal.share, s.bimodal.factor = p, f
	return nil
}

// parseFaults reads OP[#N][+OP[#N]…].
func parseFaults(v string, ops []op) ([]fault, error) {
	var faults []fault
	for _, item := range strings.Split(v, "+") {
		name, number, numbered := strings.Cut(item, "#")
		f := fault{op: op(name)}
		n, err := strconv.Atoi(number)
		if !slices.Contains(ops, f.op) || numbered && (err != nil || n < 1) {
			var names []string
			for _, o := range ops {
				names = append(names, string(o))
			}
			return nil, fmt.Errorf("%q is not CALL or CALL#N with N from 1; the calls are %s, several are joined by +", item, strings.Join(names, ", "))
		}
		if numbered {
			f.n = n
		}
		faults = append(faults, f)
	}
	return faults, nil
}

func setGarbage(s *script, v string) error {
	for _, item := range strings.Split(v, "+") {
		n, err := strconv.Atoi(item)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is not the number of a process, counted from 1; several are joined by +", item)
		}
		s.garbage = append(s.garbage, n)
	}
	return nil
}

// capabilities lists the capabilities of fake targets without the option no.
func capabilities() []engine.Capability {
	return slices.DeleteFunc(engine.Capabilities(), func(c engine.Capability) bool { return c == engine.NetworkBridge })
}

// setMissing reads capabilities. Their names have "-" instead of a blank, which a target cannot contain.
func setMissing(s *script, v string) error {
	for _, item := range strings.Split(v, "+") {
		name := engine.Capability(strings.ReplaceAll(item, "-", " "))
		list := capabilities()
		if !slices.Contains(list, name) {
			var names []string
			for _, c := range list {
				names = append(names, strings.ReplaceAll(string(c), " ", "-"))
			}
			return fmt.Errorf("%q is not a capability; the capabilities are %s, several are joined by +", item, strings.Join(names, ", "))
		}
		s.missing[name] = "taken away by the target's option no"
	}
	return nil
}

func parseBytes(v string) (int64, error) {
	n, err := strconv.ParseInt(v, 10, 50)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("want a number of bytes")
	}
	return n, nil
}
