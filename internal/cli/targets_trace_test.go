package cli

import (
	"bytes"
	"errors"
	"testing"

	"github.com/touchstone-bench/touchstone/internal/engine"
	"github.com/touchstone-bench/touchstone/internal/expect"
	"github.com/touchstone-bench/touchstone/internal/trace"
)

// targets --trace has the reason and the remedy, once for all targets of a machine, and apart for a target without processes here.
func TestPrintTraces(t *testing.T) {
	noBTF := &trace.Error{Reason: trace.NoBTF, Cause: "the kernel has no BTF", Remedy: "use another one", Err: errors.New("x")}
	for name, tt := range map[string]struct {
		err    error
		remote bool
		want   string
	}{
		"works":   {nil, false, "\nTraces work: touchstone benchmark --trace 3 adds counts of system calls.\n"},
		"no BTF":  {noBTF, false, "\nTraces do not work: the kernel has no BTF; use another one.\n"},
		"remote":  {nil, true, "\noci/crun: Traces work: touchstone benchmark --trace 3 adds counts of system calls.\ndocker/runc: Traces do not work: it is elsewhere.\n"},
		"unknown": {errors.New("busy"), false, "\nTraces do not work: busy.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			rows := []targetRow{{Target: "oci/runc", Engine: "oci"}, {Target: "oci/crun", Engine: "oci", Works: true}}
			if tt.remote {
				rows = append(rows, targetRow{Target: "docker/runc", Engine: "docker", Works: true, Cannot: map[string]string{string(engine.OnHost): "it is elsewhere"}})
			}
			addTraces(rows, tt.err)
			if rows[0].Trace != nil {
				t.Error("a target that does not work has traces")
			}
			var b bytes.Buffer
			printTraces(&b, 100, rows)
			expect.Equal(t, "the text", tt.want, b.String())
		})
	}
	var b bytes.Buffer
	printTraces(&b, 100, []targetRow{{Target: "native", Works: true}})
	expect.Equal(t, "without --trace", "", b.String())
}
