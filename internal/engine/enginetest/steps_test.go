package enginetest

import (
	"strings"
	"testing"
)

func TestWatcher(t *testing.T) {
	noop := func() error { return nil }
	for _, tt := range []struct {
		name     string
		call     func(w *watcher)
		confirms bool
		want     string // part of the error; empty for none
	}{
		{"no request", func(*watcher) {}, false, ""},
		{"one request without steps", func(w *watcher) { w.request("a") }, false, ""},
		{"two requests without steps", func(w *watcher) { w.request("a"); w.request("b") }, false, "2 requests and no steps"},
		{"all in steps", func(w *watcher) {
			_ = w.step("x", func() error { w.request("a"); return nil })
			_ = w.step("y", func() error { w.request("b"); return nil })
		}, false, ""},
		{"between steps", func(w *watcher) { _ = w.step("x", noop); w.request("a"); _ = w.step("y", noop) }, true, "a is in no step"},
		{"before the steps", func(w *watcher) { w.request("a"); _ = w.step("x", noop) }, true, "a is in no step"},
		{"after the steps", func(w *watcher) { _ = w.step("x", noop); w.request("a") }, false, "a is in no step"},
		{"confirmation", func(w *watcher) { _ = w.step("x", noop); w.request("a") }, true, ""},
		{"nested", func(w *watcher) { _ = w.step("x", func() error { return w.step("y", noop) }) }, false, `"y" lies within another`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := &watcher{}
			tt.call(w)
			err := w.check(tt.confirms)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("check(%v) = %v, want %q; events: %s", tt.confirms, err, tt.want, w)
			}
		})
	}
}

func TestWatcherCountsProcesses(t *testing.T) {
	n := int64(5)
	w := &watcher{started: func() int64 { return n }}
	w.processes()
	_ = w.step("x", func() error { n++; return nil })
	if err := w.check(false); err != nil || len(w.events) != 3 {
		t.Errorf("a process in a step: %v, events %s", err, w)
	}
	n++
	w.processes()
	if err := w.check(false); err == nil {
		t.Errorf("a process after the step is not reported; events %s", w)
	}
}
