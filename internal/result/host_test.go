package result

import "testing"

// Invariant machine-identity.
func TestSameMachine(t *testing.T) {
	server := Host{Hostname: "server", Arch: "amd64", CPU: "Example CPU", CPUs: 8, Memory: 24 << 30, Virtual: "kvm", Kernel: "6.18.0", Cgroup: "hybrid", Identity: &Identity{System: "a"}, Node: &Node{Fleet: "f1", Name: "a"}}
	for name, c := range map[string]struct {
		change func(h *Host)
		same   bool
	}{
		"itself":                           {func(*Host) {}, true},
		"another kernel":                   {func(h *Host) { h.Kernel, h.Cgroup, h.Governor = "6.19.0", "v2", "performance" }, true},
		"a kernel that keeps more memory":  {func(h *Host) { h.Memory -= 300 << 20 }, true},
		"half of the memory":               {func(h *Host) { h.Memory /= 2 }, false},
		"another name":                     {func(h *Host) { h.Hostname = "server2" }, false},
		"the name on another CPU":          {func(h *Host) { h.CPU = "Other CPU" }, false},
		"the name on another architecture": {func(h *Host) { h.Arch = "arm64" }, false},
		"fewer CPUs":                       {func(h *Host) { h.CPUs = 2 }, false},
		"a guest of something else":        {func(h *Host) { h.Virtual = "" }, false},
		"no memory":                        {func(h *Host) { h.Memory = 0 }, false},
		"the name of another system":       {func(h *Host) { h.Identity = &Identity{System: "b"} }, false},
		"no identity":                      {func(h *Host) { h.Identity = nil }, true},
		"another node of its cluster":      {func(h *Host) { h.Node = &Node{Fleet: "f2", Name: "b"} }, false},
		"the node in another fleet":        {func(h *Host) { h.Node = &Node{Fleet: "f2", Name: "a"} }, true},
		"no node":                          {func(h *Host) { h.Node = nil }, true},
	} {
		twin := server
		c.change(&twin)
		if server.SameMachine(&twin) != c.same || twin.SameMachine(&server) != c.same {
			t.Errorf("%s: it is the same machine: %v and the other way round %v, want %v", name, server.SameMachine(&twin), twin.SameMachine(&server), c.same)
		}
	}
	for name, facts := range map[string]Host{"nothing": {}, "no name": {CPU: "c", Memory: 1}, "no CPU": {Hostname: "h", Memory: 1}, "no memory": {Hostname: "h", CPU: "c"}} {
		if facts.SameMachine(&facts) {
			t.Errorf("%s is known, and it is the same machine", name)
		}
	}
}

func TestNature(t *testing.T) {
	for _, c := range []struct {
		host Host
		want Nature
		text string
	}{
		{Host{Arch: "amd64"}, Physical, "no hypervisor found"},
		{Host{Arch: "amd64", Virtual: "kvm (QEMU Standard PC)"}, Guest, "guest of kvm (QEMU Standard PC)"},
		{Host{Arch: "amd64", Virtual: "qemu (QEMU Standard PC)"}, Emulated, "emulated by qemu (QEMU Standard PC)"},
		{Host{Arch: "amd64", Virtual: "kvm (QEMU Standard PC)", CPU: "QEMU TCG CPU version 2.5+"}, Emulated, "guest of kvm (QEMU Standard PC) on a CPU that qemu emulates"},
		{Host{Arch: "arm64", Virtual: "not identified (Acme)"}, Guest, "guest of a hypervisor that is not identified (Acme)"},
		{Host{Arch: "arm64", Virtual: "qemu"}, GuestOrEmulated, "guest of qemu, and perhaps emulated"},
		{Host{Arch: "arm64", Virtual: "qemu", CPU: "QEMU TCG CPU version 2.5+"}, Emulated, "emulated by qemu"},
		{Host{Arch: "arm64", Virtual: "qemu", CPU: "linux,dummy-virt (implementer 0x00, part 0x051)"}, Emulated, "emulated by qemu"},
		{Host{Arch: "arm64", CPU: "Raspberry Pi 4 Model B Rev 1.4 (implementer 0x41, part 0xd08)"}, Physical, "no hypervisor found"},
		{Host{Arch: "riscv64", CPU: "QEMU TCG CPU"}, Emulated, "emulated by qemu"},
	} {
		if got := c.host.Nature(); got != c.want || c.host.NatureText() != c.text {
			t.Errorf("%+v is %v, %q; want %v, %q", c.host, got, c.host.NatureText(), c.want, c.text)
		}
		if got := c.host.MayBeEmulated(); got != (c.want == Emulated || c.want == GuestOrEmulated) {
			t.Errorf("%+v may be emulated: %v", c.host, got)
		}
	}
}

// An emulated CPU distorts times, rates, energy and amounts over time, and no amounts and no numbers of things. New units must be added here.
//
// Invariant emulated-speed.
func TestOfSpeed(t *testing.T) {
	want := map[Unit]bool{
		Seconds: true, BytesPerSecond: true, BitsPerSecond: true, PerSecond: true, FlopPerSecond: true, Joules: true, ByteSeconds: true,
		Bytes: false, Count: false, Ratio: true, Score: true,
	}
	for _, unit := range Units() {
		scale, ok := want[unit]
		m := Metric{Unit: unit}
		if got := m.OfSpeed(); got != scale || !ok {
			t.Errorf("a metric in %s is of speed: %v, want %v", unit, got, scale)
		}
	}
	for name, m := range map[string]Metric{
		"the use of a limit": {Unit: Ratio, Bound: Bound{Most: 1.25, Broken: "does not hold"}}, "a share of memory": {Unit: Ratio, AnySpeed: true},
	} {
		if m.OfSpeed() {
			t.Errorf("%s is of speed", name)
		}
	}
	if m := (Metric{Unit: Seconds, Bound: Bound{Most: 1, Broken: "is late"}}); !m.OfSpeed() {
		t.Error("a bounded time is not of speed")
	}
}
