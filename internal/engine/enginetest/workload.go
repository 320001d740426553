package enginetest

import (
	"os"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/touchstone-bench/touchstone/internal/image/debian"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// workloadLock keeps tests that run in parallel from making a launcher each: there can be one in a process.
var workloadLock sync.Mutex

// Workload gives the workload image for the host, and a directory with its file system, which is for reading only.
// It is made if the cache has none. Where it cannot be had the test is skipped, unless MustRun names some target: then it
// fails. With -short it is skipped. It must be called before Session, whose launcher there can be one of.
func Workload(t testing.TB) (rootfs string, img v1.Image) {
	t.Helper()
	if testing.Short() {
		t.Skip("makes the workload image, which -short is not for")
	}
	workloadLock.Lock()
	defer workloadLock.Unlock()
	rootfs, img, err := workloadImage(t)
	switch {
	case err == nil:
	case os.Getenv(MustRun) != "":
		t.Fatalf("%s is set, so that the workload image must be there: %v", MustRun, err)
	default:
		t.Skip(err)
	}
	return rootfs, img
}

func workloadImage(t testing.TB) (rootfs string, img v1.Image, err error) {
	options := debian.Options{Progress: func(step string) { t.Logf("workload image: %s", step) }}
	made, err := debian.Cached(options)
	if err != nil {
		return "", nil, err
	}
	if made == nil {
		launcher, err := process.New(process.Options{})
		if err != nil {
			return "", nil, err
		}
		defer func() {
			if err := launcher.Close(); err != nil {
				t.Error(err)
			}
		}()
		options.Launcher = launcher
		if made, err = debian.Build(t.Context(), options); err != nil {
			return "", nil, err
		}
	}
	rootfs, err = made.Rootfs(t.Context())
	return rootfs, made.OCI(), err
}
