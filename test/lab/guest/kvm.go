package main

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Requests of KVM (linux/kvm.h).
const (
	kvmCreateVM      = 0xae01
	kvmCreateVCPU    = 0xae41
	kvmCreateIRQChip = 0xae60
)

// holdKVM makes virtual machines that never run, and keeps them until the machine powers off. Without them the kernel patches its scheduler
// whenever a first virtual machine starts or a last one ends (the static key preempt_notifier_key). A breakpoint stands in the code meanwhile,
// and an emulated CPU sometimes still meets it after its end: the kernel then panics with "Oops: int3" in __schedule. KVM patches its own
// code too, by the kinds of interrupt controllers in use, so there is a machine with and one without a controller in the kernel.
func holdKVM() error {
	kvm, err := unix.Open("/dev/kvm", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: "/dev/kvm", Err: err}
	}
	for _, requests := range [][]uint{{kvmCreateVCPU}, {kvmCreateIRQChip, kvmCreateVCPU}} {
		vm, err := unix.IoctlRetInt(kvm, kvmCreateVM)
		if err != nil {
			return fmt.Errorf("make a virtual machine: %w", err)
		}
		unix.CloseOnExec(vm)
		for _, request := range requests {
			fd, err := unix.IoctlRetInt(vm, request)
			if err != nil {
				return fmt.Errorf("prepare a virtual machine by request %#x: %w", request, err)
			}
			if request == kvmCreateVCPU {
				unix.CloseOnExec(fd)
			}
		}
	}
	return nil
}
