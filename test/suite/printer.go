package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// printer prints lines with the time since the start. Steps that run side by side share it.
type printer struct {
	mu    sync.Mutex
	to    io.Writer
	began time.Time
}

func newPrinter(sink io.Writer) *printer { return &printer{to: sink, began: time.Now()} }

// printf prints one line.
func (p *printer) printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	passed := time.Since(p.began).Round(time.Second)
	fmt.Fprintf(p.to, "%02d:%02d %s\n", int(passed.Minutes()), int(passed.Seconds())%60, fmt.Sprintf(format, args...))
}

// text prints lines as they are.
func (p *printer) text(lines string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprint(p.to, lines)
}
