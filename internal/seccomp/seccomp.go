// Package seccomp decides which system calls the seccomp filters of a process allow.
//
// A filter is a program of classic BPF, which the kernel runs on the number, the architecture and the arguments of each call (man 2 seccomp). The
// package follows all paths of the program that the arguments can select. So it knows for each number whether the call is allowed with all arguments, with
// some, or with none.
package seccomp

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Instruction is an instruction of classic BPF (linux/filter.h).
type Instruction struct {
	Code                uint16
	JumpTrue, JumpFalse uint8
	K                   uint32
}

// Filter is a program.
type Filter []Instruction

// instructionSize is the size of an encoded instruction, in hexadecimal digits.
const instructionSize = 16

// maxInstructions is the kernel's limit of a filter, BPF_MAXINSNS.
const maxInstructions = 4096

// Parse reads a filter as hexadecimal digits: for each instruction the code (4), the jumps (2 each) and the value (8).
func Parse(text string) (Filter, error) {
	data, err := hex.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("read a seccomp filter: %w", err)
	}
	if n := len(text) / instructionSize; len(text)%instructionSize != 0 || n == 0 || n > maxInstructions {
		return nil, fmt.Errorf("read a seccomp filter: %d digits are not 1 to %d instructions of %d digits", len(text), maxInstructions, instructionSize)
	}
	var f Filter
	for ; len(data) > 0; data = data[instructionSize/2:] {
		f = append(f, Instruction{binary.BigEndian.Uint16(data), data[2], data[3], binary.BigEndian.Uint32(data[4:])})
	}
	return f, nil
}

// Verdict is the decision of filters on a system call.
type Verdict int

// The verdicts, from the strictest.
const (
	Refused    Verdict = iota // with all arguments
	ByArgument                // with some arguments; perhaps with none, because two tests of one argument count as independent
	Allowed                   // with all arguments
)

// Decide returns the verdict of all filters of a process on the call with a number, on an architecture (AUDIT_ARCH_*). The kernel runs all
// filters, and the strictest answer holds. Without a filter each call is allowed.
func Decide(filters []Filter, arch, number uint32) (Verdict, error) {
	verdict := Allowed
	for _, f := range filters {
		paths := explorer{filter: f, arch: arch, number: number, seen: map[state]bool{}}
		if err := paths.follow(); err != nil {
			return Refused, err
		}
		switch {
		case !paths.allows:
			return Refused, nil
		case paths.refuses:
			verdict = ByArgument
		}
	}
	return verdict, nil
}

// The fields of struct seccomp_data that do not depend on the arguments, by offset.
const (
	numberOffset = 0
	archOffset   = 4
	dataSize     = 64
)

// state is a point of the program: the next instruction, the registers and the memory.
type state struct {
	at     int
	a, x   value
	memory [16]value // BPF_MEMWORDS
}

// value is the content of a register. Its number is not known if it depends on an argument.
type value struct {
	number   uint32
	argument bool
}

// maxStates bounds the work for a filter and a call. A filter of 4096 instructions without a loop has far fewer.
const maxStates = 1 << 18

// explorer follows the paths of a filter.
type explorer struct {
	filter          Filter
	arch, number    uint32
	seen            map[state]bool
	allows, refuses bool
}

// follow follows all paths.
func (e *explorer) follow() error {
	for open := []state{{}}; len(open) > 0; {
		s := open[len(open)-1]
		open = open[:len(open)-1]
		if e.seen[s] {
			continue
		}
		if e.seen[s] = true; len(e.seen) > maxStates {
			return fmt.Errorf("a seccomp filter has more than %d states for a call", maxStates)
		}
		next, err := e.step(s)
		if err != nil {
			return fmt.Errorf("instruction %d of a seccomp filter: %w", s.at, err)
		}
		open = append(open, next...)
	}
	return nil
}

