package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/touchstone-bench/touchstone/internal/cluster"
	"github.com/touchstone-bench/touchstone/internal/quantity"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/internal/wording"
)

// fleetProgress shows the progress of the nodes of a cluster run. On a terminal it redraws one line about all nodes. Elsewhere it prints a line for each
// change of a phase, and the line about all nodes from time to time.
type fleetProgress struct {
	status
	fleet *cluster.Fleet

	mu       sync.Mutex
	states   map[string]cluster.State
	notes    map[string][]string // the last notes about a node
	last     time.Time           // of the last line about all nodes
	interval time.Duration
}

func newFleetProgress(s status, f *cluster.Fleet) *fleetProgress {
	return &fleetProgress{status: s, fleet: f, states: map[string]cluster.State{}, notes: map[string][]string{}, interval: plainInterval}
}

// Changed implements cluster.Observer.
func (p *fleetProgress) Changed(node string, s cluster.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	predecessor := p.states[node]
	p.states[node] = s
	switch {
	case s.Phase == cluster.Waiting:
	case s.Phase != predecessor.Phase || s.Phase == cluster.Lost && s.Text != predecessor.Text || s.Phase == cluster.Starting && s.Text != "" && s.Text != predecessor.Text:
		p.line(strings.TrimRight(fmt.Sprintf("%s: %s%s", node, s.Phase, detail(s)), " "))
	}
	p.summarize()
}

// detail is the reason of a phase, or its result.
func detail(s cluster.State) string {
	switch s.Phase {
	case cluster.Complete:
		return ", " + wording.Counted(s.Done, "trial")
	case cluster.Measuring, cluster.Waiting:
		return ""
	default:
	}
	if s.Text == "" {
		return ""
	}
	return ": " + quantity.OneLine(s.Text)
}

// Trial implements cluster.Observer.
func (p *fleetProgress) Trial(node string, t result.Trial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.Status != result.OK {
		line := fmt.Sprintf("%s: %s: %s on %s", node, t.Status, name(t.Cell), t.Target)
		reason := quantity.OneLine(t.Why())
		if !slices.ContainsFunc(p.notes[node], func(note string) bool { return strings.Contains(note, reason) }) {
			line += ": " + reason
			p.keepNote(node, reason)
		}
		p.line(line)
		p.summarize()
	}
}

// Note implements cluster.Observer.
func (p *fleetProgress) Note(node, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	note := quantity.OneLine(text)
	p.keepNote(node, note)
	p.line(cmp.Or(node, "note") + ": " + note)
	p.summarize()
}

// keptNotes is the number of notes about a node whose reasons are not printed again. A node may lack several targets.
const keptNotes = 16

func (p *fleetProgress) keepNote(node, note string) {
	notes := append(p.notes[node], note)
	p.notes[node] = notes[max(0, len(notes)-keptNotes):]
}

// summarize shows the line about all nodes.
func (p *fleetProgress) summarize() {
	if p.env.Live {
		p.show(p.summary())
		return
	}
	moment := time.Now()
	if p.last.IsZero() {
		p.last = moment
	}
	if moment.Sub(p.last) >= p.interval {
		p.last, p.interval = moment, min(2*p.interval, longestInterval)
		fmt.Fprintln(p.env.Stderr, p.summary())
	}
}

// summary is the line about all nodes: the share of the trials, the nodes by phase, the longest time left, and the trial of one node.
func (p *fleetProgress) summary() string {
	counts := map[cluster.Phase]int{}
	var done, total int
	var left time.Duration
	trial := ""
	for _, n := range p.fleet.Nodes {
		s := p.states[n.Name]
		counts[cmp.Or(s.Phase, cluster.Waiting)]++
		done, total, left = done+s.Done, total+max(s.Total, s.Done), max(left, s.Left)
		if s.Phase == cluster.Measuring && trial == "" {
			trial = n.Name + ": " + s.Text
		}
	}
	var parts []string
	for _, phase := range []cluster.Phase{cluster.Measuring, cluster.Starting, cluster.Waiting, cluster.Lost, cluster.Complete, cluster.Ended, cluster.Failed} {
		if counts[phase] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[phase], phase))
		}
	}
	line := fmt.Sprintf("%3d%%  nodes: %s", 100*done/max(total, 1), strings.Join(parts, ", "))
	if left > 0 {
		line += fmt.Sprintf("  %v left", left.Round(time.Second))
	}
	if trial != "" {
		line += "  " + trial
	}
	return line
}
