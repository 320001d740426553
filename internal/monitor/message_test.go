package monitor

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/touchstone-bench/touchstone/internal/must"
)

// recorded returns a datagram that a kernel (Linux 6.18, version 17 of the record) sent.
func recorded(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	must.Do(t, err)
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("recorded on a machine of the other byte order")
	}
	return data
}

// body returns the body of the only message in a recorded datagram.
func body(t testing.TB, name string) []byte {
	t.Helper()
	list, err := messages(recorded(t, name))
	if err != nil || len(list) != 1 {
		t.Fatalf("messages of %s = %v, %v; want one", name, list, err)
	}
	return list[0].Data
}

func TestParseThread(t *testing.T) {
	for name, want := range map[string]record{
		"only-thread":  {pid: 17804, tgid: 17804, ppid: 17792, comm: "crun", exe: executed{65024, 10166303}, last: true, cpu: 3618020},
		"first-thread": {pid: 17798, tgid: 17798, ppid: 17792, comm: "runc", exe: executed{65024, 10706946}, cpu: 4129630},
		// The five threads of this process used 5.4 ms, of which this one used 31 µs.
		"last-thread": {pid: 17801, tgid: 17798, ppid: 17792, comm: "runc", exe: executed{65024, 10706946}, last: true, cpu: 30756, whole: 5435149},
	} {
		got, err := parseThread(body(t, name))
		if err != nil || got != want {
			t.Errorf("%s = %+v, %v; want %+v", name, got, err, want)
		}
	}
}

func TestParseAnswers(t *testing.T) {
	if cpu, err := parseProcess(body(t, "live")); err != nil || cpu <= 0 || cpu > time.Minute {
		t.Errorf("CPU time of a living process = %v, %v", cpu, err)
	}
	if family, err := parseFamily(body(t, "family")); err != nil || family < unix.GENL_ID_CTRL {
		t.Errorf("family = %d, %v", family, err)
	}
	if err := parseError(body(t, "no-process")); !errors.Is(err, unix.ESRCH) {
		t.Errorf("the response about a missing process = %v, want %v", err, unix.ESRCH)
	}
	if err := parseError(make([]byte, 4)); err != nil {
		t.Errorf("parseError of an acknowledgement = %v", err)
	}
}

// Kernels before Linux 5.19 do not name the process of a thread.
func TestOldKernelIsRefused(t *testing.T) {
	data := body(t, "only-thread")
	version := data[unix.GENL_HDRLEN+unix.SizeofNlAttr+8+unix.SizeofNlAttr:]
	binary.NativeEndian.PutUint16(version, minVersion-1)
	var old *versionError
	if _, err := parseThread(data); !errors.As(err, &old) || old.Version != minVersion-1 {
		t.Errorf("error = %v, want a versionError of %d", err, minVersion-1)
	}
}

// A truncated message is refused at every length, and not read beyond its end.
func TestTruncated(t *testing.T) {
	for _, name := range []string{"only-thread", "last-thread", "live", "family", "no-process"} {
		data := recorded(t, name)
		for n := 1; n < len(data); n++ {
			if list, err := messages(data[:n:n]); err == nil {
				t.Fatalf("%s truncated to %d of %d bytes is parsed as %v", name, n, len(data), list)
			}
		}
	}
	data := body(t, "last-thread")
	for n := range len(data) {
		if r, err := parseThread(data[:n:n]); err == nil {
			t.Fatalf("the body truncated to %d of %d bytes is parsed as %+v", n, len(data), r)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"only-thread", "first-thread", "last-thread", "live", "family", "no-process"} {
		f.Add(recorded(f, name))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := messages(data)
		if err != nil {
			return
		}
		for _, m := range list {
			if r, err := parseThread(m.Data); err == nil && (r.cpu < 0 || r.whole < 0 || len(r.comm) > int(sizeComm)) {
				t.Errorf("parseThread = %+v", r)
			}
			if cpu, err := parseProcess(m.Data); err == nil && cpu < 0 {
				t.Errorf("parseProcess = %v", cpu)
			}
			_, _ = parseFamily(m.Data)
			_ = parseError(m.Data)
		}
	})
}

// Requests have the encoding of responses, so the parser reads them back.
func TestRequestReadsBack(t *testing.T) {
	for _, value := range []string{"", "x", "0-127\x00", "TASKSTATS\x00"} {
		list, err := messages(request(21, 7, 1, 3, []byte(value)))
		if err != nil || len(list) != 1 || list[0].Header.Type != 21 {
			t.Fatalf("messages of a request = %v, %v", list, err)
		}
		if got, err := find(list[0].Data, 3); err != nil || got == nil || string(got) != value {
			t.Errorf("the attribute is %q, %v; want %q", got, err, value)
		}
	}
}

