package lab

import "os"

// For the tests: machines that do not do as they should, and what becomes of QEMU.

// WithKernel adds arguments of the kernel.
func (o Options) WithKernel(args ...string) Options { o.kernel = args; return o }

// WithQEMU adds arguments of QEMU.
func (o Options) WithQEMU(args ...string) Options { o.qemu = args; return o }

// WithProcess has a function called with the process of QEMU.
func (o Options) WithProcess(began func(*os.Process)) Options { o.began = began; return o }
