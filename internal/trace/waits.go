package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"
)

// clock is the clock of the kernel's programs, in nanoseconds.
func clock() (uint64, error) {
	var moment unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &moment); err != nil {
		return 0, fmt.Errorf("read the clock of the trace: %w", err)
	}
	return uint64(moment.Nano()), nil
}

// state is the state of a thread.
type state int

const (
	running state = iota
	queued        // it waits for a CPU
	blocked       // it waits for anything else
)

// span is a time during which a thread keeps its state.
type span struct {
	begin, end uint64 // by the clock of the kernel's programs
	state      state
	program    uint64
	call       uint32 // of the begin
	thread     uint32
	process    uint32
	isOpen     bool // it lasts longer than the trace

	isPreempted bool // the thread lost its CPU
}

// observeThreads adds the threads of a process that runs already. New threads since the attachment of the programs are known.
func (t *Tracer) observeThreads(process int, program uint64) error {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", process))
	if errors.Is(err, os.ErrNotExist) {
		return nil // the process has exited
	}
	if err != nil {
		return err
	}
	for _, task := range tasks {
		id, err := strconv.ParseUint(task.Name(), 10, 32)
		if err != nil {
			return err
		}
		thread := bpfThread{Program: program, Call: currentCall(process, task.Name()), Tgid: uint32(process), IsWaiting: 1, Step: noStep}
		if err := t.objects.Threads.Update(uint32(id), &thread, ebpf.UpdateNoExist); err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
			return err
		}
	}
	return nil
}

// currentCall reads the system call of a waiting thread. It returns callOutside for a running thread, and if the kernel refuses.
func currentCall(process int, thread string) uint32 {
	data, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(process), "task", thread, "syscall")) // kernels without it leave the call unknown
	number, _, _ := strings.Cut(string(data), " ")
	call, err := strconv.ParseUint(strings.TrimSpace(number), 10, 32)
	if err != nil {
		return callOutside
	}
	return uint32(call)
}

// waits reads the waits that have ended, in the order of their ends.
func (t *Tracer) waits() ([]bpfWait, error) { return records[bpfWait](t.objects.Waits) }

// records reads a buffer of the detached programs.
func records[R any](buffer *ebpf.Map) (list []R, err error) {
	reader, err := ringbuf.NewReader(buffer)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	reader.SetDeadline(time.Unix(1, 0)) // the programs are detached, so the buffer is final
	var record ringbuf.Record
	for {
		err := reader.ReadInto(&record)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		var r R
		if err := binary.Read(bytes.NewReader(record.RawSample), binary.NativeEndian, &r); err != nil {
			return nil, err
		}
		list = append(list, r)
	}
}

// spans reads the states of all threads during the trace. Spans without length are left out.
func (t *Tracer) spans() ([]span, error) {
	waits, err := t.waits()
	if err != nil {
		return nil, fmt.Errorf("read the waits of the trace: %w", err)
	}
	first, last := t.boundaries[0].time, t.end
	var list []span
	add := func(w *bpfWait, begin, end uint64, s state, isOpen bool) {
		if begin = max(begin, first); begin < end {
			list = append(list, span{begin, min(end, last), s, w.Program, w.Call, w.Thread, w.Tgid, isOpen, s == queued && w.Woken == w.Begin})
		}
	}
	addWait := func(w *bpfWait, end uint64, isOpen bool) {
		woken := w.Woken
		if woken == 0 {
			woken = end // no wakeup was seen
		}
		add(w, w.Begin, woken, blocked, isOpen && w.Woken == 0)
		add(w, woken, end, queued, isOpen)
	}
	latest := map[uint32]*bpfWait{} // by thread
	slices.SortStableFunc(waits, func(a, b bpfWait) int { return int(int64(a.Begin - b.Begin)) })
	for i := range waits {
		w := &waits[i]
		if previous := latest[w.Thread]; previous != nil && previous.End > 0 {
			add(previous, previous.End, w.Begin, running, false)
		}
		latest[w.Thread] = w
		if w.End > 0 {
			addWait(w, w.End, false)
		}
	}
	var id uint32
	var thread bpfThread
	entries := t.objects.Threads.Iterate()
	for entries.Next(&id, &thread) {
		w := &bpfWait{Program: thread.Program, Begin: thread.Since, Woken: thread.Woken, Thread: id, Tgid: thread.Tgid, Call: thread.Call}
		previous := latest[id]
		isRunning := previous != nil && previous.End > 0
		switch {
		case thread.IsWaiting == 0 && isRunning:
			add(previous, previous.End, last, running, true)
		case thread.IsWaiting == 1:
			if isRunning {
				add(previous, previous.End, w.Begin, running, false)
			}
			addWait(w, last, true)
		}
	}
	if err := entries.Err(); err != nil {
		return nil, fmt.Errorf("read the threads of the trace: %w", err)
	}
	return list, nil
}
