package main

import (
	"os"
	"testing"
)

func TestPeakOf(t *testing.T) {
	peak, ok := peakOf(os.Getpid())
	if !ok || peak < 1<<20 || peak > 1<<32 {
		t.Errorf("the peak of this program is %d bytes, %t", peak, ok)
	}
	if peak, ok := peakOf(-1); ok {
		t.Errorf("the peak of a process that does not exist is %d bytes", peak)
	}
}
