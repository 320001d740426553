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
	noTracer := &trace.Error{Reason: trace.NoFunctionTracer, Cause: "the kernel has no function tracer", Remedy: "use another one", Err: errors.New("x")}
	const noFunctions = "surface.functions counts no functions of the kernel: the kernel has no function tracer; use another\n    one.\n"
	for name, tt := range map[string]struct {
		err, functions error
		remote         bool
		want           string
	}{
		"works":   {nil, nil, false, "\nTraces work: touchstone benchmark --trace 3 adds counts of system calls.\nsurface.functions counts functions of the kernel.\n"},
		"no BTF":  {noBTF, noTracer, false, "\nTraces do not work: the kernel has no BTF; use another one.\nNo other tracer takes its place: tracefs loses calls, and knows no components\n    (docs/adr/0055-traces.md).\n" + noFunctions},
		"remote":  {nil, noTracer, true, "\noci/crun: Traces work: touchstone benchmark --trace 3 adds counts of system calls.\ndocker/runc: Traces do not work: it is elsewhere.\n" + noFunctions},
		"unknown": {errors.New("busy"), noTracer, false, "\nTraces do not work: busy.\n" + noFunctions},
	} {
		t.Run(name, func(t *testing.T) {
			rows := []targetRow{{Target: "oci/runc", Engine: "oci"}, {Target: "oci/crun", Engine: "oci", Works: true}}
			if tt.remote {
				rows = append(rows, targetRow{Target: "docker/runc", Engine: "docker", Works: true, Cannot: map[string]string{string(engine.OnHost): "it is elsewhere"}})
			}
			addTraces(rows, tt.err, tt.functions)
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
