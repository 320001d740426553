// Package programs has the programs of the workload image: their calls, the parsers of their output, and their servers.
//
// A file for each program also declares its [Tool]: the packages and files of the workload image. A parser refuses output of another version, of
// other parameters or of a failure, because a failure must never look like a result.
package programs

// Tool is a program of the workload image. The file that calls the program and parses its output declares the tool;
// the image's packages, its files and the table in docs/image.md follow from the declaration.
type Tool struct {
	Name string
	// Packages are the Debian packages that contain Files and Libraries. Their dependencies need not be listed.
	Packages []string
	// Files are the absolute paths of the executables, and of the files that they open but that no ELF header names.
	Files []string
	// Libraries are opened by name at run time. The paths are relative to the library directory of the architecture.
	Libraries []string
}

// Tools lists the programs of the workload image.
func Tools() []Tool {
	return []Tool{
		sysbenchTool, sevenZipTool, zstdTool, dav1dTool, linpackTool, fioTool, sqliteTool, iperfTool, netperfTool, nginxTool, abTool, redisTool,
	}
}
