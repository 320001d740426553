package fact

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/touchstone-bench/touchstone/internal/result"
)

func TestReclaimFacts(t *testing.T) {
	for name, tt := range map[string]struct {
		facts *result.Reclaim
		want  map[string]string // without unknown ones
	}{
		"a run without facts":    {nil, map[string]string{}},
		"nothing but overcommit": {&result.Reclaim{Overcommit: new(int64(1))}, map[string]string{"Overcommit": "always"}},
		"all": {
			&result.Reclaim{
				Available: new(int64(3 << 30)), SwapUsed: new(int64(0)), Swappiness: new(int64(60)), Overcommit: new(int64(2)), OvercommitRatio: new(int64(50)),
				THP: "madvise", THPDefrag: "never", KSM: new(int64(1)), KSMSharing: new(int64(7)), Zswap: new(true),
			},
			map[string]string{
				"Memory available at the start": "3.00 GiB", "Swap used at the start": "0 B", "Swappiness": "60", "Overcommit": "strict, 50 % of the memory and the swap",
				"Transparent huge pages": "madvise, defragmentation never", "KSM": "on, 7 pages merged", "zswap": "on",
			},
		},
		"off": {
			&result.Reclaim{Overcommit: new(int64(0)), KSM: new(int64(2)), KSMSharing: new(int64(7)), Zswap: new(false)},
			map[string]string{"Overcommit": "heuristic", "KSM": "off", "zswap": "off"},
		},
		"a mode of a later kernel": {&result.Reclaim{Overcommit: new(int64(3)), KSM: new(int64(1))}, map[string]string{"Overcommit": "mode 3", "KSM": "on"}},
	} {
		got := map[string]string{}
		for _, f := range reclaimFacts(tt.facts) {
			if f.Text != "" {
				got[f.Name()] = f.Text
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The memory at the start of a run and the last selfcheck differ between runs of one machine, so they are no difference of machines. Several machines
// have their selfchecks among the differences.
func TestNaturalFactsAreNoDifference(t *testing.T) {
	runs := make([]result.Run, 2)
	for i := range runs {
		runs[i].Host = result.Host{Hostname: "bench1", Arch: "amd64", CPU: "Example CPU", CPUs: 2, Memory: 8 << 30}
		runs[i].Host.Selfcheck = &result.Selfcheck{
			Date: time.Unix(0, 0).AddDate(0, 0, i), Target: "oci/runc", Metric: "CreateAndRun", Limits: []result.DetectionLimit{{Minutes: 5, Difference: 0.02}},
		}
		runs[i].Host.Reclaim = &result.Reclaim{Available: new(int64(i + 1)), SwapUsed: new(int64(i)), Swappiness: new(int64(i))}
	}
	for _, f := range Hosts(runs) {
		if want := f.Kind == Swappiness; f.Differs != want {
			t.Errorf("%s with %q: differs is %v, want %v", f.Name(), f.Values, f.Differs, want)
		}
	}
	runs[1].Host.Hostname = "bench2"
	for _, f := range Hosts(runs) {
		if want := f.Kind == Swappiness || f.Kind == Selfcheck; f.Differs != want {
			t.Errorf("two machines: %s with %q: differs is %v, want %v", f.Name(), f.Values, f.Differs, want)
		}
	}
}

// A run on a tuned machine differs from a run on the same machine before.
func TestTuningIsADifference(t *testing.T) {
	runs := make([]result.Run, 2)
	runs[0].Host.CPUs, runs[1].Host.CPUs = 2, 2
	runs[1].Host.Tuned = []result.Tuned{{Setting: "governor", Before: "powersave", After: "performance"}, {Setting: "ksm", Before: "1", After: "0"}}
	want := []Row{{ID: ID{Kind: Tuning}, Values: []string{"", "governor from powersave to performance, ksm from 1 to 0"}, Differs: true}}
	var got []Row
	for _, f := range Hosts(runs) {
		if f.ID == want[0].ID {
			got = append(got, f)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the facts of two runs (-want +got):\n%s", diff)
	}
	runs[0].Host.Tuned = runs[1].Host.Tuned
	for _, f := range Hosts(runs) {
		if f.Differs {
			t.Errorf("two runs with equal tuning differ in %+v", f)
		}
	}
}

func TestImageText(t *testing.T) {
	image := result.Image{Name: "workload", Digest: "sha256:0123456789abcdef", Size: 50e6}
	for want, change := range map[string]func(*result.Image){
		"workload: sha256:0123456789ab, 47.7 MiB":                                   func(*result.Image) {},
		"workload: sha256:0123456789ab, 47.7 MiB, from an updated list of packages": func(i *result.Image) { i.UpdatedList = true },
		"workload: not available: no mirror":                                        func(i *result.Image) { i.Unavailable = "no mirror" },
	} {
		i := image
		if change(&i); ImageText(i) != want {
			t.Errorf("%q, want %q", ImageText(i), want)
		}
	}
}

func TestNodeFacts(t *testing.T) {
	run := result.Run{Host: result.Host{CPUs: 2, Node: &result.Node{
		Fleet: "f1", Name: "worker-1", Kind: "m5.large", Kubelet: "v1.37.2", Engine: "containerd://2.4.2", Labels: map[string]string{"zone": "b", "disk": "nvme"},
	}}}
	got := map[string]string{}
	for _, f := range Host(&run) {
		if f.Kind >= Node && f.Kind <= NodeLabel {
			got[f.Name()] = f.Text
		}
	}
	want := map[string]string{
		"Node": "worker-1", "Kind of node": "m5.large", "Kubelet": "v1.37.2", "Container engine": "containerd://2.4.2", "Label disk": "nvme", "Label zone": "b",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the facts of a node differ (-want +got):\n%s", diff)
	}
}