// step executes an instruction, and returns the states that can follow.
func (e *explorer) step(s state) ([]state, error) {
	if s.at >= len(e.filter) {
		return nil, errors.New("it is behind the end of the filter")
	}
	i := e.filter[s.at]
	s.at++
	operand := value{number: i.K}
	switch class := i.Code & 0x07; class {
	case unix.BPF_LD, unix.BPF_LDX:
		content, err := e.load(i, s)
		if err != nil {
			return nil, err
		}
		if class == unix.BPF_LD {
			s.a = content
		} else {
			s.x = content
		}
	case unix.BPF_ST, unix.BPF_STX:
		if i.K >= uint32(len(s.memory)) {
			return nil, fmt.Errorf("it has no word %d of memory", i.K)
		}
		s.memory[i.K] = s.a
		if class == unix.BPF_STX {
			s.memory[i.K] = s.x
		}
	case unix.BPF_ALU:
		if i.Code&unix.BPF_X != 0 {
			operand = s.x
		}
		s.a = compute(i.Code&0xf0, s.a, operand)
	case unix.BPF_JMP:
		if i.Code&unix.BPF_X != 0 {
			operand = s.x
		}
		return jump(i, s, operand), nil
	case unix.BPF_RET:
		if i.Code&0x18 == unix.BPF_A {
			operand = s.a
		}
		e.end(operand)
		return nil, nil
	default: // BPF_MISC
		if i.Code&0xf8 == unix.BPF_TAX {
			s.x = s.a
		} else {
			s.a = s.x
		}
	}
	return []state{s}, nil
}

// load returns the operand of a load. Seccomp allows no other loads.
func (e *explorer) load(i Instruction, s state) (value, error) {
	switch i.Code & 0xf8 { // with the size, which is a word
	case unix.BPF_IMM:
		return value{number: i.K}, nil
	case unix.BPF_LEN:
		return value{number: dataSize}, nil
	case unix.BPF_MEM:
		if i.K < uint32(len(s.memory)) {
			return s.memory[i.K], nil
		}
	case unix.BPF_ABS:
		switch i.K {
		case numberOffset:
			return value{number: e.number}, nil
		case archOffset:
			return value{number: e.arch}, nil
		default:
			return value{argument: true}, nil
		}
	}
	return value{}, fmt.Errorf("the load %#x %#x is none of seccomp", i.Code, i.K)
}

// compute returns the result of an operation of the kernel's cBPF interpreter.
func compute(op uint16, a, b value) value {
	if a.argument || b.argument {
		return value{argument: true}
	}
	switch op {
	case unix.BPF_ADD:
		a.number += b.number
	case unix.BPF_SUB:
		a.number -= b.number
	case unix.BPF_MUL:
		a.number *= b.number
	case unix.BPF_DIV:
		if b.number == 0 {
			return value{}
		}
		a.number /= b.number
	case unix.BPF_AND:
		a.number &= b.number
	case unix.BPF_OR:
		a.number |= b.number
	case unix.BPF_XOR:
		a.number ^= b.number
	case unix.BPF_LSH:
		a.number <<= b.number
	case unix.BPF_RSH:
		a.number >>= b.number
	case unix.BPF_NEG:
		a.number = -a.number
	default:
		return value{argument: true}
	}
	return a
}

// jump returns the states after a jump: both if it depends on an argument.
func jump(i Instruction, s state, operand value) []state {
	skip := func(offset uint32) state {
		target := s
		target.at += int(offset)
		return target
	}
	var holds bool
	switch i.Code & 0xf0 {
	case unix.BPF_JA:
		return []state{skip(i.K)}
	case unix.BPF_JEQ:
		holds = s.a.number == operand.number
	case unix.BPF_JGT:
		holds = s.a.number > operand.number
	case unix.BPF_JGE:
		holds = s.a.number >= operand.number
	case unix.BPF_JSET:
		holds = s.a.number&operand.number != 0
	}
	switch {
	case s.a.argument || operand.argument:
		return []state{skip(uint32(i.JumpTrue)), skip(uint32(i.JumpFalse))}
	case holds:
		return []state{skip(uint32(i.JumpTrue))}
	default:
		return []state{skip(uint32(i.JumpFalse))}
	}
}

// end notes an answer of the filter. A supervisor or an unknown answer may allow the call or not.
func (e *explorer) end(answer value) {
	const action = 0xffff0000 // SECCOMP_RET_ACTION_FULL
	switch verdict := answer.number & action; {
	case answer.argument || verdict == unix.SECCOMP_RET_USER_NOTIF:
		e.allows, e.refuses = true, true
	case verdict == unix.SECCOMP_RET_ALLOW || verdict == unix.SECCOMP_RET_LOG:
		e.allows = true
	default:
		e.refuses = true
	}
}
