package monitor

// Program is the life of a process between two calls of execve.
type Program struct {
	// Parent is the place of the program of its parent process in the list of programs, or NoParent or DaemonParent.
	Parent int
	// Name is the kernel's name of the program, and Argument the last part of its first argument.
	Name, Argument string
	// Device and Inode identify its file, as stat reports them.
	Device, Inode uint64
	// Nested is set if the process is in a PID namespace below its parent's, like the first process of a container.
	Nested bool
}

// The places of parents outside of the list of programs.
const (
	NoParent     = -1 // Touchstone, which adopts orphans, or not known
	DaemonParent = -2 // a daemon of the target
)

// Classify returns the component of each program of the target. A parent precedes its children.
func (t Target) Classify(programs []Program) []Component {
	a := newAccount(t, "/proc")
	components := make([]Component, len(programs))
	processes := make([]process, len(programs))
	for i, p := range programs {
		processes[i] = process{comm: p.Name, args: []string{p.Argument}, exe: executed{p.Device, p.Inode}, nested: p.Nested}
		var parent Component
		var names []string
		switch {
		case p.Parent >= 0:
			parent, names = components[p.Parent], processes[p.Parent].names()
		case p.Parent == DaemonParent:
			parent = Daemon
		}
		components[i] = a.classify(processes[i], parent, names)
	}
	return components
}
