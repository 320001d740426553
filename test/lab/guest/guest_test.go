package main

import (
	"os"
	"slices"
	"testing"
)

func TestLeft(t *testing.T) {
	before := resources{"file /etc": true, "mount / ext4": true, "process 1 \"init\", S": true}
	now := resources{
		"file /etc": true, "mount / ext4": true,
		"file /root/out": true, "file /root/out/x": true, "file /root/outer": true, "mount /root/out tmpfs": true, "cgroup /sys/fs/cgroup/x": true,
	}
	got := before.left(now, []string{"/root/out"})
	if want := []string{"cgroup /sys/fs/cgroup/x", "file /root/outer", "mount /root/out tmpfs"}; !slices.Equal(got, want) {
		t.Errorf("left is %q, want %q", got, want)
	}
}

func TestPeakOf(t *testing.T) {
	peak, ok := peakOf(os.Getpid())
	if !ok || peak < 1<<20 || peak > 1<<32 {
		t.Errorf("the peak of this program is %d bytes, %t", peak, ok)
	}
	if peak, ok := peakOf(-1); ok {
		t.Errorf("the peak of a process that does not exist is %d bytes", peak)
	}
}
