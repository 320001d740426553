package result

import "testing"

func TestPresentCell(t *testing.T) {
	for _, tt := range []struct{ benchmark, params, want string }{
		{"performance.disk.mount", "files=16 fsync=0 mib=6", "files=16 fsync=end mib=6"},
		{"performance.disk.mount", "files=16 fsync=never mib=6", "files=16 fsync=never mib=6"},
		{"performance.disk.mount", "fsync=100 limits.cpus=2 limits.memory=1GiB", "fsync=every=100 limits.cpus=2 limits.memory=1GiB"},
		{
			"performance.disk.write", "files=16 fsync=100 mib=8 on=bind requests=10000",
			"existing=written files=16 fsync=every=100 mib=8 on=bind requests=10000",
		},
		{"performance.disk.write", "existing=empty fsync=end", "existing=empty fsync=end"},
		{
			"performance.memory.total", "access=seq kib=1024 mib=4096 operation=write threads=1 limits.cpus=1",
			"access=seq kib=1024 mib=4096 operation=write scope=global threads=1 limits.cpus=1",
		},
		{"performance.memory.total", "scope=local threads=2", "scope=local threads=2"},
		{"app.disk.write", "fsync=0", "fsync=0"}, // a custom workload
		{"performance.disk.read", "files=16", "files=16"},
		{"performance.disk.write", "", ""}, // TouchStone recorded no parameters
	} {
		cell := Cell{Benchmark: tt.benchmark, Params: tt.params, Target: "native"}
		want := Cell{Benchmark: tt.benchmark, Params: tt.want, Target: "native"}
		got := cell.Present()
		if got != want {
			t.Errorf("%+v is now %+v, want %+v", cell, got, want)
		}
		if again := got.Present(); again != got {
			t.Errorf("%+v changes once more, to %+v", got, again)
		}
	}
}