func TestParseStat(t *testing.T) {
	for text, want := range map[string]process{
		"42 (crun) S 7 42 42 0 -1 4194560\n":                  {pid: 42, ppid: 7, comm: "crun"},
		"42 (runc:[2:INIT]) R 1 1\n":                          {pid: 42, ppid: 1, comm: "runc:[2:INIT]"},
		"9 (a ) S 1 (b) S 3 4\n":                              {pid: 9, ppid: 3, comm: "a ) S 1 (b"},
		"18802 (containerd-shim) S 18639 18802 18639 0 -1 0 ": {pid: 18802, ppid: 18639, comm: "containerd-shim"},
	} {
		got, ok, err := parseStat(text)
		if err != nil || !ok || !cmp.Equal(got, want, cmp.AllowUnexported(process{}, executed{})) {
			t.Errorf("%q = %+v, %v, %v; want %+v", text, got, ok, err, want)
		}
	}
	if _, ok, err := parseStat("42 (crun) Z 7 42 42\n"); ok || err != nil {
		t.Errorf("parseStat of a zombie = %v, %v", ok, err)
	}
	for _, text := range []string{"", "42", "42 (crun", "x (crun) S 1", "42 (crun) S", "42 (crun) S x"} {
		if p, _, err := parseStat(text); err == nil {
			t.Errorf("%q = %+v, want an error", text, p)
		}
	}
}

func TestParseSizes(t *testing.T) {
	const text = "18802 (a ) b) S 18639 18802 18639 0 -1 1077936384 2512 0 0 0 1 3 0 0 20 0 12 0 123456 1234567168 3456 18446744073709551615 1\n"
	threads, resident, err := parseSizes(text)
	if err != nil || threads != 12 || resident != 3456*int64(os.Getpagesize()) {
		t.Errorf("parseSizes = %d, %d, %v", threads, resident, err)
	}
	for _, text := range []string{"1 (a) S 1 2", strings.Replace(text, " 12 0 ", " x 0 ", 1), strings.Replace(text, " 3456 ", " - ", 1)} {
		if _, _, err := parseSizes(text); err == nil {
			t.Errorf("parseSizes(%q): no error", text)
		}
	}
}

func TestParsePSS(t *testing.T) {
	const text = "55d0c0a5e000-7ffd3a1f4000 ---p 00000000 00:00 0                          [rollup]\n" +
		"Rss:                2008 kB\nPss:                 143 kB\nPss_Dirty:            96 kB\n"
	if got, err := parseRollup(text); err != nil || got != (Memory{PSS: 143 << 10}) { // before Linux 5.4
		t.Errorf("memory = %+v, %v; want a PSS of %d", got, err, 143<<10)
	}
	for name, want := range map[string]int64{"smaps_rollup-amd64": 437 << 10, "smaps_rollup-arm64": 343 << 10} { // of Linux 6.12
		text, err := os.ReadFile(filepath.Join("testdata", name))
		must.Do(t, err)
		got, err := parseRollup(string(text))
		if err != nil || got.PSS != want {
			t.Errorf("memory of %s = %+v, %v; want a PSS of %d", name, got, err, want)
		}
		// The kernel rounds each of them down to KiB.
		if parts := got.Anonymous + got.File + got.Shared; got.Anonymous == 0 || got.File == 0 || parts > want || parts < want-3<<10 {
			t.Errorf("parts of %s are %+v", name, got)
		}
	}
	if got, err := parseRollup(""); err != nil || got != (Memory{}) {
		t.Errorf("memory of an exiting process = %+v, %v", got, err)
	}
	for _, text := range []string{"Rss: 1 kB\n", "Pss: x kB\n", "Pss: 1\n", "Pss: -1 kB\n", "Pss: 1 kB\nPss_Anon: x kB\n", "Pss: 9223372036854775807 kB\n"} {
		if got, err := parseRollup(text); err == nil {
			t.Errorf("%q = %+v, want an error", text, got)
		}
	}
}

// An exited process has no memory. Without the kernel's support the memory of no process is known.
func TestPSSOfKernels(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  int64
		err   error
	}{
		{"lives", map[string]string{"self/smaps_rollup": "", "7/smaps_rollup": "Pss: 3 kB\n"}, 3 << 10, nil},
		{"has exited", map[string]string{"self/smaps_rollup": ""}, 0, nil},
		{"without CONFIG_PROC_PAGE_MONITOR", map[string]string{"self/stat": "", "7/stat": ""}, 0, errNoPSS},
	} {
		t.Run(tt.name, func(t *testing.T) {
			proc := t.TempDir()
			for name, text := range tt.files {
				file := filepath.Join(proc, name)
				must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)))
			}
			if got, _, err := rollup(proc, 7); got.PSS != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("pss = %d, %v; want %d, %v", got, err, tt.want, tt.err)
			}
		})
	}
}
