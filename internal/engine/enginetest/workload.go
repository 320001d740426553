package enginetest

import (
	"os"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/touchstone-bench/touchstone/internal/image/debian"
	"github.com/touchstone-bench/touchstone/internal/process"
)

// workloadLock serialises parallel tests, because a process can have only one launcher.
var workloadLock sync.Mutex

// Workload returns the workload image for the host, and a directory with its file system, which is for reading only. If the
// cache has no image, Workload builds it. If that fails the test is skipped, or fails if MustRun names some target. With
// -short it is skipped. Workload must be called before Session, because a process can have only one launcher.
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
		t.Fatalf("%s is set and requires the workload image: %v", MustRun, err)
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
