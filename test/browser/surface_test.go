package browser

import (
	"context"
	"testing"
)

// testSurfaces: the section of cost and surface has a panel for each surface, with a point and an interval for each target, and the names of the calls.
func testSurfaces(t *testing.T, ctx context.Context) {
	address := pageOf(t, surfaces)
	if messages := errorsOf(t, ctx, address); len(messages) > 0 {
		t.Fatalf("the browser reports %q", messages)
	}
	open(t, ctx, address)
	type panel struct {
		Label             string
		Points, Intervals int
		Drawn             bool
	}
	panels := evaluate[[]panel](t, ctx, `(() => { document.querySelectorAll("details").forEach((e) => e.open = true)
		return [...document.getElementById("surface").querySelectorAll("figure svg[role=img]")].map((svg) => {
			const lines = [...svg.querySelectorAll(".whisker")]
			return {label: svg.getAttribute("aria-label"), points: svg.querySelectorAll(".points").length, intervals: lines.length, drawn: lines.every((line) => line.getTotalLength() > 0)}
		}) })()`)
	want := []panel{
		{"CreateAndRun by HostCallsReached; native: 2 ± 0, 968 ± 28 µs; oci/runc: 3.50 ± 0.50, 25.7 ± 0.75 ms", 2, 2, true},
		{"CreateAndRun by HostCalls; oci/runc: 312 ± 0, 25.7 ± 0.75 ms", 1, 1, true},
	}
	if len(panels) != len(want) {
		t.Fatalf("the section has the panels %+v", panels)
	}
	for i, p := range panels {
		if p != want[i] {
			t.Errorf("panel %d is %+v, want %+v", i, p, want[i])
		}
	}
	const text = "oci/runc container 2: openat read 0 sandbox 2: futex openat 1: madvise"
	if got := evaluate[string](t, ctx, `[...document.querySelectorAll("#surface table:last-of-type tr")].slice(-2).map((row) => [...row.cells].map((cell) => cell.textContent.trim()).filter((s) => s).join(" ")).join(" ")`); got != text {
		t.Errorf("the names are %q, want %q", got, text)
	}
}
