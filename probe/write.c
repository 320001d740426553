/* write: creates a file with one line. A test uses it to check which paths are writable, and where the file appears. */
#include "probe.h"

void command_write(char **argv)
{
	static const char line[] = "touchstone\n";
	const char *path = argv[0];
	if (!path)
		usage("write", "the file is missing", NULL);
	if (argv[1])
		usage("write", "unexpected argument", argv[1]);
	long fd = sys_open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
	if (fd < 0)
		die(EXIT_FAILED, "write", "make the file", path, fd);
	long e = sys_write((int)fd, line, sizeof line - 1);
	if (e < 0)
		die(EXIT_FAILED, "write", "write to", path, e);
	if ((e = sys_close((int)fd)) < 0)
		die(EXIT_FAILED, "write", "close", path, e);
	sys_exit(EXIT_OK);
}
