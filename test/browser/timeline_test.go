package browser

import (
	"context"
	"math"
	"slices"
	"testing"
)

// testTimeline: the lanes of a timeline have their states in the scale of the axis, and states differ without colour too: by their height or their dashes.
func testTimeline(t *testing.T, ctx context.Context) {
	address := pageOf(t, explained)
	if messages := errorsOf(t, ctx, address); len(messages) > 0 {
		t.Fatalf("the browser reports %q", messages)
	}
	open(t, ctx, address)
	type state struct {
		Class, Width, Dashes string
		Length               float64
	}
	type lane struct {
		Name, Full string
		Marks      int
		States     []state
	}
	panels := evaluate[[][]lane](t, ctx, `[...document.querySelectorAll("#causes .timeline details[open] svg[role=img]")].map((svg) => [...svg.querySelectorAll("text:has(title)")].map((text) => {
		const lane = {name: text.firstChild.textContent, full: text.querySelector("title").textContent, marks: 0, states: []}
		for (let e = text.nextElementSibling; e && e.tagName === "path" && !e.classList.contains("axis"); e = e.nextElementSibling) {
			if (e.classList.contains("event")) lane.marks++
			if (e.classList.contains("state")) { const style = getComputedStyle(e); lane.states.push({class: e.getAttribute("class"), width: style.strokeWidth, dashes: style.strokeDasharray, length: e.getTotalLength()}) }
		}
		return lane }))`)
	if len(panels) != 2 || len(panels[0]) != 1 || len(panels[1]) != 2 {
		t.Fatalf("the panels are %+v, want one lane of native and two of oci/runc", panels)
	}
	child := panels[1][1]
	if child.Name != "runc → sleep" || child.Full != "runc → sleep (runtime → container)" || child.Marks != 1 || len(child.States) != 3 {
		t.Errorf("the lane of the child is %+v", child)
	}
	for i, seconds := range []float64{0.010, 0.003, 0.009} { // running, run queue, sleep
		const scale = (792 - 168) / 0.043
		if got := child.States[i].Length; math.Abs(got-seconds*scale) > 0.2 {
			t.Errorf("state %s has the length %g, want %g", child.States[i].Class, got, seconds*scale)
		}
	}
	looks := map[string]string{}
	for _, l := range slices.Concat(panels...) {
		for _, s := range l.States {
			look := s.Width + " " + s.Dashes
			if class, has := looks[look]; has && class != s.Class {
				t.Errorf("%s and %s have the same height and dashes: %s", class, s.Class, look)
			}
			looks[look] = s.Class
		}
	}
	if len(looks) != 4 {
		t.Errorf("the states have the looks %v, want running, run queue, sleep and child", looks)
	}
}
