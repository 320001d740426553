package catalogue_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/bench"
	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/engine/native"
	"github.com/touchstone-bench/touchstone/internal/engine/oci"
	"github.com/touchstone-bench/touchstone/internal/result"
	"github.com/touchstone-bench/touchstone/test/cells"
)

// The disk benchmarks work on bare metal and in containers, on every volume. TestRealPrograms of package cli runs them behind an
// engine.
func TestRealDisk(t *testing.T) {
	cells.Need(t, "catalogue/disk")
	all := bench.Volumes() // reading and writing test each, the other benchmarks one
	small := []struct {
		name    string
		volumes []bench.Volume
		given   bench.Params
	}{
		{"performance.disk.read", all, bench.Params{"files": "4", "mib": "2", "requests": "500"}},
		{"performance.disk.read", []bench.Volume{bench.Rootfs, bench.Bind}, bench.Params{"files": "4", "mib": "2", "requests": "500", "cache": "cold"}},
		{"performance.disk.write", all, bench.Params{"files": "4", "mib": "2", "requests": "500", "fsync": "every=100"}},
		{"performance.disk.write", []bench.Volume{bench.Rootfs, bench.Bind}, bench.Params{"files": "4", "mib": "2", "requests": "500", "fsync": "never", "existing": "empty"}},
		{"performance.disk.throughput", []bench.Volume{bench.Rootfs}, bench.Params{"mib": "16", "duration": "300ms", "sweep": "4,16384"}},
		{"performance.disk.throughput", []bench.Volume{bench.Bind}, bench.Params{"mib": "16", "duration": "300ms", "sweep": "64,1024", "cache": "cold"}},
		{"performance.disk.sqlite", []bench.Volume{bench.Bind}, bench.Params{"insertions": "20"}},
		{"performance.disk.blog", []bench.Volume{bench.Tmpfs}, bench.Params{"duration": "300ms"}},
		{"performance.disk.blog", []bench.Volume{bench.Bind}, bench.Params{"duration": "5s", "mixture": "blogbench"}},
	}
	for _, tt := range []struct {
		target string
		driver engine.Driver
		direct result.Status // of direct I/O on a bind mount
	}{
		{"native", native.Driver{}, result.OK},
		{"oci/runc", oci.Driver{}, result.OK},
		{"oci/runsc@platform=systrap", oci.Driver{}, result.Skipped},
	} {
		t.Run(strings.ReplaceAll(tt.target, "/", "_"), func(t *testing.T) {
			l := newRealHarness(t, tt.target, tt.driver)
			for _, s := range small {
				for _, volume := range s.volumes {
					given := bench.Params{"on": string(volume)}
					for name, value := range s.given {
						given[name] = value
					}
					trial := l.retry(t, s.name, given)
					if trial.Status != result.OK {
						t.Errorf("%s with %v: %s because %s: %s", s.name, given, trial.Status, trial.Reason, trial.Output)
					}
				}
			}
			if trial := l.run(t, "performance.disk.mount", bench.Params{"files": "2", "mib": "2"}); trial.Status != result.OK || len(trial.Samples) != 4 {
				t.Errorf("performance.disk.mount: %s because %s: %v, %v", trial.Status, trial.Reason, trial.Samples, trial.Conditions)
			}
			trial := l.retry(t, "performance.disk.throughput", bench.Params{"mib": "4", "duration": "300ms", "direct": "1"})
			if trial.Status != tt.direct {
				t.Errorf("direct I/O: %s because %s: %s", trial.Status, trial.Reason, trial.Output)
			}
		})
	}
}

// dropFiles writes the trials' files on disk back, and drops them from the page cache.
func dropFiles(data string) error {
	dirs, err := filepath.Glob(filepath.Join(data, "t[0-9]*"))
	for _, dir := range dirs {
		err = errors.Join(err, filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			f, err := os.Open(name)
			if err != nil {
				return err
			}
			return errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close())
		}))
	}
	return err
}

// memoryDir makes a directory in memory.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "touchstone-test-") //nolint:usetesting // t.TempDir is on disk
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
