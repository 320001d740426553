package fact

// Kind is the subject matter of a fact.
type Kind int

// The kinds. Those from MemoryAvailable to Zswap explain figures of memory.
const (
	Hostname Kind = iota
	Machine
	System
	Kernel
	Architecture
	CPU
	OnlineCPUs
	Governor
	Turbo
	SMT
	Memory
	Swap
	PageSize
	Tuning
	MemoryAvailable
	SwapUsed
	Swappiness
	Overcommit
	HugePages
	KSM
	Zswap
	Microcode
	Scaling
	IdleStates
	ClockSource
	Preemption
	NUMABalancing
	BPFJIT
	FileSystems
	Cgroup
	SecurityModules
	Mitigations
	CommandLine
	Root
	Selfcheck
	// Node is the name of the machine in its cluster, and NodeLabel has the key of a label of the node as its subject.
	Node
	NodeKind
	Kubelet
	ContainerEngine
	NodeLabel
	Tool
	Image
	// Images are all images of a run.
	Images
	Plan
	Baseline
	// Version has a target as its subject, and so has Target, which is a fact among facts of other things. Runtime is the options of its runtime.
	Version
	Target
	Runtime
	// Workload has the name of a workload as its subject. It is the definition.
	Workload
	// Monitor has the title of a benchmark as its subject: its name, with its parameters behind a blank if a plan has it several times.
	Monitor
	// Setting has the key of a setting of the plan as its subject.
	Setting
	// Parameters has a benchmark on a target as its subject.
	Parameters
	// Condition has the name of a condition of the measurement as its subject, and Extent a benchmark with its parameters.
	Condition
	Extent
)

// property is the properties of a kind.
type property struct {
	// name is the name of the fact. The subject follows it.
	name string
	// natural is set if runs of one machine differ in it by nature.
	natural bool
	// identity is set if it identifies a machine.
	identity bool
	// optional is set if a run may lack it, and partial if it is about a part of a run, such as a target.
	optional, partial bool
}

var properties = [...]property{
	Hostname:        {name: "Name", identity: true},
	Machine:         {name: "Machine", identity: true},
	System:          {name: "System"},
	Kernel:          {name: "Kernel"},
	Architecture:    {name: "Architecture", identity: true},
	CPU:             {name: "CPU", identity: true},
	OnlineCPUs:      {name: "Online CPUs", identity: true},
	Governor:        {name: "Governor"},
	Turbo:           {name: "Turbo"},
	SMT:             {name: "SMT"},
	Memory:          {name: "Memory", identity: true},
	Swap:            {name: "Swap"},
	PageSize:        {name: "Page size"},
	Tuning:          {name: "Changed by touchstone host tune"},
	MemoryAvailable: {name: "Memory available at the start", natural: true},
	SwapUsed:        {name: "Swap used at the start", natural: true},
	Swappiness:      {name: "Swappiness"},
	Overcommit:      {name: "Overcommit"},
	HugePages:       {name: "Transparent huge pages"},
	KSM:             {name: "KSM"},
	Zswap:           {name: "zswap"},
	Microcode:       {name: "Microcode", optional: true},
	Scaling:         {name: "Frequency scaling", optional: true},
	IdleStates:      {name: "Idle states", optional: true},
	ClockSource:     {name: "Clock source", optional: true},
	Preemption:      {name: "Preemption", optional: true},
	NUMABalancing:   {name: "NUMA balancing", optional: true},
	BPFJIT:          {name: "JIT of BPF", optional: true},
	FileSystems:     {name: "File systems", optional: true},
	Cgroup:          {name: "Cgroup"},
	SecurityModules: {name: "Security modules"},
	Mitigations:     {name: "Mitigations"},
	CommandLine:     {name: "Kernel command line"},
	Root:            {name: "Run as root"},
	Selfcheck:       {name: "Selfcheck", natural: true},
	Node:            {name: "Node", identity: true, optional: true},
	NodeKind:        {name: "Kind of node", identity: true, optional: true},
	Kubelet:         {name: "Kubelet", optional: true},
	ContainerEngine: {name: "Container engine", optional: true},
	NodeLabel:       {name: "Label", identity: true, optional: true},
	Tool:            {name: "Tool"},
	Image:           {name: "Image"},
	Images:          {name: "Images"},
	Plan:            {name: "Plan"},
	Baseline:        {name: "Baseline"},
	Version:         {},
	Target:          {name: "Target", partial: true},
	Runtime:         {name: "Runtime of", partial: true},
	Workload:        {name: "Workload", partial: true},
	Monitor:         {name: "Monitor of", partial: true},
	Setting:         {name: "Plan"},
	Parameters:      {name: "Parameters of"},
	Condition:       {},
	Extent:          {},
}

// Natural reports whether runs of one machine differ in the fact by nature. It is no cause of a difference.
func (k Kind) Natural() bool { return properties[k].natural }

// Identity reports whether the fact identifies a machine. It is compared only if the machines differ.
func (k Kind) Identity() bool { return properties[k].identity }

// Optional reports whether a run may lack the fact. A run without it differs in it from no other run.
func (k Kind) Optional() bool { return properties[k].optional }

// Partial reports whether only runs that have the fact are compared: it is optional, or about a part of a run such as a target.
func (k Kind) Partial() bool { return properties[k].partial || properties[k].optional }
